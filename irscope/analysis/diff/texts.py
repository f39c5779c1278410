"""The structural comparison of two texts of one kind: operations by what they are, names by the part they play.

How names are shown. Left lines stand as they are in the text, without what is ignored. Right lines are renamed: a
value, label, register or alias that plays the part of a left one takes its name; any other keeps its own, or takes a
new one ("%new_12", "%acc_new") where its own would be mistaken for a left one. Alias definitions go in the order of the
left text, and so do operations that only changed places among independent ones of their block. So a line that did not
change looks the same on both sides, and `TextDiff.unified` is a patch in the strict sense: applied to `left_lines` it
gives `right_lines`. What is ignored reads on the right as it does on the left.
"""

from __future__ import annotations

from irscope.analysis.diff.entries import DiffEntry, TextDiff, entries_of
from irscope.analysis.diff.rename import renamed_right
from irscope.analysis.diff.reorder import matched
from irscope.ir.body.clean import Ignored
from irscope.ir.body.reader import Body, read_body
from irscope.model.capture import StageKind

__all__ = ["DiffEntry", "Ignored", "TextDiff", "diff_texts"]

_KIND_TITLES: dict[StageKind, str] = {
    "mlir": "MLIR",
    "llvm": "LLVM IR",
    "ptx": "PTX",
    "sass": "SASS",
    "amdgcn": "AMD GPU assembly",
    "binary": "text",
}


def diff_texts(
    left: str, right: str, kind: StageKind, *, ignore: frozenset[Ignored] = frozenset({"locations"})
) -> TextDiff:
    """Compare two texts of one kind.

    `ignore` names what does not count: `locations` (and debug information), `names` (of symbols such as `@matmul`; the
    names of values, labels, aliases and virtual registers never count) and `attributes` (dictionaries of MLIR, groups
    and metadata of LLVM IR). Returns a TextDiff, which says so where it had to compare line by line. Never raises.
    """
    ours, theirs = read_body(left, kind, ignore), read_body(right, kind, ignore)
    fallback = _unreadable(ours, theirs)
    if fallback is not None:
        ours, theirs = read_body(left, "binary", ignore), read_body(right, "binary", ignore)
    matching = matched(ours, theirs)
    display = renamed_right(matching)
    return TextDiff(
        entries=entries_of(matching, display),
        kind=kind,
        fallback=fallback,
        left_lines=display.left_lines,
        right_lines=display.right_lines,
        left_numbers=display.left_numbers,
        right_numbers=display.right_numbers,
    )


def _unreadable(left: Body, right: Body) -> str | None:
    """Why the texts must be compared line by line; None where they can be read."""
    if left.kind == "binary":
        return "This kind of text has no structure that irscope reads: compared line by line."
    for side, body in (("left", left), ("right", right)):
        opaque = sum(not shape.name for shape in body.shapes)
        if opaque * 2 > len(body.shapes):
            return f"The {side} text does not read as {_KIND_TITLES[body.kind]}: compared line by line."
    return None
