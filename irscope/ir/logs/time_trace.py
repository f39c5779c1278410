"""The parts of a timed compile: what its process noted, LLVM's time traces read into it.

LLVM's time trace is JSON of the Trace Event Format, times in microseconds. Reading it and sorting the parts takes
longer than making them, so it is done here, after the compile and outside of its process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from irscope.ir.logs.dump import pass_identifier
from irscope.model.evidence import CompileTimes, SpanKind, TimeSpan

MARK = "irscope"
"""The name of irscope's own events in a time trace: the first one when it begins, then one for each pass that LLVM asks
for, with its name."""

_LEAST_US = 20
"""Analyses that take less are left to the pass that they are for."""
_ANALYSES = ("Analysis", "Proxy", "AA", ">")
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


@dataclass(frozen=True, slots=True)
class LlvmTrace:
    """One time trace as LLVM wrote it."""

    data: bytes
    begun_ns: int
    """The moment of its first mark, by the clock of the parts."""
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
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    first = next((row["ts"] for row in rows if row["name"] == MARK), 0)
    begun_ns = trace.begun_ns - first * 1000
    spans: list[TimeSpan] = []
    ends: list[float] = []
    latest: dict[str, Any] | None = None
    asked = ""
    for row in rows:
        detail = str(row.get("args", {}).get("detail", ""))
        if row["name"] == MARK:
            if not detail:
                continue
            known = _name_in_plans(detail, trace)
            counts[known] += 1
            # The code generator asks from within the pass, the middle end just before it.
            is_again = bool(spans) and spans[-1].name == known
            if latest is not None and (row["ts"] == latest["ts"] or is_again):
                spans[-1] = replace(spans[-1], name=f"{known}#{counts[known]}")
            else:
                asked = f"{known}#{counts[known]}"
            continue
        of_code_generator = row["name"] in ("RunPass", "RunLoopPass")
        name = _name_in_plans(detail, trace) if of_code_generator else row["name"]
        if name.startswith(_STRUCTURE) or name.endswith(("PassAdaptor", "Pass_Manager")):
            continue
        while ends and row["ts"] >= ends[-1]:
            ends.pop()
        is_pass = of_code_generator or (not ends and not name.endswith(_ANALYSES))
        if not is_pass and row["dur"] < _LEAST_US:
            continue
        if is_pass and not of_code_generator and asked:
            name, asked = asked, ""
        kind: SpanKind = "llvm" if is_pass else "llvm analysis"
        spans.append(TimeSpan(name, kind, begun_ns + row["ts"] * 1000, row["dur"] * 1000, len(ends)))
        latest = row if is_pass else latest
        ends.append(row["ts"] + row["dur"])
    return spans


def _name_in_plans(text: str, trace: LlvmTrace) -> str:
    """`machine-cse` of the code generator's `Machine Common Subexpression Elimination`; the middle end has arguments."""
    return trace.arguments.get(text) or pass_identifier(text)
