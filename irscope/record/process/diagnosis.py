"""Finds, in what compilers and assemblers printed, the lines that say why they failed, and where.

MLIR's diagnostics, failed assertions and `LLVM ERROR` stand among the IR that is printed with them, on a
standard error that the exception (`PassManager::run failed`) says nothing of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.model.capture import Failure, stage_named
from irscope.record.process.requests import RecordRequest

if TYPE_CHECKING:
    from irscope.ir.locations.model import Frame


ASSEMBLED_FROM = {"cubin": "ptx", "hsaco": "amdgcn"}
"""The stages an assembler makes, and the stage that it is given."""

_LONGEST_LINE = 160

# ptxas /tmp/tmpab12.ptx, line 44; error   : Not a name of any known instruction: 'bogus'
# ptxas-blackwell fatal   : Unresolved extern function 'f'
_PTXAS = re.compile(
    r"^ptxas[\w-]*(?: (?P<file>\S+), line (?P<line>\d+);)? +(?:error|fatal|Internal error) *: *(?P<said>.*)"
)
_PTXAS_CLOSING = "Ptx assembly aborted due to errors"
# Insufficient registers (32) to compile instruction at line 183 in function product.
_AT_LINE = re.compile(r"\bat line (?P<line>\d+)\b")
# triton-amdgpu-assembler:49:2: error: invalid instruction  |  <stdin>:49:2: error: …
_AMD = re.compile(r"^(?P<file>\S+?):(?P<line>\d+):\d+: error: (?P<said>.*)")
# LLVM ERROR: failed to parse IR: expected top-level entitylineno: 8
_LLVM_PARSE = re.compile(r"failed to parse IR: (?P<said>.*?)lineno: (?P<line>\d+)$")


def assembler_message(log: str, stage: str, texts: Mapping[str, str], sources: Mapping[str, str], name: str) -> str:
    """The assembler's own lines, with the line of its input that the first is about, and that line's place in Python.

    `log`: what it printed, and more. `texts`: by stage; `llir` says more of where a line comes from. `name`: stands in
    place of a file in the temporary folder. Returns an empty string if no line is the assembler's.
    """
    pattern = _PTXAS if stage == "ptx" else _AMD
    found: dict[str, int] = {}
    for line in log.splitlines():
        said = pattern.match(line.strip())
        if said is None or said["said"].startswith(_PTXAS_CLOSING):
            continue
        at = said["line"] or ((place := _AT_LINE.search(said["said"])) and place["line"])
        own = said[0].replace(said["file"], f"{name}.{stage}", 1) if said["file"] else said[0]
        found.setdefault(own, int(at) if at else 0)
    if not found:
        return ""
    first, *others = found
    return "\n".join([first, *_place(stage, texts, sources, found[first]), *others])


def unreadable_llvm(diagnostics: str, text: str) -> str:
    for line in diagnostics.splitlines():
        if (said := _LLVM_PARSE.search(line)) is not None:
            number = int(said["line"])
            return "\n".join([f"line {number}: error: {said['said']}", *_text_line(text, number)])
    return ""


def _place(stage: str, texts: Mapping[str, str], sources: Mapping[str, str], number: int) -> list[str]:
    shown = _text_line(texts.get(stage, ""), number)
    if not shown:
        return []
    # Only an error needs it, and importing it is a sixth of what following a recording imports.
    from irscope.ir.locations.stages import read_locations

    locations = read_locations(texts[stage], stage_named(stage).kind, llir=texts.get("llir"))
    chain = locations.chain_at(number)
    own = [frame for frame in chain if frame.file in sources] or list(chain)
    return shown + [_python_line(frame, sources) for frame in own[:1]]


def _text_line(text: str, number: int) -> list[str]:
    lines = text.splitlines()
    if not 0 < number <= len(lines):
        return []
    text = lines[number - 1].strip()
    # The operands of a wgmma fill a screen.
    return [f"  line {number}: {text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + '…'}"]


def _python_line(frame: Frame, sources: Mapping[str, str]) -> str:
    lines = sources.get(frame.file, "").splitlines()
    text = lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else ""
    return f"  from {frame.file}:{frame.line}" + (f": {text}" if text else "")


_MOST_BLOCKS = 6
_MOST_COLUMNS = 600

# MemoryError: std::bad_alloc  |  std::bad_alloc, what():  std::bad_alloc
_NO_MEMORY = ("MemoryError", "std::bad_alloc")
# python: /build/FMA.cpp:28: virtual Value f(Value): Assertion `a == b' failed.
# /usr/include/c++/13/bits/optional:479: … Assertion 'this->_M_is_engaged()' failed.
_ASSERTION = re.compile(
    r"(?:^|[\s/])(?P<file>[\w.+-]+):(?P<line>\d+): (?P<function>.*)Assertion [`'](?P<said>.*)' failed"
)
# UNREACHABLE executed at /build/Error.h:779!
_UNREACHABLE = re.compile(r"UNREACHABLE executed(?: at (?:.*/)?(?P<place>[^/]+?))?!?$")
# terminate called after throwing an instance of 'std::bad_alloc'
_TERMINATE = re.compile(r"^terminate called after throwing an instance of '(?P<type>[^']+)'")
# LLVM ERROR: out of memory
_LLVM_ERROR = re.compile(r"^(?:python\d*: )?(?P<said>LLVM ERROR: .*|fatal error: .*)")
# k.py:24:1: error: 'tt.load' op …  |  loc("k.ttgir":1:17): error: …  |  error: couldn't allocate …  |  ld.lld: error: …
_ERROR = re.compile(r"^(?:\S.*?: |)error: ")
# k.py:31:9: note: called from
_CALLED_FROM = re.compile(r": note: called from$")
# k.py:20:1: error: Failures have been detected while processing an MLIR pass pipeline
_SAYS_NOTHING = re.compile(r"Failures have been detected while processing|Pipeline failed while executing")


def explained(
    failure: Failure, request: RecordRequest, texts: Mapping[str, str], sources: Mapping[str, str], name: str
) -> Failure:
    """A failure with what says most of it first in its message.

    `failure`: its message is the exception's, or how the process ended; its diagnostics are what was printed.
    `request`: an IR file that does not parse fails in the stage that it is.
    """
    given = ASSEMBLED_FROM.get(failure.stage, "")
    if given in texts:
        log = f"{failure.diagnostics}\n{failure.message}"
        if own := assembler_message(log, given, texts, sources, name):
            return replace(failure, message=_with_rest(own, failure.message))
    if request.stage == "llir" and (own := unreadable_llvm(failure.diagnostics, request.text)):
        return replace(failure, kind="parse", stage="llir", message=f"{own}\n{failure.message}")
    return replace(failure, message=with_diagnostics(failure.message, failure.diagnostics))


def _with_rest(own: str, message: str) -> str:
    """The assembler's own lines, then what Triton says of it, without its log once more."""
    first = message.partition("\n`ptxas` stderr:")[0]
    command = next((line for line in message.splitlines() if line.startswith("Repro command:")), "")
    return "\n".join(filter(None, [own, first, command]))


def with_diagnostics(message: str, diagnostics: str) -> str:
    """A failure's message with what the compiler said of it first; `message` alone where it printed nothing of use."""
    lines = [line.rstrip() for line in diagnostics.splitlines()]
    # An assertion is the cause of the errors that are printed after it.
    blocks = [block for block in dict.fromkeys((*_assertions(lines), *_errors(lines))) if block not in message]
    whole = "\n".join([*blocks[:_MOST_BLOCKS], message]).strip()
    return f"out of memory: {whole}" if whole.startswith(_NO_MEMORY) else whole


def _assertions(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if (failed := _ASSERTION.search(line)) is not None:
            name = _function_name(failed["function"])
            place = f"{failed['file']}:{failed['line']}" + (f", {name}" if name else "")
            yield f"Assertion `{failed['said']}' failed ({place})"
        elif (reached := _UNREACHABLE.search(line)) is not None:
            # What was said stands in the lines before it.
            said = _said_before(lines, number)
            place = f" ({reached['place']})" if reached["place"] else ""
            yield (": ".join(said) if said else "code that must not be reached was reached") + place
        elif (ended := _TERMINATE.search(line)) is not None:
            what = lines[number + 1].strip() if number + 1 < len(lines) else ""
            yield ended["type"] + (f", {what}" if what.startswith("what():") else "")


def _said_before(lines: list[str], number: int) -> list[str]:
    said: list[str] = []
    for line in reversed(lines[max(0, number - 3) : number]):
        if not line or _ERROR.search(line) or line.startswith(("//", "#", " ")):
            break
        said.insert(0, line[:_MOST_COLUMNS])
    return said


# virtual Value (anonymous namespace)::Multiplier::multiply(ArrayRef<Value>, Value): -> Multiplier::multiply
def _function_name(signature: str) -> str:
    found = re.search(r"(?P<name>[\w:~]+)\(", signature.replace("(anonymous namespace)::", ""))
    return found["name"] if found else ""


def _errors(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if (fatal := _LLVM_ERROR.match(line)) is not None:
            yield fatal["said"][:_MOST_COLUMNS]
        elif _ERROR.search(line) and not _SAYS_NOTHING.search(line):
            yield "\n".join(item[:_MOST_COLUMNS] for item in (_placed(line), *_continued(lines, number + 1)))


def _placed(line: str) -> str:
    """An error without its place, if that is longer than a line: the location of a debugger's scope may be."""
    place, _, said = line.partition("error: ")
    return line if len(place) < _MOST_COLUMNS // 2 else f"error: {said}"


def _continued(lines: list[str], start: int) -> list[str]:
    """The source line and the caret under a diagnostic, and the calls that led there; or more of its text."""
    if start + 1 < len(lines) and lines[start + 1].strip().startswith("^"):
        end = start + 2
        while end + 2 < len(lines) and _CALLED_FROM.search(lines[end]) and lines[end + 2].strip().startswith("^"):
            end += 3
        return lines[start:end]
    following = lines[start] if start < len(lines) else ""
    is_more = following[:1].isupper() and not re.match(r"\S+:\d+:\d+: ", following) and ": error: " not in following
    return [following] if is_more and not following.startswith("LLVM ERROR") else []
