"""Captures of IR files, which are compared as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irscope.errors import RecordingError, UsageError
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import STAGE_NAMES, Artifact, Capture, Kernel, Launch, Target, stage_named
from irscope.target import KNOWN_TARGETS

IR_SUFFIXES = (".source", ".ttir", ".ttgir", ".glir", ".llir", ".ptx", ".sass", ".amdgcn", ".mlir", ".ll")


def capture_of_folder(folder: Path) -> Capture:
    """The capture of a folder with the stages of one kernel; raises RecordingError and UsageError."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and _stage_of(path))
    if not files:
        raise RecordingError(f"{str(folder)!r} holds no stages: its files must end in .ttir, .ttgir, .llir, .ptx, ….")
    stems = sorted({path.stem for path in files})
    if len(stems) > 1:
        raise UsageError(
            f"{str(folder)!r} holds the stages of {len(stems)} kernels ({', '.join(stems)}): name one's files."
        )
    return capture_of_files(stems[0], files)


def _stage_of(path: Path) -> str:
    suffix = path.suffix.removeprefix(".")
    stage = {"mlir": "ttgir", "ll": "llir"}.get(suffix, suffix)
    return stage if stage in STAGE_NAMES else ""


def capture_of_files(name: str, files: Sequence[Path]) -> Capture:
    """A capture that holds the texts of files as its stages, and no passes."""
    artifacts: list[Artifact] = []
    for path in files:
        stage = _stage_of(path)
        data = path.read_bytes()
        if not data.strip():
            raise UsageError(f"{str(path)!r} is empty: give a file with the text of a stage.")
        artifacts.append(Artifact(stage, data if stage_named(stage).is_binary else data.decode("utf-8", "replace")))
    return Capture(Launch(Kernel(name)), _target_in(artifacts), artifacts=tuple(artifacts))


def _target_in(artifacts: Sequence[Artifact]) -> Target:
    modules = (one.text for one in artifacts if stage_named(one.stage).kind == "mlir")
    stated = {str(parse_mlir(text).option("target")) for text in modules}
    known = next((target for target in KNOWN_TARGETS if str(target) in stated), None)
    if known is not None:
        return known
    amd = any(artifact.stage in ("amdgcn", "hsaco") for artifact in artifacts)
    return Target("hip", "unknown", 64) if amd else Target("cuda", "unknown", 32)
