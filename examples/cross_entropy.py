"""Take the cross entropy of each row of logits in one pass, however long the row and however large the matrix.

Bytes moved: m * vocabulary * element size (the logits are read once). Flops: about 4 * m * vocabulary, and 1.25 * m *
vocabulary exponentials.
docs/examples.md#cross_entropy says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, vocabulary, ignore_index, stride_m, stride_v, stride_t,
    BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    # 64 bits: a batch of long rows over a large vocabulary holds more than 2**31 logits.
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row * stride_t)
    logits_ptr += row * stride_m
    # A running maximum and sum for each of BLOCK_C lanes: lanes meet once, after the loop, not in every turn of it.
    # The maximum starts finite, for a lane that sees no logit at all would subtract infinity from infinity.
    largest = tl.full((BLOCK_C,), -3.0e38, dtype=tl.float32)
    total = tl.zeros((BLOCK_C,), dtype=tl.float32)
    tile = tl.arange(0, BLOCK_R)[:, None] * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    for start in range(0, vocabulary, BLOCK_R * BLOCK_C):
        cols = start + tile
        x = tl.load(logits_ptr + cols.to(tl.int64) * stride_v, mask=cols < vocabulary, other=-float("inf"))
        x = x.to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new_largest) + tl.sum(tl.exp(x - new_largest[None, :]), axis=0)
        largest = new_largest
    row_largest = tl.max(largest, axis=0)
    logsumexp = row_largest + tl.log(tl.sum(total * tl.exp(largest - row_largest), axis=0))
    seen = target != ignore_index
    at_target = tl.load(logits_ptr + target * stride_v, mask=seen, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(seen, logsumexp - at_target, 0.0))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """Return the loss [m], float32, of `logits` [m, vocabulary] for the int64 classes `target` [m]."""
    if logits.ndim != 2 or target.shape != logits.shape[:1] or target.dtype != torch.int64:
        raise ValueError(f"logits [m, v] and int64 targets [m] are needed, not {[*logits.shape]} and {[*target.shape]}")
    m, vocabulary = logits.shape
    loss = torch.empty(m, device=logits.device, dtype=torch.float32)
    cross_entropy_kernel[(m,)](
        logits, target, loss, vocabulary, ignore_index, *logits.stride(), target.stride(0),
        BLOCK_R=4, BLOCK_C=2048, num_warps=8,
    )  # fmt: skip
    return loss


def torch_cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the same loss by torch's own operation."""
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, vocabulary: int) -> None:
    """Check and time one loss over an m x vocabulary bfloat16 matrix, beside torch's."""
    logits = torch.randn(m, vocabulary, device="cuda", dtype=torch.bfloat16)
    target = torch.randint(vocabulary, (m,), device="cuda")
    loss = cross_entropy(logits, target)
    chunks = zip(logits.split(256), target.split(256), strict=True)
    reference = torch.cat([torch_cross_entropy(rows.double(), classes) for rows, classes in chunks])
    if not check(f"{m}x{vocabulary}, {logits.numel() / 2**31:.2f} * 2**31 logits", loss, reference, 1e-5):
        sys.exit("cross_entropy: the result is not torch's")
    ours_ms = triton.testing.do_bench(lambda: cross_entropy(logits, target), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: torch_cross_entropy(logits, target), return_mode="median")
    gigabytes = logits.nbytes * 1e-9
    print(f"{m}x{vocabulary}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    ignored = torch.randint(5003, (64,), device=device)
    ignored[::3] = -100
    cases = {
        "aligned": (torch.randn(128, 32768, device=device), torch.randint(32768, (128,), device=device)),
        "odd sizes": (torch.randn(61, 50257, device=device).half(), torch.randint(50257, (61,), device=device)),
        "few classes": (torch.randn(301, 10, device=device), torch.randint(10, (301,), device=device)),
        "transposed": (torch.randn(3001, 40, device=device).T, torch.randint(3001, (40,), device=device)),
        "some ignored, large": (50 * torch.randn(64, 5003, device=device), ignored),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: cross_entropy(*case) for name, case in cases.items()}
    torch.use_deterministic_algorithms(False)
    references = {name: torch_cross_entropy(logits.double(), target) for name, (logits, target) in cases.items()}
    good = [check(name, out, references[name], 1e-5) for name, out in outs.items()]
    if not all(good):
        sys.exit("cross_entropy: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 32768)
        if "--bench" in sys.argv[1:]:
            benchmark(32768, 131072)


if __name__ == "__main__":
    main()
