import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)


def add(x, y):
    assert x.is_cuda
    assert y.device == x.device == DEVICE
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), BLOCK=1024)
    return out


torch.manual_seed(0)
size = 98432
x = torch.rand(size, device=DEVICE)
y = torch.rand(size, device="cuda")
reference = x + y
result = add(x, y)
print(reference)
print(f"the largest difference is {torch.max(torch.abs(reference - result))}")
assert torch.allclose(reference, result)
assert (reference - result).abs().max().item() < 1e-6

# Views at odd offsets are not aligned as the whole is.
add(x[1:], y[4:-1][: size - 5])
