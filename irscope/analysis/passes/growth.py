"""Why a compile takes long: the growth of the IR by stage and pass, and causes that multiply a line's operations.

A line's factors are counted: how often the front end wrote it (a loop that is unrolled), from how many places its
function is called and inlined, how many values of a tile or multiply-adds of a dot each thread has.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from statistics import median_low
from typing import Literal

from irscope.analysis.passes.effects import count_text
from irscope.analysis.source.map import SourceMap, python_line, source_map
from irscope.analysis.variants.site import Site
from irscope.ir.locations.model import Place, columns_of, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type
from irscope.model.capture import Capture
from irscope.model.plain import python_tree

_FactorKind = Literal["unrolled", "inlined", "dot", "tile", "passes"]
"""`unrolled`: a loop of the front end; `inlined`: a function; `dot`: one without matrix instructions; `tile`: a thread
that holds many values; `passes`: passes of MLIR, such as the pipeliner."""

_LEAST: dict[_FactorKind, float] = {"unrolled": 4, "inlined": 4, "dot": 64, "tile": 32, "passes": 3}
"""The factor from which one is named. A thread that holds 16 values, or multiplies a few dozen, is usual."""
_LEAST_SHARE = 0.1
"""Of the operations of the longest stage, below which a line is not to blame."""
_FEWEST = 32
"""Operations of a line that makes a compile long."""
_MOST_LINES = 3
_NOTABLE = 0.4
"""The part of what is usual from which a factor is listed."""


@dataclass(frozen=True, slots=True)
class StageSize:
    """One stage's text, and what it took."""

    stage: str
    operations: int
    processor_us: int | None


@dataclass(frozen=True, slots=True)
class PassGrowth:
    """One pass that made the IR longer."""

    label: str
    before: int
    """Operations."""
    after: int

    @property
    def factor(self) -> float:
        return self.after / max(self.before, 1)


@dataclass(frozen=True, slots=True)
class Factor:
    """A cause that multiplied the operations of a line."""

    kind: _FactorKind
    times: float
    text: str
    place: tuple[str, int]
    """(file, line) of what is to be changed: the loop, the function, or the line itself."""


@dataclass(frozen=True, slots=True)
class LineGrowth:
    """A line of Python that became many operations."""

    file: str
    line: int
    written: int
    """Operations of the front end for the line as it is written, once."""
    stage: str
    """The stage with the most operations."""
    operations: int
    """Those of the line in that stage."""
    share: float
    """Their part of that stage."""
    factors: tuple[Factor, ...]
    """The most unusual first."""

    @property
    def cause(self) -> Factor | None:
        """What multiplied it more than is usual; None for an ordinary line."""
        return self.factors[0] if self.factors and _excess(self.factors[0]) >= 1 else None

    @property
    def times(self) -> float:
        """How many operations of that stage there are for one as written."""
        return self.operations / max(self.written, 1)


@dataclass(frozen=True, slots=True)
class Growth:
    stages: tuple[StageSize, ...]
    passes: tuple[PassGrowth, ...]
    """The greatest growth first."""
    lines: tuple[LineGrowth, ...]
    """Those to blame first."""


@dataclass(frozen=True, slots=True)
class CompileCost:
    processor_us: int
    """With its front end, or the parser of its IR; irscope's own recording is not among it."""
    operations: int
    stage: str
    """That had the most operations before; of these they are."""


@dataclass(frozen=True, slots=True)
class CompileFix:
    """A change that makes a compile shorter, with what compiling it gave."""

    factor: Factor
    line: LineGrowth
    text: str
    """The change of the Python text, and its other effects."""
    before: CompileCost | None = None
    after: CompileCost | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SlowPass:
    """One pass, or tool, that takes most of a compile, with what the compile is without it."""

    name: str
    """As plans name it: `llvm:slp-vectorizer` for all of its runs; `ptxas`."""
    duration_us: int
    share: float
    """Of the compile from its IR, by the clock."""
    without: str = ""
    """The plan that leaves it out; empty for a tool."""
    before: CompileCost | None = None
    after: CompileCost | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class LongCompile:
    """Why a compile takes long."""

    growth: Growth
    slow: SlowPass | None
    fixes: tuple[CompileFix, ...]
    """One for each line to blame that has one."""


@dataclass(frozen=True, slots=True)
class NeededCompiles:
    """What the compiles of one kernel took, and the part of it that different code needs."""

    site: Site
    processor_us: int
    needed_us: int
    """One compile, the shortest, for each different machine code."""
    codes: int


def growth_of(capture: Capture) -> Growth:
    """The growth of a compile, as far as its texts are there: of one that failed, up to the stage that did."""
    sources = source_map(capture)
    counts = {one.stage: len(one.operations.lines) for one in sources.stages}
    times = {one.stage: one.processor_us for one in capture.artifacts}
    stages = tuple(StageSize(stage, count, times.get(stage)) for stage, count in counts.items() if stage != "sass")
    return Growth(stages, tuple(_passes(capture)), tuple(_Lines(capture, sources).to_blame()))


def _passes(capture: Capture) -> list[PassGrowth]:
    first = next((one for one in capture.artifacts if isinstance(one.data, str)), None)
    before = count_text(first.text).operations.total() if first is not None else 0
    found: list[PassGrowth] = []
    for snapshot in capture.passes():
        if snapshot.text is None:
            if snapshot.text_left_out:
                break
            continue
        after = count_text(snapshot.text).operations.total()
        if after > before:
            found.append(PassGrowth(snapshot.label, before, after))
        before = after
    return sorted(found, key=lambda one: one.before - one.after)


@dataclass(frozen=True)
class _Written:
    """A line in the IR in which functions are inlined, before other passes."""

    once: int
    """Operations, each copy of the same operation as one."""
    copies: int
    """How often each stands there from one place of a call."""
    sites: int
    """The chains of calls that lead to it."""
    operations: int
    places: tuple[Place, ...]


class _Lines:
    def __init__(self, capture: Capture, sources: SourceMap) -> None:
        self._capture = capture
        self._sources = sources

    def to_blame(self) -> Iterator[LineGrowth]:
        """The lines with the most operations in the longest stage, those that something multiplied first."""
        sizes = {one.stage: len(one.operations.lines) for one in self._sources.stages if one.stage != "sass"}
        if not sizes:
            return
        longest = max(sizes, key=lambda stage: sizes[stage])
        total = sizes[longest]
        rows: list[LineGrowth] = []
        for (file, line), count in self._sources.line_counts(longest).most_common():
            if count < max(_LEAST_SHARE * total, _FEWEST):
                break
            written = self._inlined.get((file, line))
            found = [one for one in self._factors(file, line, written) if _excess(one) > _NOTABLE] if written else []
            factors = sorted(found, key=_excess, reverse=True)
            once = written.once if written is not None else 1
            rows.append(LineGrowth(file, line, once, longest, count, count / total, tuple(factors)))
        rows.sort(key=lambda row: -row.share * (_excess(row.factors[0]) if row.factors else 0.5))
        yield from rows[:_MOST_LINES]

    @cached_property
    def _is_before_passes(self) -> bool:
        """Whether there is IR of the front end: passes after it copy and merge operations too."""
        return not {"source", "ttir", "glir"}.isdisjoint(self._capture.stages)

    @cached_property
    def _inlined(self) -> dict[tuple[str, int], _Written]:
        capture = self._capture
        text = next((one.text for one in capture.passes() if "inline" in (one.name, one.argument) and one.text), None)
        text = text or capture.texts.get("ttir") or capture.texts.get("glir") or capture.begun_text
        locations = read_locations(text, "mlir")
        groups: dict[tuple[str, int], dict[object, Counter[object]]] = defaultdict(lambda: defaultdict(Counter))
        places: dict[tuple[str, int], dict[Place, None]] = defaultdict(dict)
        for operation in parse_mlir(text).walk():
            chain = locations.chain_at(operation.first_line)
            place = place_of(chain, capture.launch.kernel.file)
            if not place or operation.regions:
                continue
            columns = columns_of(chain)
            own = next(at for at, frame in enumerate(chain) if (frame.file, frame.line) == place[0])
            groups[place[0]][columns[: own + 1], operation.name][columns] += 1
            places[place[0]][place] = None
        return {
            where: _Written(
                len(found),
                median_low(median_low(sites.values()) for sites in found.values()),
                median_low(len(sites) for sites in found.values()),
                sum(sites.total() for sites in found.values()),
                tuple(places[where]),
            )
            for where, found in groups.items()
        }

    def _factors(self, file: str, line: int, written: _Written) -> Iterator[Factor]:
        if written.copies > 1 and self._is_before_passes:
            loops = dict.fromkeys(loop for place in written.places[:1] for loop in self._loops_around(place))
            texts = [f"{python_line(self._capture, *loop).strip()} (line {loop[1]})" for loop in loops]
            what = f"written {written.copies} times by {', '.join(texts)}" if texts else f"{written.copies} copies"
            yield Factor("unrolled", written.copies, what, next(iter(loops), (file, line)))
        if written.sites > 1 and self._is_before_passes:
            name, where = self._function_around(file, line)
            yield Factor("inlined", written.sites, f"{name} is inlined at {written.sites} chains of calls", where)
        yield from self._of_threads(file, line)
        ttgir = len(self._ttgir.get((file, line), ()))
        if ttgir > written.operations:
            times = ttgir / written.operations
            worst = next((one for one in _passes(self._capture) if one.label.startswith("ttgir:")), None)
            most = f", most by {worst.label}" if worst is not None else ""
            yield Factor("passes", times, f"{written.operations} → {ttgir} operations in passes{most}", (file, line))

    def _of_threads(self, file: str, line: int) -> Iterator[Factor]:
        """The elements of each thread in one operation on a tensor."""
        capture = self._capture
        threads = int(capture.launch.option("num_warps", 4)) * capture.target.warp_size
        held: dict[tuple[int, ...], float] = {}
        for operation in self._ttgir.get((file, line), ()):
            kinds = [kind for kind in (*operation.result_types, *operation.operand_types) if kind.form == "tensor"]
            # A matrix instruction has many accumulators by itself.
            shapes = [kind.shape for kind in kinds if not self._is_matrix(kind)]
            if not shapes:
                continue
            if operation.opcode == "dot" and operation.result_types and not self._is_matrix(operation.result_types[0]):
                (*outer, rows, columns), depth = operation.result_types[0].shape, operation.operand_types[0].shape[-1]
                products = prod(outer) * rows * columns * depth / threads
                text = f"a dot of {rows}×{columns}×{depth} without matrix instructions: {products:g} multiply-adds"
                yield Factor("dot", products, f"{text} per thread", (file, line))
                return
            largest = max(shapes, key=prod)
            held[largest] = prod(largest) / threads
        if held:
            shape = max(held, key=lambda one: held[one])
            text = f"a tile of {'×'.join(map(str, shape))}: {held[shape]:g} values per thread"
            yield Factor("tile", held[shape], text, (file, line))

    def _is_matrix(self, kind: Type) -> bool:
        encoding = self._module.encoding_of(kind)
        return encoding is not None and encoding.is_matrix

    @cached_property
    def _module(self) -> MlirModule:
        return parse_mlir(self._capture.texts.get("ttgir", ""))

    @cached_property
    def _ttgir(self) -> dict[tuple[str, int], list[Operation]]:
        locations = read_locations(self._capture.texts.get("ttgir", ""), "mlir")
        found: dict[tuple[str, int], list[Operation]] = defaultdict(list)
        for operation in self._module.walk():
            if place := place_of(locations.chain_at(operation.first_line), self._capture.launch.kernel.file):
                found[place[0]].append(operation)
        return found

    def _loops_around(self, place: Place) -> Iterator[tuple[str, int]]:
        """(file, line) of the loops that the front end unrolls around a line and its callers, innermost first."""
        for file, line in place:
            loops = [node for node in self._walked(file) if isinstance(node, ast.For) and _is_static(node)]
            around = [one for one in loops if one.lineno <= line <= (one.end_lineno or one.lineno)]
            yield from ((file, one.lineno) for one in sorted(around, key=lambda one: -one.lineno))

    def _function_around(self, file: str, line: int) -> tuple[str, tuple[str, int]]:
        functions = [node for node in self._walked(file) if isinstance(node, ast.FunctionDef)]
        around = [one for one in functions if one.lineno <= line <= (one.end_lineno or one.lineno)]
        if not around:
            return "its function", (file, line)
        return f"{around[-1].name}()", (file, around[-1].lineno)

    def _walked(self, file: str) -> Sequence[ast.AST]:
        text = next((one.text for one in self._capture.sources if one.path == file), "")
        return [*ast.walk(python_tree(text))]


def _is_static(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func).endswith("static_range")


def _excess(factor: Factor) -> float:
    """How unusual a factor is; below 1 it is not."""
    return factor.times / _LEAST[factor.kind]


def needed_compiles(sites: Sequence[Site], times: Mapping[str, int]) -> tuple[NeededCompiles, ...]:
    """What each kernel's compiles took and which part was needed, the most first.

    `times`: id of a capture → its microseconds of processor time.
    """
    rows: list[NeededCompiles] = []
    for site in sites:
        least: dict[str, int] = {}
        for one in site.variants:
            key = one.code or one.id
            least[key] = min(times.get(one.id, 0), least.get(key, times.get(one.id, 0)))
        total = sum(times.get(one.id, 0) for one in site.variants)
        rows.append(NeededCompiles(site, total, sum(least.values()), len(least)))
    return tuple(sorted(rows, key=lambda row: -row.processor_us))
