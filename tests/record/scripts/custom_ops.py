import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


def launch(x):
    assert x.is_cuda
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, BLOCK=128)
    return out


@torch.library.custom_op("irscope_tests::double", mutates_args=(), device_types="cuda")
def double(x: torch.Tensor) -> torch.Tensor:
    return launch(x)


@double.register_fake
def _(x):
    return torch.empty_like(x)


torch.library.register_autograd("irscope_tests::double", lambda ctx, gradient: double(gradient))


@torch.library.triton_op("irscope_tests::double_again", mutates_args={})
def double_again(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(double_kernel)[(2,)](x, out, BLOCK=128)
    return out


library = torch.library.Library("irscope_tests_low", "DEF")
library.define("double(Tensor x) -> Tensor")
library.impl("double", launch, "CUDA")

x = torch.randn(128, device="cuda", requires_grad=True)
y = double(x)
assert y.is_cuda
y.sum().backward()
assert x.grad.is_cuda
assert double_again(x.detach()).is_cuda
assert torch.ops.irscope_tests_low.double(x.detach()).is_cuda
