"""Numbers that only one line of marked.py or its helpers has, and the line of Python that each is from.

A place is written as the calls are, innermost line first: "line of a helper < line that called it". Each line is named
by a piece of it that no other line of the kernel's files has; `#2` behind it means the second line that has it. What is
written over several lines counts as its first one: until 3.7 Triton takes the line of a call's last argument.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """An integer that stands on one line alone, so that the operation that has it is that line's."""

    kernel: str
    number: int
    places: tuple[str, ...]
    """Several for a line of a function that is not inlined and has several callers."""
    nth: int = 0
    """Which operation with that number, 1-based, where a helper is called twice: each call reads what the one before
    it made, so no compiler can change their order. 0: every one, as an unrolled loop makes several of one."""


def _mark(kernel: str, number: int, *places: str, nth: int = 0) -> Mark:
    return Mark(kernel, number, places, nth)


_FIRST, _SECOND = "x = apart(x)  # the first", "return apart(x) < x = to_apart(x)"

MARKS = (
    # The kernel's own lines.
    _mark("inlined", 2101, "x = x ^ 2101"),
    _mark("inlined", 2203, "x = tl.maximum(x, 2203)"),
    _mark("inlined", 2251, "x = x ^ 2251"),
    _mark("inlined", 2805, "x = x ^ 2805"),
    _mark("inlined", 2907, "x = keyed_outer(tl.maximum(x, 2907), 3001)"),
    _mark("inlined", 3103, "x = tl.maximum(x ^ 3103, 3205)"),
    _mark("inlined", 3205, "x = tl.maximum(x ^ 3103, 3205)"),
    _mark("inlined", 3307, "x = tl.maximum(x, 3307)"),
    _mark("inlined", 3603, "x = x ^ 3603"),
    _mark("inlined", 3909, "x = x ^ 3909"),
    # Nested helpers.
    _mark("inlined", 1407, "x = tl.maximum(x, 1407) < x = outer(x)"),
    _mark("inlined", 1203, "x = x ^ 1203 < x = middle(x) < x = outer(x)"),
    _mark("inlined", 1101, "return tl.maximum(x, 1101) < # of middle < x = middle(x) < x = outer(x)"),
    _mark("inlined", 1305, "return x ^ 1305 < x = middle(x) < x = outer(x)"),
    _mark("inlined", 1509, "return tl.maximum(x, 1509) < x = outer(x)"),
    # Several calls of one helper, one of them written over five lines; the number comes from the call.
    _mark("inlined", 2305, "x = x ^ key#1 < keyed(x, 2305, 2407)"),
    _mark("inlined", 2407, "return tl.maximum(x, floor) < keyed(x, 2305, 2407)"),
    _mark("inlined", 2509, "x = x ^ key#1 < # over lines"),
    _mark("inlined", 2601, "return tl.maximum(x, floor) < # over lines"),
    _mark("inlined", 2703, "x = x ^ key#1 < return keyed(x, key, 1601) < keyed_outer(x, 2703)"),
    _mark("inlined", 1601, "return tl.maximum(x, floor) < return keyed(x, key, 1601) < keyed_outer(x, 2703)", nth=1),
    _mark("inlined", 3001, "x = x ^ key#1 < return keyed(x, key, 1601) < keyed_outer(tl.maximum(x, 2907), 3001)"),
    _mark(
        "inlined",
        1601,
        "return tl.maximum(x, floor) < return keyed(x, key, 1601) < keyed_outer(tl.maximum(x, 2907), 3001)",
        nth=2,
    ),
    # A static loop: two turns of one line.
    _mark("inlined", 3705, "x = x ^ key#1 < x = keyed(x, 3705 + 64 * step"),
    _mark("inlined", 3807, "return tl.maximum(x, floor) < x = keyed(x, 3705 + 64 * step"),
    _mark("inlined", 3705 + 64, "x = x ^ key#1 < x = keyed(x, 3705 + 64 * step"),
    _mark("inlined", 3807 + 64, "return tl.maximum(x, floor) < x = keyed(x, 3705 + 64 * step"),
    # Helpers in another file, called directly and through another one there.
    _mark("inlined", 5101, "x = x ^ 5101 < x = elsewhere(x)#1", nth=1),
    _mark("inlined", 5203, "x = tl.maximum(x, 5203) < x = elsewhere(x)#1", nth=1),
    _mark("inlined", 5305, "return x ^ 5305 < x = elsewhere(x)#1", nth=1),
    _mark("inlined", 3409, "x = x ^ key#2 < keyed_elsewhere(x, 3409)"),
    _mark("inlined", 5601, "return tl.maximum(x, 5601) < keyed_elsewhere(x, 3409)", nth=1),
    _mark("inlined", 3501, "x = x ^ key#2 < keyed_elsewhere(x, 3501)"),
    _mark("inlined", 5601, "return tl.maximum(x, 5601) < keyed_elsewhere(x, 3501)", nth=2),
    _mark("inlined", 5407, "x = tl.maximum(x, 5407) < x = elsewhere_outer(x)"),
    _mark("inlined", 5101, "x = x ^ 5101 < x = elsewhere(x)#2 < x = elsewhere_outer(x)", nth=2),
    _mark("inlined", 5203, "x = tl.maximum(x, 5203) < x = elsewhere(x)#2 < x = elsewhere_outer(x)", nth=2),
    _mark("inlined", 5305, "return x ^ 5305 < x = elsewhere(x)#2 < x = elsewhere_outer(x)", nth=2),
    _mark("inlined", 5509, "return tl.maximum(x, 5509) < x = elsewhere_outer(x)"),
    # Helpers that are not inlined: their lines have as many places as there are calls.
    _mark("called", 4509, "x = x ^ 4509"),
    _mark("called", 4101, f"x = x ^ 4101 < {_FIRST}", f"x = x ^ 4101 < {_SECOND}"),
    _mark("called", 1101, *(f"return tl.maximum(x, 1101) < # of apart < {call}" for call in (_FIRST, _SECOND))),
    _mark("called", 4203, f"x = x ^ 4203 < {_FIRST}", f"x = x ^ 4203 < {_SECOND}"),
    _mark("called", 4305, f"return tl.maximum(x, 4305) < {_FIRST}", f"return tl.maximum(x, 4305) < {_SECOND}"),
    _mark("called", 4407, "x = x ^ 4407 < x = to_apart(x)"),
    _mark("called", 4601, "x = tl.maximum(x, 4601)"),
    _mark("called", 4703, "x = tl.maximum(x, 4703)"),
    _mark("called", 5703, "x = x ^ 5703 < x = apart_elsewhere(x)"),
    _mark("called", 5805, "x = tl.maximum(x, 5805) < x = apart_elsewhere(x)"),
    _mark("called", 5907, "return x ^ 5907 < x = apart_elsewhere(x)"),
    _mark("called", 4805, "x = x ^ 4805"),
    # A loop, and a branch behind it.
    _mark("called", 4907, "x = tl.maximum(x, 4907)"),
    _mark("called", 5009, "x = x ^ key#1 < x = keyed(x, 5009, 6101)"),
    _mark("called", 6101, "return tl.maximum(x, floor) < x = keyed(x, 5009, 6101)"),
    _mark("called", 6203, "if count == 6203:"),
)
