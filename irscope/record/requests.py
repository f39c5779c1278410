"""What a user names (a file, a kernel, a capture) → the request for the recording process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from irscope.capture import STAGES, Capture, PassSnapshot, Target
from irscope.errors import RecordingError, UsageError
from irscope.record.request import RecordRequest, SnapshotLevel

IR_SUFFIXES = tuple(stage.name for stage in STAGES if stage.name in ("ttir", "ttgir", "llir", "ptx", "amdgcn"))
"""The stages whose files can be compiled on from."""


def request_for(
    source: str | Path | Any,
    *,
    kernel: str = "",
    targets: Sequence[str] = (),
    plan: str = "",
    signature: str | None = None,
    constexprs: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    configs: str = "first",
    snapshots: SnapshotLevel = "triton",
    llvm_passes: bool = False,
    virtual: bool = False,
    assume: Mapping[str, str] | None = None,
) -> RecordRequest:
    """The request for a script, a kernel with a signature, or an IR file; raises UsageError where they don't fit."""
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
    for target in targets:
        Target.parse(target)
    common: dict[str, Any] = {
        # As Python itself does it: the locations of what runs as __main__ hold absolute paths.
        "path": os.path.abspath(path),
        "targets": tuple(targets),
        "plan": plan,
        "snapshots": snapshots,
        "llvm_passes": llvm_passes,
        "kernel": kernel,
        "options": tuple((options or {}).items()),
    }
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise RecordingError(f"{str(source)!r} {what}: give a Python file with Triton kernels, or an IR file.")
    suffix = path.suffix.removeprefix(".")
    if assume and (signature is not None or suffix in IR_SUFFIXES):
        raise UsageError("--assume is for scripts: nothing is assumed of a signature, or of IR.")
    if suffix in IR_SUFFIXES:
        if signature is not None or constexprs:
            raise UsageError(
                f"{path.name} is IR: its signature and constants are in it. Leave out --signature and --constexpr."
            )
        return RecordRequest(mode="text", stage=suffix, text=path.read_text("utf-8", "replace"), **common)
    if signature is not None:
        if not kernel:
            raise UsageError(f"--signature needs a kernel: {path.name}::KERNEL.")
        return RecordRequest(
            mode="signature", signature=signature, constexprs=tuple((constexprs or {}).items()), **common
        )
    if constexprs:
        raise UsageError("--constexpr goes with --signature: a launch that a script makes brings its own constants.")
    if options:
        names = ", ".join(options)
        raise UsageError(
            f"{names} cannot be set for a script's launches: they bring their own. Record it, then change the capture."
        )
    return RecordRequest(
        mode="script",
        arguments=tuple(arguments),
        configs=configs,
        virtual=virtual,
        assume=tuple((assume or {}).items()),
        **common,
    )


def request_from_capture(
    capture: Capture,
    *,
    targets: Sequence[str] = (),
    plan: str = "",
    options: Mapping[str, Any] | None = None,
    snapshots: SnapshotLevel = "triton",
    llvm_passes: bool = False,
) -> RecordRequest:
    """The request to compile a capture's own `source` again; raises RecordingError where it holds none."""
    stage = (
        "source" if "source" in capture.stages else next((name for name in capture.stages if name in IR_SUFFIXES), "")
    )
    if not stage:
        raise RecordingError(
            f"{capture!r} holds no source stage, so it cannot be compiled again. Record the script again."
        )
    return RecordRequest(
        mode="text",
        path=capture.launch.kernel.file,
        kernel=capture.name,
        targets=tuple(targets) or (str(capture.target),),
        plan=plan,
        options=tuple((options or {}).items()),
        snapshots=snapshots,
        llvm_passes=llvm_passes,
        stage=stage,
        text=capture.text(stage),
        launch=dataclasses.asdict(capture.launch),
        launch_target=str(capture.target),
    )


def request_resumed(capture: Capture, after: PassSnapshot, edited: str, **how: Any) -> RecordRequest:
    """The request to compile on from a snapshot that was edited, from the pass after it."""
    behind = sum(1 for other in capture.passes() if other.stage == after.stage and other.index <= after.index)
    request = request_from_capture(capture, **how)
    return dataclasses.replace(request, stage=after.stage, text=edited, resume_stage=after.stage, resume_after=behind)
