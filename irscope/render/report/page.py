"""The report: captures as one HTML page that needs no server, no network and no Triton, and the data that it holds."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from irscope import __version__
from irscope.analysis.diff.captures import inputs_of
from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.findings.quick import quick_findings
from irscope.analysis.movie.make import follow
from irscope.analysis.resources import stage_operations
from irscope.analysis.source.map import source_map
from irscope.errors import UsageError, installing
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.meanings import meanings_of
from irscope.machine import has_machine
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.model.evidence import CompilerLog, PassLog
from irscope.model.telling import Row, parts_of, telling_texts
from irscope.render.capture import summary_html
from irscope.render.dot.graph import has_dot
from irscope.render.poster.facts import known_costs, known_findings
from irscope.render.report.facts import (
    NO_LIVES,
    NO_PAIRS,
    Between,
    facts_of,
    heat_of,
    packed_layouts,
    packed_lives,
    packed_memory,
    stage_locations,
)
from irscope.render.report.pictures import for_page, movie_text, packed_graphs, packed_poster, poster_style
from irscope.render.report.results import Results
from irscope.render.report.texts import (
    WINDOW,
    Blobs,
    TextTable,
    as_bytes,
    column_words,
    deflated,
    pack,
    packed_annotations,
    packed_difference,
    plain_by_number,
    printed,
    split_margins,
    value_columns,
)
from irscope.render.timing import prediction_svg, prediction_tables, times_svg

_PAYLOAD_VERSION = 1
_MOST_EVALUATED = 8
"""In a report of more captures, `irscope why` evaluates addresses, the page places graphs, and neither a poster nor a
movie is made."""
_MOST_STUDIED = 64
"""In a report of more captures, the operations of each are neither followed through the passes nor costed."""
_NOT_STUDIED = (
    f"This report holds more than {_MOST_STUDIED} captures: which pass made and removed each operation, structural "
    "differences, accesses and the costs of layouts are left out. A report of this capture alone has them."
)
_LINE_BY_LINE = (
    "The page holds no structural difference of these two texts: compared line by line. "
    "'irscope diff' compares their structure."
)
_Plain = Mapping[int, str]
"""The lines of a text without locations, by their 1-based numbers."""


def _telling_parts(capture: Capture) -> dict[str, str]:
    known = {"target": str(capture.target), "plan": str(capture.plan), "Triton": capture.environment.triton_version}
    return known | parts_of(capture.launch)


class Payload:
    def __init__(
        self,
        captures: Sequence[Capture],
        between: Mapping[tuple[int, int], Between] = NO_PAIRS,
        results: Results | None = None,
    ) -> None:
        """Pack captures; `between`: what is known of pairs of layouts of the first one."""
        self.texts = TextTable()
        self.chunks: list[Blobs] = []
        self._captures = captures
        self._executes = has_machine()
        self._evaluates = self._executes and len(captures) <= _MOST_EVALUATED
        self._studies = len(captures) <= _MOST_STUDIED
        self._compares = len(captures) > 1
        self._references: dict[str, tuple[int, Capture, dict[str, _Plain]]] = {}
        """Of each kernel, or of both of two captures, the one that others are compared with: its number and texts."""
        self.places_graphs = False
        self._kernel = ""
        self._numbers: dict[str, int] = {}
        """The numbers of the IR of one capture."""
        self._twins: dict[tuple[str, str], int] = {}
        self._firsts: dict[tuple[str, str], tuple[bytes, list[int]]] = {}
        """The values of each kernel's first capture, as far back as others may point, and where they are."""
        told: list[Row] = []
        rows: list[dict[str, Any]] = []
        for number, capture in enumerate(captures):
            rows.append(self._capture(capture, between if number == 0 else NO_PAIRS))
            told.append((capture.name, _telling_parts(capture)))
        for row, text in zip(rows, telling_texts(told), strict=True):
            row["differsIn"] = text
        self.index: dict[str, Any] = {
            "version": _PAYLOAD_VERSION,
            "irscope": __version__,
            "captures": rows,
            "texts": self.texts.rows,
            "lineByLine": _LINE_BY_LINE,
        }
        if results is not None:
            self.index["results"] = asdict(results)

    def _capture(self, capture: Capture, between: Mapping[tuple[int, int], Between]) -> dict[str, Any]:
        self.chunks.append(Blobs())
        self._kernel = capture.name
        self._numbers.clear()
        costs = known_costs(capture) if self._studies and self._executes else ()
        # To evaluate addresses takes a tenth of a compile's time.
        found, time = known_findings(capture, costs) if self._evaluates else (quick_findings(capture), None)
        row = facts_of(capture, costs, found, among=self._captures if self._evaluates else None)
        texts = capture.texts
        first = next(iter(texts), None)
        source = None if first is None else self._lines(texts[first], stage_named(first).kind, "source")
        for group in ("mlir", "llvm"):
            self._passes(capture, group, row, source if group == "mlir" else None)
        shown: dict[str, _Plain] = {}
        for stage in row["stages"]:
            name, kind = stage["stage"], stage["kind"]
            if name in texts:
                stage["text"], shown[name] = self._lines(texts[name], kind, f"stage {name}")
                columns = value_columns(texts[name], kind, shown[name])
                stage["values"] = self._value(columns, f"values {name}")
        row["counted"] = self._value(self._counted(capture), "counted")
        if self._compares and self._studies:
            self._compare(capture, row, shown)
        row["sources"] = [[item.path, self._text(item.text, f"file {item.path}", [])] for item in capture.sources]
        if capture.launch.kernel.source:
            row["kernelSource"] = self._text(capture.launch.kernel.source, "kernel", [])
        row["passes"] = self._value(row["passes"], "passes")
        row["locations"] = self._value(stage_locations(capture), "locations")
        row["layouts"] = self._value(packed_layouts(capture, costs, between), "layouts")
        row["memory"] = self._value(packed_memory(capture, costs), "memory")
        if self._studies and capture.profile is not None and (heat := heat_of(capture)) is not None:
            row["heat"] = self._value(heat, "heat")
        if self._studies and (machine_code := packed_annotations(capture)) is not None:
            row["annotations"] = self._value(machine_code, "annotations")
        followed = follow(capture) if self._studies else None
        lives = packed_lives(capture, self._numbers.__getitem__, followed) if followed else NO_LIVES
        row["lives"] = self._value(lives, "lives")
        if self._evaluates and followed is not None and (movie := movie_text(capture, followed)):
            row["movie"] = self._text(movie, "movie", [])
        graphs, unplaced = packed_graphs(
            capture,
            lambda text, place: self._text(text, place, []),
            placed=self._evaluates and has_dot(),
        )
        row["graphs"] = self._value(graphs, "graphs")
        self.places_graphs = self.places_graphs or unplaced
        if self._evaluates and (drawn := packed_poster(capture, costs, found, time)):
            row["poster"] = self._text(drawn, "poster", [])
        if time is not None:
            drawn = self._text(for_page(prediction_svg(time)), "predicted time", [])
            row["time"] = {"picture": drawn, "tables": self._value(prediction_tables(time), "predicted tables")}
        if capture.times is not None:
            row["flame"] = self._text(for_page(times_svg(capture)), "flame graph", [])
        if not self._studies:
            row["notes"].append(_NOT_STUDIED)
        if not self._executes:
            row["notes"].append(f"Made without NumPy, so with few findings and no costs: {installing('machine')}.")
        # One capture's texts after another's: memory holds those of one, and those that later ones are compared with.
        self.texts.release(self._twins.values())
        return row

    @property
    def _number(self) -> int:
        return len(self.chunks) - 1

    def _passes(
        self, capture: Capture, group: StageKind, row: dict[str, Any], before: tuple[int, _Plain] | None
    ) -> None:
        """Number the texts before and after each pass, and store their differences."""
        rows = [one for one in row["passes"] if one["group"] == group]
        logs = {(item.stage, item.index): item for item in (capture.log or CompilerLog()).passes}
        if (assembler := logs.pop(("cubin", None), None)) is not None:
            # What ptxas says stands beside its optimiser.
            logs |= {(one["stage"], one["index"]): assembler for one in rows if one["stage"] == "cubin"}
        for one, snapshot in zip(rows, capture.passes(group), strict=True):
            left = before
            if snapshot.text is not None:
                base = -1 if before is None else before[0]
                before = self._lines(snapshot.text, group, snapshot.label, base)
            elif snapshot.text_left_out:
                before = None
            if left is not None:
                one["before"] = left[0]
            if before is not None:
                one["after"] = before[0]
            text = capture.text_before(snapshot)
            if self._studies and left and before and left[0] != before[0] and text is not None:
                diff = diff_texts(text, snapshot.text or "", group)
                packed = packed_difference(diff, left[1], before[1])
                one["diff"] = self._value(packed, f"diff {snapshot.label}")
            if (log := logs.get((snapshot.stage, snapshot.index))) is not None and group == "mlir":
                text, one["decisions"] = _log_rows(log)
                one["log"] = self._text(text, f"log {snapshot.label}", [])

    def _counted(self, capture: Capture) -> dict[str, Any]:
        """What the page compares of two captures besides texts, and the words that their texts hold.

        `operations`: for each stage the number of each of its operations. `meanings`: for each stage what its
        operations do. `columns`: what the columns before SASS mean. Where there is another capture, `inputs`: by name;
        `parts`: the compiler's files; and `lines`: for each stage (file, line of Python, operations).
        """
        operations = {item.stage: stage_operations(item) for item in capture.artifacts}
        counted: dict[str, Any] = {
            "operations": operations,
            "meanings": {stage: meanings_of(names, stage_named(stage).kind) for stage, names in operations.items()},
            "columns": column_words(
                [text for stage, text in capture.texts.items() if stage_named(stage).kind == "sass"]
            ),
        }
        if self._compares:
            counted |= {"inputs": inputs_of(capture), "parts": dict(capture.environment.parts)}
        if self._compares and self._studies:
            stages = [stage for stage in capture.texts if stage != "source"]
            found = source_map(capture, stages) if stages else None
            lines = {stage: found.line_counts(stage) for stage in stages} if found else {}
            counted["lines"] = {
                stage: [[file, line, count] for (file, line), count in counts.items()]
                for stage, counts in lines.items()
            }
        return counted

    def _compare(self, capture: Capture, row: dict[str, Any], shown: Mapping[str, _Plain]) -> None:
        """Store how the stages differ from those of the kernel's first capture; of two captures, from the other's."""
        kernel = "" if len(self._captures) == 2 else capture.name
        if kernel not in self._references:
            self._references[kernel] = self._number, capture, dict(shown)
            return
        other, reference, plain = self._references[kernel]
        differences: dict[str, list[int]] = {}
        for stage in [stage for stage in plain if stage in shown]:
            one, two = reference.text(stage), capture.text(stage)
            if one != two:
                diff = diff_texts(one, two, stage_named(stage).kind)
                packed = packed_difference(diff, plain[stage], shown[stage])
                packed["reversed"] = diff.reversed_summary
                differences[stage] = self._value(packed, f"difference {stage}")
        row["compared"] = {"with": other, "stages": differences}

    def _value(self, value: Any, name: str) -> list[int]:
        """Pack a value; returns (offset, length), and behind them (chunk, offset, length) of what it points back to."""
        data = as_bytes(value)
        key = self._kernel, name
        if key in self._firsts:
            likely, base = self._firsts[key]
            return [*self.chunks[-1].append(deflated(data, likely)), *base]
        place = [*self.chunks[-1].append(deflated(data))]
        self._firsts[key] = data[-WINDOW:], [self._number, *place]
        return place

    def _lines(self, text: str, kind: StageKind, place: str, base: int = -1) -> tuple[int, _Plain]:
        plain, margins = split_margins(text, kind)
        bases = self.texts.parts(base) if base >= 0 else ()
        found = self._text("\n".join(plain), place, list(bases[:1]))
        if margins:
            beside = self._text("\n".join(margins), f"margins {place}", list(bases[1:]))
            found = self.texts.join(found, beside)
        self._numbers[text] = found
        return found, plain_by_number(plain, margins)

    def _text(self, text: str, place: str, bases: list[int]) -> int:
        key = self._kernel, place
        twin = self._twins.get(key)
        found = self.texts.add(text, self._number, self.chunks[-1], [*bases, *([] if twin is None else [twin])])
        # Texts of a kernel's later captures are stored as differences to its first capture's text in the same place.
        self._twins.setdefault(key, found)
        return found


def _log_rows(log: PassLog) -> tuple[str, list[list[str]]]:
    """The text of a pass's log, and the decisions in it as (place, what it says)."""
    from irscope.ir.logs.reasons import read_decisions
    from irscope.render.text.history import entries_text

    return entries_text(log), [[line_text(place_of(each.chain)), each.said] for each in read_decisions(log)]


_POLICY = (
    "default-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "connect-src 'none'",
    "img-src data:",
    "require-trusted-types-for 'script'",
    "trusted-types irscope",
)
_NO_SCRIPT = "The passes, stages and graphs of this report need JavaScript, which runs from this file alone."
_DATA_TYPE = "application/octet-stream"
_FIRST: Mapping[str, object] = MappingProxyType({})
"""The view of a page that is not opened at any: the overview of the first capture."""


def render_report(
    captures: Sequence[Capture],
    *,
    title: str = "",
    view: Mapping[str, object] = _FIRST,
    between: Mapping[tuple[int, int], Between] = NO_PAIRS,
    results: Results | None = None,
) -> str:
    """One page of HTML that shows the captures; what is in them is data, never markup or script.

    `title`: by default the kernels' names. `between`: what is known of pairs of layouts of the first capture. `view`:
    what is shown first, as the page's fragment has it: `{"tab": "passes", "pass": 3}`. `results`: those of many
    compiles, a view of its own. Raises UsageError if there is no capture.
    """
    if not captures:
        raise UsageError("a report needs at least one capture: name a file, an id that 'irscope ls' lists, or 'last'.")
    payload = Payload(captures, between, results)
    names = list(dict.fromkeys(row["kernel"] for row in payload.index["captures"]))
    title = title or ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    loader, style = _asset("loader.js").decode(), _asset("viewer.css").decode() + poster_style()
    nonce = base64.b64encode(hashlib.sha256(style.encode()).digest()[:18]).decode()
    allowed = json.loads(_asset("digests.json"))
    if not payload.places_graphs:
        del allowed["graphs.js"]
    scripts = " ".join(f"'{digest}'" for digest in allowed.values())
    wasm = " 'wasm-unsafe-eval'" if payload.places_graphs else ""
    policy = "; ".join([*_POLICY, f"script-src {scripts}{wasm}", f"style-src 'nonce-{nonce}'"])
    opened = f' data-opened="{escape(urlencode(view))}"' if view else ""
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"{opened}>',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(' '.join(title.split()))} · irscope</title>",
        '<link rel="icon" href="data:,">',
        f'<style nonce="{nonce}" id="style">{style}</style>',
        "</head>",
        "<body>",
        f'<div id="app"><main class="static">{summary_html(captures[0])}</main></div>',
        f"<noscript><p>{_NO_SCRIPT}</p></noscript>",
        _data("index", pack(payload.index)),
        *(_data(f"chunk{number}", chunk.to_bytes()) for number, chunk in enumerate(payload.chunks)),
        _data("viewer", _asset("viewer.js.deflate")),
        *([_data("graphs", _asset("graphs.js.deflate"))] if payload.places_graphs else []),
        f"<script>{loader}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _asset(name: str) -> bytes:
    return (files("irscope.render") / "report" / "assets" / name).read_bytes()


def _data(name: str, data: bytes) -> str:
    return f'<script type="{_DATA_TYPE}" id="{name}">{printed(data)}</script>'
