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
    """The line of Python of the operation that the compiler or ptxas rejects, as (file, line); None if unknown."""
    # /home/me/matmul.py:39:25: error: 'tt.dot' op expected …
    for text in capture.failure.diagnostics.splitlines() if capture.failure is not None else ():
        place, is_error, message = text.partition(": error: ")
        file, _, line = place.rpartition(":")[0].rpartition(":")
        # An error of the pipeline has the location of the module: the kernel's `def`.
        if is_error and not message.startswith(_SAYS_NOTHING) and file.endswith(".py"):
            return (file, int(line)) if line.isdecimal() and len(line) < 8 else None
    # File "/home/me/matmul.py", line 39, in kernel
    for text in reversed(capture.failure.message.splitlines() if capture.failure is not None else ()):
        file, _, rest = text.strip().removeprefix('File "').partition('", line ')
        line = rest.partition(",")[0]
        if file.endswith(".py") and line.isdecimal() and len(line) < 8:
            return file, int(line)
    if (at := ptx_line(capture)) is not None:
        from irscope.ir.locations.stages import capture_locations

        chain = capture_locations(capture, capture.text("ptx"), "ptx").chain_at(at)
        return (chain[0].file, chain[0].line) if chain else None
    return _asserted_line(capture)


def _asserted_line(capture: Capture) -> tuple[str, int] | None:
    """The line of the operations of the class in the signature of the C++ function whose assertion failed.

    None if the IR that the failed pass read has several such lines, or none.
    """
    # python: /project/lib/X.cpp:223: LogicalResult mlir::setLayout(GatherOp, RewriterBase &): Assertion `…' failed.
    diagnostics = capture.failure.diagnostics if capture.failure is not None else ""
    signature, is_assertion, _ = diagnostics.partition(": Assertion `")
    words = "".join(letter if letter.isalnum() else " " for letter in signature.splitlines()[-1]) if signature else ""
    classes = {word.lower() for word in words.split() if word.endswith("Op")} - {"moduleop", "funcop"}
    text = ir_before_failure(capture)
    if not is_assertion or not classes or not text:
        return None
    from irscope.ir.locations.model import place_of
    from irscope.ir.locations.stages import capture_locations
    from irscope.ir.mlir.reader import parse_mlir

    locations = capture_locations(capture, text, "mlir")
    file = capture.launch.kernel.file
    places: set[tuple[str, int] | None] = set()
    for one in parse_mlir(text).walk():
        # warp_group_dot: WarpGroupDotOp
        if one.opcode.rpartition(".")[2].replace("_", "") + "op" in classes:
            places.add(next(iter(place_of(locations.chain_at(one.first_line), file)), None))
    return places.pop() if len(places) == 1 else None


def ir_before_failure(capture: Capture) -> str:
    """The IR that the failed pass read, with locations; an empty string if the capture does not hold it."""
    label = capture.failure.pass_label if capture.failure is not None else ""
    failed = next((one for one in capture.snapshots if label and one.label == label), None)
    return (capture.text_before(failed) or "") if failed is not None else ""


def ptx_line(capture: Capture) -> int | None:
    """The line of the PTX that ptxas's first error names; None if it names none."""
    # ptxas matmul.ptx, line 47; error : Not a name of any known instruction: 'frobnicate'
    failure = capture.failure
    line = failure.message.partition(", line ")[2].partition(";")[0] if failure is not None else ""
    is_named = failure is not None and failure.stage == "cubin" and "ptx" in capture.texts and line.isdecimal()
    return int(line) if is_named and len(line) < 8 else None


def failure_text(capture: Capture) -> str:
    failure = capture.failure
    if failure is None:
        return ""
    text = f"{capture.name} ({capture.target}) {failure.verdict}: {failure.message}".rstrip()
    return "\n".join([text, *_diagnostic_lines(failure.diagnostics, text)])


def _is_said(line: str, text: str) -> bool:
    """Whether the text already contains what a line of diagnostics says."""
    said = _LABEL.split(line)[-1].strip().rstrip(".")
    return said[:_TELLING_COLUMNS] in text or said.startswith(_SAYS_NOTHING)


def _diagnostic_lines(diagnostics: str, text: str) -> list[str]:
    """The diagnostics that a text lacks, of a compiler's output: each with its source line and caret, without the IR.

    If the output has no diagnostics, its last lines. `irscope show ID --json` has the whole output.
    """
    lines = diagnostics.splitlines()
    if not any(_DIAGNOSTIC.search(line) for line in lines):
        return [line for line in lines[-_FRAMES_OF_OUTPUT:] if not _is_said(line, text)]
    kept: list[str] = []
    for number, line in enumerate(lines):
        if _DIAGNOSTIC.search(line) and not _is_said(line, text):
            caret = number + 2 < len(lines) and lines[number + 2].strip() == "^"
            kept += lines[number : number + 3] if caret else [line]
    return list(dict.fromkeys(kept))


def edited_failure_text(fresh: Capture, text: str, path: Path) -> str:
    """Why a compile of an edited text failed; where the parser refuses it with its line, and a caret under that."""
    said = failure_text(fresh)
    if fresh.failure is None or fresh.failure.kind != "parse" or (place := _PARSER.search(said)) is None:
        return said
    line, column = int(place[1]), int(place[2])
    lines = text.splitlines()
    message = said[place.end() :].partition("\n")[0]
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = re.sub(r"[^\t]", " ", shown[: column - 1]) + "^"
    return f"{path}:{line}:{column}: {message}\n{shown}\n{caret}"
