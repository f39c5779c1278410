"""Reads the locations of PTX: `.file`, and `.loc` with the call site it was inlined at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from irscope.ir.locations.amdgcn import callers, file_table, paths_by_name
from irscope.ir.locations.known import KnownChains
from irscope.ir.locations.llvm import honest
from irscope.ir.locations.model import Chain, ChainTable, Frame, TextLocations, count, cut, text_lines

# 	.loc	3 196 12, function_name $L__info_string0, inlined_at 3 216 16 // standard.py:196:12
# 	.loc	2 9 15                          // helpers.py:9:15 @[ kernel.py:19:22 ]
_LOC = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?"
    r"(?:\s*,\s*function_name\s+(?P<function>[\w.$]+)(?:\s*\+\s*(?P<offset>\d+))?"
    r"(?:\s*,)?\s*inlined_at\s+(?P<at_file>\d+)\s+(?P<at_line>\d+)(?:\s+(?P<at_column>\d+))?)?"
    r"[^/]*(?://(?P<comment>.*))?"
)
# .visible .entry chains(      .func  (.param .b32 func_retval0) helper(      .entry kernel
_FUNCTION = re.compile(r"\s*(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\b(?:\s*\([^)]*\))?\s*(?P<name>[\w.$]*)")
# $L__info_string0:
_STRING = re.compile(r"(?P<name>\$L__info_string\d+):")
# .b8 99                                  // string offset=0 ; chains        .b8 104,105,0
_BYTES = re.compile(r"\.b8\s+(?P<values>[\d, ]+)")
# $L__tmp0:   }   )   {   .reg .b32 %r<3>;   // %bb.0:   (an instruction may stand behind a brace)
_NO_INSTRUCTION = re.compile(r"\s*(?:[\w.$]+:\s*(?://.*)?$|(?:[{}]\s*)?(?://.*)?$|(?:\{\s*)?\.\w|\)\s*$)")
# @%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
_OPCODE = re.compile(r"\s*(?:\{\s*)?(?:@!?%\w+\s+)?(?P<opcode>[\w.:]+)")

# F2F.F32.F64
_TYPE = re.compile(r"\b[FSU](?:8|16|32|64)\b")

_Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _PtxLine:
    """The chain of one line, and within inline assembly the one that its `.loc` states."""

    chain: Chain = ()
    stated: Chain = ()
    is_instruction: bool = False


@lru_cache(maxsize=2)
def read_ptx(text: str, llir: str | None = None) -> TextLocations:
    """The locations of each line of PTX.

    A `.loc` names its call site by line and column only; the nearest earlier `.loc` of the function with that place
    says where it is inlined itself. Before Triton 3.8 the call sites are in comments. If `llir` (the LLVM IR that the
    PTX was compiled from) is given, a chain that is not in it is replaced by the one chain of it that agrees most.

    All lines of a block of inline assembly have the location of its beginning: from Triton 3.8 on, LLVM adds one line
    per instruction, which points at unrelated statements.
    """
    table = ChainTable()
    return table.locations([table.add(line.chain) for line in _ptx_lines(text, KnownChains(llir))])


def _ptx_lines(text: str, known: KnownChains) -> Iterator[_PtxLine]:
    """The chains of each line of PTX."""
    lines = text_lines(text)
    sites = _CallSites(file_table(lines), _info_strings(lines), known)
    chain: Chain = ()
    stated: Chain = ()
    fresh = in_block = False
    passed = 0  # lines of the block before its first location, such as a brace, which LLVM counts too
    for line in lines:
        result = _PtxLine()
        loc = _LOC.match(line) if ".loc" in line else None
        if loc is not None:
            if not in_block or fresh:
                chain, fresh = sites.chain(loc, passed if in_block else 0), False
            stated = sites.chain(loc)
        elif "// begin inline asm" in line:
            in_block = fresh = True
            passed = 0
        elif "// end inline asm" in line:
            in_block = False  # the next lines keep the last counted line, until another is stated
        elif line[:1] == "}" or line.lstrip().startswith((".visible", ".func", ".entry", ".weak", ".section")):
            function = _FUNCTION.match(line)
            sites.begin(function["name"] if function else "")
            chain = stated = ()
            in_block = False
        elif _NO_INSTRUCTION.match(line):
            passed += in_block and fresh
        else:
            fresh = False
            result = _PtxLine(chain, stated, True)
        yield result


class CountedLines:
    """The made-up lines of inline assembly, and the chains they replace.

    LLVM gives the n-th line of a block of inline assembly, counted from 0, the line of its statement plus n
    (https://github.com/llvm/llvm-project/pull/177718), and the SASS assembled from the PTX has these lines.
    """

    def __init__(self, ptx: str | None) -> None:
        self._true: dict[tuple[str, int], set[str]] = {}
        self._counted: dict[tuple[str, int], dict[str, set[Chain]]] = {}
        self._by_opcode: dict[str, set[Chain]] = {}
        if ptx is None:
            return
        for text, line in zip(text_lines(ptx), _ptx_lines(ptx, KnownChains(None)), strict=True):
            if not line.is_instruction or not line.stated:
                continue
            match = _OPCODE.match(text)
            opcode = match["opcode"] if match else ""
            place = (line.stated[0].file, line.stated[0].line)
            plain = tuple(Frame(frame.file, frame.line, 0) for frame in line.chain)
            self._by_opcode.setdefault(opcode, set()).add(plain)
            if line.chain[:1] == line.stated[:1] or not line.chain:
                self._true.setdefault(place, set()).add(opcode)
            else:
                self._counted.setdefault(place, {}).setdefault(opcode, set()).add(plain)

    def __bool__(self) -> bool:
        return bool(self._by_opcode)

    def meant(self, chain: Chain, opcode: str, shape: str = "", sass: str = "") -> Chain | None:
        """The true chain of an instruction of SASS; None if its stated chain is true, or if that cannot be decided.

        Args:
            chain: the chain that SASS states.
            opcode: the beginning of the PTX opcode that the instruction was assembled from; empty if unknown.
            shape: of a matrix multiplication, as in PTX: `m64n128k16`.
            sass: the whole SASS opcode, compared by family if `opcode` is unknown.
        """

        def fits(name: str) -> bool:
            return name.startswith(opcode) if opcode else _is_alike(sass, name)

        counted = self._counted.get((chain[0].file, chain[0].line))
        if counted is None:
            return self._elsewhere(chain, opcode, shape)
        true = self._true.get((chain[0].file, chain[0].line), set())
        fitting = {name: chains for name, chains in counted.items() if fits(name)}
        if true and (not fitting or any(fits(name) for name in true)):
            return None
        return self._only({one for found in (fitting or counted).values() for one in found}, chain)

    def has(self, chain: Chain, opcode: str) -> bool:
        """Whether the PTX has an instruction with this beginning of its opcode on the innermost line of a chain."""
        place = (chain[0].file, chain[0].line)
        return any(
            name.startswith(opcode) and any(one and (one[0].file, one[0].line) == place for one in found)
            for name, found in self._by_opcode.items()
        )

    def _elsewhere(self, chain: Chain, opcode: str, shape: str) -> Chain | None:
        """The chain of an instruction to which ptxas gave a line without such an instruction."""
        fitting = [(name, found) for name, found in self._by_opcode.items() if opcode and name.startswith(opcode)]
        fitting = [(name, found) for name, found in fitting if f".{shape}." in f"{name}."] or fitting
        chains = {one for _, found in fitting for one in found}
        here = {one[0] for one in chains if one}
        return None if not chains or Frame(chain[0].file, chain[0].line, 0) in here else self._only(chains, chain)

    def _only(self, chains: set[Chain], stated: Chain) -> Chain | None:
        """The only chain, or the one that shares most callers with the stated one; None for a tie."""
        if len(chains) < 2:
            return next(iter(chains), None)
        callers = [(frame.file, frame.line) for frame in stated[1:]]
        shared: dict[int, list[Chain]] = {}
        for one in chains:
            own = [(frame.file, frame.line) for frame in one[1:]]
            if own == callers[len(callers) - len(own) :]:
                shared.setdefault(len(own), []).append(one)
        best = shared[max(shared)] if shared else []
        return best[0] if len(best) == 1 else None


def _is_alike(sass: str, ptx: str) -> bool:
    """Whether a SASS opcode may be assembled from a PTX opcode: the same family, and for conversions the same types."""
    # Imported where it is needed: the locations of PTX alone do without.
    from irscope.ir.asm.opcodes import classify

    family = classify(sass) if sass else None
    if family is None or classify(ptx) != family:
        return False
    return family != "convert" or all(kind.lower() in ptx for kind in _TYPE.findall(sass))


class _CallSites:
    """Remembers where each place of a function was last inlined."""

    def __init__(self, files: Mapping[str, str], strings: Mapping[str, str], known: KnownChains) -> None:
        self.files = files
        self.paths = paths_by_name(files)
        self.strings = strings
        self.known = known
        self.function = ""
        self.parents: dict[_Place, Chain] = {}

    def begin(self, function: str) -> None:
        """Begin another function, and forget the places of the last one."""
        self.function = function
        self.parents = {}

    def chain(self, loc: re.Match[str], passed: int = 0) -> Chain:
        """The chain of one `.loc`, whose line is `passed` lines too high."""
        file, line, column = self.files.get(loc["file"], ""), count(loc["line"]) - passed, count(loc["column"] or "0")
        if loc["at_file"]:
            at = (self.files.get(loc["at_file"], ""), count(loc["at_line"]), count(loc["at_column"] or "0"))
            # Triton names the function that it was inlined into, not its own.
            inner = honest(
                (Frame(file, line, column, self.strings.get(loc["function"], "")), Frame("", 1, 0, self.function))
            )
            frames = cut((inner[0], *(self.parents.get(at) or (Frame(*at),))))
        else:
            frames = cut((Frame(file, line, column), *callers(loc["comment"] or "", self.paths)))
        chain = self.known.settle(frames)
        self.parents[file, line, column] = chain
        return chain


def _info_strings(lines: list[str]) -> dict[str, str]:
    """The strings of `.debug_str` by their labels."""
    raw: dict[str, bytearray] = {}
    into: bytearray | None = None
    for line in lines:
        label = _STRING.match(line)
        if label is not None:
            into = raw.setdefault(label["name"], bytearray())
            continue
        data = _BYTES.match(line) if into is not None else None
        if data is None or into is None:
            into = None
            continue
        for value in data["values"].replace(",", " ").split():
            into.append(min(count(value), 255))
    return {name: bytes(value).split(b"\0")[0].decode("utf-8", "replace") for name, value in raw.items()}
