"""What a recording process is asked for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from irscope.model.capture import Launch
from irscope.model.recording_options import RecordingOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest(RecordingOptions):
    """Which launches to record, and how: the options of the recording, and what they apply to."""

    mode: Literal["script", "signature", "text"]
    """Run a script; compile a kernel from a signature; or compile on from the text of a stage."""
    path: str = ""
    """The script, the file of the kernel, or the IR file."""
    kernel: str = ""
    """The kernel's name; empty for every one."""
    stage: str = ""
    """`text`: the stage whose artifact the text is."""
    text: str = ""
    compiled_launch: Launch | None = None
    """`text`: the launch of the capture that the text comes from."""
    compiled_target: str = ""
    """`text`: the target the text was made for."""
    resume_stage: str = ""
    """`text`: the text is a snapshot within this stage, which runs again from the pass after it."""
    resume_after: int = 0
    """How many passes of `resume_stage` are behind the text already."""
    log_path: str = ""
    """Where the process's standard error goes, so that diagnostics can be told apart."""
    limit_s: float = 0.0
    """Seconds after which a compile is ended; 0 if nothing ends it."""
    mlir_dump_path: str = ""
    """Where `MLIR_ENABLE_DUMP` prints to; with it, that stands in for the tap."""
    ended_in: str = ""
    """The native call that a process ended in which did this request before: this one makes no such calls."""

    @staticmethod
    def of_options(asked: RecordingOptions, **others: Any) -> RecordRequest:
        """A request with these options."""
        return RecordRequest(**{item.name: getattr(asked, item.name) for item in fields(RecordingOptions)}, **others)


def one_for_each_target(request: RecordRequest) -> tuple[RecordRequest, ...]:
    """The requests, each for a process of its own, that a request for several targets stands for.

    A program may ask which GPU it is on, Triton specialises a launch for one backend, and LLVM's flags are the
    process's: nothing of one target's compile is there in another's.
    """
    return tuple(replace(request, targets=(target,)) for target in dict.fromkeys(request.targets)) or (request,)
