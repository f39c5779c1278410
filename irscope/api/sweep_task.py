"""What a worker of a sweep does: compiles one capture in one way, and makes a row of it."""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass, replace

from irscope.analysis.resources.table import figures_of
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Point, SweepRow
from irscope.plan import PassPlan
from irscope.record.process.requests import request_from_capture
from irscope.record.variants.pool import VariantPool
from irscope.store.file import from_bytes

__all__ = ["Work", "close_pools", "compile_point", "compiler_of", "failed_row", "light"]

_LONGEST_MESSAGE = 2000


@dataclass(frozen=True, slots=True)
class Work:
    """One row to be made."""

    key: str
    capture_id: str
    point: Point
    timeout_s: float


_pools: dict[str, VariantPool] = {}
"""By interpreter, for as long as this worker lives."""
_lock = threading.Lock()


def light(capture: Capture) -> Capture:
    """What another compile of a capture needs of it, and why there can be none."""
    begun = tuple(one for one in capture.artifacts if one.stage == "source") or capture.artifacts[:1]
    small = Capture(capture.launch, capture.target, capture.plan, begun, environment=capture.environment)
    return small if begun else replace(small, status=capture.status, failure=capture.failure)


def compiler_of(interpreter: str) -> tuple[str, str]:
    """(Triton's version, a text that changes with every rebuild of it) on the worker."""
    with _lock:
        return _pool(interpreter).compiler


def compile_point(work: Work, packed: bytes) -> SweepRow:
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
            pool = _pool(point.interpreter)
            made = pool.compile_one(request_from_capture(capture, asked))
            version = pool.compiler[0]
        except IrscopeError as error:
            # The next task begins with a fresh one, in case this one's process is gone.
            if (gone := _pools.pop(point.interpreter, None)) is not None:
                gone.__exit__(None, None, None)
            return failed_row(work, capture, "refused", str(error))
    return _row(work, capture, made, version)


def failed_row(work: Work, capture: Capture, failure: str, message: str) -> SweepRow:
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


def _row(work: Work, capture: Capture, made: Capture, version: str) -> SweepRow:
    # Its addresses are evaluated with what the launch was given.
    made = replace(made, launch=replace(made.launch, grid=capture.launch.grid, record=capture.launch.record))
    figures = figures_of(made)
    figures["message"] = figures["message"][:_LONGEST_MESSAGE]
    return replace(failed_row(work, capture, "", ""), triton=version, id=made.id, **figures)


def _pool(interpreter: str) -> VariantPool:
    if interpreter not in _pools:
        _pools[interpreter] = VariantPool(jobs=1, interpreter=interpreter or None).__enter__()
    return _pools[interpreter]


@atexit.register
def close_pools() -> None:
    """End the processes that this one's compiles are forked from."""
    while _pools:
        _pools.popitem()[1].__exit__(None, None, None)
