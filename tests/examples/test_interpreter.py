"""Run the examples on the CPU through Triton's interpreter, at small and odd sizes, and check them against torch."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# What the child runs before its cases: `load` takes one configuration where the autotuner would time several on a GPU.
PRELUDE = """
import importlib.util, json, math, pathlib, sys
import torch

torch.use_deterministic_algorithms(True)  # torch.empty fills with NaN: an element left unwritten shows
examples, *cases = sys.argv[1:]


def load(name, configurations={}):
    spec = importlib.util.spec_from_file_location(name, pathlib.Path(examples, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kernel, blocks in configurations.items():
        tuner = getattr(module, kernel)
        tuner.configs = tuner.configs[:1]
        tuner.configs[0].kwargs.update(blocks)
    return module


def record(name, out, reference):
    results[name] = float((out.double() - reference).norm() / reference.norm()) if out.isfinite().all() else None


def random(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


half = torch.float16
for case in cases:
    example, _, code = case.partition("\\n")
    torch.manual_seed(0)
    results = {}
    exec(code, globals())
    print(json.dumps([example, results]), flush=True)
"""

CASES = {
    "vector_add": """
module = load("vector_add")
for name, pair in {
    "one": random(2, 1), "odd": random(2, 2049), "strided": random(2, 3001)[:, ::3],
    "float16": random(2, 100, dtype=half),
}.items():
    x, y = pair.unbind()
    record(name, module.vector_add(x, y), (x + y).double())
one = random(1).expand(100)
record("one number for all", module.vector_add(x.float(), one), x.double() + one.double())
""",
    "matrix_copy": """
module = load("matrix_copy")
for name, x in {
    "one": random(1, 1), "odd": random(33, 259), "transposed": random(130, 65).T, "strided": random(70, 301)[::2, ::3],
    "expanded": random(1, 40).expand(50, 40),
}.items():
    record(name, module.matrix_copy(x), x.double())
""",
    "matrix_transpose": """
module = load("matrix_transpose")
for name, x in {
    "one": random(1, 1), "odd": random(65, 131), "transposed": random(130, 65).T, "strided": random(70, 301)[::2, ::3],
}.items():
    record(name, module.matrix_transpose(x), x.T.double())
""",
    "softmax": """
module = load("softmax")
for name, x in {
    "one column": random(3, 1), "odd": random(5, 777), "transposed": random(130, 7).T,
    "strided": random(10, 301)[::2, ::3], "large": 1000 * random(4, 50),
}.items():
    record(name, module.softmax(x), x.double().softmax(dim=1))
""",
    "matmul": """
module = load("matmul", {"matmul_grouped_kernel": {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 2}})
for name, (a, b) in {
    "one": (random(1, 1, dtype=half), random(1, 1, dtype=half)),
    "odd": (random(131, 75, dtype=half), random(75, 201, dtype=half)),
    "even k": (random(131, 64, dtype=half), random(64, 201, dtype=half)),
    "transposed": (random(70, 50, dtype=half).T, random(90, 70, dtype=half).T),
    "strided": (random(50, 140, dtype=half)[:, ::2], random(140, 90, dtype=half)[::2]),
}.items():
    record(name + ", naive", module.matmul_naive(a, b), a.double() @ b.double())
    record(name + ", grouped", module.matmul(a, b), a.double() @ b.double())
""",
    "batched_matmul": """
module = load("batched_matmul")
for name, (a, b) in {
    "one": (random(1, 1, 1, dtype=half), random(1, 1, 1, dtype=half)),
    "odd": (random(5, 35, 41, dtype=half), random(5, 41, 33, dtype=half)),
    "transposed": (random(6, 20, 30, dtype=half).mT, random(6, 25, 20, dtype=half).mT),
    "expanded": (random(7, 20, 30, dtype=half), random(30, 25, dtype=half).expand(7, 30, 25)),
}.items():
    record(name, module.batched_matmul(a, b), a.double() @ b.double())
""",
    "mul_relu_backward": """
module = load("mul_relu_backward")
for name, (x, y, dz) in {
    "one": (torch.ones(1), torch.ones(1), random(1, 1)),
    "odd": (random(131), random(301), random(301, 131)),
    "transposed": (random(60), random(70), random(60, 70).T),
    "strided": (random(120)[::2], random(140)[::2], random(70, 120)[:, ::2]),
}.items():
    x64, y64 = x.double().requires_grad_(), y.double()
    torch.relu(x64[None, :] * y64[:, None]).backward(dz.double())
    record(name, module.mul_relu_backward(x, y, dz), x64.grad)
""",
    "flash_attention_1d": """
module = load("flash_attention_1d")
for name, (q, k, v) in {
    "one": (random(1), random(1), random(1)),
    "odd": (random(67), random(333), random(333)),
    "strided": (random(40)[::2], random(300)[::3], random(200)[::2]),
    "large": (100 * random(30), 100 * random(90), random(90)),
}.items():
    reference = torch.softmax(q.double()[:, None] * k.double(), dim=1) @ v.double()
    record(name, module.attention_1d(q, k, v), reference)
""",
    "flash_attention": """
module = load("flash_attention", {"attention_kernel": {"BLOCK_M": 64, "BLOCK_N": 32}})
for name, (nq, nk, d) in {
    "one": (1, 1, 16), "odd": (131, 75, 40), "more keys": (33, 129, 32), "even": (128, 128, 32),
}.items():
    for causal in (False, True):
        q = random(2, nq, 2, d, dtype=half).transpose(1, 2)
        k, v = (random(2, nk, 2, d, dtype=half).transpose(1, 2) for _ in range(2))
        scores = q.double() @ k.double().mT / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.ones(nq, nk, dtype=torch.bool).triu(1), -math.inf)
        record(f"{name}, causal {causal}", module.attention(q, k, v, causal), scores.softmax(-1) @ v.double())
""",
    "cross_entropy": """
module = load("cross_entropy")
for name, logits in {
    "one class": random(3, 1) + 1, "odd": random(5, 20_001), "transposed": random(130, 7).T,
    "large": 1000 * random(4, 50), "float16": random(4, 9_000, dtype=half),
}.items():
    target = torch.randint(logits.shape[1], logits.shape[:1])
    target[1] = -100
    reference = torch.nn.functional.cross_entropy(logits.double(), target, reduction="none")
    out = module.cross_entropy(logits, target)
    record(name, out + 1, reference + 1)
""",
    "matmul_tma": """
small = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 2}
for split in (1, 2):
    module = load("matmul_tma", {"matmul_tma_kernel": small | {"SPLIT_STORE": split}})
    for name, (a, b) in {
        "odd": (random(131, 80, dtype=half)[:, :75], random(75, 208, dtype=half)[:, :201]),
        "transposed": (random(70, 56, dtype=half).T, random(90, 80, dtype=half)[:, :70].T),
    }.items():
        record(f"{name}, {split}", module.matmul(a, b), a.double() @ b.double())
""",
    "layer_norm": """
module = load("layer_norm")
for name, x in {"odd": random(21, 77), "transposed": random(50, 7).T, "one row": random(1, 100)}.items():
    leaves = [x.requires_grad_(), random(x.shape[1]).requires_grad_(), random(x.shape[1]).requires_grad_()]
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    dout = random(*x.T.shape).T
    out = module.layer_norm(*leaves)
    reference = torch.nn.functional.layer_norm(wide[0], wide[1].shape, wide[1], wide[2])
    ours = [out.detach(), *torch.autograd.grad(out, leaves, dout)]
    theirs = [reference.detach(), *torch.autograd.grad(reference, wide, dout.double())]
    for part, mine, other in zip(("out", "dx", "dweight", "dbias"), ours, theirs):
        record(f"{name}, {part}", mine, other)
""",
}

TOLERANCES = {"matmul": 1e-3, "batched_matmul": 1e-3, "flash_attention": 2e-3, "matmul_tma": 1e-3, "vector_add": 1e-3}


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the interpreter needs torch")
def test_examples_agree_with_torch_on_the_interpreter():
    # In one process: torch takes longer to import than most of them to run.
    names = list(CASES)
    child = subprocess.run(
        [sys.executable, "-c", PRELUDE, str(EXAMPLES), *(f"{name}\n{CASES[name]}" for name in names)],
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    found = dict(json.loads(line) for line in child.stdout.splitlines())
    assert list(found) == names
    for name, errors in found.items():
        tolerance = TOLERANCES.get(name, 1e-5)
        assert errors, name
        assert {case: error for case, error in errors.items() if error is None or error > tolerance} == {}, name
