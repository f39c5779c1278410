"""Opens the user's editor on a file."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from irscope.errors import MissingTool, UsageError
from irscope.interruption import noted_signals

__all__ = ["edit_file", "editor_command"]


def editor_command() -> list[str]:
    """The words of `$VISUAL`, or else `$EDITOR`; raises UsageError where neither is set."""
    for name in ("VISUAL", "EDITOR"):
        text = os.environ.get(name, "").strip()
        if not text:
            continue
        try:
            return shlex.split(text)
        except ValueError as error:
            raise UsageError(f"{name}={text!r} is no command: {error}.") from error
    raise UsageError(
        "neither VISUAL nor EDITOR names an editor: EDITOR=vi irscope edit …, or write the text with --text, edit it, "
        "and give it with --edited FILE."
    )


def edit_file(command: list[str], path: Path) -> None:
    """Wait until the editor ends; raises MissingTool if it cannot be started, and UsageError if it fails."""
    kept = f"The text is in {path}: --edited {path} compiles it."
    try:
        # What is typed is the editor's, Ctrl-C too.
        with noted_signals():
            code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise MissingTool(
            f"the editor {command[0]!r} cannot be started: {error.strerror}. Set VISUAL or EDITOR. {kept}"
        ) from error
    if code:
        raise UsageError(f"the editor {command[0]!r} ended with {code}, so nothing was compiled. {kept}")
