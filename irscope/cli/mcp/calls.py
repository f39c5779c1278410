"""Calls of commands for their JSON, numbered lines of texts, and errors with the call to make next."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from irscope.api.texts import one_pass, selected_lines, snapshot_text
from irscope.cli.captures import is_capture, run_request, split_subject
from irscope.cli.mcp.answers import call_text
from irscope.cli.streams import say
from irscope.errors import CaptureNotFound, IrscopeError, NoDevice, PlanError, StageNotFound, UsageError
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, stage_named
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import reporting

_one_at_a_time = threading.RLock()
"""What commands say goes to the one standard error of the process."""


@contextmanager
def quiet() -> Generator[list[str]]:
    """Collect what is printed in the block: the list has the lines of standard error after it."""
    said: list[str] = []
    with (
        _one_at_a_time,
        reporting(say, run_request),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()) as stderr,
    ):
        try:
            yield said
        finally:
            said += [line for line in stderr.getvalue().splitlines() if line.strip()]


def command_json(words: Sequence[str]) -> tuple[Any, list[str]]:
    """(the output of a command with `--json`, its messages); raises the errors of the command."""
    from irscope.cli.commands import main_group

    with TemporaryDirectory() as folder, quiet() as said:
        file = Path(folder, "answer.json")
        commands = main_group()
        with commands.make_context("irscope", [*words, "--json", "-o", str(file)]) as context:
            commands.invoke(context)
        if not file.is_file():
            raise IrscopeError("the command printed nothing.")
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
            "tool compiles only captures recorded on this machine. "
            f"Next: {call_text('stages', {'capture': capture.id, 'stage': 'ttgir'})}"
        )


def program_subject(file: str, kernel: str) -> str:
    """The subject of a recording; raises UsageError for what is no file."""
    name, _ = split_subject(file, RecordingOptions())
    if file.startswith("-") or not Path(name).is_file():
        raise UsageError(f"{file!r} is not a file on the server's machine, whose folder is {str(Path.cwd())!r}.")
    if is_capture(name):
        raise UsageError(f"{file!r} is a capture already. Next: {call_text('stages', {'capture': file})}")
    return f"{file}::{kernel}" if kernel else file


def error_text(error: Exception, tool: str, arguments: Mapping[str, Any]) -> str | None:
    """What to tell of an error, with the call to make next; None for a defect of irscope's."""
    if isinstance(error, OSError):
        text = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    elif callable(formatted := getattr(error, "format_message", None)):
        # One of click's: an option whose value is of another type.
        text = str(formatted())
    elif isinstance(error, IrscopeError):
        text = str(error)
    else:
        return None
    if "Next: " in text or "Next, " in text:
        return text
    purpose, call = _call_after(error, tool, arguments)
    return f"{text} Next{purpose}: {call}"


def _call_after(error: Exception, tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """(what for, the call) to make after an error."""
    capture = arguments.get("capture") or arguments.get("left") or arguments.get("before")
    of_it = {"capture": capture}
    if isinstance(error, CaptureNotFound):
        return "", "list()"
    if isinstance(error, NoDevice) or tool == "profile":
        call = call_text("time", of_it) if capture else call_text("record", {"file": arguments.get("file")})
        return ", for predicted times", call
    if not capture and tool != "record":
        return "", "list()"
    if isinstance(error, StageNotFound) or (isinstance(error, UsageError) and arguments.get("stage")):
        return "", call_text("stages", of_it)
    if isinstance(error, PlanError) and capture:
        return "", call_text("passes", of_it)
    if tool in ("time", "tune") and not arguments.get("grid") and not arguments.get("sizes"):
        # As a rule a capture of a signature or a file of IR has no launch to predict.
        return "", call_text("record", {"file": "FILE.py"})
    if tool == "record" and not arguments.get("signature"):
        known = {"file": arguments.get("file"), "kernel": arguments.get("kernel") or "KERNEL"}
        types = {"signature": "*fp16:16, i32", "constexprs": {"BLOCK": 128}}
        return ", without running the file", call_text("record", known | types)
    return ("", call_text("why", of_it)) if tool != "why" and capture else ("", "list()")


def _how_to_record(text: str) -> str:
    return f"{call_text('record', {'file': text})}, or list()" if text.endswith(".py") else "list()"


def rows_of(document: Any) -> list[dict[str, Any]]:
    """A document that is a list of objects, without the version of its form."""
    rows = cast("list[dict[str, Any]]", document)
    return [{name: value for name, value in row.items() if name != "irscope_json"} for row in rows]


# %5 = tt.load %4 : tensor<64xf32> loc(#loc7)      %9 = add i32 %8, 1, !dbg !14
_LOCATION = re.compile(r"\s+loc\(|,? !dbg ")


def numbered_lines(
    capture: Capture, stage: str, after: str, source_lines: str, locations: bool
) -> tuple[list[tuple[int, str]], int]:
    """((number, line) of the chosen lines, how many lines the text has); numbers are those of the text as it is held.

    Raises StageNotFound, PlanError for a pass that is not there, and UsageError for `source_lines` that are none.
    """
    if after:
        snapshot = one_pass(capture, after)
        text, kind = snapshot_text(capture, snapshot, before=False), snapshot.group
    else:
        text, kind = capture.text(stage), stage_named(stage).kind
    lines = text.split("\n")
    if lines[-1:] == [""]:
        lines.pop()
    shown = list(enumerate(lines, 1)) if locations else list(_aligned(lines, strip_locations(text, kind).split("\n")))
    if source_lines:
        selected = selected_lines(capture, text, kind, source_lines)
        shown = [(number, line) for number, line in shown if number in selected]
    return shown, len(lines)


def _aligned(lines: Sequence[str], stripped: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of each line that is left when locations are removed, which removes whole lines too."""
    numbered = enumerate(lines, 1)
    for line in stripped:
        for number, whole in numbered:
            begin = _LOCATION.split(whole, maxsplit=1)[0].rstrip()
            if (line.startswith(begin) and begin) or line.strip() == whole.strip():
                yield number, line
                break
