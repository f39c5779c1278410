"""No text, however it was made, takes the comparison more than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from irscope.analysis.diff.texts import diff_texts
from irscope.ir.mlir.reader import parse_mlir
from tests.analysis.patching import check

N = 4000

TEXTS: dict[str, Callable[[str], str]] = {
    "nested regions": lambda x: f'"a.{x}"() ({{\n' * N + "})\n" * N,
    "unclosed regions": lambda x: f"scf.for %{x} = %a to %b {{\n" * N,
    "unclosed locations": lambda x: f'"a.{x}"()' + " loc(" * N * 5 + "\n",
    "nested locations": lambda x: f'"a.{x}"() : () -> ()' + ' loc("n"(' * N + "))" * N + "\n",
    "doubling aliases": lambda x: (
        "".join(f"#a{n + 1} = [#a{n}, #a{n}]\n" for n in range(200)) + f'"{x}"() {{a = #a200}}\n'
    ),
    "aliases in a ring": lambda x: "".join(f"#a{n} = [#a{(n + 1) % N}]\n" for n in range(N)) + f'"{x}"() {{a = #a7}}\n',
    "many aliases": lambda x: (
        "".join(f"#a{n} = {x}{n}\n" for n in range(N)) + "".join(f'"t"() {{a = #a{n}}}\n' for n in range(N))
    ),
    "one line over and over": lambda x: f'%0 = "t.{x}"(%0) : () -> i32\n%0 = "t.s"(%0) : () -> i32\n' * N,
    "one name in many regions": lambda x: f'"t.r"() ({{\n^bb0(%a: {x}):\n  "t.u"(%a) : () -> ()\n}})\n' * N,
    "many operands": lambda x: '"t.o"(' + ", ".join(f"%{x}{n}" for n in range(N * 5)) + ")\n",
    "a huge result list": lambda x: f"%{x}:999999999 = t.o\n" * 50,
    "open brackets": lambda x: f"t.{x} [(\n" * N,
}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_end(name: str) -> None:
    left, right = TEXTS[name]("f32"), TEXTS[name]("i64")
    start = time.process_time()
    check(diff_texts(left, right, "mlir"))
    for operation in parse_mlir(left).operations[:50]:
        _ = operation.types
    assert time.process_time() - start < 6
