"""What ptxas, the AMD assembler and LLVM say of a text they refuse, with its line and the Python line behind that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from irscope.model.capture import stage_named

if TYPE_CHECKING:
    from irscope.ir.locations.stages import Frame

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

    `log`: what the assembler printed, whatever stands around it. `stage`: that of its input, `ptx` or `amdgcn`.
    `texts`: stage to artifact; of that stage, and `llir`, which says more of where each line comes from. `sources`: the
    program's files, path to text. `name`: what to call the input, in place of a file in the temporary folder. Returns
    an empty string if no line is the assembler's.
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
    """What LLVM said of a text that is no LLVM IR, with its line; nothing where it said nothing of the kind."""
    for line in diagnostics.splitlines():
        if (said := _LLVM_PARSE.search(line)) is not None:
            number = int(said["line"])
            return "\n".join([f"line {number}: error: {said['said']}", *_text_line(text, number)])
    return ""


def _place(stage: str, texts: Mapping[str, str], sources: Mapping[str, str], number: int) -> list[str]:
    """The line of the text, and the innermost line of the program's own that it comes from."""
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
