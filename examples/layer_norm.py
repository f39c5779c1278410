"""Normalise each row of a matrix to mean 0 and variance 1, scale and shift it, and differentiate that.

Bytes moved: 2 * m * n * element size forward, 3 * m * n * element size backward. Flops: about 8 and 14 * m * n.
docs/examples.md#layer_norm says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl

MAX_COLUMNS = 16384
"""The longest row that still fits the registers of one program."""


@triton.jit
def layer_norm_forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, n, eps,
    stride_xm, stride_xn, stride_w, stride_b, stride_om, stride_on,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols * stride_b, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    tl.store(out_ptr + row * stride_om + cols * stride_on, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, weight_ptr, dout_ptr, mean_ptr, rstd_ptr, dx_ptr, dweight_ptr, dbias_ptr, m, n,
    stride_xm, stride_xn, stride_w, stride_dm, stride_dn, stride_gm, stride_gn,
    BLOCK: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), dtype=tl.float32)
    dbias = tl.zeros((BLOCK,), dtype=tl.float32)
    # A program takes many rows, so that it leaves one sum over them for the weight and the bias.
    for row in range(tl.program_id(0).to(tl.int64), m, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * stride_dm + cols * stride_dn, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normalised = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = dout * weight
        along_x = tl.sum(normalised * scaled, axis=0) / n
        along_one = tl.sum(scaled, axis=0) / n
        dx = (scaled - normalised * along_x - along_one) * rstd
        tl.store(dx_ptr + row * stride_gm + cols * stride_gn, dx, mask=mask)
        dweight += dout * normalised
        dbias += dout
    tl.store(dweight_ptr + tl.program_id(0) * n + cols, dweight, mask=mask)
    tl.store(dbias_ptr + tl.program_id(0) * n + cols, dbias, mask=mask)


def warps(block: int, elements_per_thread: int) -> int:
    """Return how many warps share a row of `block` elements."""
    return min(max(block // (32 * elements_per_thread), 4), 16)


class LayerNorm(torch.autograd.Function):
    """Layer normalisation over the last dimension of a matrix, as a function that autograd can differentiate."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
        m, n = x.shape
        out = torch.empty((m, n), device=x.device, dtype=x.dtype)
        mean, rstd = torch.empty((2, m), device=x.device, dtype=torch.float32).unbind()
        block = triton.next_power_of_2(n)
        layer_norm_forward_kernel[(m,)](
            x, weight, bias, out, mean, rstd, n, eps, *x.stride(), weight.stride(0), bias.stride(0), *out.stride(),
            BLOCK=block, num_warps=warps(block, 32),
        )  # fmt: skip
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    def backward(ctx, dout: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        x, weight, mean, rstd = ctx.saved_tensors
        m, n = x.shape
        dx = torch.empty((m, n), device=x.device, dtype=x.dtype)
        programs = min(m, 2 * processors(x.device))
        dweight, dbias = torch.empty((2, programs, n), device=x.device, dtype=torch.float32).unbind()
        block = triton.next_power_of_2(n)
        layer_norm_backward_kernel[(programs,)](
            x, weight, dout, mean, rstd, dx, dweight, dbias, m, n,
            *x.stride(), weight.stride(0), *dout.stride(), *dx.stride(),
            BLOCK=block, num_warps=warps(block, 16),
        )  # fmt: skip
        return dx, dweight.sum(dim=0).to(weight.dtype), dbias.sum(dim=0).to(weight.dtype), None


def processors(device: torch.device) -> int:
    """Return how many multiprocessors the device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Return each row of the matrix `x` [m, n] normalised, times `weight` [n], plus `bias` [n]."""
    if x.ndim != 2 or x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"a matrix of at most {MAX_COLUMNS} columns is needed, not a tensor of shape {[*x.shape]}")
    if weight.shape != x.shape[1:] or bias.shape != x.shape[1:]:
        raise ValueError(f"weight and bias [{x.shape[1]}] are needed, not {[*weight.shape]} and {[*bias.shape]}")
    return LayerNorm.apply(x, weight, bias, eps)


def torch_layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the same by torch's own operation."""
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, n: int) -> None:
    """Print the median time of one forward and one backward over an m x n bfloat16 matrix, beside torch's."""
    x, dout = torch.randn(2, m, n, device="cuda", dtype=torch.bfloat16).unbind()
    leaves = [x.requires_grad_(), *(torch.randn(n, device="cuda", dtype=x.dtype).requires_grad_() for _ in range(2))]
    for name, function in (("ours", layer_norm), ("torch", torch_layer_norm)):
        out = function(*leaves)
        forward_ms = triton.testing.do_bench(lambda function=function: function(*leaves), return_mode="median")
        backward_ms = triton.testing.do_bench(
            lambda out=out: torch.autograd.grad(out, leaves, dout, retain_graph=True), return_mode="median"
        )
        gigabytes = x.nbytes * 1e-9
        print(
            f"{m}x{n} {name}: forward {forward_ms:.4f} ms ({2 * gigabytes / forward_ms * 1e3:.0f} GB/s), "
            f"backward {backward_ms:.4f} ms ({3 * gigabytes / backward_ms * 1e3:.0f} GB/s)"
        )


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    matrices = {
        "aligned": torch.randn(512, 1024, device=device),
        "odd sizes": torch.randn(301, 781, device=device),
        "transposed": torch.randn(300, 516, device=device).T,
    }
    cases = {
        name: [x, torch.randn(x.shape[1], device=device), torch.randn(x.shape[1], device=device)]
        for name, x in matrices.items()
    }
    douts = {name: torch.randn(x.shape, device=device) for name, x in matrices.items()}

    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {}
    for name, case in cases.items():
        leaves = [t.detach().requires_grad_() for t in case]
        out = layer_norm(*leaves)
        outs[name] = [out.detach(), *torch.autograd.grad(out, leaves, douts[name])]
    torch.use_deterministic_algorithms(False)

    good = []
    for name, case in cases.items():
        leaves = [t.double().requires_grad_() for t in case]
        out = torch_layer_norm(*leaves)
        references = [out.detach(), *torch.autograd.grad(out, leaves, douts[name].double())]
        for part, ours, reference in zip(("out", "dx", "dweight", "dbias"), outs[name], references, strict=True):
            good.append(check(f"{name}, {part}", ours, reference, 1e-5))
    if not all(good):
        sys.exit("layer_norm: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 1024)
        if "--bench" in sys.argv[1:]:
            benchmark(16384, 8192)


if __name__ == "__main__":
    main()
