"""The lines and locations of operations, against those that the reader builds, of damaged texts too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from irscope.ir.mlir.lines import located_lines
from irscope.ir.mlir.reader import parse_mlir
from irscope.store.file import load

FILES = sorted((Path(__file__).parents[2] / "data" / "layouts").glob("*.irscope"))

MORE_REGIONS = """\
module {
  tt.func @f(%a: i32) {
    ttg.warp_specialize(%a)
    default {
      ttg.warp_yield loc(#loc2)
    }
    partition0(%b: i32) num_warps(4) {
      ttg.warp_return loc(#loc3)
    } : (i32) -> () loc(#loc4)
    cf.switch %a : i32, [
      default: ^bb1,
      1: ^bb2
    ] loc(#loc5)
  ^bb1:
    scf.if %c {
    } else {
    } loc(#loc6)
  }
}
"""


def variants(text: str) -> Iterator[str]:
    """The text, and texts that lack its beginning, its end, or some of what closes its regions."""
    yield from (text, text[: 2 * len(text) // 3], text[len(text) // 3 :], text.replace("}", "", 3))
    yield text.replace("\n", "\r\n")


@pytest.mark.parametrize("text", [MORE_REGIONS, *(load(path).text("ttgir") for path in FILES)])
def test_they_are_those_of_the_operations(text: str) -> None:
    for one in variants(text):
        operations = [(list(each.lines), each.location) for each in parse_mlir(one).walk() if each.location]
        assert list(located_lines(one)) == operations


def test_more_regions_are_one_operation() -> None:
    found = {location: lines for lines, location in located_lines(MORE_REGIONS)}
    assert found["#loc4"] == [3, 4, 6, 7, 9]
    assert found["#loc5"] == [10, 11, 12, 13]
    assert found["#loc6"] == [15, 16, 17]
