"""Types of results, against those that Triton's own parser gives them."""

from __future__ import annotations

from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.short_types import result_types
from irscope.ir.mlir.types import read_types, written_result_types
from irscope.store.file import load
from tests.analysis.snapshots import snapshots

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"


def test_results_without_an_arrow_have_the_types_of_the_operands() -> None:
    text = "%0:2 = ttng.warp_group_dot_wait %a, %b {pendings = 0 : i32} : tensor<8xf32, #mma>, !ttg.memdesc<8xf16, #s>"
    types = written_result_types("ttng.warp_group_dot_wait", text, 2)
    assert types == ("tensor<8xf32, #mma>", "!ttg.memdesc<8xf16, #s>")
    assert [kind.encoding for one in types for kind in read_types(one)] == ["#mma", "#s"]


def texts() -> list[tuple[str, str]]:
    """(name, module) of the samples that Triton 3.9 prints."""
    captures = [(path.stem, load(path).text("ttgir")) for path in sorted(LAYOUTS.glob("*.irscope"))]
    return captures + [(f"softmax {title}", text) for title, text in snapshots("softmax.cuda90") if "tt.func" in text]


@pytest.mark.triton
def test_types_are_those_that_triton_reads(tmp_path: Path) -> None:
    if not metadata.version("triton").startswith("3.9"):
        pytest.skip("the samples are of Triton 3.9, whose dialects other versions may not read")
    compared = 0
    for name, text in texts():
        module = parse_mlir(text)
        ours: Counter[tuple[str, ...]] = Counter()
        for operation in module.walk():
            own = f"{operation.text}\n{operation.closing}" if operation.closing else operation.text
            types = result_types(operation.name, own, len(operation.results))
            ours[(operation.name, *map(module.resolve, types))] += 1
        theirs = types_of_triton(text, tmp_path / "module.mlir")
        # Printing leaves out terminators without operands, which parsing puts back.
        theirs[("scf.yield",)] = ours[("scf.yield",)]
        assert ours - theirs == theirs - ours == Counter(), name
        compared += sum(ours.values())
    assert compared > 1000


def types_of_triton(text: str, path: Path) -> Counter[tuple[str, ...]]:
    from triton._C.libtriton import amd, ir, nvidia

    path.write_text(text, "utf-8")
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    found: Counter[tuple[str, ...]] = Counter()

    def add(operation: Any) -> None:
        results = (operation.get_result(index) for index in range(operation.get_num_results()))
        found[(operation.get_name(), *(str(one.get_type()) for one in results))] += 1

    module.walk(add)
    return found
