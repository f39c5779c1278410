"""Tune the softmax of rows of 4096 halves by what irscope finds, on a machine that needs no GPU.

How many warps, and is it worth telling the compiler that rows are contiguous? With --bench, on a GPU, each choice is
timed and checked against torch as well, which shows what the tuning bought.
"""

import sys
from pathlib import Path

import irscope

SOFTMAX = Path(__file__).parents[1] / "softmax.py"
COLUMNS, ROWS = 4096, 32768
SIGNATURES = {
    "general": "*fp16:16, *fp16:16, i32, i32, i32, i32, i32",
    "contiguous": "*fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1",
}
NUM_WARPS = (1, 8)


def recorded() -> dict[tuple[str, int], irscope.Capture]:
    """A capture of each choice."""
    with irscope.recording_session():
        return {
            (rows, num_warps): irscope.record(
                SOFTMAX,
                kernel="softmax_kernel",
                signature=signature,
                constexprs={"BLOCK": COLUMNS},
                options={"num_warps": num_warps},
                target="cuda:90",
                snapshots="none",
            )
            for rows, signature in SIGNATURES.items()
            for num_warps in NUM_WARPS
        }


def best_of(captures: dict[tuple[str, int], irscope.Capture]) -> tuple[str, int]:
    """Of the choices that do not spill and in which the least is found, that whose warps execute the least together."""
    table = dict(zip(captures, irscope.table(captures.values()), strict=True))
    fitting = {one: row for one, row in table.items() if row["status"] == "ok" and not row["spilled_bytes"]}
    return min(fitting, key=lambda one: (len(fitting[one]["findings"]), fitting[one]["instructions"] * one[1]))


def microseconds(rows: str, num_warps: int) -> float:
    """The time of a choice on the GPU that is here; ends the program if torch computes something else."""
    sys.path.insert(0, str(SOFTMAX.parent))
    import torch
    import triton
    from softmax import softmax_kernel

    arguments = ["n", "stride_xm", "stride_xn", "stride_om", "stride_on"]
    general = triton.jit(do_not_specialize=arguments)(softmax_kernel.fn)
    kernel = general if rows == "general" else softmax_kernel
    x = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.float16)
    out = torch.empty_like(x)

    def launch() -> None:
        kernel[(ROWS,)](x, out, COLUMNS, *x.stride(), *out.stride(), BLOCK=COLUMNS, num_warps=num_warps)

    launch()
    torch.testing.assert_close(out, torch.softmax(x.float(), dim=1).half())
    return 1000 * float(triton.testing.do_bench(launch, return_mode="median"))


def main() -> None:
    captures = recorded()
    for (rows, num_warps), capture in captures.items():
        found = [f"{one.code} {one.text}" for one in irscope.findings(capture)]
        print(f"{rows}, {num_warps} warps ({capture.id[:8]}): {'; '.join(found) or 'nothing is found'}")
    rows, num_warps = best_of(captures)
    print(f"chosen: {rows} rows, {num_warps} warps")
    if "--bench" in sys.argv[1:]:
        times = {one: microseconds(*one) for one in captures}
        for (other, warps), time in times.items():
            print(f"{other}, {warps} warps: {time:.1f} us, {4 * ROWS * COLUMNS / time * 1e-6:.1f} TB/s")
        if min(times, key=times.__getitem__) != (rows, num_warps):
            sys.exit("another choice is faster")


if __name__ == "__main__":
    main()
