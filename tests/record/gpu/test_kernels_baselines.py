"""The empty plan's kernel in other orders and roundings: ptxas takes each, and each is another program."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from irscope.record.gpu.kernels import ROUNDINGS, other_baselines, rounded_otherwise


def test_only_arithmetic_rounds_otherwise_and_what_makes_integers_stays() -> None:
    ptx = (
        "\tadd.f32 \t%r3, %r1, %r2;\n\tmov.b32 \t%r7, 0f4B400000;\n\tadd.f32 \t%r4, %r3, %r7;\n"
        "\tadd.f32 \t%r5, %r3, 0f4B400001;\n\tmax.f32 \t%r6, %r1, %r2;\n\tadd.s32 \t%r8, %r9, 1;\n"
        "\tcvt.rn.bf16x2.f32 \t%r1, %r2, %r3;\n\tdiv.full.f32 \t%r1, %r2, %r3;\n"
    )
    changed = {
        tuple(
            left
            for left, right in zip(ptx.splitlines(), rounded_otherwise(ptx, seed).splitlines(), strict=True)
            if left != right
        )
        for seed in range(20)
    }
    assert changed == {("\tadd.f32 \t%r3, %r1, %r2;",)}


@pytest.mark.triton
def test_every_other_baseline_compiles_and_is_another_program() -> None:
    pytest.importorskip("torch", reason="the script with the kernel imports it")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from irscope.record.gpu.launch import compile_again

    path = Path(__file__).parents[2] / "gpu" / "scripts" / "ten_kernels.py"
    spec = importlib.util.spec_from_file_location("ten_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    types = dict.fromkeys(("x_ptr", "w_ptr", "b_ptr", "out_ptr"), "*bf16") | {"stride": "i32", "columns": "i32"}
    source = ASTSource(module.layer_norm_kernel, {**types, "BLOCK": "constexpr"}, {"BLOCK": 1024})
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    options = {key: getattr(kernel.metadata, key) for key in ("num_warps", "num_stages", "enable_fp_fusion")}
    others = list(other_baselines(kernel, options, lambda own: compile_again(kernel, options | own)))
    labels = [label for label, _ in others]
    assert labels[:3] == ["8 warps", "2 warps", "no fused multiply-add"]
    assert labels[3:] == [f"rounding {number}" for number in range(1, ROUNDINGS + 1)]
    assert len({other.kernel for _, other in others} | {kernel.kernel}) == len(others) + 1
