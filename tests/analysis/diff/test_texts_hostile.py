"""No text, however it was made, takes the comparison more than linear work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope.analysis.diff.texts import diff_texts
from irscope.ir.mlir.reader import parse_mlir
from tests.analysis.patching import check
from tests.work import MEASURES, Measure

TEXTS: dict[str, Callable[[str, int], str]] = {
    "nested regions": lambda x, n: f'"a.{x}"() ({{\n' * n + "})\n" * n,
    "unclosed regions": lambda x, n: f"scf.for %{x} = %a to %b {{\n" * n,
    "unclosed locations": lambda x, n: f'"a.{x}"()' + " loc(" * n * 5 + "\n",
    "nested locations": lambda x, n: f'"a.{x}"() : () -> ()' + ' loc("n"(' * n + "))" * n + "\n",
    "doubling aliases": lambda x, n: (
        "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(n)) + f'"{x}"() {{a = #a{n}}}\n'
    ),
    "aliases in a ring": lambda x, n: (
        "".join(f"#a{i} = [#a{(i + 1) % n}]\n" for i in range(n)) + f'"{x}"() {{a = #a7}}\n'
    ),
    "many aliases": lambda x, n: (
        "".join(f"#a{i} = {x}{i}\n" for i in range(n)) + "".join(f'"t"() {{a = #a{i}}}\n' for i in range(n))
    ),
    "one line over and over": lambda x, n: f'%0 = "t.{x}"(%0) : () -> i32\n%0 = "t.s"(%0) : () -> i32\n' * n,
    "one name in many regions": lambda x, n: f'"t.r"() ({{\n^bb0(%a: {x}):\n  "t.u"(%a) : () -> ()\n}})\n' * n,
    "many operands": lambda x, n: '"t.o"(' + ", ".join(f"%{x}{i}" for i in range(n * 5)) + ")\n",
    "a huge result list": lambda x, n: f"%{x}{n}:999999999 = t.o\n" * (n // 40),
    "open brackets": lambda x, n: f"t.{x} [(\n" * n,
}


@pytest.mark.parametrize("work", MEASURES)
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_take_linear_work(name: str, work: Measure) -> None:
    def run(count: int) -> None:
        left, right = TEXTS[name]("f32", count), TEXTS[name]("i64", count)
        check(diff_texts(left, right, "mlir"))
        for operation in parse_mlir(left).operations[:50]:
            _ = operation.types

    assert work.is_linear(run, unit=25)
