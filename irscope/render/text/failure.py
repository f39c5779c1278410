"""Why a compile failed, as text."""

from __future__ import annotations

import re
from pathlib import Path

from irscope.model.capture import Capture

_FRAMES_OF_OUTPUT = 15

# kernels.py:24:1: error: Failures have been detected   |   ptxas fatal   : Unresolved extern function
_LABEL = re.compile(r"\b(?:error|fatal|warning|remark|note|LLVM ERROR) *: |Assertion [`']")
_SAYS_NOTHING = ("Failures have been detected while processing", "Pipeline failed while executing")
_TELLING_COLUMNS = 60
_DIAGNOSTIC = re.compile(r":\d+: (?:error|warning|remark|note): |^(?:ptxas|error|LLVM ERROR)\b|: error: |Assertion ")

# loc("/tmp/irscope-recording-x/thin.ttgir":19:15): error: custom op 'arith.constnt' is unknown
_PARSER = re.compile(r'loc\("[^"\n]*":(\d{1,7}):(\d{1,5})\): (?=error: )')


def failed_line(capture: Capture) -> tuple[str, int] | None:
    """The line of Python that the compiler's or ptxas's first error is about, as (file, line); None if unknown."""
    # /home/me/matmul.py:39:25: error: 'tt.dot' op expected …
    for text in capture.failure.diagnostics.splitlines() if capture.failure is not None else ():
        place, is_error, _ = text.partition(": error: ")
        file, _, line = place.rpartition(":")[0].rpartition(":")
        if is_error and file.endswith(".py") and line.isdecimal() and len(line) < 8:
            return file, int(line)
    if (at := ptx_line(capture)) is not None:
        from irscope.ir.locations.stages import capture_locations

        chain = capture_locations(capture, capture.text("ptx"), "ptx").chain_at(at)
        return (chain[0].file, chain[0].line) if chain else None
    return None


def ptx_line(capture: Capture) -> int | None:
    """The line of the PTX that ptxas's first error names; None if it names none."""
    # ptxas matmul.ptx, line 47; error : Not a name of any known instruction: 'frobnicate'
    failure = capture.failure
    line = failure.message.partition(", line ")[2].partition(";")[0] if failure is not None else ""
    is_named = failure is not None and failure.stage == "cubin" and "ptx" in capture.texts and line.isdecimal()
    return int(line) if is_named and len(line) < 8 else None


def failure_text(capture: Capture) -> str:
    """Why a compile failed, as commands print it."""
    failure = capture.failure
    if failure is None:
        return ""
    text = f"{capture.name} ({capture.target}) {failure.verdict}: {failure.message}".rstrip()
    more = [line for line in _diagnostic_lines(failure.diagnostics) if not _is_said(line, text)]
    return "\n".join([text, *more])


def _is_said(line: str, text: str) -> bool:
    """Whether the text already contains what a line of diagnostics says."""
    said = _LABEL.split(line)[-1].strip()
    return said[:_TELLING_COLUMNS] in text or said.startswith(_SAYS_NOTHING)


def _diagnostic_lines(diagnostics: str) -> list[str]:
    """The diagnostics in the output of a compiler, each with its source line and caret, without the IR around them.

    If there are none, the last lines. `irscope show ID --json` has the whole output.
    """
    lines = diagnostics.splitlines()
    kept: list[str] = []
    for number, line in enumerate(lines):
        if _DIAGNOSTIC.search(line):
            caret = number + 2 < len(lines) and lines[number + 2].strip() == "^"
            kept += lines[number : number + 3] if caret else [line]
    return list(dict.fromkeys(kept)) or lines[-_FRAMES_OF_OUTPUT:]


def edited_failure_text(fresh: Capture, text: str, path: Path) -> str:
    """Why a compile of an edited text failed; where the parser refuses it with its line, and a caret under that.

    Other failures name lines themselves, of the text or of Python, which are in its locations.
    """
    said = failure_text(fresh)
    if fresh.failure is None or fresh.failure.kind != "parse" or (place := _PARSER.search(said)) is None:
        return said
    line, column = int(place[1]), int(place[2])
    lines = text.splitlines()
    message = said[place.end() :].partition("\n")[0]
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = re.sub(r"[^\t]", " ", shown[: column - 1]) + "^"
    return f"{path}:{line}:{column}: {message}\n{shown}\n{caret}"
