"""The PTX of real compiles means what their TTGIR means; edits of it are reported with a witness."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irscope.machine.ptx_arithmetic import computed
from irscope.machine.ptx_floats import float_computed
from irscope.model.capture import Capture
from irscope.render.text.verdict import render_meaning
from irscope.verify.meaning import LOWERING, verify_lowering, verify_passes
from tests.machine.recorded import SCRIPT, recorded, small_examples
from tests.marks import newest_but
from tests.verify.test_cta import gluon_captures

pytest.importorskip("torch", reason="the examples are recorded with tensors of torch")
pytestmark = [pytest.mark.triton]


# On cuda:100 every day those that are lowered otherwise than on cuda:90, and the simplest.
CASES = ("cuda:90", "cuda:100 few", "cuda:100", "cuda:80")


@pytest.mark.parametrize("case", newest_but(["cuda:90"], *CASES, rare={"cuda:80", "cuda:100"}))
def test_the_ptx_of_a_compile_means_the_same(case: str) -> None:
    target, *arguments = case.split()
    decided: set[str] = set()
    for capture in recorded(SCRIPT, target, *arguments):
        found = verify_lowering(capture)
        assert found.answer != "changed", (capture.name, found.detail)
        if found.answer == "same":
            decided.add(capture.name)
    # Products by mma.sync, wgmma or tcgen05.mma, transpositions through shared memory, reductions, copies of tiles.
    assert decided >= {"add_kernel", "softmax_kernel", "matmul_naive_kernel", "transpose_kernel", "matmul_tma_kernel"}
    assert target == "cuda:100" or "attention_kernel" in decided


def example(target: str, kernel: str) -> Capture:
    return small_examples(target, *["few"] * (target == "cuda:100"))[f"triton {kernel}"]


MORE = SCRIPT.with_name("more_kernels.py")
SPECIALIZED = SCRIPT.parents[1] / "timing" / "specialized.py"


@pytest.mark.newest
@pytest.mark.parametrize("target", ["cuda:90", "cuda:100"])
def test_the_ptx_of_specialised_warps_means_the_same(target: str) -> None:
    (capture,) = recorded(SPECIALIZED, target)
    text = capture.text("ptx")
    assert all(one in text for one in ("setmaxnreg", "cp.async.bulk.tensor", "mbarrier.try_wait"))
    assert verify_lowering(capture).answer == "same"
    # A copy comes too early: there is one buffer for each of three iterations.
    lost, count = re.subn(r"mbarrier\.try_wait\.parity\S+ (\w+), .*;", r"mov.pred \1, -1;", text)
    assert count
    assert verify_lowering(_with_ptx(capture, lost)).answer == "changed"


@pytest.mark.newest
def test_gathers_and_scaled_products_mean_the_same() -> None:
    chosen = [one for one in recorded(MORE, "cuda:100", "few") if one.name in ("rows_by_descriptors", "scaled_dot")]
    found = {(one.name, verify_lowering(one).answer): one.text("ptx") for one in chosen}
    assert "tile::gather4" in found["rows_by_descriptors", "same"]
    assert "tile::scatter4" in found["rows_by_descriptors", "same"]
    assert "block_scale" in found["scaled_dot", "same"]
    assert {answer for _, answer in found} == {"same"}


def test_the_ptx_of_called_functions_means_the_same() -> None:
    (capture,) = recorded(Path(__file__).with_name("called_kernels.py"), "cuda:90")
    text = capture.text("ptx")
    assert text.count("call.uni") == 3
    assert verify_lowering(capture).answer == "same"
    edited = re.sub(r"(st\.param\.b32\s+)\[func_retval0\+4\], (%\w+);", r"\1[func_retval0+4], 1;", text)
    assert edited != text
    assert verify_lowering(_with_ptx(capture, edited)).answer == "changed"


@pytest.mark.newest
def test_a_copy_that_reads_what_is_overwritten_is_not_decided() -> None:
    captures = gluon_captures()
    assert verify_lowering(captures["awaits_its_stores"]).answer == "same"
    found = verify_lowering(captures["overwrites_what_is_stored"])
    assert (found.answer, "how late copies to global memory read" in found.detail) == ("not decided", True)


@pytest.mark.newest
@pytest.mark.parametrize(
    ("target", "pattern"),
    [("cuda:90", r".*mbarrier\.arrive\.expect_tx.*"), ("cuda:100", r"(?s)(.*)(?<=\n)[^\n]*tcgen05\.commit[^\n]*")],
)
def test_a_deadlock_of_the_ptx_alone_is_a_change(target: str, pattern: str) -> None:
    capture = example(target, "matmul_tma_kernel")
    text, count = re.subn(pattern, r"\1" if "(.*)" in pattern else "", capture.text("ptx"), count=1)
    assert count
    found = verify_lowering(_with_ptx(capture, text))
    assert found.answer == "changed"
    assert "it never ends only after the lowering: the wait for phase" in found.detail


def test_a_nan_of_both_is_no_difference() -> None:
    capture = next(one for one in recorded(SCRIPT, "cuda:90") if one.name == "add_kernel")
    record = capture.launch.record
    assert record is not None
    first = next(one for one in record.arguments if one.kind != "scalar")
    values = np.where(np.arange(first.shape[0]) % 3, 1.0, np.nan)
    assert verify_lowering(capture, values={first.path: values}).answer == "same"


# Kernel → what is edited in its PTX, the first time that it matches, and what it becomes; on cuda:90.
PLANTED = (
    ("add_kernel", r"add(\.f32)", r"sub\1"),
    ("add_kernel", r"(ld\.global\S+ .*\[ ?%\w+ \+ )0", r"\g<1>4"),
    # Not its maximum: another one gives the same result.
    ("softmax_kernel", r"add(\.f32)", r"sub\1"),
    ("layer_norm_forward_kernel", r"(shfl\.sync\.bfly\.b32.*, )16, ", r"\g<1>8, "),
    ("transpose_kernel", r"(ld\.shared\S+\s+.*\[%\w+)\]", r"\1+8]"),
    ("layer_norm_forward_kernel", r"(sub\.f32\s+%\w+, )(%\w+), (%\w+)", r"\1\3, \2"),
    ("matmul_naive_kernel", r"(wgmma\.mma_async\S* .*), 1, 1,", r"\1, -1, 1,"),
    ("matmul_naive_kernel", r".*\bst\.global\..*", ""),
    # Half of the elements are not stored: what stands there is no number before the launch either.
    ("add_kernel", r"(shl\.b32\s+%\w+, %\w+, )2;", r"\g<1>3;"),
)
# Target → what is edited in the PTX of matmul_tma_kernel, each time that it matches, and what it becomes.
PLANTED_TILES = (
    ("cuda:90", r"(bulk\.tensor\.2d\.shared\S* .*\{)(%\w+), (%\w+)\}", r"\1\3, \2}"),
    ("cuda:90", r"(tensormap\.replace\.tile\.swizzle_mode\S* .*, 0x)3;", r"\g<1>2;"),
    ("cuda:90", r"(tensormap\.replace\.tile\.global_stride\S* .*, )%\w+;", r"\g<1>384;"),
    ("cuda:90", r"(tensormap\.replace\.tile\.global_dim\S* .*, )%\w+;", r"\g<1>24;"),
    ("cuda:90", r"mbarrier\.try_wait\.parity\S+ (\w+), .*;", r"mov.pred \1, -1;"),
    ("cuda:90", r".*bulk\.tensor\.2d\.global.*", ""),
    ("cuda:100", r"(tcgen05\.mma\S* .*, )%\w+;", r"\g<1>0;"),
    ("cuda:100", r"(tcgen05\.mma\S* \[[^]]*\], )(%\w+), (%\w+)", r"\1\3, \2"),
    ("cuda:100", r"(tcgen05\.ld\S* .*\[%\w+ \+ )0\]", r"\g<1>1]"),
    ("cuda:100", r"mbarrier\.try_wait\.parity\S+ (\w+), .*;", r"mov.pred \1, -1;"),
)


@pytest.mark.newest
@pytest.mark.parametrize(
    ("target", "kernel", "pattern", "edit"),
    [
        *(("cuda:90", *row) for row in PLANTED),
        *((target, "matmul_tma_kernel", *row) for target, *row in PLANTED_TILES),
    ],
)
def test_an_edit_of_the_ptx_is_reported(target: str, kernel: str, pattern: str, edit: str) -> None:
    capture = example(target, kernel)
    text, count = re.subn(pattern, edit, capture.text("ptx"), count=kernel != "matmul_tma_kernel")
    assert count
    verdict = verify_passes(_with_ptx(capture, text), programs=1)
    assert verdict.answer == "changed"
    assert verdict.culprit is not None
    assert verdict.culprit.label == LOWERING
    difference = verdict.culprit.difference
    assert difference is not None
    assert difference.before != difference.after
    assert f"changed  {LOWERING}" in render_meaning(verdict)


@pytest.mark.newest
def test_what_is_no_number_in_both_is_no_difference() -> None:
    capture = small_examples("cuda:90")["triton softmax_kernel"]
    row = next(one for one in capture.launch.record.arguments if one.path == "x_ptr") if capture.launch.record else None
    assert row is not None
    values = np.full(row.shape, np.nan, np.float32)
    assert verify_lowering(capture, values={"x_ptr": values}).answer != "changed"


@pytest.mark.newest
def test_what_is_not_executed_is_not_decided() -> None:
    capture = small_examples("cuda:90")["triton add_kernel"]
    unknown = capture.text("ptx").replace("add.f32", "unheard_of.f32", 1)
    verdict = verify_passes(_with_ptx(capture, unknown), programs=1)
    assert (verdict.answer, verdict.lowering and verdict.lowering.answer) == ("same", "not decided")
    outside = re.sub(r"(st\.global\S+ \[ ?%\w+ \+ )0", r"\g<1>4096000", capture.text("ptx"), count=1)
    assert "stores outside of all tensors" in verify_lowering(_with_ptx(capture, outside)).detail


def _with_ptx(capture: Capture, text: str) -> Capture:
    return capture.with_(
        artifacts=tuple(replace(one, data=text) if one.stage == "ptx" else one for one in capture.artifacts)
    )


def test_instructions_of_64_bits_and_pairs() -> None:
    numbers = np.array([-1166736428584927088, 3, 1 << 62], np.int64)
    by = np.full(3, 63, np.int64)
    assert (computed("shr", ["u64"], [numbers, by]) == [int(one) % 2**64 >> 63 for one in numbers.tolist()]).all()
    factor = np.full(3, -9123216960442729871, np.int64)
    high = [one * int(factor[0]) >> 64 for one in numbers.tolist()]
    assert (computed("mul", ["hi", "s64"], [numbers, factor]) == high).all()
    signs = computed("prmt", ["b32"], [np.array([0x80FF7F]), np.array([0]), np.array([0x9810])])
    assert signs is not None
    assert int(signs[0]) == 0xFF00FF7F
    # cvt.rn.f16x2.f32 d, a, b: b is in the lower half.
    bits = [np.array([one], np.float32).view(np.int32).astype(np.int64) for one in (1.5, -2.0)]
    pair = float_computed("cvt", ["rn", "f16x2", "f32"], bits)
    assert pair is not None
    assert pair.astype(np.uint32).view(np.float16).tolist() == [-2.0, 1.5]
    # add.rn.f32.bf16 d, a, c, as for cuda:100: a is narrow, c and d are wide.
    narrow, wide = np.array([0x3FC0]), np.array([np.float32(0.1)]).view(np.int32).astype(np.int64)
    mixed = float_computed("add", ["rn", "f32", "bf16"], [narrow, wide])
    assert mixed is not None
    assert mixed.astype(np.uint32).view(np.float32)[0] == np.float32(1.5) + np.float32(0.1)


def _register(value: float, kind: type[np.floating[Any]]) -> NDArray[np.int64]:
    return np.array([value], kind).view(f"i{np.dtype(kind).itemsize}").astype(np.int64)


@pytest.mark.parametrize(
    ("suffixes", "value", "expected"),
    [
        (["rzi", "s32", "f32"], -3.7, -3),
        (["rzi", "s32", "f32"], 1e20, 2**31 - 1),
        (["rzi", "u32", "f32"], -1.0, 0),
        (["rni", "s32", "f32"], 2.5, 2),
        (["rzi", "s64", "f64"], 9.2e18, int(9.2e18)),
        # The next float64 below 2^63, and what is beyond.
        (["rzi", "s64", "f64"], np.nextafter(2.0**63, 0), 2**63 - 1024),
        (["rzi", "s64", "f64"], 1e300, 2**63 - 1),
        (["rzi", "u64", "f64"], 2.0**63, -(2**63)),
        (["rn", "sat", "s32", "f32"], 1.0, None),
        (["rna", "tf32", "f32"], 1 + 2.0**-11, 0x3F802000),
        (["rna", "tf32", "f32"], np.nan, 0x7FC00000),
        (["rn", "tf32", "f32"], 1.0, None),
        # Both halves saturate to 448.
        (["rn", "satfinite", "e4m3x2", "f32"], 1e9, 0x7E7E),
    ],
)
def test_conversions(suffixes: list[str], value: float, expected: int | None) -> None:
    """By "PTX ISA", the instruction cvt; None for what is not computed."""
    kind = np.float64 if suffixes[-1] == "f64" else np.float32
    operands = [_register(value, kind)] * (2 if suffixes[-2].endswith("x2") else 1)
    found = float_computed("cvt", suffixes, operands)
    assert (None if found is None else int(found[0])) == expected


@pytest.mark.parametrize("suffixes", [["rm", "f32"], ["rn", "relu", "f16x2"], ["nan", "xorsign", "abs", "f32"]])
def test_modifiers_that_are_not_known_are_not_computed(suffixes: list[str]) -> None:
    assert float_computed("min" if "abs" in suffixes else "add", suffixes, [np.array([0]), np.array([0])]) is None
