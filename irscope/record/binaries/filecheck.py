"""Runs FileCheck, LLVM's matcher of texts, which Triton's wheel carries."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from irscope.errors import MissingTool, ParseError, UsageError
from irscope.record.triton.api import package_folder

__all__ = ["filecheck_program", "run_filecheck"]

_TIMEOUT_S = 60.0


def filecheck_program() -> Path:
    """FileCheck: that of the installed Triton (3.6 to 3.9 carry it beside their modules), else one on the PATH.

    Raises MissingTool where there is neither.
    """
    try:
        program = package_folder() / "FileCheck"
        if program.is_file() and os.access(program, os.X_OK):
            return program
        where = f"Triton's package in {str(program.parent)!r} has none"
    except MissingTool:
        where = "Triton, whose wheels carry it, is not installed"
    if (found := shutil.which("FileCheck")) is not None:
        return Path(found)
    raise MissingTool(f"--filecheck needs FileCheck: {where}, and there is none on the PATH. pip install triton.")


def run_filecheck(patterns: str, text: str) -> str:
    """What FileCheck says against a text by a file of patterns; empty if it accepts it.

    Raises UsageError for a file that cannot be read, and ParseError for one without patterns, or with wrong ones.
    """
    if not Path(patterns).is_file():
        raise UsageError(f"--filecheck: the file {patterns!r} does not exist.")
    command = [str(filecheck_program()), "--color=0", "--dump-input=never", "--allow-empty", patterns]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ParseError(f"--filecheck {patterns!r}: FileCheck did not end within {_TIMEOUT_S:g} s.") from error
    said = done.stderr.strip().replace("<stdin>", "<ir>")
    if done.returncode not in (0, 1):
        raise ParseError(f"--filecheck {patterns!r}: FileCheck cannot use the file: {said or done.stdout.strip()}")
    return said or "FileCheck said nothing." if done.returncode else ""
