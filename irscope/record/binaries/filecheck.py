"""Runs FileCheck, LLVM's matcher of texts, which Triton's wheel carries."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from irscope.errors import MissingTool, ParseError, UsageError
from irscope.record.triton.api import package_folder
from irscope.tools import run_tool

__all__ = ["filecheck_program", "run_filecheck"]


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

    Raises UsageError for a file that cannot be read, ParseError for one without patterns, or with
    wrong ones, and ToolTooSlow where FileCheck does not end.
    """
    if not Path(patterns).is_file():
        raise UsageError(f"--filecheck: the file {patterns!r} does not exist.")
    command = [str(filecheck_program()), "--color=0", "--dump-input=never", "--allow-empty", patterns]
    done = run_tool(command, text.encode("utf-8", "replace"))
    said = done.stderr.decode("utf-8", "replace").strip().replace("<stdin>", "<ir>")
    if done.returncode not in (0, 1):
        said = said or done.stdout.decode("utf-8", "replace").strip()
        raise ParseError(f"--filecheck {patterns!r}: FileCheck cannot use the file: {said}")
    return said or "FileCheck said nothing." if done.returncode else ""
