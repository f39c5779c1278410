"""Spreads the compiles of a sweep over workers of dask.distributed, and stores each row as soon as it is there."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import multiprocessing
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeVar

from irscope import __version__
from irscope.analysis.resources import figures_of
from irscope.errors import IrscopeError, MissingTool, RecordingError, installing
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Point, SweepRow
from irscope.plan import PassPlan
from irscope.record.process.requests import default_jobs, request_from_capture
from irscope.record.variants.pool import VariantPool
from irscope.store.file import from_bytes, to_bytes
from irscope.store.table import Journal

_LONGEST_MESSAGE = 2000


@dataclass(frozen=True, slots=True)
class SweepWork:
    """One row to be made."""

    key: str
    capture_id: str
    point: Point
    timeout_s: float
    verifies: bool = False
    """Whether the compile's meaning is compared with that of the IR."""
    compiles: int = 1
    """How often it is compiled, for its time."""


_Answer = TypeVar("_Answer")
_pools: dict[str, tuple[VariantPool, Context]] = {}
"""By interpreter, for as long as this worker lives; each with the context that it was entered in."""
_lock = threading.Lock()


def light(capture: Capture) -> Capture:
    """What another compile of a capture needs of it, and why there can be none."""
    begun = tuple(one for one in capture.artifacts if one.stage == "source") or capture.artifacts[:1]
    small = Capture(capture.launch, capture.target, capture.plan, begun, environment=capture.environment)
    return small if begun else replace(small, status=capture.status, failure=capture.failure)


def compiler_of(interpreter: str) -> tuple[str, str]:
    """(Triton's version, a text that changes with every rebuild of it) on the worker."""
    with _lock:
        return _ask_pool(interpreter, lambda pool: pool.compiler)


def compile_point(work: SweepWork, packed: bytes) -> SweepRow:
    """Compile a capture in one way. A failure is a row too; so is a request that the compiler refuses.

    `packed`: the capture as a file's bytes, the least that survives where workers are ended.
    """
    point, capture = work.point, from_bytes(packed)
    if capture.failure is not None:
        # Its front end failed.
        return failed_row(work, capture, capture.failure.kind, capture.failure.message)
    plan = capture.plan.joined(PassPlan.parse(point.plan)) if point.plan else capture.plan
    asked = RecordingOptions(
        plan=plan,
        targets=(point.target,) if point.target else (),
        options=point.options,
        snapshots="none",
        disassemble=False,
        timeout_s=work.timeout_s,
    )
    with _lock:
        try:
            request = request_from_capture(capture, asked)
            made, (version, _) = _ask_pool(point.interpreter, lambda pool: (pool.compile_one(request), pool.compiler))
            times = [made]
            while made.has_compiled and len(times) < work.compiles:
                times.append(_ask_pool(point.interpreter, lambda pool: pool.compile_one(request)))
        except IrscopeError as error:
            # The next task begins with a fresh one, in case this one's process is gone.
            _close_pool(point.interpreter)
            return failed_row(work, capture, "refused", str(error))
    # Its addresses are evaluated with what the launch was given.
    made = replace(made, launch=replace(made.launch, grid=capture.launch.grid, record=capture.launch.record))
    row = _row(work, capture, made, version)
    if len(times) > 1:
        used = [one.processor_us for one in times if one.processor_us is not None]
        taken = [one.compile_us for one in times if one.compile_us is not None]
        row = replace(
            row,
            compile_us=min(taken, default=None),
            processor_us=min(used, default=None),
            processor_most_us=max(used, default=None),
        )
    return replace(row, meaning=_meaning(capture, made)) if work.verifies else row


def failed_row(work: SweepWork, capture: Capture, failure: str, message: str) -> SweepRow:
    """The row of a compile that gave no capture."""
    point, launch = work.point, capture.launch
    options = dict(launch.options) | dict(point.options)

    def number(name: str) -> int | None:
        value = options.get(name)
        return value if isinstance(value, int) else None

    return SweepRow(
        key=work.key,
        capture=work.capture_id,
        kernel=capture.name,
        file=launch.kernel.file,
        line=launch.kernel.line,
        constants=" ".join(f"{name}={value}" for name, value in launch.constants),
        vs=point.name,
        target=point.target or str(capture.target),
        plan=str(capture.plan.joined(PassPlan.parse(point.plan)) if point.plan else capture.plan),
        interpreter=point.interpreter,
        triton="",
        source_triton=capture.environment.triton_version,
        num_warps=number("num_warps"),
        num_stages=number("num_stages"),
        num_ctas=number("num_ctas"),
        id="",
        status="failed",
        failure=failure,
        message=message[:_LONGEST_MESSAGE],
    )


def _row(work: SweepWork, capture: Capture, made: Capture, version: str) -> SweepRow:
    figures = figures_of(made)
    figures["message"] = figures["message"][:_LONGEST_MESSAGE]
    return replace(failed_row(work, capture, "", ""), triton=version, id=made.id, **figures)


def _meaning(capture: Capture, made: Capture) -> str:
    from irscope.verify.meaning import compare_captures

    if not made.has_compiled:
        return ""
    return compare_captures(capture, made).answer


def _ask_pool(interpreter: str, ask: Callable[[VariantPool], _Answer]) -> _Answer:
    """What is asked of the pool of an interpreter: dask runs each task in a context of its own, with nothing warm."""
    if interpreter not in _pools:
        pool, context = VariantPool(jobs=1, interpreter=interpreter or None), copy_context()
        context.run(pool.__enter__)
        _pools[interpreter] = pool, context
    pool, context = _pools[interpreter]
    return context.run(ask, pool)


def _close_pool(interpreter: str) -> None:
    if (gone := _pools.pop(interpreter, None)) is not None:
        pool, context = gone
        context.run(pool.__exit__, None, None, None)


@atexit.register
def close_pools() -> None:
    """End the processes that this one's compiles are forked from."""
    for interpreter in [*_pools]:
        _close_pool(interpreter)


_CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
_RETRIES = 2
_CONNECT_S = 10


@contextmanager
def _without_main_module() -> Generator[None]:
    """Hide the program's main module from new processes, which would run a script again that has no guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def client_of(scheduler: str, jobs: int | None) -> Generator[Any]:
    """A client of a cluster: the one at an address, or one of processes on this machine that ends with the block."""
    try:
        import distributed  # pyright: ignore
    except ImportError as error:
        raise MissingTool(f"a sweep needs dask.distributed: {installing('sweep')}.") from error
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

    try:
        security = dask.Security.temporary()
    except ImportError as error:
        raise MissingTool(f"a sweep needs cryptography too: {installing('sweep')}.") from error
    # The workers are forks of one process that has imported dask: each would take a second of a core for that.
    forked = {"distributed.worker.multiprocessing-method": "forkserver"} if _CAN_FORK else {}
    # Each of dask's processes has a web server beside, whatever it is told of a dashboard: with nothing to answer.
    silent: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with (
        config.set(forked | silent),
        _without_main_module(),
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
    verifies: bool = False,
    compiles: int = 1,
) -> list[SweepRow]:
    """The rows of all captures in all ways, in their order; those of `known` and of the journal are not made again.

    `captures`: by the constants of the points that they are compiled in, which they were recorded with. `verifies`:
    whether the meaning of each compile is compared with that of the IR. `compiles`: how often each is compiled, for its
    time.

    A worker that ends gives its work to the others; a compile whose workers end again and again is a failed row.
    """
    from distributed import as_completed  # pyright: ignore

    interpreters = list(dict.fromkeys(one.interpreter for one in points))
    compilers = {one: client.submit(compiler_of, one, retries=_RETRIES, pure=False).result() for one in interpreters}
    wanted: dict[str, tuple[SweepWork, Capture]] = {}
    for constants, capture in ((constants, one) for constants, found in captures.items() for one in found):
        small = light(capture)
        for point in (one for one in points if one.constants == constants):
            key = _key(capture, point, compilers[point.interpreter], verifies, compiles)
            wanted.setdefault(key, (SweepWork(key, capture.id, point, timeout_s, verifies, compiles), small))
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


def _key(capture: Capture, point: Point, compiler: tuple[str, str], verifies: bool, compiles: int) -> str:
    target = point.target or str(capture.target)
    identity = [capture.id, target, sorted(point.options), point.plan, point.interpreter, *compiler, __version__]
    identity += ["verify"] if verifies else []
    identity += [compiles] if compiles > 1 else []
    return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:20]
