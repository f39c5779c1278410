"""The front end's IR without what a parameter was specialised on."""

from __future__ import annotations

import pytest

from irscope.analysis.variants.merges import effects, without_attributes
from irscope.ir.mlir.reader import parse_mlir

TEXT = """module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32} loc("x"(#loc)), \
%n: i32 {tt.divisibility = 16 : i32}, %n_1: i32) attributes {noinline = false} {
    %0 = arith.addi %n, %n_1 : i32
    tt.return
  }
}
"""


@pytest.mark.parametrize(
    ("name", "only_alignment", "left"),
    [
        ("x", True, "tt.pointer_range = 32 : i32"),
        ("x", False, ""),
        ("n", True, ""),
        ("n", False, ""),
        ("m", False, ""),
    ],
)
def test_attributes_go(name: str, only_alignment: bool, left: str) -> None:
    names = ["x", "n", "m"]
    text = without_attributes(TEXT, names, name, only_alignment=only_alignment)
    assert text is not None

    def given(source: str) -> list[str]:
        kernel = parse_mlir(source).kernel
        return [] if kernel is None else [attributes.strip("{} ") for _, _, attributes in kernel.parameters]

    wanted = given(TEXT)
    wanted[names.index(name)] = left
    assert given(text) == wanted
    assert text.count("\n") == TEXT.count("\n")


def test_what_cannot_be_found_is_left() -> None:
    assert without_attributes(TEXT, ["x", "n", "m"], "k", only_alignment=False) is None
    assert without_attributes(TEXT, ["x", "n"], "n", only_alignment=False) is None
    assert without_attributes("no IR", ["n"], "n", only_alignment=False) is None


def test_effects() -> None:
    before, after = (("registers", 10), ("ld.global.64", 1)), (("registers", 14), ("ld.global.32", 2))
    assert list(effects(before, after)) == ["10 → 14 registers", "1 → 0 ld.global.64", "0 → 2 ld.global.32"]
    assert list(effects(before, before)) == []
