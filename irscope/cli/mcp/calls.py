"""Calls of commands for their JSON, with what they say; and errors with the call to make next."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from irscope.cli.dump.stages import one_pass
from irscope.cli.mcp.answers import call_text
from irscope.cli.subject.named import split_subject
from irscope.cli.subject.stored import is_capture
from irscope.errors import CaptureNotFound, IrscopeError, PlanError, StageNotFound, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

__all__ = ["capture_subject", "command_json", "error_text", "program_subject", "quiet", "refuse_foreign", "rows_of"]

_one_at_a_time = threading.RLock()
"""What commands say goes to the one standard error of the process."""


@contextmanager
def quiet() -> Generator[list[str]]:
    """Collect what is printed in the block: the list has the lines of standard error after it."""
    said: list[str] = []
    with _one_at_a_time, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as stderr:
        try:
            yield said
        finally:
            said += [line for line in stderr.getvalue().splitlines() if line.strip()]


def command_json(words: Sequence[str]) -> tuple[Any, list[str]]:
    """(what a command prints with `--json`, what it says); raises what the command raises."""
    from irscope.cli import app, load_commands

    with TemporaryDirectory() as folder, quiet() as said:
        file = Path(folder, "answer.json")
        load_commands(words)
        app(args=[*words, "--json", "-o", str(file)], prog_name="irscope", standalone_mode=False)
        if not file.is_file():
            raise IrscopeError("the command gave no answer.")
        answer = json.loads(file.read_text("utf-8"))
    return answer, [line for line in said if str(file) not in line]


def capture_subject(text: str) -> str:
    """A text that names a capture; raises UsageError for a program, which only `record` runs."""
    if not text or text.startswith("-") or not is_capture(text.partition("::")[0]):
        raise UsageError(f"{text!r} is not a capture, and this tool runs no program. Next: {_how_to_record(text)}")
    return text


def refuse_foreign(capture: Capture, passes: Sequence[str]) -> None:
    """Raise UsageError if showing the IR around passes would compile a capture that was not recorded here."""
    if capture.environment.is_trusted or not any(snapshot.text_left_out for snapshot in capture.snapshots):
        return
    named = [one_pass(capture, name) for name in passes]
    if any(capture.text_after(snapshot) is None or capture.text_before(snapshot) is None for snapshot in named):
        raise UsageError(
            f"the IR around {', '.join(passes)} was left out of {capture.id}, which was not recorded here, and this "
            f"tool compiles nothing of others. Next: {call_text('stages', {'capture': capture.id, 'stage': 'ttgir'})}"
        )


def program_subject(file: str, kernel: str) -> str:
    """The subject of a recording; raises UsageError for what is no file."""
    name, _ = split_subject(file, RecordingOptions())
    if file.startswith("-") or not Path(name).is_file():
        raise UsageError(f"{file!r} is no file on the server's machine, whose folder is {str(Path.cwd())!r}.")
    if is_capture(name):
        raise UsageError(f"{file!r} is a capture already. Next: {call_text('stages', {'capture': file})}")
    return f"{file}::{kernel}" if kernel else file


def error_text(error: Exception, tool: str, arguments: Mapping[str, Any]) -> str | None:
    """What to tell of an error, with the next call where one helps; None for a defect of irscope's."""
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    if callable(formatted := getattr(error, "format_message", None)):
        # One of Typer's: an option whose value is of another type.
        return str(formatted())
    if not isinstance(error, IrscopeError):
        return None
    text, of_it = str(error), {"capture": arguments.get("capture") or arguments.get("left")}
    if "Next: " in text:
        return text
    if isinstance(error, CaptureNotFound):
        return f"{text} Next: list()"
    if isinstance(error, StageNotFound) or (isinstance(error, UsageError) and arguments.get("stage")):
        return f"{text} Next: {call_text('stages', of_it)}"
    if isinstance(error, PlanError) and of_it["capture"]:
        return f"{text} Next: {call_text('passes', of_it)}"
    if tool == "record" and not arguments.get("signature"):
        known = {"file": arguments.get("file"), "kernel": arguments.get("kernel") or "KERNEL"}
        types = {"signature": "*fp16:16, i32", "constexprs": {"BLOCK": 128}}
        return f"{text} Next, without running the file: {call_text('record', known | types)}"
    return text


def _how_to_record(text: str) -> str:
    return f"{call_text('record', {'file': text})}, or list()" if text.endswith(".py") else "list()"


def rows_of(document: Any) -> list[dict[str, Any]]:
    """A document that is a list of objects, without the version of its form."""
    rows = cast("list[dict[str, Any]]", document)
    return [{name: value for name, value in row.items() if name != "irscope_json"} for row in rows]
