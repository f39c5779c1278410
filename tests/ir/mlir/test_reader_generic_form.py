"""What the reader says of each operation, against MLIR's own generic form of the same module.

The generic form names every operand, type, successor and attribute in one uniform syntax; the compiler prints it of the
very text that was recorded. Both texts are read, and every operation compared, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from irscope.ir.mlir.reader import MlirModule, Operation, parse_mlir
from irscope.model.capture import Capture
from irscope.target import Target
from tests.examples import compile_cases
from tests.recording import record_without_sass, without_torch

EXAMPLES = Path(__file__).parents[3] / "examples"
CASES = [
    ("flash_attention_32_causal_64_32_4_2", "cuda:90"), ("matmul_tma_128_256_64_8_4_2", "cuda:100"),
    ("layer_norm_forward", "hip:gfx942"), ("matmul_naive", "hip:gfx950"), ("gluon_transpose", "cuda:80"),
]  # fmt: skip
WARPS = {"gluon_transpose"}
"""Whose kernels have the threads of a warp as a constant."""
KERNELS = {case.name: case for case in compile_cases.CASES}
ALL = [
    (name, target)
    for name in sorted(KERNELS)
    for target in ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")
]
# Of how many operands each group has, and of the type of a function: both follow from the rest, which is compared.
DERIVED = {"operandSegmentSizes", "resultSegmentSizes", "case_operand_segments", "op_bundle_sizes", "function_type"}


def compared(module: MlirModule) -> list[Operation]:
    """Its operations, but for those that the custom form leaves out: ends of regions without values, partitions."""
    return [
        one
        for one in module.walk()
        if one.name != "ttg.warp_specialize.partitions" and not (one.name == "scf.yield" and not one.operands)
    ]


def types(module: MlirModule, kinds: Iterator[object]) -> list[str]:
    return [module.resolve(str(kind)).replace(" ", "") for kind in kinds]


def check(custom: str, generic: str) -> int:
    """Compare a module in both forms; returns how many operations it has."""
    left, right = parse_mlir(custom), parse_mlir(generic)
    assert not left.unknown
    mine, theirs = compared(left), compared(right)
    assert [one.name for one in mine] == [one.name for one in theirs]
    for one, other in zip(mine, theirs, strict=True):
        assert len(one.results) == len(other.results), one.text
        assert types(left, iter(one.result_types)) == types(right, iter(other.result_types)), one.text
        assert types(left, iter(one.operand_types)) == types(right, iter(other.operand_types)), one.text
        assert [len(values) for _, values in one.branches] == [len(values) for _, values in other.branches], one.text
        for name in ("mask", "other", "ptr", "indices", "coord", "token", "pred", "acc_dep", "barriers", "src"):
            assert len(one.operand_group(name)) == len(other.operand_group(name)), (name, one.text)
        if one.name != "ttg.warp_specialize":
            check_regions(left, right, one, other)
        for name in {*one.attribute_texts, *other.attribute_texts} - DERIVED:
            assert same_attribute(left, right, one, other, name), (name, one.text, other.text)
    return len(mine)


def check_regions(left: MlirModule, right: MlirModule, one: Operation, other: Operation) -> None:
    mine, theirs = ([[*region.blocks] for region in each.regions if region.blocks] for each in (one, other))
    assert [len(blocks) for blocks in mine] == [len(blocks) for blocks in theirs], one.text
    for blocks, others in zip(mine, theirs, strict=True):
        for block, counterpart in zip(blocks, others, strict=True):
            own = types(left, (left.type_of(value) for value in block.arguments))
            assert own == types(right, (right.type_of(value) for value in counterpart.arguments)), block.header


def same_attribute(left: MlirModule, right: MlirModule, one: Operation, other: Operation, name: str) -> bool:
    texts = left.resolve(one.attribute_texts.get(name, "")), right.resolve(other.attribute_texts.get(name, ""))
    return texts[0] == texts[1] or str(one.attribute(name)) == str(other.attribute(name))


def texts_of(capture: Capture) -> list[str]:
    """Every MLIR text of a capture, each once."""
    found = {stage: capture.text(stage) for stage in ("source", "ttir", "glir", "ttgir") if stage in capture.stages}
    snapshots = [one.text for one in capture.passes() if one.text is not None and "\ndefine " not in one.text]
    return list(dict.fromkeys((*found.values(), *snapshots)))


def generic_forms(texts: list[str], folder: Path) -> list[str]:
    """What the compiler prints of each text in the generic form."""
    from irscope.record.triton import api

    context = api.new_context()
    forms: list[str] = []
    for text in texts:
        file = folder / "module.mlir"
        file.write_text(text, "utf-8")
        forms.append(api.printed(api.parse_module(file, context), generic=True))
    return forms


def check_example(example: str, target: str, folder: Path) -> None:
    case = KERNELS[example]
    capture = record_without_sass(
        without_torch(EXAMPLES / f"{case.script}.py", folder),
        kernel=case.kernel,
        signature=", ".join(case.signature.split()),
        constexprs=case.constants | ({"WARP_SIZE": Target.parse(target).warp_size} if case.script in WARPS else {}),
        options=case.options,
        target=target,
        layouts=False,
    )
    texts = texts_of(capture)
    assert sum(check(*pair) for pair in zip(texts, generic_forms(texts, folder), strict=True)) > 100


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize(("example", "target"), CASES)
def test_every_operation_is_read_as_mlir_reads_it(example: str, target: str, tmp_path: Path) -> None:
    check_example(example, target, tmp_path)


@pytest.mark.triton
@pytest.mark.exhaustive
@pytest.mark.parametrize(("example", "target"), ALL)
def test_every_operation_of_every_example(example: str, target: str, tmp_path: Path) -> None:
    check_example(example, target, tmp_path)
