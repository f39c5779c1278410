"""The source map: any line of Python ↔ the operations of any stage, joined through the whole chain of calls.

What is stored is one number per text line, the place it comes from; everything else is joined on demand.
A place is the chain of calls without the lines of Triton's own library: those are rolled up to the line that called
them, so that two calls of `tl.sum` on two lines are two places, and so are two calls of one helper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from irscope.errors import StageNotFound
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.readers import symbol_of
from irscope.ir.locations.model import Chain, Frame, Place, TextLocations, place_of, text_lines
from irscope.ir.locations.stages import capture_locations
from irscope.ir.mlir.reader import Operation, parse_mlir
from irscope.model.capture import STAGES, Capture, StageKind, stage_named

# ── The lines of Python that a capture holds ────────────────────────────────────────────────────────────────────────


def python_line(capture: Capture, file: str, line: int) -> str:
    """A line of Python, 1-based; empty if the capture does not hold it."""
    kernel = capture.launch.kernel
    texts = {one.path: one.text for one in capture.sources}
    # A capture of a signature holds the kernel's own text alone.
    texts.setdefault(kernel.file, "\n" * max(0, (kernel.first_line or kernel.line) - 1) + kernel.source)
    lines = texts.get(file, "").split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


# ── Which lines of a Python file to show around some of its lines: the functions that they stand in, and nothing else ─

# def kernel(          async def f():
_DEF = re.compile(r"\s*(?:async )?def ")
_LONGEST_SIGNATURE = 80


def function_blocks(text: str, lines: Iterable[int]) -> list[tuple[int, int]]:
    """The functions that hold some lines, decorators included, as (first, last), 1-based; a line in none is by itself.

    Found by indentation: the text may be anything, so it is not given to Python's parser.
    """
    rows = text.split("\n")
    blocks: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if any(first <= line <= last for first, last in blocks) or not 1 <= line <= len(rows):
            continue
        head = _head(rows, line - 1)
        blocks.append((line, line) if head < 0 else (_first(rows, head) + 1, max(_last(rows, head) + 1, line)))
    return blocks


def _head(rows: list[str], index: int) -> int:
    """The `def` that a line stands in, or is a decorator of; or -1."""
    indent = _indent(rows[index])
    if rows[index].lstrip().startswith("@"):
        below = range(index, min(index + _LONGEST_SIGNATURE, len(rows)))
        return next((number for number in below if _DEF.match(rows[number])), -1)
    for number in range(index, -1, -1):
        if _DEF.match(rows[number]) and (number == index or _indent(rows[number]) < indent):
            return number
    return -1


def _first(rows: list[str], head: int) -> int:
    indent = _indent(rows[head])
    first = head
    while first > 0 and rows[first - 1].strip() and _indent(rows[first - 1]) >= indent:
        if _indent(rows[first - 1]) == indent and rows[first - 1].lstrip()[:1] not in ("@", ")", "]", "}"):
            break
        first -= 1
    while first < head and not rows[first].lstrip().startswith("@"):
        first += 1
    return first


def _last(rows: list[str], head: int) -> int:
    indent = _indent(rows[head])
    last = head
    in_signature = True
    for number in range(head, len(rows)):
        row = rows[number]
        if in_signature:
            last = number
            in_signature = not row.split("#")[0].rstrip().endswith(":") and number - head < _LONGEST_SIGNATURE
        elif row.strip():
            if _indent(row) <= indent:
                break
            last = number
    return last


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


# ── Which lines call the functions that a module does not inline: `noinline` helpers; before the inliner, all of them ─

_MAX_CALLERS = 64
"""The chains of callers that are kept of one function: helpers that call helpers multiply."""
_MAX_DEPTH = 16

Function = tuple[int, str]
"""(line of the module whose symbol it is, symbol): a module within another one has names of its own."""


@dataclass(frozen=True)
class _CallSites:
    """The callers of the private functions of one module."""

    functions: dict[tuple[str, int], Function] = field(default_factory=dict[tuple[str, int], Function])
    """(file, line) of Python -> the private function that it stands in."""
    calls: dict[Function, tuple[tuple[Function | None, Chain], ...]] = field(
        default_factory=dict[Function, tuple[tuple[Function | None, Chain], ...]]
    )
    """Function -> (private function that calls it, or None; where it does)."""

    def callers(self, outermost: Frame) -> tuple[Chain, ...]:
        name = self.functions.get((outermost.file, outermost.line))
        return tuple(self._chains(name, 0)) if name is not None else ()

    def _chains(self, name: Function, depth: int) -> list[Chain]:
        found: list[Chain] = []
        for caller, chain in self.calls.get(name, ()):
            outer = self._chains(caller, depth + 1) if caller is not None and depth < _MAX_DEPTH else []
            found.extend([(*chain, *rest) for rest in outer] or [chain])
            if len(found) >= _MAX_CALLERS:
                break
        return found[:_MAX_CALLERS]


def _read_call_sites(text: str, locations: TextLocations) -> _CallSites:
    if "call " not in text:
        return _CallSites()
    functions: dict[tuple[str, int], Function] = {}
    calls: dict[Function, list[tuple[Function | None, Chain]]] = {}
    waiting: list[tuple[Operation, int, Function | None]]
    waiting = [(operation, 0, None) for operation in reversed(parse_mlir(text).operations)]
    while waiting:
        operation, table, private = waiting.pop()
        name = (table, operation.symbol) if operation.opcode in ("func", "call") else None
        if operation.opcode == "func":
            private = name if operation.attribute("sym_visibility") == "private" else None
        if chain := locations.chain_at(operation.first_line):
            if private is not None:
                functions.setdefault((chain[-1].file, chain[-1].line), private)
            if operation.opcode == "call" and name is not None:
                known = calls.setdefault(name, [])
                if (private, chain) not in known:
                    known.append((private, chain))
        inner = operation.first_line if operation.name == "builtin.module" else table
        waiting.extend((one, inner, private) for one in reversed(operation.children))
    return _CallSites(functions, {name: tuple(sites) for name, sites in calls.items()})


# ── Which lines of a stage's text begin an operation or an instruction, its kind, and the live registers there ──────


@dataclass(frozen=True)
class Operations:
    """The operations of one text, column by column: every tuple has one item per operation unless it says otherwise."""

    lines: tuple[int, ...] = ()
    """The text line it begins on, 1-based."""
    kinds: tuple[int, ...] = ()
    """An index into `kind_names`."""
    names: tuple[int, ...] = ()
    """An index into `full_names`."""
    kind_names: tuple[str, ...] = ()
    """What is counted: `tt.load`, `fadd`, and for instructions the family with its width, `ld.global.128`."""
    full_names: tuple[str, ...] = ()
    """Operations and opcodes as they are written."""
    live: tuple[int, ...] = ()
    """General registers that hold a value; empty if the text does not state them."""
    text: Sequence[str] = field(default=(), repr=False)

    def matching(self, pattern: re.Pattern[str]) -> tuple[int, ...]:
        """The operations whose text, name or family a pattern is found in, as indices."""
        by_kind = [pattern.search(name) is not None for name in self.kind_names]
        return tuple(
            index
            for index, line in enumerate(self.lines)
            if by_kind[self.kinds[index]] or pattern.search(without_location(self.text[line - 1]))
        )


def without_location(line: str) -> str:
    """A line without the location at its end, so that names of files are not searched."""
    for mark in (" loc(", ", !dbg "):
        line = line.partition(mark)[0]
    return line


def read_stage_operations(text: str, kind: StageKind) -> Operations:
    """Find the operations of a text. Never raises: lines that cannot be read are skipped."""
    found = _mlir(text) if kind == "mlir" else _assembly(text, kind)
    numbers: list[int] = []
    kinds: list[int] = []
    names: list[int] = []
    live: list[int] = []
    kind_names: dict[str, int] = {}
    full_names: dict[str, int] = {}
    for number, name, family, registers in found:
        numbers.append(number)
        kinds.append(kind_names.setdefault(family or name, len(kind_names)))
        names.append(full_names.setdefault(name, len(full_names)))
        live.append(registers)
    known = tuple(live) if any(count >= 0 for count in live) else ()
    columns = tuple(numbers), tuple(kinds), tuple(names), tuple(kind_names), tuple(full_names), known
    return Operations(*columns, text_lines(text))


_Found = tuple[int, str, str | None, int]
"""Line, name as it is written, family, and live registers or -1."""


def _mlir(text: str) -> Iterator[_Found]:
    for operation in parse_mlir(text).walk():
        if "." in operation.name:
            # As it is written, which is how people search for it.
            yield operation.first_line, operation.name.replace("builtin.module", "module"), None, -1


def _assembly(text: str, kind: StageKind) -> Iterator[_Found]:
    for item in read_instructions(text, kind):
        live = item.live.general if item.live is not None else -1
        yield item.line, _llvm_name(item) if kind == "llvm" else item.opcode, item.family, live


def _llvm_name(item: Instruction) -> str:
    """`fadd`, `call llvm.exp2.f32`, `call asm`."""
    called = symbol_of(item.text) if item.opcode in ("call", "invoke") else ""
    if called:
        return f"call {called}"
    return "call asm" if item.opcode == "call" and " asm " in item.text else item.opcode


_MLIR_STAGES = frozenset(stage.name for stage in STAGES if stage.kind == "mlir")


def _places(chain: Chain, kernel_file: str, sites: _CallSites) -> tuple[Place, ...]:
    """The places of a chain: as many as the function that it ends in has callers."""
    chains = [(*chain, *callers) for callers in sites.callers(chain[-1])] or [chain]
    return tuple(dict.fromkeys(place for one in chains if (place := place_of(one, kernel_file))))


@dataclass(frozen=True)
class StageMap:
    """Where the operations of one stage come from."""

    stage: str
    locations: TextLocations
    operations: Operations
    places_of_chain: tuple[tuple[int, ...], ...]
    """For each of the locations' chains, indices into the map's places: one, or one per call of a function that is
    not inlined."""

    def places_at(self, line: int) -> tuple[int, ...]:
        """The places of a text line, 1-based; none if it has no location, or only one in the library."""
        by_line = self.locations.by_line
        chain = by_line[line - 1] if 0 < line <= len(by_line) else -1
        return self.places_of_chain[chain] if chain >= 0 else ()

    @cached_property
    def at_place(self) -> dict[int, tuple[int, ...]]:
        """For each place that has some, the indices of its operations, in the order of the text."""
        found: dict[int, list[int]] = {}
        for index, line in enumerate(self.operations.lines):
            for place in self.places_at(line):
                found.setdefault(place, []).append(index)
        return {place: tuple(indices) for place, indices in found.items()}


@dataclass(frozen=True, slots=True)
class StageCount:
    """The operations of one line of Python at one stage."""

    stage: str
    own: int
    """Operations that the line itself wrote, those of the library that it called among them."""
    called: int
    """Operations of other lines of Python that this one called."""
    kinds: tuple[tuple[str, int], ...]
    """(kind, how many), the most frequent first: operations by name, instructions by family and width."""
    live_registers: int | None = None
    """The most general registers that hold a value at one of its instructions; None if that is not known."""

    @property
    def total(self) -> int:
        return self.own + self.called


@dataclass(frozen=True)
class SourceMap:
    """Any line of Python ↔ any stage of one capture."""

    kernel_file: str
    places: tuple[Place, ...]
    stages: tuple[StageMap, ...]

    def stage(self, name: str) -> StageMap:
        """The map of one stage; raises StageNotFound."""
        if (found := next((one for one in self.stages if one.stage == name), None)) is not None:
            return found
        held = ", ".join(stage.stage for stage in self.stages) or "none"
        raise StageNotFound(f"stage {name!r} has no lines to map: choose one of {held}.")

    @cached_property
    def places_of_line(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """(file, line) -> the places that it stands in, as the line itself or as one that called."""
        found: dict[tuple[str, int], list[int]] = {}
        for index, place in enumerate(self.places):
            for frame in dict.fromkeys(place):
                found.setdefault(frame, []).append(index)
        return {frame: tuple(indices) for frame, indices in found.items()}

    @property
    def python_lines(self) -> tuple[tuple[str, int], ...]:
        """Every (file, line) outside of the library that something comes from, the kernel's file first."""
        return tuple(sorted(self.places_of_line, key=lambda frame: (frame[0] != self.kernel_file, *frame)))

    def counts(self, file: str, line: int) -> tuple[StageCount, ...]:
        """The operations of a line of Python at each stage."""
        places = self.places_of_line.get((file, line), ())
        return tuple(self._count(stage, places, (file, line)) for stage in self.stages)

    def matching(self, pattern: re.Pattern[str], stages: Iterable[str] = ()) -> dict[str, tuple[int, ...]]:
        """The operations that a pattern is found in, by stage, as indices: in their text, name or family."""
        wanted = set(stages)
        found: dict[str, tuple[int, ...]] = {}
        for stage in self.stages:
            if (not wanted or stage.stage in wanted) and (indices := stage.operations.matching(pattern)):
                found[stage.stage] = indices
        return found

    def line_counts(self, stage: str) -> Counter[tuple[str, int]]:
        """How many operations of a stage each line of Python wrote itself; each operation counts once."""
        found = self.stage(stage)
        counts: Counter[tuple[str, int]] = Counter()
        for line in found.operations.lines:
            counts.update({self.places[place][0] for place in found.places_at(line)})
        return counts

    def _count(self, stage: StageMap, places: Iterable[int], frame: tuple[str, int]) -> StageCount:
        own: set[int] = set()
        called: set[int] = set()
        for place in places:
            (own if self.places[place][0] == frame else called).update(stage.at_place.get(place, ()))
        called -= own
        operations = stage.operations
        kinds = Counter(operations.kind_names[operations.kinds[index]] for index in own | called)
        live = [operations.live[index] for index in own | called] if operations.live else []
        return StageCount(stage.stage, len(own), len(called), tuple(kinds.most_common()), max(live, default=None))


def source_map(capture: Capture, stages: Iterable[str] = ()) -> SourceMap:
    """The source map of a capture, or of some stages of it, in time and size linear in its texts."""
    wanted = set(stages)
    file = capture.launch.kernel.file
    index: dict[Place, int] = {}
    maps: list[StageMap] = []
    sites = _CallSites()
    for stage, text in capture.texts.items():
        kind = stage_named(stage).kind
        if wanted and stage not in wanted and (kind != "mlir" or wanted <= _MLIR_STAGES):
            continue
        locations = capture_locations(capture, text, kind)
        # Assembly keeps the functions that the last MLIR stage has: only those that are not inlined.
        sites = _read_call_sites(text, locations) if kind == "mlir" else sites
        if wanted and stage not in wanted:
            continue
        numbers = tuple(
            tuple(index.setdefault(place, len(index)) for place in _places(chain, file, sites))
            for chain in locations.chains
        )
        maps.append(StageMap(stage, locations, read_stage_operations(text, kind), numbers))
    return SourceMap(file, tuple(index), tuple(maps))
