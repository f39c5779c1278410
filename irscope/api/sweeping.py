"""Spreads the compiles of a sweep over workers of dask.distributed, and keeps each row as soon as it is there."""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irscope import __version__
from irscope.api.sweep_task import Work, compile_point, compiler_of, failed_row, light
from irscope.errors import MissingTool, RecordingError
from irscope.model.capture import Capture
from irscope.model.trial import Point, SweepRow
from irscope.store.file import to_bytes
from irscope.store.table import Journal

__all__ = ["client_of", "sweep"]

_CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
_RETRIES = 2
_CONNECT_S = 10


@contextmanager
def client_of(scheduler: str, jobs: int | None) -> Generator[Any]:
    """A client of a cluster: the one at an address, or one of processes on this machine that ends with the block."""
    try:
        import distributed  # pyright: ignore
    except ImportError as error:
        raise MissingTool("a sweep needs dask.distributed: pip install 'irscope[sweep]'.") from error
    dask: Any = distributed
    if scheduler:
        try:
            client = dask.Client(scheduler, timeout=_CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            raise RecordingError(f"--scheduler {scheduler!r}: no scheduler answers there: {error}") from error
        try:
            yield client
        finally:
            client.close()
        return
    from dask import config  # pyright: ignore

    from irscope.record.process.requests import default_jobs

    try:
        security = dask.Security.temporary()
    except ImportError as error:
        raise MissingTool("a sweep needs cryptography too: pip install 'irscope[sweep]'.") from error
    # The workers are forks of one process that has imported dask: each would take a second of a core for that.
    forked = {"distributed.worker.multiprocessing-method": "forkserver"} if _CAN_FORK else {}
    # Each of dask's processes has a web server beside, whatever it is told of a dashboard: with nothing to answer.
    silent: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with (
        config.set(forked | silent),
        dask.LocalCluster(
            n_workers=jobs or default_jobs(),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            # Whoever reaches the scheduler's port could have code run: only this cluster's own certificate is let in.
            security=security,
        ) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


def sweep(
    client: Any,
    captures: Mapping[tuple[tuple[str, str], ...], Sequence[Capture]],
    points: Sequence[Point],
    journal: Journal,
    known: Sequence[SweepRow],
    *,
    timeout_s: float,
    progress: Callable[[int, int, SweepRow | None], None],
) -> list[SweepRow]:
    """The rows of all captures in all ways, in their order; those of `known` and of the journal are not made again.

    `captures`: by the constants of the points that they are compiled in, which they were recorded with.

    A worker that ends gives its work to the others; a compile whose workers end again and again is a failed row.
    """
    from distributed import as_completed  # pyright: ignore

    interpreters = list(dict.fromkeys(one.interpreter for one in points))
    compilers = {one: client.submit(compiler_of, one, retries=_RETRIES, pure=False).result() for one in interpreters}
    wanted: dict[str, tuple[Work, Capture]] = {}
    for constants, capture in ((constants, one) for constants, found in captures.items() for one in found):
        small = light(capture)
        for point in (one for one in points if one.constants == constants):
            key = _key(capture, point, compilers[point.interpreter])
            wanted.setdefault(key, (Work(key, capture.id, point, timeout_s), small))
    rows = {row.key: row for row in (*known, *journal.rows()) if row.key in wanted and row.failure not in _PASSING}
    progress(len(rows), len(wanted), None)
    packed: dict[str, bytes] = {}
    futures: dict[Any, str] = {}
    for key, (work, small) in wanted.items():
        if key in rows:
            continue
        if work.capture_id not in packed:
            packed[work.capture_id] = to_bytes(small)
        # With the work itself: what is scattered is lost with the worker that holds it.
        future = client.submit(compile_point, work, packed[work.capture_id], key=f"irscope-{key}", retries=_RETRIES)
        futures[future] = key
    waiting: Any = as_completed(list(futures))
    for future in waiting:
        key = futures[future]
        work, small = wanted[key]
        try:
            row = future.result()
        except Exception as error:
            # KilledWorker, and whatever else a cluster loses work by: the row says so, and the next run tries again.
            row = failed_row(work, small, "worker", f"{type(error).__name__}: {error}")
        rows[key] = row
        journal.add(row)
        progress(len(rows), len(wanted), row)
    return [rows[key] for key in wanted]


_PASSING = ("worker", "timeout", "interrupt")
"""Failures that another run may not have."""


def _key(capture: Capture, point: Point, compiler: tuple[str, str]) -> str:
    target = point.target or str(capture.target)
    identity = [capture.id, target, sorted(point.options), point.plan, point.interpreter, *compiler, __version__]
    return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:20]
