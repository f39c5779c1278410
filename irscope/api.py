"""The Python interface: `record`, `record_all` and `capture`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from irscope.capture import Capture, Target
from irscope.errors import RecordingError, UsageError
from irscope.plan import PassPlan

if TYPE_CHECKING:
    from irscope.record.in_process import Recorded

SnapshotLevel = Literal["all", "triton", "none"]


def record_all(
    source: str | Path | Any,
    *,
    kernel: str = "",
    target: str | Target | Sequence[str | Target] = (),
    plan: str | PassPlan = "",
    signature: str | None = None,
    constexprs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    config: str = "first",
    snapshots: SnapshotLevel = "triton",
    llvm_passes: bool = False,
    virtual: bool = False,
    timeout_s: float = 300.0,
    interpreter: str | None = None,
    assume: Mapping[str, Any] | None = None,
) -> tuple[Capture, ...]:
    """Record every launch of a script, or a kernel by its signature, in a process of its own.

    Args:
        source: a script's path, an IR file's (`.ttir`, `.ttgir`, `.llir`, `.ptx`), or a `@triton.jit` function.
        kernel: only this kernel; needed with `signature`.
        target: `cuda:90`, or several, each with a run of the script; by default the GPU that is there, else cuda:90.
        plan: passes to switch off, such as `-combine`.
        signature: `*fp16:16, i32, 64`, in the syntax of `triton.tools.compile`; the file is imported, not run.
        constexprs: values of `tl.constexpr` parameters, with `signature`.
        options: compile options such as num_warps, with `signature` or an IR file.
        arguments: the script's own arguments.
        config: which configurations of an autotuned kernel: `first`, `all`, an index, or KEY=VALUE.
        snapshots: which passes' texts to keep: `triton` (while Triton's dialects are there), `all` or `none`.
        llvm_passes: record the IR after each LLVM pass too.
        virtual: run on the virtual GPU even where there is a real one.
        timeout_s: seconds for one kernel's compile.
        interpreter: a Python with another Triton.
        assume: what the virtual GPU takes values to be that a GPU would compute: by the variable that the script
            assigns them to, FILE:LINE of the read, or the kernel's parameter.

    Returns the captures, failed ones included, those of one target after those of another. Raises RecordingError where
    nothing was compiled; where that is so for some of several targets, it warns.
    """
    from irscope.record.requests import request_for
    from irscope.record.session import record_request

    targets = (target,) if isinstance(target, (str, Target)) else tuple(target)
    request = request_for(
        source,
        kernel=kernel,
        targets=tuple(str(item) for item in targets),
        plan=str(plan),
        signature=signature,
        constexprs={
            name: repr(value) if not isinstance(value, str) else value for name, value in (constexprs or {}).items()
        },
        options=dict(options or {}),
        arguments=tuple(arguments),
        configs=config,
        snapshots=snapshots,
        llvm_passes=llvm_passes,
        virtual=virtual,
        assume={name: str(value) for name, value in (assume or {}).items()},
    )
    recording = record_request(request, timeout_s=timeout_s, interpreter=interpreter)
    if not recording.captures:
        why = f": it stopped: {recording.stopped[0].message}" if recording.stopped else " compiled no kernel"
        raise RecordingError(f"{source!s}{why}.")
    for name, error in recording.refusals:
        warnings.warn(f"nothing was recorded for {name}: {error}", stacklevel=2)
    return recording.captures


def record(source: str | Path | Any, **how: Any) -> Capture:
    """Record one launch: the first that `record_all` gives."""
    return record_all(source, **how)[0]


@contextmanager
def capture(plan: str | PassPlan = "", snapshots: SnapshotLevel = "triton") -> Iterator[Recorded]:
    """Record the compiles of this process until the end of the block; gives a sequence of captures.

    Raises UsageError for a plan that is none.
    """
    from irscope.record.in_process import capture_in_process

    if snapshots not in ("all", "triton", "none"):
        raise UsageError(f"snapshots={snapshots!r}: write 'triton', 'all' or 'none'.")
    with capture_in_process(plan if isinstance(plan, PassPlan) else PassPlan.parse(plan), snapshots) as recorded:
        yield recorded
