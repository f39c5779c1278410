"""Captures as the data of a report: an index that is read at once, and chunks whose blobs are read when looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope import __version__
from irscope.analysis.diff import diff_texts
from irscope.capture import Capture, PassSnapshot
from irscope.render.report_blobs import Blobs, pack
from irscope.render.report_diffs import packed_diff
from irscope.render.report_facts import facts_of
from irscope.render.report_findings import costs_of_layouts
from irscope.render.report_layouts import packed_layouts
from irscope.render.report_locations import stage_locations
from irscope.render.report_pairs import packed_pairs
from irscope.render.report_texts import TextTable

PAYLOAD_VERSION = 1
MAX_DIFFED_CAPTURES = 40
"""Of more captures than these, the first ones' passes are compared beforehand; the rest show their texts."""


class Payload:
    """The data of a report."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        self.texts = TextTable()
        self.chunks: list[Blobs] = []
        self._twins: dict[str, int] = {}
        rows = [self._capture(capture, number) for number, capture in enumerate(captures)]
        pairs = Blobs()
        pair_rows = packed_pairs(captures, pairs)
        self.chunks.append(pairs)
        self.index: dict[str, Any] = {
            "version": PAYLOAD_VERSION,
            "irscope": __version__,
            "captures": rows,
            "pairs": pair_rows,
            "texts": self.texts.rows,
        }

    def packed_index(self) -> bytes:
        """The index, deflated."""
        return pack(self.index)

    def packed_chunks(self) -> list[bytes]:
        """The chunks: one a capture, and the last for pairs."""
        return [chunk.to_bytes() for chunk in self.chunks]

    def _capture(self, capture: Capture, number: int) -> dict[str, Any]:
        blobs = Blobs()
        self.chunks.append(blobs)
        costs = costs_of_layouts(capture)
        row = facts_of(capture, costs)
        texts = {item.stage: item.data for item in capture.artifacts if isinstance(item.data, str)}
        first = next(iter(texts), "")
        last = -1
        if first:
            last = self._text(texts[first], number, blobs, "source", [])
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
        row["locations"] = blobs.add(stage_locations(capture))
        row["layouts"] = blobs.add(packed_layouts(capture, costs))
        return row

    def _passes(self, capture: Capture, group: str, row: dict[str, Any], number: int, blobs: Blobs, base: int) -> None:
        """Number the texts before and after each pass, and compare those that differ."""
        rows = [one for one in row["passes"] if one["group"] == group]
        before = base
        text = capture.text_before(next(capture.passes(group))) if rows else None
        for one, snapshot in zip(rows, capture.passes(group), strict=True):
            if before >= 0:
                one["before"] = before
            if snapshot.text is not None:
                after = self._text(snapshot.text, number, blobs, snapshot.label, [before] if before >= 0 else [])
                if text is not None and after != before and number < MAX_DIFFED_CAPTURES:
                    one["diff"] = blobs.add(_pass_diff(snapshot, text, snapshot.text))
                text, before = snapshot.text, after
            elif snapshot.text_left_out:
                text, before = None, -1
            if before >= 0:
                one["after"] = before

    def _text(self, text: str, number: int, blobs: Blobs, place: str, bases: list[int]) -> int:
        twin = self._twins.get(place)
        found = self.texts.add(text, number, blobs, [*bases, *([] if twin is None else [twin])])
        # The first capture's text of each place is what the others' are told as differences to.
        self._twins.setdefault(place, found)
        return found


def _pass_diff(snapshot: PassSnapshot, before: str, after: str) -> dict[str, Any]:
    kind = "llvm" if snapshot.group == "llvm" else "mlir"
    return packed_diff(diff_texts(before, after, kind), before, after)
