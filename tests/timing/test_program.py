"""Which side of a branch that data decide is the greater one."""

from __future__ import annotations

import pytest

from irscope.ir.asm.sass import parse_sass
from irscope.timing.program import Program

_LOOP = [".L_b:", "IADD3 R2, R2, 0x1, RZ", "ISETP.GE.AND P1, PT, R2, 0x9, PT", "@!P1 BRA `(.L_b)"]
_MOVES = ["IMAD.MOV.U32 R3, RZ, RZ, R2"]
_BACK = "BRA `(.L_end)"


@pytest.mark.parametrize(
    ("skipped", "rest", "is_lesser"),
    [
        ([*_MOVES * 4, _BACK], _LOOP, True),
        ([*_LOOP, _BACK], _MOVES * 20, False),
        ([*_MOVES, _BACK], _MOVES * 3, True),
        # Without an else: what is skipped is all there is.
        (_MOVES, _LOOP, False),
        # The branch at its end goes elsewhere by a predicate.
        ([*_MOVES, "@P2 BRA `(.L_end)"], _LOOP, False),
    ],
    ids=["zeros or a loop", "a loop or moves", "less or more", "no else", "a condition within"],
)
def test_the_greater_side_of_an_if(skipped: list[str], rest: list[str], is_lesser: bool) -> None:
    lines = ["@!P0 BRA `(.L_else)", *skipped, ".L_else:", *rest, ".L_end:", "EXIT"]
    (function,) = parse_sass(_listing(lines))
    program = Program(function, lambda _: False)
    assert program.is_lesser_side(0, program.targets[0]) is is_lesser


def _listing(lines: list[str]) -> str:
    """As `dump --stage sass` prints a function."""
    text, address = ".target sm_90\n.section .text.kernel\n", 0
    for line in lines:
        if line.endswith(":"):
            text += f"{line}\n"
            continue
        text += f"        {address:04x}  B------:R-:W-:-:S01  {line}\n"
        address += 16
    return text
