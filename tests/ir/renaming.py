"""Renames the values of printed MLIR, scope by scope, and reads every table before and after: `python -m
tests.ir.renaming FILE.irscope|FILE.mlir…` prints a line a file, and ends with 1 where a table changed.

With Triton, each renamed module is first shown to its parser: it must print as the module that was renamed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.flow.dataflow import read_dataflow
from irscope.analysis.passes.effects import count_text
from irscope.analysis.source.map import source_map
from irscope.ir.mlir.uses import read_pointer_uses, read_uses
from irscope.layout.rows import layout_rows
from irscope.memory.costs import costs_of
from irscope.model.capture import Artifact, Capture, stage_named
from irscope.model.layout import layout_to_json
from irscope.store.file import load

Way = Literal["unique", "reused"]
WAYS: tuple[Way, ...] = ("unique", "reused")

# a string, a location's bracket, %acc_69, ^bb3, the end of a line
_WORD = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?<![\w.$@%#!-])loc\(|[()]|[%^][\w$.-]+|\n|//[^\n]*')
# "%a, %b:2 = ": results, at the beginning of a line
_RESULTS = re.compile(r"\s*%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)* = ")
_ISOLATED = re.compile(r'[^"]*?(?:\bmodule\b|\bfunc\b|\bpartition\d+\()|"tt\.func"|"builtin\.module"')


class _Scope:
    """The names of a region: those of its values, and its labels."""

    def __init__(self, outer: _Scope | None, is_isolated: bool) -> None:
        self.outer = outer
        self.is_isolated = is_isolated
        self.values: dict[str, list[Any]] = {}
        self.labels: dict[str, list[Any]] = {}
        self.cells: list[list[Any]] = []
        """[region, new name] of each value that it defines."""
        self.inner: list[_Scope] = []

    def find(self, name: str) -> list[Any]:
        """What a name stands for; a new one, of this region, where nothing above defines it yet."""
        if name[0] == "^":
            return self.labels.setdefault(name, self._cell(self.labels, name))
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = None if scope.is_isolated else scope.outer
        return self.define(name)

    def define(self, name: str) -> list[Any]:
        """A value, or label, of this region."""
        names = self.labels if name[0] == "^" else self.values
        return names.setdefault(name, self._cell(names, name))

    def _cell(self, names: dict[str, list[Any]], name: str) -> list[Any]:
        if name in names:
            return names[name]
        cell: list[Any] = [self, ""]
        if name[0] != "^":
            self.cells.append(cell)
        return cell


def renamed(text: str, way: Way) -> str:
    """The module with other names of values and labels: each its own, or regions side by side all the same ones."""
    pieces: list[str | list[Any]] = []
    top = scope = _Scope(None, True)
    at = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith(("#", "//", "!")):
            pieces.append(line)
            continue
        if bare.startswith("}") and scope.outer is not None:
            was = scope
            scope = scope.outer
        else:
            was = None
        opens = _without_location(bare).rstrip().endswith("{")
        inner = scope
        if opens:
            # "} else {" and "}, {" go on as the region before them began.
            isolated = was.is_isolated if was is not None else _ISOLATED.match(bare) is not None
            inner = _Scope(scope, isolated)
            scope.inner.append(inner)
        results = _RESULTS.match(line)
        end = results.end() if results else 0
        at = depth = 0
        for match in _WORD.finditer(line):
            word = match[0]
            if word == "loc(" and not depth:
                depth = 1
                continue
            if depth:
                depth += {"(": 1, ")": -1, "loc(": 1}.get(word, 0)
                continue
            if word[0] not in "%^":
                continue
            after = line[match.end() : match.end() + 3]
            pieces.append(line[at : match.start()])
            if match.start() < end:
                pieces.append(scope.define(word))
            elif word[0] == "^":
                is_own = bare.startswith(word) and not line[: match.start()].strip()
                pieces.append(scope.define(word) if is_own else scope.find(word))
            elif after.startswith((" = ", ": ")):
                pieces.append((inner if opens else scope).define(word))
            else:
                pieces.append(scope.find(word))
            at = match.end()
        pieces.append(line[at:])
        scope = inner
    _name(top, way)
    return "".join(piece if isinstance(piece, str) else piece[1] for piece in pieces)


def _without_location(line: str) -> str:
    return re.sub(r" loc\(.*", "", line) if line.endswith(")") else line


def _name(top: _Scope, way: Way) -> None:
    fresh = 0
    waiting = [(top, 0)]
    labels = 0
    while waiting:
        scope, count = waiting.pop()
        # MLIR names all values of a region before those within it: what is within begins to count behind them.
        count = 0 if scope.outer is top or scope.outer is None else count
        for cell in scope.cells:
            cell[1] = f"%v{fresh}_{fresh % 3}" if way == "unique" else f"%{count}"
            fresh, count = fresh + 1, count + 1
        for number, cell in enumerate(scope.labels.values()):
            cell[1] = f"^there{labels}" if way == "unique" else f"^bb{number + 1}"
            labels += 1
        waiting.extend((inner, count) for inner in reversed(scope.inner))


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def masked(value: Any) -> Any:
    """A value without the names of SSA values that stand in its texts."""
    if isinstance(value, str):
        return re.sub(r"[%^][\w$.-]+(?:#\d+)?", "%", value)
    if isinstance(value, dict):
        return {masked(key): masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return value


def text_tables(text: str) -> dict[str, Any]:
    """What is read from one module, names masked; rows are told apart by lines."""
    uses = read_uses(text)
    graph = read_dataflow(text)
    pointers = read_pointer_uses(text)
    return {
        "rows": masked(list(map(layout_to_json, layout_rows(text)))),
        "uses": [(use.first_line, use.name, use.layout_types, use.loops,
                  [len(uses.module.users.get(it, ())) for it in use.results]) for use in uses.operations],
        "nodes": [[node.number, node.name, node.region, node.line, node.role, node.type, masked(node.detail)]
                  for node in graph.nodes],
        "edges": [[edge.source, edge.target, edge.operand, edge.type, edge.carried]
                  for edge in graph.edges],
        "frames": masked([[scope.parent, scope.name, scope.title, scope.line] for scope in graph.scopes]),
        "pointers": [(one.read, one.written) for one in pointers.parameters] + [pointers.elsewhere],
        "counts": count_text(text),
    }  # fmt: skip


def _fields(value: Any) -> list[Any]:
    return [getattr(value, name) for name in type(value).__slots__]


def capture_tables(capture: Capture) -> dict[str, Any]:
    """What is read from a whole capture."""
    found = source_map(capture)
    return {
        "costs": masked([_fields(cost) for cost in costs_of(capture)]),
        "places": found.places,
        "source": [(stage.stage, stage.places_of_chain, stage.operations.lines) for stage in found.stages],
        "lines": [found.line_counts(stage.stage) for stage in found.stages],
    }


def changed_tables(text: str, other: str) -> list[str]:
    """The tables of one module that another names differently but must not read differently."""
    before, after = text_tables(text), text_tables(other)
    wrong = [name for name in before if before[name] != after[name]]
    return wrong + ([] if diff_texts(text, other, "mlir").is_empty else ["diff"])


def changed_capture(capture: Capture, way: Way) -> list[str]:
    """The tables of a capture that change where every MLIR text of it is renamed."""
    artifacts = tuple(
        Artifact(item.stage, renamed(item.data, way))
        if isinstance(item.data, str) and stage_named(item.stage).kind == "mlir"
        else item
        for item in capture.artifacts
    )
    before, after = capture_tables(capture), capture_tables(replace(capture, artifacts=artifacts))
    return [name for name in before if before[name] != after[name]]


def compilers_text() -> Callable[[str], str] | None:
    """What Triton's own parser makes of a module, printed; None where Triton is not there."""
    try:
        from triton._C.libtriton import amd, ir, nvidia

        from irscope.record.triton import api as triton_api
    except ImportError:
        return None
    context = ir.context()
    ir.load_dialects(context)
    for backend in (nvidia, amd):
        backend.load_dialects(context)

    def printed(text: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "module.mlir")
            path.write_text(text, "utf-8")
            return str(triton_api.parse_module(path, context))

    return printed


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """(name, module) of every different MLIR text of a capture or a file."""
    if path.suffix != ".irscope":
        yield path.name, path.read_text("utf-8")
        return
    capture = load(path)
    seen: set[str] = set()
    for name, text in [
        *((item.stage, item.data) for item in capture.artifacts if stage_named(item.stage).kind == "mlir"),
        *((item.label, item.text) for item in capture.passes("mlir")),
    ]:
        if isinstance(text, str) and text not in seen and len(text) < 1_000_000:
            seen.add(text)
            yield name, text


def main(paths: list[str]) -> int:
    """Rename everything in some files; returns 1 where a table changed."""
    printed = compilers_text()
    failed = texts = refused = 0
    for name in paths:
        path = Path(name)
        wrong: list[str] = []
        if path.suffix == ".irscope":
            wrong += [f"{way}: {table}" for way in WAYS for table in changed_capture(load(path), way)]
        for label, text in texts_of(path):
            texts += 1
            own = printed(text) if printed else ""
            for way in WAYS:
                other = renamed(text, way)
                if printed and printed(other) != own:
                    refused += 1
                    wrong.append(f"{label} {way}: the compiler reads another module")
                wrong += [f"{label} {way}: {table}" for table in changed_tables(text, other)]
        failed += bool(wrong)
        print(f"{path.name}: {'; '.join(wrong) or 'the same'}", flush=True)
    print(f"{len(paths)} files, {texts} modules, {len(WAYS)} ways: {failed} files differ; {refused} renamings refused")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
