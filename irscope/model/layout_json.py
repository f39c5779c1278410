"""The JSON form of a LayoutRow, in captures, reports and `--json`: the one place that writes and reads it.

The fields are described in docs/capture-format.md. It needs the standard library alone: another interpreter's child
process writes it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from irscope.errors import UsageError
from irscope.model.layout import UNASKED, LayoutAnswer, LayoutMap, LayoutRefusal, LayoutRow, LayoutUse, RefusalCode
from irscope.model.linear_layout import LinearLayout
from irscope.model.plain import built, tupled

__all__ = ["answer_from_json", "answer_to_json", "layout_from_json", "layout_to_json"]

_CODES_OF_REASONS: tuple[tuple[str, RefusalCode], ...] = (
    ("irscope does not know", "unknown-encoding"),
    ("the shape ", "shape"),
    ("the compiler does not read", "unreadable"),
    ("the compiler gives no map", "unsupported"),
    ("Triton ", "unsupported"),
    ("the compiler does not survive", "crash"),
    ("the compiler says", "error"),
)
"""(beginning of a reason, code) for captures from before there were codes; any other reason is `unasked`."""
_CODES: tuple[RefusalCode, ...] = get_args(RefusalCode)


def layout_to_json(row: LayoutRow) -> dict[str, Any]:
    """A row as plain values: its fields, and those of its answer beside them."""
    return {
        "alias": row.alias,
        "encoding": row.encoding,
        "shape": list(row.shape),
        "elements": list(row.elements),
        "buffers": row.buffers,
        "operations": [asdict(use) for use in row.operations],
        **answer_to_json(row.answer),
    }


def layout_from_json(data: Mapping[str, Any]) -> LayoutRow:
    """Read what `layout_to_json` wrote, or what an older irscope did; the types of the values are not checked."""
    operations = tuple(built(LayoutUse, use) for use in data.get("operations", ()))
    return built(LayoutRow, data, operations=operations, answer=answer_from_json(data))


def answer_to_json(answer: LayoutAnswer) -> dict[str, Any]:
    """`bases` and `out_dims` of a map, with `padding` and `note` where it has them; or `code` and `reason`."""
    if isinstance(answer, LayoutRefusal):
        return {"code": answer.code, "reason": answer.message}
    data: dict[str, Any] = {
        "bases": {name: [list(vector) for vector in vectors] for name, vectors in answer.layout.bases},
        "out_dims": [list(pair) for pair in answer.layout.out_dims],
    }
    if answer.padding:
        data["padding"] = [list(pair) for pair in answer.padding]
    return data | ({"note": answer.note} if answer.note else {})


def answer_from_json(data: Mapping[str, Any]) -> LayoutAnswer:
    """Read what `answer_to_json` wrote; bases that are not a linear layout become a refusal."""
    if "bases" not in data:
        reason = data.get("reason", "")
        return LayoutRefusal(_code_of(data.get("code"), reason), reason) if reason else UNASKED
    try:
        sizes = data["out_dims"]
        layout = LinearLayout.of(data["bases"], [size for _, size in sizes], [name for name, _ in sizes])
    except (KeyError, UsageError) as error:
        return LayoutRefusal("damaged", f"this is no linear layout ({error}): it has 'bases' and 'out_dims'.")
    return LayoutMap(layout, tupled(data.get("padding", ())), data.get("note", ""))


def _code_of(stored: object, reason: str) -> RefusalCode:
    for code in _CODES:
        if code == stored:
            return code
    for beginning, code in _CODES_OF_REASONS:
        if reason.startswith(beginning):
            return code
    return UNASKED.code
