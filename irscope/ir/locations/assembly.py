"""Reads the locations of PTX, AMD GPU assembly and SASS: `.loc` with its call sites, and the comments of nvdisasm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from irscope.ir.locations.llvm import KnownChains, honest, joined
from irscope.ir.locations.model import Chain, ChainTable, Frame, TextLocations, count, cut, text_lines
from irscope.ir.quoted import SassPaths, unescape_assembly

# ── Reads the locations of AMDGCN: `.loc`, with the call sites in its comment ───────────────────────────────────────

# 	.file	1 "/home/me" "kernel.py"        .file 3 "standard.py"
FILE = re.compile(r'\s*\.file\s+(?P<id>\d+)\s+"(?P<first>(?:[^"\\]|\\.)*)"(?:\s+"(?P<second>(?:[^"\\]|\\.)*)")?')
# 	.loc	3 196 12 is_stmt 1              ; standard.py:196:12 @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
# 	.loc	3 196 12, function_name $L__info_string0, inlined_at 3 216 16 // standard.py:196:12
# 	.loc	2 9 15                          // helpers.py:9:15 @[ kernel.py:19:22 ]
_LOC = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?"
    r"(?:\s*,\s*function_name\s+(?P<function>[\w.$]+)(?:\s*\+\s*(?P<offset>\d+))?"
    r"(?:\s*,)?\s*inlined_at\s+(?P<at_file>\d+)\s+(?P<at_line>\d+)(?:\s+(?P<at_column>\d+))?)?"
    r"[^/;]*(?:(?://|;)(?P<comment>.*))?"
)
# @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
_CALLER = re.compile(r"@\[ (?P<file>(?:(?!@\[ ).)*?):(?P<line>\d+)(?::(?P<column>\d+))?(?=[ \]])")
# 	v_add_f32_e32 v0, v1, v2
_AMD_INSTRUCTION = re.compile(r"\s+[a-z]")
_AMD_END = re.compile(r"\.Lfunc_end\d+:|\s*\.(?:section|end_amdhsa_kernel|cfi_endproc)\b|.*-- Begin function")


@lru_cache(maxsize=2)
def read_amdgcn(text: str, llir: str | None = None) -> TextLocations:
    """The locations of each line of AMDGCN assembly.

    The comment of a `.loc` holds the call sites, with file names without folders, which the `.file` table provides. If
    the table is ambiguous or there are no comments, `llir` (the LLVM IR that the assembly was compiled from) decides;
    if that has several matching chains, the frames stay as in the assembly.
    """
    lines = text_lines(text)
    files = _file_table(lines)
    paths = _paths_by_name(files)
    known = KnownChains(llir)
    table = ChainTable()
    by_line: list[int] = []
    index = -1
    for line in lines:
        loc = _LOC.match(line) if ".loc" in line else None
        if loc is not None:
            frame = Frame(files.get(loc["file"], ""), count(loc["line"]), count(loc["column"] or "0"))
            index = table.add(known.settle(cut((frame, *callers(loc["comment"] or "", paths)))))
        elif _AMD_END.match(line):
            index = -1
        by_line.append(index if loc is None and _AMD_INSTRUCTION.match(line) else -1)
    return table.locations(by_line)


def _file_table(lines: Iterable[str]) -> dict[str, str]:
    """File number of `.file` → path."""
    return {number: unescape_assembly(path) for number, path in _written_paths(lines).items()}


def _written_paths(lines: Iterable[str]) -> dict[str, str]:
    """File number of `.file` → path as written, with its escapes."""
    table: dict[str, str] = {}
    for line in lines:
        match = FILE.match(line) if ".file" in line else None
        if match is not None:
            first, second = match["first"], match["second"]
            table[match["id"]] = first if second is None else joined(first, second)
    return table


def _paths_by_name(files: Mapping[str, str]) -> dict[str, str]:
    """File name → path, for the names that only one path has."""
    paths: dict[str, set[str]] = {}
    for path in files.values():
        paths.setdefault(path.rpartition("/")[2], set()).add(path)
    return {name: next(iter(found)) for name, found in paths.items() if len(found) == 1}


def callers(comment: str, paths: Mapping[str, str]) -> Iterator[Frame]:
    """The call sites in the comment of a `.loc`; an ambiguous file name stays without a folder."""
    for site in _CALLER.finditer(comment):
        path = paths.get(site["file"].rpartition("/")[2], site["file"])
        yield Frame(path, count(site["line"]), count(site["column"] or "0"))


# ── Reads the locations of PTX: `.file`, and `.loc` with the call site it was inlined at ────────────────────────────

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
    lines = text_lines(text)
    sites = _InlineSites(_file_table(lines), _info_strings(lines), known)
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


class _CountedLines:
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

        `opcode`: the beginning of the PTX opcode that it was assembled from; without it the family of `sass`, its own
        opcode, is compared. `shape`: of a matrix multiplication, as in PTX: `m64n128k16`.
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


class _InlineSites:
    """Remembers where each place of a function was last inlined."""

    def __init__(self, files: Mapping[str, str], strings: Mapping[str, str], known: KnownChains) -> None:
        self.files = files
        self.paths = _paths_by_name(files)
        self.strings = strings
        self.known = known
        self.function = ""
        self.parents: dict[_Place, Chain] = {}

    def begin(self, function: str) -> None:
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


# ── Reads the locations of SASS: the comments that nvdisasm puts before the instructions of a line ──────────────────

# 	//## File "kernel.py", line 216 inlined at "kernel.py", line 25
_MARKER = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_INLINED = re.compile(r'(?<!\s)\s+inlined at "(?P<file>[^"]*)", line (?P<line>\d+)')
# .L_x_0:      $kernel$helper:      .section .text.kernel      .type kernel,@function   //----- .text.kernel -----
_NO_SASS = re.compile(r"\s*(?:\S+:\s*$|\.\w|//|$)")
_SASS_FUNCTION = re.compile(r"\s*(?:\.section\s|\.type\s+[^\s,]+,@function|//-{5})")
# /*0140*/  @!P0 LDG.E R6, desc[UR6][R4.64] ;        0140  B------:R-:W2:-:S04  LDG.E R6, desc[UR6][R4.64]
_SASS_OPCODE = re.compile(
    r"\s*(?:/\*[0-9a-f]+\*/|[0-9a-f]{4,} .*?\bS\d\d\b(?:  G[\w:]+)?)\s+(?:@!?\w+\s+)?(?P<opcode>[A-Z]\w*)"
    r"(?P<suffix>[\w.]*)(?:\s+(?P<into>R\d+))?"
)
# .64x128x16.F32
_SHAPE = re.compile(r"\.(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)\b")
# What an instruction is made from, for those that Triton writes as inline assembly.
_MADE_FROM = {
    "LDG": "ld.global", "STG": "st.global", "LDGSTS": "cp.async", "LDGDEPBAR": "cp.async.commit_group",
    "DEPBAR": "cp.async.wait", "BAR": "bar", "WARPGROUP": "wgmma.",
    **dict.fromkeys(("HGMMA", "QGMMA", "IGMMA"), "wgmma.mma_async"),
}  # fmt: skip


@lru_cache(maxsize=2)
def read_sass(text: str, llir: str | None = None, ptx: str | None = None) -> TextLocations:
    """The locations of each line of a disassembly by `nvdisasm -g -gi`, or of irscope's normal form of one.

    SASS has lines and no columns. Before Triton 3.8 it has only the innermost frame, which is completed if `llir` (the
    LLVM IR that it was compiled from) has exactly one chain that begins with it. From Triton 3.8 on, LLVM adds one line
    per instruction of inline assembly, which points at unrelated statements, and ptxas gives some matrix
    multiplications the line of their neighbours: these are corrected if `ptx` shows the true line (`CountedLines`).
    """
    known = KnownChains(llir, columns=False)
    counted = _CountedLines(ptx)
    paths = SassPaths(_written_paths(text_lines(ptx)).values() if ptx is not None else ())
    table = ChainTable()
    by_line: list[int] = []
    answers: dict[tuple[int, str, str], Chain | None] = {}
    current: list[Frame] = []
    awaited: Frame | None = None  # the frame that the next marker must have to continue the chain
    chain: Chain | None = None  # computed at the next instruction, since more markers may follow
    index = latest = -1
    group = -1  # the chain of the dot of the last WARPGROUP.ARRIVE or HGMMA
    into: str | None = None  # the accumulators of the last HGMMA since then
    for line in text_lines(text):
        marker = _MARKER.match(line) if "//## File" in line else None
        if marker is not None:
            sites = [marker, *_INLINED.finditer(line, marker.end())]
            frames = [Frame(paths.true(site["file"]), count(site["line"]), 0) for site in sites]
            current = [*current[:-1], *frames] if awaited == frames[0] else frames
            awaited = frames[-1] if len(frames) > 1 else None
            chain = None
            by_line.append(-1)
            continue
        if _SASS_FUNCTION.match(line):
            current, awaited, chain, group, into = [], None, None, -1, None
        if _NO_SASS.match(line):
            by_line.append(-1)
            continue
        if chain is None:
            awaited, chain = None, known.settle(cut(current))
            index = latest = table.add(chain)
        opcode = _SASS_OPCODE.match(line) if counted and chain else None
        if opcode is not None:  # otherwise it is the second line of an encoding
            made_from = _MADE_FROM.get(opcode["opcode"], "")
            asked = (index, opcode["opcode"], opcode["suffix"])
            if asked not in answers:
                answers[asked] = counted.meant(chain, made_from, _shape(asked[2]), asked[1] + asked[2])
            meant = answers[asked]
            latest = index if meant is None else table.add(meant)
            if opcode["opcode"].endswith("GMMA") or opcode["suffix"] == ".ARRIVE":
                # The HGMMAs of one dot follow one arrival and have the same accumulators, so they have one chain; it
                # also decides for an instruction that matches two chains.
                same = into is not None and opcode["into"] == into
                if group >= 0 and (same or (meant is None and not counted.has(chain, made_from))):
                    latest = group
                group, into = latest, opcode["into"]
        by_line.append(latest)
    return table.locations(by_line)


def _shape(suffix: str) -> str:
    """The shape of a matrix multiplication as in PTX; empty for any other opcode."""
    match = _SHAPE.search(suffix)
    return f"m{match['m']}n{match['n']}k{match['k']}" if match is not None else ""
