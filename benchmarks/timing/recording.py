"""Captures of every configuration, made by irscope's virtual GPU in parallel processes, and Triton's cache warmed."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path

from benchmarks.timing.family import FAMILIES
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.in_process import _captured_launches
from irscope.record.virtual.gpu import virtual_gpu
from irscope.store.file import to_bytes
from irscope.target import Target

TARGET = Target.parse("cuda:90")


def capture_name(family: str, number: int) -> str:
    """Name the file of a configuration's capture."""
    return f"{family}-{number:02d}.irscope"


def failure_name(family: str, number: int) -> str:
    """Name the file with the message of a configuration that does not compile."""
    return f"{family}-{number:02d}.failed"


def record(family: str, number: int, folder: Path, *, captures: bool = True, warm: bool = True) -> None:
    """Compile one configuration, into Triton's cache and into a capture, or write why that failed.

    The files appear when everything is done: `measuring` waits for them.
    """
    row = FAMILIES[family]
    config = row.configs[number]
    try:
        if warm:
            with virtual_gpu(TARGET):
                row.prepare(config)()
        content = b""
        if captures:
            request = RecordRequest(mode="script", snapshots="none", layouts=False)
            with _captured_launches(request, virtual=TARGET) as recorded:
                row.prepare(config)()
            # The SASS is there when the block has ended.
            content = to_bytes(recorded[len(recorded) - 1])
    except Exception as error:
        (folder / failure_name(family, number)).write_text(f"{type(error).__name__}: {error}"[:2000])
        return
    partial = folder / f"{family}-{number:02d}.partial"
    partial.write_bytes(content)
    partial.rename(folder / capture_name(family, number))


def record_all(
    work: list[tuple[str, int]],
    folder: Path,
    workers: int,
    *,
    captures: bool = True,
    warm: bool = True,
    limit_s: float | None = None,
) -> None:
    """Record every configuration of `work` in `workers` processes, in order; what is not done by `limit_s` failed."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_quiet)
    jobs = {pool.submit(record, *place, folder, captures=captures, warm=warm): place for place in work}
    done, waiting = wait(jobs, timeout=None if limit_s is None else limit_s)
    for job in done:
        job.result()
    for name, number in (jobs[job] for job in waiting):
        (folder / failure_name(name, number)).write_text(f"not compiled within {limit_s:.0f} s of all the work")
    if waiting:
        for process in list(pool._processes.values()):
            process.kill()
    pool.shutdown(wait=not waiting, cancel_futures=True)
    failed = len(list(folder.glob("*.failed")))
    print(f"recorded {len(work)}, {failed} failed, in {time.monotonic() - began:.0f} s", flush=True)


def _quiet() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
