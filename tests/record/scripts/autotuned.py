import torch
import triton
import triton.language as tl


def smaller(configs, named_args, **kwargs):
    assert named_args["n"] == 4096
    return [config for config in configs if config.kwargs["BLOCK"] != 16]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 16}, num_warps=1),
        # Six buffers of two tiles of 32 KiB are more shared memory than any part has.
        triton.Config({"BLOCK": 128}, num_warps=8, num_stages=6),
        triton.Config({"BLOCK": 32}, num_warps=2),
        triton.Config({"BLOCK": 64}, num_warps=4),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": smaller},
    reset_to_zero=["out_ptr"],
    restore_value=["x_ptr"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        left = tl.load(x_ptr + rows[:, None] * n + (start + rows)[None, :])
        right = tl.load(x_ptr + (start + rows)[:, None] * n + rows[None, :])
        total = tl.dot(left, right, total)
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], total.to(tl.float16))


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (128, 256, 512)], key=["n"])
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)


x = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
out = torch.zeros_like(x)
square_kernel[(1,)](x, out, 4096)
square_kernel[(1,)](x, out, 4096)
copy_kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, out, 1000)
copy_kernel[lambda meta: (triton.cdiv(2000, meta["BLOCK"]),)](x, out, 2000)
print(square_kernel.best_config)


def call():
    copy_kernel[(1,)](x, out, 1000)


milliseconds = triton.testing.do_bench(call)
assert milliseconds > 0
low, middle, high = triton.testing.do_bench(call, quantiles=[0.2, 0.5, 0.8], warmup=1000, rep=1000)
assert triton.testing.do_bench_cudagraph(call) > 0


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"],
        x_vals=[1000, 2000],
        line_arg="provider",
        line_vals=["triton", "torch"],
        line_names=["Triton", "Torch"],
        styles=[("blue", "-"), ("green", "-")],
        ylabel="GB/s",
        plot_name="copy",
        args={},
    )
)
def benchmark(n, provider):
    ms, slow, fast = triton.testing.do_bench(
        lambda: out.copy_(x) if provider == "torch" else call(), quantiles=[0.5, 0.2, 0.8]
    )
    return n / ms, n / slow, n / fast


benchmark.run(print_data=True, show_plots=True)
