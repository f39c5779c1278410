"""The changes by each pass of a capture: lines, operations, layouts and conversions, before against after."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.tokens import is_layout_alias
from irscope.model.capture import Capture, PassSnapshot

# %5 = ttg.convert_layout %4 …  |  "llvm.add"(%1, %2)  |  %c:2 = scf.for …
_OPERATION = re.compile(r'\s*(?:%[\w$.:#, %-]+ = )?"?((?:[A-Za-z_]\w*)(?:\.[A-Za-z_][\w.]*)+)\b')


@dataclass(frozen=True, slots=True)
class _TextCounts:
    lines: int
    operations: Counter[str]
    """By full name: `ttg.convert_layout`."""
    layouts: int

    @property
    def convert_layouts(self) -> int:
        return sum(count for name, count in self.operations.items() if opcode_of(name) == "convert_layout")


@dataclass(frozen=True, slots=True)
class PassEffect:
    """One pass and its changes; the differences are None where a text was left out."""

    snapshot: PassSnapshot
    lines: int | None = None
    operations: int | None = None
    layouts: int | None = None
    convert_layouts: int | None = None
    by_operation: tuple[tuple[str, int], ...] = ()
    """(operation, change of its count), the largest change first."""

    @property
    def title(self) -> str:
        """`canonicalizer#2`, the first of a name without its number; of LLVM's `llvm:licm#2`, as a plan names it."""
        name = self.snapshot.label.rpartition("#")[0] if self.snapshot.group == "llvm" else self.snapshot.name
        return name + (f"#{self.snapshot.occurrence}" if self.snapshot.occurrence > 1 else "")

    @property
    def stage_title(self) -> str:
        """`llir`, or `llir (LLVM)` for a pass of LLVM's."""
        return self.snapshot.stage if self.snapshot.group == "mlir" else f"{self.snapshot.stage} (LLVM)"

    @property
    def is_idle(self) -> bool:
        """Whether the pass ran and changed nothing."""
        return self.snapshot.outcome == "ran" and self.snapshot.changed is False


def count_text(text: str) -> _TextCounts:
    """Count the lines (locations' tables left out), operations and layouts of an MLIR text."""
    lines = text.splitlines()
    # Every line of every pass comes through here: one regular expression each, and no call of a function of ours.
    operations = Counter([match[1] for match in map(_OPERATION.match, lines) if match])
    aliases = [line for line in lines if line.startswith("#")]
    locations = sum(line.startswith("#loc") for line in aliases)
    blank = lines.count("") + sum(map(str.isspace, lines))
    layouts = sum(is_layout_alias(line) for line in aliases)
    return _TextCounts(len(lines) - locations - blank, operations, layouts)


def pass_effects(capture: Capture) -> Iterator[PassEffect]:
    """The effect of each pass, in the order they ran; costs one count for each text that changed."""
    first = next((item for item in capture.artifacts if isinstance(item.data, str)), None)
    before = None if first is None else count_text(first.text)
    for snapshot in capture.passes():
        if snapshot.text is None:
            yield _without_text(snapshot)
            before = None if snapshot.text_left_out and snapshot.argument else before
        else:
            after = count_text(snapshot.text)
            yield _difference(snapshot, before, after)
            before = after
    yield from _llvm_effects(capture)


def _llvm_effects(capture: Capture) -> Iterator[PassEffect]:
    """Those of LLVM's passes, of which each printed what it ran on: only texts of the same function are compared."""
    texts: dict[tuple[str, str], _TextCounts] = {}
    for snapshot in capture.passes("llvm"):
        if snapshot.text is None:
            yield _without_text(snapshot)
            continue
        extent, after = _extent(snapshot), count_text(snapshot.text)
        yield _difference(snapshot, None if extent == "part" else texts.get((snapshot.scope, extent)), after)
        # What another extent printed of the same code before is older than this text.
        texts = {
            (scope, known): counts
            for (scope, known), counts in texts.items()
            if known == extent or (extent != "module" and scope not in ("", snapshot.scope))
        }
        if extent != "part":
            texts[snapshot.scope, extent] = after


def _extent(snapshot: PassSnapshot) -> Literal["module", "machine", "function", "part"]:
    """What the text of a pass of LLVM's is of; a `part` is a loop or a region of a function."""
    text = snapshot.text or ""
    if not snapshot.scope:
        return "module"
    lines = text.split("\n")
    if any(line.startswith("# Machine code for function ") for line in lines):
        return "machine"
    return "function" if any(line.startswith("define ") for line in lines) else "part"


def _without_text(snapshot: PassSnapshot) -> PassEffect:
    return PassEffect(snapshot, 0, 0, 0, 0) if snapshot.changed is False else PassEffect(snapshot)


def _difference(snapshot: PassSnapshot, before: _TextCounts | None, after: _TextCounts) -> PassEffect:
    if before is None:
        return PassEffect(snapshot)
    changes = {name: after.operations[name] - before.operations[name] for name in before.operations | after.operations}
    rows = sorted(
        ((name, change) for name, change in changes.items() if change), key=lambda row: (-abs(row[1]), row[0])
    )
    return PassEffect(
        snapshot,
        after.lines - before.lines,
        after.operations.total() - before.operations.total(),
        after.layouts - before.layouts,
        after.convert_layouts - before.convert_layouts,
        tuple(rows),
    )
