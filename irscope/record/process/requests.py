"""What a user names (a file, a kernel, a capture) → the request for the recording process."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from irscope.errors import RecordingError, UsageError
from irscope.model.capture import STAGES, Capture, PassSnapshot, Target
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.request import RecordRequest

_IR_SUFFIXES = tuple(stage.name for stage in STAGES if stage.name in ("ttir", "ttgir", "llir", "ptx", "amdgcn"))
"""The stages whose files can be compiled on from."""


def request_for(
    source: str | Path | Any, asked: RecordingOptions | None = None, *, kernel: str = "", **keywords: Any
) -> RecordRequest:
    """The request for a script, a kernel with a signature, or an IR file; raises UsageError where they don't fit.

    Args:
        source: the file, or a `@triton.jit` function.
        asked: the options; without them, `keywords` as `RecordingOptions.of` takes them.
        kernel: the kernel's name; empty for every one.
    """
    asked = asked or RecordingOptions.of(keywords)
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise RecordingError(
            "the working folder, in which a script runs, is gone: change to one that exists."
        ) from error
    function = getattr(source, "fn", None)
    if function is not None:
        kernel = kernel or function.__name__
        source = str(function.__code__.co_filename)
    path = Path(source)
    for target in asked.targets:
        Target.parse(target)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise RecordingError(f"{str(source)!r} {what}: give a Python file with Triton kernels, or an IR file.")
    suffix = path.suffix.removeprefix(".")
    # As Python itself does it: the locations of what runs as __main__ hold absolute paths.
    request = RecordRequest.of_options(asked, mode="script", path=os.path.abspath(path), kernel=kernel)
    if asked.assume and (asked.signature is not None or suffix in _IR_SUFFIXES):
        raise UsageError("--assume is for scripts: nothing is assumed of a signature, or of IR.")
    if suffix in _IR_SUFFIXES:
        if asked.signature is not None or asked.constexprs:
            raise UsageError(
                f"{path.name} is IR: its signature and constants are in it. Leave out --signature and --constexpr."
            )
        return dataclasses.replace(request, mode="text", stage=suffix, text=path.read_text("utf-8", "replace"))
    if asked.signature is not None:
        if not kernel:
            raise UsageError(f"--signature needs a kernel: {path.name}::KERNEL.")
        return dataclasses.replace(request, mode="signature")
    if asked.constexprs:
        raise UsageError("--constexpr goes with --signature: a launch that a script makes brings its own constants.")
    if asked.options:
        names = ", ".join(dict(asked.options))
        raise UsageError(
            f"{names} cannot be set for a script's launches: they bring their own. Record it, then change the capture."
        )
    return request


def request_from_capture(capture: Capture, asked: RecordingOptions | None = None, **keywords: Any) -> RecordRequest:
    """The request to compile a capture's own `source` again; raises RecordingError where it holds none.

    `asked`: the options; without them, `keywords` as `RecordingOptions.of` takes them.
    """
    asked = asked or RecordingOptions.of(keywords)
    stage = (
        "source" if "source" in capture.stages else next((name for name in capture.stages if name in _IR_SUFFIXES), "")
    )
    if not stage:
        raise RecordingError(
            f"{capture!r} holds no source stage, so it cannot be compiled again. Record the script again."
        )
    return RecordRequest.of_options(
        dataclasses.replace(asked, targets=asked.targets or (str(capture.target),)),
        mode="text",
        path=capture.launch.kernel.file,
        kernel=capture.name,
        stage=stage,
        text=capture.text(stage),
        compiled_launch=capture.launch,
        compiled_target=str(capture.target),
    )


def request_resumed(capture: Capture, after: PassSnapshot, edited: str, asked: RecordingOptions) -> RecordRequest:
    """The request to compile on from a snapshot that was edited, from the pass after it."""
    behind = sum(1 for other in capture.passes() if other.stage == after.stage and other.index <= after.index)
    request = request_from_capture(capture, asked)
    return dataclasses.replace(request, stage=after.stage, text=edited, resume_stage=after.stage, resume_after=behind)
