"""The parts of a timed compile: what its process noted, LLVM's time traces read into it.

LLVM's time trace is JSON of the Trace Event Format, times in microseconds. Reading it and sorting the parts takes
longer than making them, so it is done here, after the compile and outside of its process.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from irscope.ir.logs.dump import pass_identifier
from irscope.model.evidence import CompileTimes, SpanKind, TimeSpan

MARK = "irscope"
"""The name of irscope's own events in a time trace, when it begins: the moment of the last one is known."""

_LEAST_US = 20
"""Analyses that take less are left to the pass that they are for."""
_ANALYSES = ("Analysis", "Proxy", "AA", ">")
_OF_CODE_GENERATOR = ("RunPass", "RunLoopPass")
_MOVED_NS = range(-3000, 3001, 250)
# Managers and adaptors, which only run the passes within them.
_STRUCTURE = (
    "PassManager<",
    "OptModule",
    "OptFunction",
    "ModuleInlinerWrapperPass",
    "DevirtSCCRepeatedPass",
    "Verifier",
)

Part = tuple[str, SpanKind, int, int, int]
"""Name, kind, start in nanoseconds, duration, and the parts around it: the fields of a TimeSpan."""


AskedPass = tuple[int, bytes, bool]
"""A pass that LLVM asked to run: when, by the clock of the parts; its name; the answer."""


@dataclass(frozen=True, slots=True)
class LlvmTrace:
    """One time trace as LLVM wrote it."""

    data: bytes
    begun_ns: int
    """The moment of its last mark, by the clock of the parts."""
    asked: tuple[AskedPass, ...]
    """In the order of its passes."""
    arguments: Mapping[str, str]
    """The arguments of the code generator's passes by their names: `machine-cse`."""


def compile_times(
    parts: Iterable[Part], traces: Iterable[LlvmTrace], processor_ns: int, notes: tuple[str, ...]
) -> CompileTimes:
    """The parts of a compile in the order they began, counted from the first."""
    spans = [TimeSpan(*part) for part in _without_irscope(parts)]
    spans = _joined(spans, llvm_spans(traces))
    first_ns = spans[0].start_ns if spans else 0
    moved = tuple(replace(span, start_ns=span.start_ns - first_ns) for span in spans)
    return CompileTimes(moved, processor_ns, notes)


_CUTTING: tuple[SpanKind, ...] = ("stage", "pass")


@dataclass(slots=True)
class _Own:
    """A part of irscope's, of which pieces remain around the stages and passes that ran in it."""

    depth: int
    cut_ns: int
    end_ns: int
    is_cut: bool = False
    """Whether the latest part in it is the compiler's."""

    def piece(self, end_ns: int, around: int) -> Part:
        return "irscope", "irscope", self.cut_ns, max(0, end_ns - self.cut_ns), self.depth - around


def _without_irscope(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, irscope's own cut where a stage or a pass runs in one; whatever else stands in one is irscope's."""
    owns: list[_Own] = []
    for name, kind, start_ns, duration_ns, depth in parts:
        while owns and depth <= owns[-1].depth:
            own = owns.pop()
            yield own.piece(own.end_ns, len(owns))
        if owns and depth == owns[-1].depth + 1:
            owns[-1].is_cut = kind in _CUTTING
            if owns[-1].is_cut:
                yield owns[-1].piece(start_ns, len(owns) - 1)
                owns[-1].cut_ns = start_ns + duration_ns
        if owns and not owns[-1].is_cut:
            continue
        if kind == "irscope":
            owns.append(_Own(depth, start_ns, start_ns + duration_ns))
        else:
            yield name, kind, start_ns, duration_ns, depth - len(owns)
    while owns:
        own = owns.pop()
        yield own.piece(own.end_ns, len(owns))


def _joined(spans: Sequence[TimeSpan], added: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Both in the order they began, each of those added within the innermost part around it."""
    # One that starts with one of ours starts within it.
    rows = sorted([*((span, False) for span in spans), *((span, True) for span in added)], key=_begin)
    around: list[TimeSpan] = []
    joined: list[TimeSpan] = []
    for span, is_added in rows:
        if is_added:
            holders = sum(span.start_ns < other.start_ns + other.duration_ns for other in around)
            joined.append(replace(span, depth=span.depth + holders))
        else:
            del around[span.depth :]
            around.append(span)
            joined.append(span)
    return joined


def _begin(row: tuple[TimeSpan, bool]) -> tuple[int, bool, int]:
    return row[0].start_ns, row[1], row[0].depth


def llvm_spans(traces: Iterable[LlvmTrace]) -> list[TimeSpan]:
    """The passes of a compile's time traces, and the analyses that each computed within it."""
    counts = Counter[str]()
    return [span for trace in traces for span in _spans_of(trace, counts)]


def _spans_of(trace: LlvmTrace, counts: Counter[str]) -> list[TimeSpan]:
    """`counts`: how often each pass was asked for before; those of this trace are added."""
    events = cast("list[dict[str, Any]]", json.loads(trace.data).get("traceEvents", []))
    rows = [row for row in events if row.get("ph") == "X" and not row["name"].startswith("Total ")]
    rows.sort(key=_began)
    marked = max((row["ts"] for row in rows if row["name"] == MARK), default=0)
    begun_ns = trace.begun_ns - marked * 1000
    spans: list[TimeSpan] = []
    generators = set[str]()
    ends: list[float] = []
    for row in rows:
        of_code_generator = row["name"] in _OF_CODE_GENERATOR
        name = _name_in_plans(str(row["args"]["detail"]), trace) if of_code_generator else row["name"]
        if name.startswith((MARK, *_STRUCTURE)) or name.endswith(("PassAdaptor", "Pass_Manager")):
            continue
        while ends and row["ts"] >= ends[-1]:
            ends.pop()
        is_pass = of_code_generator or (not ends and not name.endswith(_ANALYSES))
        if not is_pass and row["dur"] < _LEAST_US:
            continue
        kind: SpanKind = "llvm" if is_pass else "llvm analysis"
        spans.append(TimeSpan(name, kind, begun_ns + row["ts"] * 1000, row["dur"] * 1000, len(ends)))
        ends.append(row["ts"] + row["dur"])
        if of_code_generator:
            generators.add(name)
    return _numbered(spans, generators, trace, counts)


def _began(row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """The order of events; passes that began in one microsecond stay as LLVM wrote them, when each ended.

    No pass runs within another, only an analysis does, which takes no longer than the pass.
    """
    is_analysis = row["name"] not in _OF_CODE_GENERATOR and row["name"].endswith(_ANALYSES)
    return row["ts"], is_analysis, -row["dur"] if is_analysis else 0


def _numbered(
    spans: Sequence[TimeSpan], generators: set[str], trace: LlvmTrace, counts: Counter[str]
) -> list[TimeSpan]:
    """The passes that LLVM asked for with their names in plans: `licm#2` for the second run of `LICMPass`."""
    asked: list[tuple[int, str]] = []
    numbers: dict[str, deque[int]] = {}
    for at, text, runs in trace.asked:
        name = _name_in_plans(text.decode("utf-8", "replace"), trace)
        counts[name] += 1
        if runs:
            asked.append((at, name))
            numbers.setdefault(name, deque()).append(counts[name])
    names = _names_by_clock([span for span in spans if span.kind == "llvm"], generators, asked)
    named: list[TimeSpan] = []
    for span in spans:
        name = names.get(span.name, span.name)
        if span.kind == "llvm" and numbers.get(name):
            span = replace(span, name=f"{name}#{numbers[name].popleft()}")
        named.append(span)
    return named


def _names_by_clock(
    passes: Sequence[TimeSpan], generators: set[str], asked: Sequence[tuple[int, str]]
) -> dict[str, str]:
    """`LICMPass` → `licm`, `CodeGen_Prepare` → `codegenprepare`: what the trace calls a pass, and the name in plans.

    The middle end's trace has classes, and it asks for a pass just before that runs. The code generator asks from
    within a pass, for nearly all by the name in its trace. Nobody asks for what must run. The times of a trace are
    whole microseconds from a begin that is known to one or two: they are moved by what gives most questions a class.
    """
    known = {name for _, name in asked}
    classes = [span for span in passes if span.name not in generators]
    tries = [_votes(classes, [(at + moved, name) for at, name in asked]) for moved in _MOVED_NS]
    most = max(votes.total() for votes in tries)
    best = [votes for votes in tries if votes.total() == most]
    names: dict[str, str] = {}
    # In the middle of those that do, a rounded time decides least.
    for (found, name), _ in best[len(best) // 2].most_common():
        names.setdefault(found, name)
    runs, questions = Counter(span.name for span in passes), Counter(name for _, name in asked)
    begin = 0
    for number, (at, name) in enumerate(asked):
        if name in generators or name in names.values():
            begin = _behind(passes, begin, names, name)
            continue
        # It runs before the pass that is asked for next.
        following = (other for _, other in asked[number + 1 :])
        later = next((other for other in following if other in generators or other in names.values()), None)
        end = _behind(passes, begin, names, later) - 1 if later is not None else -1
        free: list[tuple[int, str]] = []
        for span in passes[begin : end if end >= begin else None]:
            # What runs more often runs without being asked for: `Print Function IR`.
            if span.name not in names and span.name not in known and runs[span.name] <= questions[name]:
                end_ns = span.start_ns + span.duration_ns * (span.name in generators)
                free.append((max(span.start_ns - at, at - end_ns, 0), span.name))
        distance_ns, found = min(free, default=(_MOVED_NS.stop, ""))
        if distance_ns < _MOVED_NS.stop:
            names[found] = name
    return names


def _behind(passes: Sequence[TimeSpan], begin: int, names: Mapping[str, str], name: str) -> int:
    """The place behind the next pass of a name in plans; `begin` if there is none."""
    places = range(begin, len(passes))
    return next((at + 1 for at in places if names.get(passes[at].name, passes[at].name) == name), begin)


def _votes(classes: Sequence[TimeSpan], asked: Sequence[tuple[int, str]]) -> Counter[tuple[str, str]]:
    """How often the last question before a run of a class was for a name."""
    coming = deque(asked)
    votes = Counter[tuple[str, str]]()
    for span in classes:
        latest = ""
        while coming and coming[0][0] <= span.start_ns:
            latest = coming.popleft()[1]
        if latest:
            votes[span.name, latest] += 1
    return votes


def _name_in_plans(text: str, trace: LlvmTrace) -> str:
    """`machine-cse` of `Machine Common Subexpression Elimination`; the middle end asks by arguments."""
    return trace.arguments.get(text) or pass_identifier(text)
