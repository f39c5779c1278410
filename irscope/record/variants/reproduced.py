"""Runs the file of a reproduction, and compares what it compiles to with the capture, byte by byte."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from irscope.errors import RecordingError
from irscope.model.capture import Capture, Failure

_NOT_MADE = ("sass", "edited")
_KEPT = "TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_NVDISASM_PATH"
_SWITCH = re.compile(r"^(?:TRITON|MLIR|LLVM|DISABLE|AMDGCN|NVPTX|PTXAS|USE)_")
_PTX_FILE = re.compile(rb"tmp[0-9a-z_]{8}(?=\.ptx\b)")
_SAY_WHY = ("error", "Error", "ERROR", "Assertion")
_MOST_SHOWN = 15


@dataclass(frozen=True, slots=True)
class _ReproductionCheck:
    identical: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """The stages that it did not make."""
    failure: str = ""
    """How its failure differs from the recorded one; empty where neither failed, or both the same way."""
    output: str = ""
    """The last lines that it printed, where something differs."""

    @property
    def is_same(self) -> bool:
        return not (self.different or self.absent or self.failure)


def checked_program(
    program: str, capture: Capture, python: str = sys.executable, timeout_s: float = 300.0
) -> _ReproductionCheck:
    """Run a reproduction in a process of its own, and compare what it compiles to; raises RecordingError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{capture.name}.py")
        path.write_bytes(program.encode("utf-8", "surrogateescape"))
        made = Path(folder, "made")
        made.mkdir()
        try:
            ended = subprocess.run(
                [python, str(path), "--keep", str(made), "--no-launch"], capture_output=True, text=True,
                errors="replace", timeout=timeout_s, check=False, cwd=made, env=_environment(capture),
            )  # fmt: skip
            code, said = ended.returncode, ended.stdout + ended.stderr
        except subprocess.TimeoutExpired as error:
            code, said = None, "".join(map(_text, (error.stdout, error.stderr)))
        except OSError as error:
            raise RecordingError(
                f"{python!r} cannot be run: {error.strerror}. Give --python an interpreter with Triton."
            ) from error
        if "No module named 'triton'" in said:
            raise RecordingError(
                f"{python!r} has no Triton: give --python one that has {capture.environment.triton_version}."
            )
        return compared(made, capture, code, said)


def _environment(capture: Capture) -> dict[str, str]:
    recorded = {name for name, _ in capture.environment.variables}
    kept = {name: value for name, value in os.environ.items() if not _SWITCH.match(name) or name in _KEPT}
    digests = {name: os.environ[name] for name in recorded if name in os.environ}
    return kept | digests


def _text(data: bytes | str | None) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data or ""


def compared(folder: Path, capture: Capture, code: int | None, said: str) -> _ReproductionCheck:
    """Compare what a run of the file left in a folder; `code`: how it ended, None where it did not in time."""
    stages: dict[str, list[str]] = {"identical": [], "different": [], "absent": []}
    for artifact in capture.artifacts:
        if artifact.stage in _NOT_MADE:
            continue
        made = next(iter(sorted(folder.rglob(f"*.{artifact.stage}"))), None)
        held = artifact.data if isinstance(artifact.data, bytes) else artifact.data.encode("utf-8", "surrogateescape")
        which = "absent" if made is None else "identical" if _plain(made.read_bytes()) == _plain(held) else "different"
        stages[which].append(artifact.stage)
    failure = _failure(capture.failure if not capture.has_compiled else None, code, said)
    wrong = failure or stages["different"] or stages["absent"]
    lines = "\n".join(said.strip().splitlines()[-_MOST_SHOWN:]) if wrong and code != 0 else ""
    return _ReproductionCheck(**{name: tuple(rows) for name, rows in stages.items()}, failure=failure, output=lines)


def _plain(data: bytes) -> bytes:
    """An artifact without the random name of ptxas's input, which its binary holds where its optimiser is off."""
    return _PTX_FILE.sub(b"", data)


def _failure(recorded: Failure | None, code: int | None, said: str) -> str:
    if recorded is None:
        return "" if code == 0 else f"it {_ended(code)}, and the capture compiled"
    if code == 0:
        return f"it compiled, and the capture {recorded.verdict}"
    if (code is None) != (recorded.kind == "timeout"):
        return f"it {_ended(code)}, and the capture {recorded.verdict}: {recorded.headline}"
    if code is None:
        return ""
    if (recorded.kind == "abort") != (code < 0):
        return f"it {_ended(code)}, and the capture {recorded.verdict}: {recorded.headline}"
    lines = recorded.diagnostics.splitlines()
    # Failures of other kinds share the lines of Python that MLIR quotes, and those of its module.
    wanted = [recorded.headline, *([line for line in lines if any(word in line for word in _SAY_WHY)] or lines)]
    if not any(_said(line, said) for line in wanted):
        return f"it fails with another message than {recorded.headline!r}"
    return ""


def _said(line: str, said: str) -> bool:
    """Whether a line is in an output; the name of an error's type and line breaks do not count."""
    words = " ".join(re.sub(r"^\w+: ", "", line).split())
    return bool(words) and words in " ".join(said.split())


def _ended(code: int | None) -> str:
    if code is None:
        return "did not end in time"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with {code}"
