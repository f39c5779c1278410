"""What torch loads to infer shapes is spared a script that has no symbolic sizes, and is there for one that asks."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch", reason="the virtual GPU stands in for torch's")
# What torch imports and refuses does not hang on the version of Triton.
pytestmark = [pytest.mark.triton, pytest.mark.newest]

# Each line is an operation of a script that checks its kernel, and the shape and strides of its result.
OPERATIONS = """
        RESULTS = [
            (x - y.double(), (64, 96), (96, 1)),
            (x.T + x.T, (96, 64), (1, 96)),
            (x[:, ::2] * 2, (64, 48), (48, 1)),
            (x.T - y.T.contiguous(), (96, 64), (1, 96)),
            (x @ y.T, (64, 64), (64, 1)),
            (torch.softmax(x, -1), (64, 96), (96, 1)),
            (x.norm(), (), ()),
            ((x - y).abs().max(), (), ()),
            (torch.arange(5, device="cuda"), (5,), (1,)),
            (torch.nn.functional.layer_norm(x, (96,)), (64, 96), (96, 1)),
            (torch.nn.functional.cross_entropy(x, torch.zeros(64, dtype=torch.long, device="cuda")), (), ()),
            (torch.nn.functional.scaled_dot_product_attention(q, q, q), (1, 2, 8, 16), (256, 128, 16, 1)),
            (x.sum(0), (96,), (1,)),
            (x.mean(1, keepdim=True), (64, 1), (1, 1)),
            (x.var(1), (64,), (1,)),
            (torch.cat([x, y]), (128, 96), (96, 1)),
            (x == y, (64, 96), (96, 1)),
        ]
"""
SETUP = """
import sys
from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target
with virtual_gpu(Target.parse("cuda:90")):
    import torch
    x, y = torch.randn(64, 96, device="cuda"), torch.rand(64, 96, device="cuda")
    q = torch.randn(1, 2, 8, 16, device="cuda", dtype=torch.float16)
"""


PARTS = (
    OPERATIONS
    + """
        for result, shape, strides in RESULTS:
            assert result.is_cuda and tuple(result.shape) == shape, (tuple(result.shape), shape)
            assert result.stride() == strides, (result.stride(), strides)
        torch.use_deterministic_algorithms(True)
        assert torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(False)
        print([name for name in ("sympy.core", "torch._dynamo", "torch.utils._sympy") if name in sys.modules])
    """,
    """
        shown = []
        for bad in (lambda: x + q, lambda: x @ y, lambda: torch.cat([x, q])):
            try:
                bad()
            except RuntimeError as error:
                shown.append(type(error).__name__)
        print(shown)
    """,
    """
        import sympy
        n = sympy.Symbol("n")
        assert isinstance(n, sympy.Basic) and sympy.expand((n + 1) ** 2) == n**2 + 2 * n + 1
        from torch.fx.experimental.symbolic_shapes import ShapeEnv, guard_or_false
        assert ShapeEnv().__class__.__module__ == "torch.fx.experimental.symbolic_shapes"
        assert guard_or_false(True) and not guard_or_false(3 > 4)
        import torch.fx.experimental.symbolic_shapes as shapes
        print((x + y).shape, sys.modules["torch.fx.experimental.symbolic_shapes"].ShapeEnv is shapes.ShapeEnv)
    """,
)
"""One process does them in this order: torch takes longer to import than all of them."""


@pytest.fixture(scope="module")
def shown() -> list[str]:
    code = SETUP + "".join(textwrap.indent(textwrap.dedent(part), "    ") for part in PARTS)
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def test_checking_a_result_loads_neither_sympy_nor_dynamo(shown: list[str]) -> None:
    assert shown[0] == "[]"


def test_a_mistake_in_shapes_is_still_one(shown: list[str]) -> None:
    assert shown[1] == str(["RuntimeError"] * 3)


def test_a_program_that_uses_symbols_gets_the_real_ones(shown: list[str]) -> None:
    assert shown[2] == "torch.Size([64, 96]) True"
