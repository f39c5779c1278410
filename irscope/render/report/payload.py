"""Captures as the data of a report: an index that is read at once, and chunks whose blobs are read on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from irscope import __version__
from irscope.analysis.movie.follow import follow
from irscope.model.capture import Capture
from irscope.model.compiler_log import CompilerLog, PassLog
from irscope.model.telling import Row, parts_of, telling_texts
from irscope.render.dot.write import has_dot
from irscope.render.report.beside import packed_beside
from irscope.render.report.facts import facts_of
from irscope.render.report.findings import costs_of_layouts, findings_in
from irscope.render.report.graphs import packed_graphs
from irscope.render.report.layouts import Between, packed_layouts
from irscope.render.report.lives import NO_LIVES, packed_lives
from irscope.render.report.locations import stage_locations
from irscope.render.report.memory import packed_memory
from irscope.render.report.movie import movie_text
from irscope.render.report.posters import packed_poster
from irscope.render.report.results.model import Results
from irscope.render.report.texts import WINDOW, Blobs, TextTable, as_bytes, deflated

_PAYLOAD_VERSION = 1
_NO_PAIRS: Mapping[tuple[int, int], Between] = MappingProxyType({})
_MOST_EVALUATED = 8
"""In a report of more captures, `irscope why` evaluates addresses, the page places graphs, and neither a poster nor a
movie is made."""
_MOST_STUDIED = 64
"""In a report of more captures, the operations of each are neither followed through the passes nor costed."""
_NOT_STUDIED = (
    f"This report holds more than {_MOST_STUDIED} captures: which pass made and removed each operation, accesses and "
    "the costs of layouts are left out. A report of this capture alone has them."
)


def _telling_parts(capture: Capture) -> dict[str, str]:
    known = {"target": str(capture.target), "plan": str(capture.plan), "Triton": capture.environment.triton_version}
    return known | parts_of(capture.launch)


class Payload:
    """The data of a report."""

    def __init__(
        self,
        captures: Sequence[Capture],
        between: Mapping[tuple[int, int], Between] = _NO_PAIRS,
        results: Results | None = None,
    ) -> None:
        """Pack captures.

        Args:
            captures: what the report is of.
            between: what is known of pairs of layouts of the first one.
            results: a view of its own; None for none.
        """
        self.texts = TextTable()
        self.chunks: list[Blobs] = []
        """One per capture."""
        self._evaluates = len(captures) <= _MOST_EVALUATED
        self._studies = len(captures) <= _MOST_STUDIED
        self.places_graphs = False
        """Whether the page has to place a graph."""
        self._kernel = ""
        self._twins: dict[tuple[str, str], int] = {}
        self._firsts: dict[tuple[str, str], tuple[bytes, list[int]]] = {}
        """The values of each kernel's first capture, as far back as others may point, and where they are."""
        told: list[Row] = []
        rows: list[dict[str, Any]] = []
        for number, capture in enumerate(captures):
            rows.append(self._capture(capture, number, between if number == 0 else _NO_PAIRS))
            told.append((capture.name, _telling_parts(capture)))
        for row, text in zip(rows, telling_texts(told), strict=True):
            row["differsIn"] = text
        self.index: dict[str, Any] = {
            "version": _PAYLOAD_VERSION,
            "irscope": __version__,
            "captures": rows,
            "texts": self.texts.rows,
        }
        if results is not None:
            self.index["results"] = asdict(results)

    def _capture(self, capture: Capture, number: int, between: Mapping[tuple[int, int], Between]) -> dict[str, Any]:
        blobs = Blobs()
        self.chunks.append(blobs)
        self._kernel = capture.name
        costs = costs_of_layouts(capture) if self._studies else []
        found = findings_in(capture, costs, evaluates=self._evaluates)
        row = facts_of(capture, costs, found)
        texts = capture.texts
        last = self._text(next(iter(texts.values())), number, blobs, "source", []) if texts else -1
        for group in ("mlir", "llvm"):
            self._passes(capture, group, row, number, blobs, last if group == "mlir" else -1)
        for stage in row["stages"]:
            if stage["stage"] in texts:
                stage["text"] = self._text(texts[stage["stage"]], number, blobs, f"stage {stage['stage']}", [])
        row["sources"] = [
            [item.path, self._text(item.text, number, blobs, f"file {item.path}", [])] for item in capture.sources
        ]
        if capture.launch.kernel.source:
            row["kernelSource"] = self._text(capture.launch.kernel.source, number, blobs, "kernel", [])
        row["passes"] = self._value(row["passes"], number, blobs, "passes")
        row["locations"] = self._value(stage_locations(capture), number, blobs, "locations")
        row["layouts"] = self._value(packed_layouts(capture, costs, between), number, blobs, "layouts")
        row["memory"] = self._value(packed_memory(capture, costs), number, blobs, "memory")
        if self._studies and capture.profile is not None:
            from irscope.render.report.heat import heat_of

            if (heat := heat_of(capture)) is not None:
                row["heat"] = self._value(heat, number, blobs, "heat")
        if self._studies and (machine_code := packed_beside(capture)) is not None:
            row["beside"] = self._value(machine_code, number, blobs, "beside")
        followed = follow(capture) if self._studies else None
        lives = (
            packed_lives(capture, lambda text: self.texts.add(text, number, blobs), followed) if followed else NO_LIVES
        )
        row["lives"] = self._value(lives, number, blobs, "lives")
        if self._evaluates and followed is not None and (movie := movie_text(capture, followed)):
            row["movie"] = self._text(movie, number, blobs, "movie", [])
        graphs, unplaced = packed_graphs(
            capture,
            lambda text, place: self._text(text, number, blobs, place, []),
            placed=self._evaluates and has_dot(),
        )
        row["graphs"] = self._value(graphs, number, blobs, "graphs")
        self.places_graphs = self.places_graphs or unplaced
        if self._evaluates and (drawn := packed_poster(capture, costs, found)):
            row["poster"] = self._text(drawn, number, blobs, "poster", [])
        if not self._studies:
            row["notes"].append(_NOT_STUDIED)
        # One capture's texts after another's: memory holds those of one, and those that later ones are compared with.
        self.texts.release(self._twins.values())
        return row

    def _passes(self, capture: Capture, group: str, row: dict[str, Any], number: int, blobs: Blobs, base: int) -> None:
        """Number the texts before and after each pass."""
        rows = [one for one in row["passes"] if one["group"] == group]
        before = base
        logs = {(item.stage, item.index): item for item in (capture.log or CompilerLog()).passes}
        if (assembler := logs.pop(("cubin", None), None)) is not None:
            # What ptxas says stands beside its optimiser.
            logs |= {(one["stage"], one["index"]): assembler for one in rows if one["stage"] == "cubin"}
        for one, snapshot in zip(rows, capture.passes(group), strict=True):
            if before >= 0:
                one["before"] = before
            if snapshot.text is not None:
                before = self._text(snapshot.text, number, blobs, snapshot.label, [before] if before >= 0 else [])
            elif snapshot.text_left_out:
                before = -1
            if before >= 0:
                one["after"] = before
            if (log := logs.get((snapshot.stage, snapshot.index))) is not None and group == "mlir":
                text, one["decisions"] = _log_rows(log)
                one["log"] = self._text(text, number, blobs, f"log {snapshot.label}", [])

    def _value(self, value: Any, number: int, blobs: Blobs, name: str) -> list[int]:
        """Pack a value; returns (offset, length), and behind them (chunk, offset, length) of what it points back to."""
        data = as_bytes(value)
        key = self._kernel, name
        if key in self._firsts:
            likely, base = self._firsts[key]
            return [*blobs.append(deflated(data, likely)), *base]
        place = [*blobs.append(deflated(data))]
        self._firsts[key] = data[-WINDOW:], [number, *place]
        return place

    def _text(self, text: str, number: int, blobs: Blobs, place: str, bases: list[int]) -> int:
        key = self._kernel, place
        twin = self._twins.get(key)
        found = self.texts.add(text, number, blobs, [*bases, *([] if twin is None else [twin])])
        # Texts of a kernel's later captures are stored as differences to its first capture's text in the same place.
        self._twins.setdefault(key, found)
        return found


def _log_rows(log: PassLog) -> tuple[str, list[list[str]]]:
    """The text of a pass's log, and the decisions in it as (place, what it says)."""
    from irscope.ir.locations.user import line_text, place_of
    from irscope.ir.logs.reasons.readers import read_decisions
    from irscope.render.text.compiler_log import entries_text

    return entries_text(log), [[line_text(place_of(each.chain)), each.said] for each in read_decisions(log)]
