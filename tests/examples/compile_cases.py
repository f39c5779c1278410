"""Compile the examples for targets without a GPU: `python compile_cases.py cuda:90 [NAME...] [cuda:80 [NAME...]]`.

It prints a line a kernel. Torch is stood in for, so any interpreter with Triton will do, and none spends a
second on importing it.
"""

import importlib.util
import math
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = ("cuda:80", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942", "hip:gfx950")


@dataclass(frozen=True)
class Case:
    """One kernel with everything its compile needs.

    `signature` names the runtime arguments in order: `*fp16:16` is a pointer to 16-byte aligned float16, `i32:16` a
    multiple of 16, `1` the integer one (a unit stride, which Triton makes a constant).
    """

    name: str
    script: str
    kernel: str
    signature: str
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


def attention_case(d: int, causal: bool, m: int, n: int, warps: int, stages: int) -> Case:
    strides = "i32:16 i32:16 i32:16 1 " * 4
    blocks = {"D": d, "BLOCK_M": m, "BLOCK_N": n, "BLOCK_D": d, "CAUSAL": causal}
    name = f"flash_attention_{d}{'_causal' if causal else ''}_{m}_{n}_{warps}_{stages}"
    signature = f"*fp16:16 *fp16:16 *fp16:16 *fp16:16 i32 i32:16 i32:16 fp32 {strides}"
    return Case(
        name, "flash_attention", "attention_kernel", signature, blocks, {"num_warps": warps, "num_stages": stages}
    )


def tma_case(m: int, n: int, k: int, warps: int, stages: int, split: int, transposed: bool = False) -> Case:
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "SPLIT_STORE": split, "FLATTEN": True}
    blocks |= {"A_TRANSPOSED": transposed, "B_TRANSPOSED": transposed, "WARP_SPECIALIZE": False}
    name = f"matmul_tma_{m}_{n}_{k}_{warps}_{stages}_{split}{'_transposed' if transposed else ''}"
    signature = "*fp16:16 *fp16:16 *fp16:16 i32:16 i32:16 i32:16 i32:16 i32:16 i32:16"
    return Case(name, "matmul_tma", "matmul_tma_kernel", signature, blocks, {"num_warps": warps, "num_stages": stages})


def matmul_case(m: int, n: int, k: int, warps: int, stages: int, even: bool = True) -> Case:
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "EVEN_K": even}
    name = f"matmul_{m}_{n}_{k}_{warps}_{stages}{'' if even else '_odd_k'}"
    return Case(name, "matmul", "matmul_grouped_kernel", MATMUL, blocks, {"num_warps": warps, "num_stages": stages})


MATMUL = "*fp16:16 *fp16:16 *fp16:16 i32:16 i32:16 i32:16 i32:16 1 i32:16 1 i32:16 1"
TILE = "*fp32:16 *fp32:16 i32:16 i32:16 i32:16 1 i32:16 1"
CASES = (
    Case("vector_add", "vector_add", "add_kernel", "*fp32:16 *fp32:16 *fp32:16 i32:16 1 1", {"BLOCK": 1024}),
    Case("matrix_copy", "matrix_copy", "copy_kernel", TILE, {"BLOCK_M": 32, "BLOCK_N": 128}),
    Case("matrix_transpose", "matrix_transpose", "transpose_kernel", TILE, {"BLOCK_M": 64, "BLOCK_N": 64}),
    Case("softmax_1024", "softmax", "softmax_kernel", "*fp32:16 *fp32:16 i32:16 i32:16 1 i32:16 1", {"BLOCK": 1024}),
    Case(
        "softmax_8192", "softmax", "softmax_kernel", "*fp32:16 *fp32:16 i32:16 i32:16 1 i32:16 1", {"BLOCK": 8192},
        {"num_warps": 8},
    ),
    Case(
        "matmul_naive", "matmul", "matmul_naive_kernel", MATMUL, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32},
        {"num_warps": 8},
    ),
    matmul_case(128, 256, 64, 8, 3),
    matmul_case(128, 256, 64, 8, 4),
    matmul_case(128, 128, 64, 8, 3),
    matmul_case(128, 128, 64, 4, 3),
    matmul_case(128, 128, 64, 8, 2),
    matmul_case(64, 64, 64, 4, 4),
    matmul_case(128, 256, 64, 8, 3, even=False),
    Case(
        "batched_matmul", "batched_matmul", "batched_matmul_kernel",
        "*fp16:16 *fp16:16 *fp16:16 i32:16 i32:16 i32:16 i32:16 i32:16 i32:16 1 i32:16 i32:16 1 i32:16 i32:16 1",
        {"BLOCK_B": 4, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
    ),
    Case(
        "mul_relu_backward", "mul_relu_backward", "mul_relu_backward_kernel",
        "*fp32:16 *fp32:16 *fp32:16 *fp32:16 i32:16 i32:16 1 1 i32:16 1",
        {"ROWS": 256, "BLOCK_M": 32, "BLOCK_N": 128},
    ),
    Case(
        "flash_attention_1d", "flash_attention_1d", "attention_1d_kernel",
        "*fp32:16 *fp32:16 *fp32:16 *fp32:16 i32:16 i32:16 1 1 1", {"BLOCK_Q": 64, "BLOCK_K": 64}, {"num_warps": 2},
    ),
    attention_case(64, False, 128, 64, 4, 3),
    attention_case(64, True, 128, 64, 4, 3),
    attention_case(64, True, 128, 64, 8, 3),
    attention_case(64, True, 64, 64, 4, 2),
    attention_case(128, False, 128, 128, 8, 2),
    attention_case(128, True, 128, 128, 8, 2),
    attention_case(128, True, 128, 64, 8, 3),
    attention_case(128, True, 64, 64, 4, 2),
    Case(
        "cross_entropy", "cross_entropy", "cross_entropy_kernel", "*bf16:16 *i64:16 *fp32:16 i32:16 i32 i32:16 1 1",
        {"BLOCK_R": 4, "BLOCK_C": 2048}, {"num_warps": 8},
    ),
    tma_case(128, 256, 64, 8, 3, 1),
    tma_case(128, 256, 64, 8, 4, 2),
    tma_case(128, 128, 64, 8, 4, 1),
    tma_case(128, 64, 64, 4, 3, 1),
    tma_case(128, 256, 64, 8, 3, 1, transposed=True),
    Case("gluon_transpose", "gluon_transpose", "transpose_kernel", TILE, {"BLOCK": 64, "NUM_WARPS": 4}),
    Case(
        "layer_norm_forward", "layer_norm", "layer_norm_forward_kernel",
        "*bf16:16 *bf16:16 *bf16:16 *bf16:16 *fp32:16 *fp32:16 i32:16 fp32 i32:16 1 1 1 i32:16 1",
        {"BLOCK": 8192}, {"num_warps": 8},
    ),
    Case(
        "layer_norm_backward", "layer_norm", "layer_norm_backward_kernel",
        "*bf16:16 *bf16:16 *bf16:16 *fp32:16 *fp32:16 *bf16:16 *fp32:16 *fp32:16 i32:16 i32:16 "
        "i32:16 1 1 i32:16 1 i32:16 1",
        {"BLOCK": 8192}, {"num_warps": 16},
    ),
    matmul_case(64, 32, 32, 4, 3),
    attention_case(32, True, 64, 32, 4, 2),
    tma_case(64, 32, 64, 4, 3, 1),
)  # fmt: skip
"""Every kernel of the examples, with the sizes that its script takes by default, and the dearest smaller than that."""


def _elements(case: Case) -> int:
    return math.prod(size for name, size in case.constants.items() if name.startswith(("BLOCK", "ROWS")))


ONE_CASE_A_KERNEL = {(case.script, case.kernel): case.name for case in sorted(CASES, key=_elements, reverse=True)}
"""The name of the smallest case of each kernel: the same passes on less code."""


class TorchStandIn(types.ModuleType):
    """A module all of whose names are empty classes: enough to import a script whose functions are not called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        standing_in = TorchStandIn(name) if name.islower() else type(name, (), {"Function": object})
        setattr(self, name, standing_in)
        return standing_in


def load(script: str) -> types.ModuleType:
    """Import an example by its file's name."""
    spec = importlib.util.spec_from_file_location(script, EXAMPLES / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"torch": TorchStandIn("torch")}):
        spec.loader.exec_module(module)
    return module


def compile_case(case: Case, target: str) -> Any:
    """Return the kernel that Triton compiled for `target` (`cuda:90`, `hip:gfx942`)."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

    backend, arch = target.split(":")
    warp_size = 64 if backend == "hip" else 32
    kernel = getattr(load(case.script), case.kernel)
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    constants = dict(case.constants)
    if "WARP_SIZE" in kernel.arg_names:
        constants["WARP_SIZE"] = warp_size
    words = case.signature.split()
    runtime_names = [name for name in kernel.arg_names if name not in constants]
    if len(words) != len(runtime_names):
        raise ValueError(f"{case.name}: {len(words)} types for the arguments {runtime_names}")
    signature = dict.fromkeys(kernel.arg_names, "constexpr")
    attributes = {}
    for name, word in zip(runtime_names, words, strict=True):
        if word == "1":
            constants[name] = 1
            continue
        signature[name], _, aligned = word.partition(":")
        if aligned:
            attributes[(kernel.arg_names.index(name),)] = [["tt.divisibility", 16]]
    source = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    return triton.compile(
        source(fn=kernel, signature=signature, constexprs=constants, attrs=attributes),
        target=GPUTarget(backend, int(arch) if backend == "cuda" else arch, warp_size),
        options=case.options,
    )


def main() -> None:
    wanted: dict[str, list[str]] = {}
    for word in sys.argv[1:]:
        if word in TARGETS:
            wanted[word] = []
        else:
            wanted[[*wanted][-1]].append(word)
    failed = False
    for target, names in wanted.items():
        for case in CASES:
            if names and case.name not in names:
                continue
            try:
                compiled = compile_case(case, target)
            except Exception as error:
                failed = True
                print(f"{case.name} for {target}: FAILED: {type(error).__name__}: {error}")
            else:
                print(f"{case.name} for {target}: shared {compiled.metadata.shared} bytes")
    sys.exit(failed)


if __name__ == "__main__":
    main()
