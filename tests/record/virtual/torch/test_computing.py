"""Scripts on the virtual GPU that computes: their data, devices, gradients, random numbers, and what is refused."""

from __future__ import annotations

import pytest

from irscope.record.process.requests import request_for
from irscope.record.process.session import Recording, record_request

pytest.importorskip("torch", reason="the programs make tensors of torch's")
pytestmark = pytest.mark.triton

HEAD = """
import torch, triton, triton.language as tl

@triton.jit
def scale(x_ptr, out_ptr, n, factor, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

def scaled(x, factor):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), factor, B=256)
    return out
"""


def ran(tmp_path, body: str, target: str = "cuda:90") -> Recording:
    script = tmp_path / "script.py"
    script.write_text(HEAD + body, "utf-8")
    request = request_for(script, targets=(target,), disassemble=False, layouts=False, snapshots="none", computes=True)
    return record_request(request)


def ended(recording: Recording) -> str:
    (end,) = recording.script_ends
    return end.message if end.stopped else ""


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_data_and_gradients_are_real(tmp_path, target):
    recording = ran(
        tmp_path,
        """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return scaled(x, factor)

    @staticmethod
    def backward(ctx, gradient):
        assert gradient.is_cuda
        return scaled(gradient.contiguous(), ctx.factor), None

x = torch.arange(1000, device="cuda", dtype=torch.float32).requires_grad_()
out = Scale.apply(x, 3.0)
torch.testing.assert_close(out, x * 3)
assert out.sum().item() == 3 * sum(range(1000))
out.backward(torch.ones_like(out))
assert x.grad.tolist() == [3.0] * 1000
# What the data decide decides launches.
few = x.detach()[x.detach() > 900].contiguous()
assert scaled(few, 2.0).cpu().numpy().max() == 1998
assert x.device == torch.device("cuda", 0) and x.cpu().device.type == "cpu"
""",
        target,
    )
    assert ended(recording) == ""
    # Of one specialisation each: with and without a factor of 1, a length that is divisible by 16 or not.
    assert {one.name for one in recording.captures} == {"scale"}
    assert not any("placeholder" in note.lower() for note in recording.notes)


@pytest.mark.newest
def test_a_wrong_result_fails_the_script_s_own_check(tmp_path):
    recording = ran(
        tmp_path,
        """
x = torch.ones(300, device="cuda")
torch.testing.assert_close(scaled(x, 3.0), x * 4)
""",
    )
    assert "Tensor-likes are not close" in ended(recording)


@pytest.mark.newest
def test_devices_are_told_apart(tmp_path):
    recording = ran(
        tmp_path,
        """
host = torch.ones(300)
assert host.device.type == "cpu" and (host + 1).device.type == "cpu" and not host.is_cuda
copy = host.cuda()
copy += 1
assert host.sum().item() == 300 and copy.to("cpu").sum().item() == 600
with torch.device("cuda"):
    assert torch.zeros(3).is_cuda
torch.cuda.manual_seed(1)
first = torch.randn(4, device="cuda", generator=torch.Generator("cuda").manual_seed(5))
assert torch.equal(first, torch.randn(4, device="cuda", generator=torch.Generator("cuda").manual_seed(5)))
scaled(host, 2.0)
""",
    )
    assert "Pointer argument" in ended(recording)


def test_what_no_kernel_may_do_raises_and_what_is_not_run_is_noted(tmp_path):
    recording = ran(
        tmp_path,
        """
x = torch.ones(256, device="cuda")
scale[(64,)](x, x, 1 << 14, 2.0, B=256)
""",
    )
    assert "out of bounds" in ended(recording)
    assert "bytes from the beginning of the memory of x_ptr, which has" in ended(recording)
    recording = ran(
        tmp_path,
        """
@triton.jit
def own(out_ptr, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.inline_asm_elementwise("bfind.u32 $0, $1;", "=r,r", [at], tl.int32, True, 1)
    tl.store(out_ptr + at, value)

out = torch.full((32,), 7, device="cuda", dtype=torch.int32)
own[(1,)](out, B=32)
assert out.tolist() == [7] * 32
""",
    )
    assert ended(recording) == ""
    assert any("own was not run" in note and "inline assembly" in note for note in recording.notes)
