"""Host programs that a placeholder value of the virtual GPU decides something of, each with a twin that reads none.

A row has a name, the program, pieces of the report, one for each placeholder value that decided something, and the
twin, of which nothing is reported. All begin with PREAMBLE: `k` is a kernel, `x` 64 random numbers on the GPU.
"""

from __future__ import annotations

from typing import NamedTuple

PREAMBLE = """\
import contextlib, copy, math, pickle, statistics, time, timeit
from datetime import datetime, timedelta, timezone
import numpy as np
import torch, triton, triton.language as tl
@triton.jit
def k(x_ptr, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1, mask=offsets < n)
def cdiv(n, block):
    return (n + block - 1) // block
dev = torch.device("cuda")
x = torch.randn(64, device=dev)
"""


class Program(NamedTuple):
    """A row of the table."""

    name: str
    code: str
    reported: tuple[str, ...]
    twin: str


PROGRAMS = (
    Program(
        "a branch without a launch after it",
        "if x.max().item() > .5:\n    k[(1,)](x, 3, B=16)",
        ("if x.max().item() > .5",),
        "if torch.full((64,), .7, device=dev).max().item() > .9:\n    k[(1,)](x, 3, B=16)",
    ),
    Program(
        "a convergence loop",
        "r = x.norm()\nwhile r > 1e-3:\n    k[(1,)](x, 3, B=16)\n    r = x.norm()",
        ("while r > 1e-3",),
        "r = 1.0\nwhile r > .3:\n    k[(1,)](x, 3, B=16)\n    r /= 2",
    ),
    Program(
        "the count of unique values",
        "n = torch.unique(x.round()).numel()\nk[(cdiv(n, 16),)](x, 64, B=16)",
        ("grid[0]=1",),
        "n = torch.unique(torch.tensor([3, 1, 3], device=dev)).numel()\nk[(cdiv(n, 16),)](x, 64, B=16)",
    ),
    Program(
        "a configuration by the time between events",
        """best, best_ms = None, float("inf")
for B in (16, 32):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    k[(4,)](x, 64, B=B)
    end.record()
    torch.cuda.synchronize()
    ms = begin.elapsed_time(end)
    if ms < best_ms:
        best, best_ms = B, ms
k[(64 // best,)](x, 64, B=best)""",
        ("ms: assumed 100.0", "if ms < best_ms"),
        """begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
k[(4,)](x, 64, B=16)
end.record()
end.synchronize()""",
    ),
    Program(
        "a configuration by do_bench",
        """times = {B: triton.testing.do_bench(lambda: k[(4,)](x, 64, B=B)) for B in (16, 32)}
best = min(times, key=times.get)
k[(64 // best,)](x, 64, B=best)""",
        ("best = min(times, key=times.get)",),
        "k[(4,)](x, 64, B=16)",
    ),
    Program(
        "quantiles of do_bench",
        "ms, low, high = triton.testing.do_bench(lambda: k[(4,)](x, 64, B=16), quantiles=[.5, .2, .8])\n"
        "k[(int(100 * ms),)](x, 64, B=16)",
        ("ms: assumed 1.0", "grid[0]=100"),
        "triton.testing.do_bench(lambda: k[(4,)](x, 64, B=16)) if False else None",
    ),
    Program(
        "a configuration by the clock of the host",
        """def timed(B):
    start = time.perf_counter()
    k[(4,)](x, 64, B=B)
    torch.cuda.synchronize()
    return time.perf_counter() - start
seconds = [timed(B) for B in (16, 32)]
best = 16 if seconds[0] <= seconds[1] else 32
k[(64 // best,)](x, 64, B=best)""",
        ("assumed this machine's time", "best = 16 if seconds[0]"),
        "started = time.time()\nk[(4,)](x, 64, B=16)\nname = f'run-{int(started)}'",
    ),
    Program(
        "warm-up for some time",
        "deadline = time.monotonic() + .001\nwhile time.monotonic() < deadline:\n    k[(4,)](x, 64, B=16)",
        ("while time.monotonic() < deadline",),
        "time.monotonic()\nfor _ in range(3):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "the median of nanoseconds",
        """took = []
for _ in range(3):
    start = time.perf_counter_ns()
    k[(4,)](x, 64, B=16)
    took.append((time.perf_counter_ns() - start) / 1e6)
if statistics.median(took) > 1e9:
    k[(8,)](x, 64, B=16)""",
        ("this machine's time", "if statistics.median(took) > 1e9"),
        "print(time.perf_counter_ns())",
    ),
    Program(
        "timeit",
        "seconds = timeit.timeit(lambda: k[(4,)](x, 64, B=16), number=2)\nk[(2 if seconds < 100 else 1,)](x, 64, B=32)",
        ("seconds: assumed this machine's time",),
        "k[(2,)](x, 64, B=32)",
    ),
    Program(
        "torch's benchmark module",
        """from torch.utils.benchmark import Timer
measurement = Timer("k[(4,)](x, 64, B=16)", globals=globals()).timeit(2)
if measurement.median < 100:
    k[(2,)](x, 64, B=32)""",
        ("if measurement.median < 100",),
        "from torch.utils.benchmark import Timer\nk[(2,)](x, 64, B=32)",
    ),
    Program(
        "a time that is only printed",
        "start = time.perf_counter()\nk[(4,)](x, 64, B=16)\nprint(f'{time.perf_counter() - start:.3f} s')",
        ("read, without a known effect", "this machine's time"),
        "k[(4,)](x, 64, B=16)\nprint('done', time.ctime())",
    ),
    Program(
        "chunks by the memory in use",
        "used = torch.cuda.memory_allocated()\nchunk = 16 if used < 1 << 30 else 8\nk[(64 // chunk,)](x, 64, B=chunk)",
        ("chunk = 16 if used < 1 << 30 else 8",),
        "total = torch.cuda.get_device_properties(0).total_memory\nchunk = 16 if total > 1 << 30 else 8\n"
        "k[(64 // chunk,)](x, 64, B=chunk)",
    ),
    Program(
        "chunks by the free memory",
        "free, total = torch.cuda.mem_get_info()\nk[(min(4, free // (1 << 30)),)](x, 64, B=16)",
        ("free: assumed", "min(4, free // (1 << 30))"),
        "total = torch.cuda.get_device_properties(0).total_memory\nk[(min(4, total >> 30),)](x, 64, B=16)",
    ),
    Program(
        "a share of the free memory as a shape",
        "free, _ = torch.cuda.mem_get_info()\nbuffer = torch.empty(free // 64, device=dev)\nk[(1,)](buffer, 4, B=16)",
        ("free: assumed", "buffer = torch.empty(free // 64"),
        "buffer = torch.empty(1 << 20, device=dev)\nk[(1,)](buffer, 4, B=16)",
    ),
    Program(
        "statistics of the allocator",
        "if torch.cuda.memory_stats()['allocated_bytes.all.peak'] < 1 << 30:\n    k[(4,)](x, 64, B=16)",
        ("memory_stats()['allocated",),
        "torch.cuda.reset_peak_memory_stats()\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "the most memory that was in use",
        "before = torch.cuda.max_memory_allocated()\nk[(4,)](x, 64, B=16)\n"
        "assert torch.cuda.max_memory_allocated() == before",
        ("Assumed to pass", "assert torch.cuda.max_memory_allocated() == b"),
        "torch.cuda.empty_cache()\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "a tensor that no GPU has room for",
        """try:
    buffer = torch.empty(1 << 40, device=dev)
except torch.cuda.OutOfMemoryError:
    buffer = torch.empty(1 << 20, device=dev)
k[(1,)](buffer, 64, B=16)""",
        ("CUDA out of memory at", "4096.00 GiB"),
        "buffer = torch.empty(1 << 20, device=dev)\nk[(1,)](buffer, 64, B=16)",
    ),
    Program(
        "tensors that fill the memory together",
        """buffers, count = [], 0
with contextlib.suppress(torch.cuda.OutOfMemoryError):
    while count < 20:
        buffers.append(torch.empty(1 << 33, device=dev, dtype=torch.uint8))
        count += 1
k[(count,)](x, 64, B=16)
assert count == 10, count""",
        ("CUDA out of memory at",),
        """for _ in range(20):
    buffer = torch.empty(1 << 33, device=dev, dtype=torch.uint8)
    del buffer
k[(1,)](x, 64, B=16)""",
    ),
    Program(
        "a second GPU",
        """y = torch.randn(64, device="cuda:1")
assert y.device == torch.device("cuda:1") and (y + 1).get_device() == 1
k[(4,)](y, 64, B=16)""",
        ("uses cuda:1",),
        """assert torch.cuda.device_count() == 1
k[(4,)](x.to("cuda:0"), 64, B=16)""",
    ),
    Program(
        "a second GPU made the current one",
        "with torch.cuda.device(1):\n    assert torch.cuda.current_device() == 1\n"
        "    y = torch.zeros(64, device='cuda')\n"
        "    assert y.device.index == 1\nassert torch.cuda.current_device() == 0\nk[(4,)](y, 64, B=16)",
        ("uses cuda:1",),
        "with torch.cuda.device(0):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "an address as a constant",
        "k[(4,)](x, 64, B=16 if x.data_ptr() < 1 << 46 else 32)\nk[(4,)](x, x.data_ptr(), B=16)",
        ("if x.data_ptr() < 1 << 46", "which decided n;"),
        "k[(4,)](x, 64, B=16 if x.data_ptr() % 16 == 0 and not x[1:].data_ptr() & 3 else 32)\n"
        "assert x.data_ptr() != x[1:].data_ptr()\npointers = torch.tensor([x.data_ptr()], device=dev)",
    ),
    Program(
        "tokens of each expert",
        """ids = x.view(16, 4).topk(2).indices
counts = torch.bincount(ids.flatten(), minlength=4)
for e in range(4):
    n = int(counts[e])
    if n == 0:
        continue
    k[(cdiv(n, 16),)](x, n, B=16)""",
        ("n: assumed", "if n == 0"),
        """for n in (4, 4):
    if n == 0:
        continue
    k[(cdiv(n, 16),)](x, 64, B=16)""",
    ),
    Program(
        "tokens of one expert by index",
        """ids = x.view(16, 4).argmax(1)
tokens = (ids == 2).nonzero().squeeze(1)
if tokens.numel() > 0:
    k[(cdiv(tokens.numel(), 16),)](x[tokens], 64, B=16)""",
        ("tokens",),
        "ids = torch.tensor([0, 2, 2], device=dev)\ntokens = (ids == 2).nonzero().squeeze(1)\n"
        "if tokens.numel() > 0:\n    k[(1,)](x[tokens], 2, B=16)",
    ),
    Program(
        "blocks of a paged cache",
        """seq_lens = torch.randint(1, 500, (8,), device=dev)
blocks = int((seq_lens.max() + 15) // 16)
table = torch.zeros(8, blocks, dtype=torch.int32, device=dev)
k[(8, blocks)](table, 8, B=16)""",
        ("blocks: assumed", "grid[1]="),
        """seq_lens = torch.tensor([3, 499], device=dev)
blocks = int((seq_lens.max() + 15) // 16)
table = torch.zeros(8, blocks, dtype=torch.int32, device=dev)
k[(8, blocks)](table, 8, B=16)""",
    ),
    Program(
        "offsets of a ragged batch that a kernel wrote",
        """offsets = torch.zeros(9, dtype=torch.int32, device=dev)
k[(1,)](offsets, 9, B=16)
total = offsets[-1].item()
k[(cdiv(total, 16),)](x, 64, B=16)""",
        ("total: assumed 0", "grid[0]=0"),
        """offsets = torch.tensor([3, 4, 5], device=dev).cumsum(0)
total = offsets[-1].item()
k[(cdiv(total, 16),)](x, 64, B=16)""",
    ),
    Program(
        "a launch for each length",
        "lengths = (x[:4] * 10).int()\nfor length in lengths.tolist():\n"
        "    k[(cdiv(length, 16) + 1,)](x, length, B=16)",
        ("which decided n",),
        "lengths = torch.tensor([1, 2], device=dev)\nfor length in lengths.tolist():\n"
        "    k[(cdiv(length, 16) + 1,)](x, length, B=16)",
    ),
    Program(
        "an array of NumPy",
        "a = x.cpu().numpy()\nif a.max() > 0:\n    k[(4,)](x, 64, B=16)",
        ("data of the host, not followed further, in a = x.cpu().numpy()",),
        "a = torch.arange(4, device=dev).cpu().numpy()\nif a.max() > 0:\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "bool() of a tensor",
        "flag = bool(x.sum() > 3)\nk[(4 if flag else 2,)](x, 64, B=16)",
        ("flag = bool(x.sum() > 3)",),
        "flag = bool(torch.ones(2, device=dev).sum() > 3)\nk[(4 if flag else 2,)](x, 64, B=16)",
    ),
    Program(
        "any() of a comparison",
        "if (x > 0).any():\n    k[(4,)](x, 64, B=16)",
        ("if (x > 0).any()",),
        "if (torch.zeros(4, device=dev) > 0).any():\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a check for infinities",
        "for _ in range(2):\n    if not torch.isfinite(x).all():\n        continue\n    k[(4,)](x, 64, B=16)",
        ("if not torch.isfinite(x).all()",),
        "k[(4,)](x, 64, B=16)\nfinite = torch.isfinite(x).all()",
    ),
    Program(
        "elements that a mask selects",
        "chosen = x[x > 0]\nk[(cdiv(chosen.numel(), 16),)](chosen, chosen.numel(), B=16)",
        ("chosen",),
        "y = torch.arange(64, device=dev)\nchosen = y[y > 9]\nk[(cdiv(chosen.numel(), 16),)](chosen, 9, B=16)",
    ),
    Program(
        "len() of what a mask selects",
        "n = len(torch.masked_select(x, x > 0))\nk[(n,)](x, 64, B=16)",
        ("the shape in n = len(torch.masked_select(x, x > 0))",),
        "n = len(x)\nk[(n,)](x, 64, B=16)",
    ),
    Program(
        "a count of nonzeros",
        "n = torch.count_nonzero(x).item()\nk[(1,)](x, n, B=16)",
        ("n: assumed", "which decided n"),
        "n = torch.count_nonzero(torch.eye(4, device=dev)).item()\nk[(1,)](x, n, B=16)",
    ),
    Program(
        "a fallback unless results agree",
        "k[(4,)](x, 64, B=16)\nok = torch.allclose(x, torch.ones_like(x))\nif not ok:\n    k[(4,)](x, 64, B=32)",
        ("ok = torch.allclose",),
        "k[(4,)](x, 64, B=16)\nok = torch.allclose(torch.ones(2, device=dev), torch.ones(2, device=dev))\n"
        "if not ok:\n    k[(4,)](x, 64, B=32)",
    ),
    Program(
        "a loop until nothing changes",
        "before = torch.zeros_like(x)\nwhile not torch.equal(before, x):\n    before = x.clone()\n"
        "    k[(4,)](x, 64, B=16)",
        ("while not torch.equal(before, x)",),
        "one = torch.ones(2, device=dev)\nwhile not torch.equal(one, one):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "range() of a tensor",
        "steps = x.abs().sum().int()\nfor _ in range(steps):\n    k[(4,)](x, 64, B=16)",
        ("range(steps)",),
        "steps = torch.tensor(2, device=dev)\nfor _ in range(steps):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "range() of a number",
        "for _ in range(int(x.sum()) + 2):\n    k[(4,)](x, 64, B=16)",
        ("range(int(x.sum()) + 2)",),
        "for _ in range(x.numel() // 32):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a constant of the largest value",
        "B = triton.next_power_of_2(int(x.max()) + 9)\nk[(4,)](x, 64, B=B)",
        ("B: assumed", "which decided B"),
        "B = triton.next_power_of_2(x.shape[0] // 5)\nk[(4,)](x, 64, B=B)",
    ),
    Program(
        "a constant by logarithms of the math module",
        "n = int(x.max()) + 9\nk[(4,)](x, 64, B=2 ** math.ceil(math.log2(n)))",
        ("n=",),
        "n = x.numel() // 5\nk[(4,)](x, 64, B=2 ** math.ceil(math.log2(n)))",
    ),
    Program(
        "a list indexed by the best score",
        "k[(4,)](x, 64, B=[16, 32, 64][x[:3].argmax().item()])",
        ("without a known effect: B=0",),
        "k[(4,)](x, 64, B=[16, 32, 64][torch.arange(2, device=dev).argmax().item()])",
    ),
    Program(
        "a mapping of choices",
        "choice = x[:3].argmax().item()\nk[(4,)](x, 64, B={0: 16, 1: 32, 2: 64}[choice])",
        ("choice: assumed 0",),
        "choice = x.dim()\nk[(4,)](x, 64, B={0: 16, 1: 32, 2: 64}[choice])",
    ),
    Program(
        "the smaller of two tensors",
        "best = min(x[0], x[1])\nk[(4,)](best.expand(64).clone(), 64, B=16)",
        ("best = min(x[0], x[1])",),
        "best = torch.minimum(x[0], x[1])\nk[(4,)](best.expand(64).clone(), 64, B=16)",
    ),
    Program(
        "an order by values",
        "order = sorted(range(3), key=lambda i: x[i].item())\nfor i in order:\n    k[(i + 1,)](x, 64, B=16)",
        ("order = sorted",),
        "for i in sorted(range(3), reverse=True):\n    k[(i + 1,)](x, 64, B=16)",
    ),
    Program(
        "an event that is done",
        "event = torch.cuda.Event()\nevent.record()\nk[(4,)](x, 64, B=16)\nwhile not event.query():\n"
        "    k[(4,)](x, 64, B=32)",
        ("while not event.query()",),
        "event = torch.cuda.Event()\nevent.record()\nk[(4,)](x, 64, B=16)\nevent.synchronize()",
    ),
    Program(
        "a stream that is idle",
        "stream = torch.cuda.Stream()\nwith torch.cuda.stream(stream):\n    k[(4,)](x, 64, B=16)\n"
        "if stream.query():\n    k[(4,)](x, 64, B=32)",
        ("if stream.query()",),
        "stream = torch.cuda.Stream()\nwith torch.cuda.stream(stream):\n    k[(4,)](x, 64, B=16)\nstream.synchronize()",
    ),
    Program(
        "the state of the random numbers",
        "before = torch.cuda.get_rng_state()\ny = torch.rand(4, device=dev)\n"
        "if not torch.equal(before, torch.cuda.get_rng_state()):\n    k[(4,)](x, 64, B=16)",
        ("if not torch.equal(before, torch.cuda.get_rng",),
        "state = torch.cuda.get_rng_state()\ny = torch.rand(4, device=dev)\ntorch.cuda.set_rng_state(state)\n"
        "k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a random size",
        "n = torch.randint(1, 100, (1,), device=dev).item()\nk[(n,)](x, 64, B=16)",
        ("n: assumed", "grid[0]="),
        "torch.manual_seed(0)\nn = torch.randint(1, 100, (1,)).item()\nk[(n,)](x, 64, B=16)",
    ),
    Program(
        "a random branch",
        "if torch.rand(1, device=dev).item() < .5:\n    k[(4,)](x, 64, B=16)",
        ("if torch.rand(1, device=dev).item() < .5",),
        "if torch.rand(1).item() < 2:\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a sampled token",
        "token = torch.multinomial(torch.softmax(x, 0), 1).item()\nif token == 2:\n    k[(4,)](x, 64, B=16)",
        ("token: assumed", "if token == 2"),
        "token = torch.multinomial(torch.softmax(x, 0), 1)\nk[(4,)](token, 1, B=16)",
    ),
    Program(
        "pinned memory that the GPU is copied to",
        "host = torch.empty(64, pin_memory=True)\nhost.copy_(x, non_blocking=True)\ntorch.cuda.synchronize()\n"
        "if host[0] > 0:\n    k[(4,)](x, 64, B=16)",
        ("host.copy_(x, non_blocking=True)",),
        "host = torch.ones(64).pin_memory()\nx.copy_(host, non_blocking=True)\n"
        "if host[0] > 0:\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a tensor of the host that is assigned to",
        "host = torch.zeros(64)\nhost[:] = x\nif host.sum() > 0:\n    k[(4,)](x, 64, B=16)",
        ("host[:] = x",),
        "host = torch.zeros(64)\nx[:] = host\nif host.sum() > 0:\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a loop until a kernel sets a flag",
        "done = torch.zeros(1, dtype=torch.int32, device=dev)\nk[(1,)](done, 1, B=16)\nwhile done.item() == 0:\n"
        "    k[(1,)](done, 1, B=16)",
        ("while done.item() == 0", "ended after"),
        "done = torch.zeros(1, dtype=torch.int32, device=dev)\nk[(1,)](done, 1, B=16)\nfor _ in range(2):\n"
        "    k[(1,)](done, 1, B=16)",
    ),
    Program(
        "a loop left by a flag",
        "done = torch.zeros(1, dtype=torch.int32, device=dev)\nwhile True:\n    k[(1,)](done, 1, B=16)\n"
        "    if done.item() == 1:\n        break",
        ("if done.item() == 1", "ended after"),
        "count = 0\nwhile True:\n    k[(1,)](x, 1, B=16)\n    count += 1\n    if count == 2:\n        break",
    ),
    Program(
        "a frontier that runs empty",
        "frontier = (x > 0).nonzero()\nsteps = 0\nwhile frontier.numel() > 0 and steps < 3:\n    steps += 1\n"
        "    k[(frontier.shape[0],)](x, 64, B=16)\n    frontier = (x > steps).nonzero()",
        ("while frontier.numel() > 0",),
        "frontier = torch.tensor([1, 1], device=dev).nonzero()\nsteps = 0\n"
        "while frontier.numel() > 0 and steps < 3:\n    steps += 1\n    k[(frontier.shape[0],)](x, 64, B=16)",
    ),
    Program(
        "training that ends early",
        "w = torch.randn(64, device=dev, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=.1)\n"
        "for _ in range(3):\n    loss = ((w - x) ** 2).mean()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n    if loss.item() < 1e-4:\n        break\n    k[(4,)](x, 64, B=16)",
        ("if loss.item() < 1e-4",),
        "w = torch.randn(64, device=dev, requires_grad=True)\noptimizer = torch.optim.AdamW([w], lr=.1)\n"
        "for _ in range(3):\n    loss = ((w - x) ** 2).mean()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a step that is left out",
        "w = torch.nn.Parameter(torch.randn(64, device=dev))\n(w * x).sum().backward()\n"
        "norm = torch.nn.utils.clip_grad_norm_([w], 1.0)\nif norm < 10:\n    k[(4,)](w.grad, 64, B=16)",
        ("if norm < 10",),
        "w = torch.nn.Parameter(torch.randn(64, device=dev))\n(w * x).sum().backward()\n"
        "norm = torch.nn.utils.clip_grad_norm_([w], 1.0)\nk[(4,)](w.grad, 64, B=16)",
    ),
    Program(
        "classes of a one-hot encoding",
        "classes = torch.nn.functional.one_hot((x.abs() * 9).long())\nk[(classes.shape[1],)](classes, 9, B=16)",
        ("classes = torch.nn.functional.one_hot",),
        "classes = torch.nn.functional.one_hot((x.abs() * 9).long(), 99)\nk[(classes.shape[1],)](classes, 9, B=16)",
    ),
    Program(
        "bins of a count",
        "bins = torch.bincount((x.abs() * 9).long())\nk[(bins.shape[0],)](bins, 9, B=16)",
        ("bins = torch.bincount",),
        "bins = torch.bincount(torch.tensor([1, 5], device=dev))\nk[(bins.shape[0],)](bins, 6, B=16)",
    ),
    Program(
        "repeated rows",
        "rows = torch.repeat_interleave(x[:4], (x[:4].abs() * 3).long())\nk[(rows.numel(),)](rows, 4, B=16)",
        ("rows = torch.repeat_interleave",),
        "rows = torch.repeat_interleave(x[:4], torch.tensor([1, 2, 1, 1], device=dev))\n"
        "k[(rows.numel(),)](rows, 5, B=16)",
    ),
    Program(
        "an error of parts that do not add up",
        "sizes = (x[:4].abs() * 9).int().tolist()\nwith contextlib.suppress(RuntimeError):\n"
        "    for part in torch.split(x, sizes):\n        k[(1,)](part, 4, B=16)",
        ("sizes", "torch.split(x, sizes)"),
        "for part in torch.split(x, [32, 32]):\n    k[(1,)](part, 4, B=16)",
    ),
    Program(
        "a size that is a tensor",
        "buffer = torch.zeros(x.argmax(), device=dev)\nk[(buffer.numel() + 1,)](buffer, 1, B=16)",
        ("buffer = torch.zeros(x.argmax()",),
        "buffer = torch.zeros(torch.tensor(3, device=dev), device=dev)\nk[(buffer.numel() + 1,)](buffer, 1, B=16)",
    ),
    Program(
        "indices up to a tensor",
        "ids = torch.arange(x.argmax(), device=dev)\nk[(ids.numel() + 1,)](ids, 1, B=16)",
        ("ids = torch.arange(x.argmax()",),
        "ids = torch.arange(torch.tensor(3, device=dev), device=dev)\nk[(ids.numel() + 1,)](ids, 1, B=16)",
    ),
    Program(
        "a slice up to a tensor",
        "part = x[: x.argmax()]\nk[(part.numel() + 1,)](x, 1, B=16)",
        ("part = x[: x.argmax()]",),
        "part = x[: torch.tensor(3, device=dev)]\nk[(part.numel() + 1,)](x, 1, B=16)",
    ),
    Program(
        "a value in a tensor",
        "ids = x.int()\nif 3 in ids:\n    k[(4,)](x, 64, B=16)",
        ("if 3 in ids",),
        "ids = torch.arange(4, device=dev)\nassert 3 in ids and 7 not in ids\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "is_nonzero",
        "if torch.is_nonzero(x.sum()):\n    k[(4,)](x, 64, B=16)",
        ("if torch.is_nonzero(x.sum())",),
        "if torch.is_nonzero(torch.tensor(1, device=dev)):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a scale for a kernel",
        "k[(4,)](x, 127.0 / (x.abs().max().item() + 1), B=16)",
        ("n: assumed 0.0", "which decided n"),
        "k[(4,)](x, 127.0 / x.numel(), B=16)",
    ),
    Program(
        "the second launch of one kernel",
        "k[(4,)](x, 64, B=16)\nn = x.argmax().item()\nk[(n + 4,)](x, 64, B=16)",
        ("n: assumed 0", "grid[0]=4"),
        "k[(4,)](x, 64, B=16)\nn = x.numel()\nk[(n,)](x, 64, B=16)",
    ),
    Program(
        "elements of a sparse tensor",
        "sparse = x.view(8, 8).relu().to_sparse()\nk[(sparse._nnz(),)](x, 64, B=16)",
        ("the shape in sparse = x.view(8, 8).relu().to_sparse()",),
        "k[(4,)](x, 64, B=16)",
    ),
    Program(
        "runs of equal values",
        "values, counts = torch.unique_consecutive(x.round(), return_counts=True)\n"
        "for count in counts.tolist():\n    k[(count,)](x, 64, B=16)",
        ("assumed 1", "the shape in values, counts = torch.unique_cons"),
        "values, counts = torch.unique_consecutive(torch.tensor([1, 1, 2], device=dev), return_counts=True)\n"
        "for count in counts.tolist():\n    k[(count,)](x, 64, B=16)",
    ),
    Program(
        "a name of a number",
        "name = f'{x.argmax().item()}'\nk[({'0': 1}.get(name, 2),)](x, 64, B=16)",
        ("without a known effect: name=0",),
        "name = f'{x.dim()}'\nk[({'1': 1}.get(name, 2),)](x, 64, B=16)",
    ),
    Program(
        "a tensor of the host made of a read",
        "sizes = torch.tensor([x.argmax().item(), 3])\nk[(int(sizes.max()),)](x, 64, B=16)",
        ("sizes = torch.tensor([x.argmax().item(), 3])",),
        "sizes = torch.tensor([x.dim(), 3])\nk[(int(sizes.max()),)](x, 64, B=16)",
    ),
    Program(
        "a table of the host that is indexed",
        "table = torch.arange(64)\nn = table[x.argmax().cpu()].item()\nk[(n + 1,)](x, 64, B=16)",
        ("data of the host, not followed further, in n = table[x.argmax().cpu()].item()",),
        "table = torch.arange(64)\nn = table[torch.tensor(3, device=dev).cpu()].item()\nk[(n + 1,)](x, 64, B=16)",
    ),
    Program(
        "a check that raises",
        "k[(4,)](x, 64, B=16)\nif (x - 1).abs().max() > 1e-3:\n    raise SystemExit('wrong')\nk[(4,)](x, 64, B=32)",
        ("Assumed to pass", "if (x - 1).abs().max() > 1e-3"),
        "k[(4,)](x, 64, B=16)\nif x.numel() > 100:\n    raise SystemExit('wrong')\nk[(4,)](x, 64, B=32)",
    ),
    Program(
        "how busy the GPU is",
        "if torch.cuda.utilization() < 50:\n    k[(4,)](x, 64, B=16)",
        ("if torch.cuda.utilization() < 50",),
        "if torch.cuda.get_device_capability() >= (8, 0):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "a read while a graph is captured",
        "graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph):\n    k[(4,)](x, 64, B=16)\ngraph.replay()\n"
        "if x[0].item() > 3:\n    k[(4,)](x, 64, B=32)",
        ("if x[0].item() > 3",),
        "graph = torch.cuda.CUDAGraph()\nassert not torch.cuda.is_current_stream_capturing()\n"
        "with torch.cuda.graph(graph):\n    assert torch.cuda.is_current_stream_capturing()\n"
        "    k[(4,)](x, 64, B=16)\nassert not torch.cuda.is_current_stream_capturing()\ngraph.replay()",
    ),
    Program(
        "the date, for some time",
        "end = datetime.now() + timedelta(milliseconds=1)\nwhile datetime.now() < end:\n    k[(4,)](x, 64, B=16)",
        ("assumed this machine's time", "while datetime.now() < end"),
        """now = datetime.now(timezone.utc)
assert type(pickle.loads(pickle.dumps(now))) is type(copy.deepcopy(now)) is datetime
name = f"run-{now:%Y}-{now.isoformat()}"
class Clock:
    def now(self, *args, zone):
        return args, zone
assert Clock().now(1, zone=2) == ((1,), 2)
k[(4,)](x, 64, B=16)""",
    ),
    Program(
        "a mean of differences of dates",
        """begin = datetime.now()
spans = [datetime.now() - begin for _ in range(3)]
if sum(spans, timedelta()) / 3 < timedelta(seconds=1):
    k[(4,)](x, 64, B=16)
if (datetime.now() - begin).total_seconds() > 60:
    k[(8,)](x, 64, B=16)
k[(max(spans).microseconds % 7 + 1,)](x, 64, B=32)""",
        ("if sum(spans, timedelta()) / 3", "if (datetime.now() - begin)", "grid[0]"),
        "if timedelta(seconds=3) > timedelta(seconds=1):\n    k[(4,)](x, 64, B=16)",
    ),
    Program(
        "the clock's parity",
        "if time.time() % 2 < 1:\n    k[(4,)](x, 64, B=16)\nn = int(time.time()) % 7\nk[(n + 1,)](x, 64, B=32)",
        ("if time.time() % 2 < 1", "n: assumed this machine's time", "grid[0]="),
        "n = round(time.time())\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "how many events a profile has, and their times",
        """with torch.profiler.profile() as profile:
    k[(4,)](x, 64, B=16)
if len(profile.events()) > 1:
    k[(4,)](x, 64, B=32)
if sum(row.self_device_time_total for row in profile.key_averages()) < 100:
    k[(8,)](x, 64, B=32)""",
        ("if len(profile.events()) > 1", "if sum(row.self_device_time_total"),
        """with torch.profiler.profile() as profile:
    k[(4,)](x, 64, B=16)
print(profile.key_averages().table())""",
    ),
    Program(
        "the text of a tensor",
        """if len(repr(x)) > 40:
    k[(4,)](x, 64, B=16)
if "nan" in str(x):
    k[(8,)](x, 64, B=16)
k[(len(str(x).split(",")),)](x, 64, B=32)""",
        ("if len(repr(x)) > 40", 'if "nan" in str(x)', 'len(str(x).split(","))'),
        """n = torch.arange(4, device=dev)
assert "3" in str(n) and len(repr(n)) > 3
print(f"{x}", x, "values " + str(x), "%s" % x, "{}".format(x))
k[(4,)](x, 64, B=16)""",
    ),
    Program(
        "a slice of a table of the host",
        "y = torch.zeros(64)[: x.argmax()]\nk[(y.numel() + 1,)](x, 64, B=16)",
        ("data of the host, not followed further, in y = torch.zeros(64)[: x.argmax()]",),
        "three = torch.tensor(3, device=dev)\nassert torch.zeros(64)[:three].shape == (3,)\n"
        "assert torch.zeros(64, 3)[1:three, 0].shape == (2,)\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "bytes of a storage",
        "n = x.cpu().untyped_storage()[0]\nk[(n + 1,)](x, 64, B=16)\nm = x.cpu().storage()[0]\nk[(4,)](x, m, B=32)",
        ("n: assumed 0", "m: assumed 0"),
        "three = torch.tensor([3], dtype=torch.uint8, device=dev)\nassert three.cpu().untyped_storage()[0] == 3\n"
        "assert three.untyped_storage()[0:1].nbytes() == 1 and three.cpu().storage()[0] == 3\nk[(4,)](x, 64, B=16)",
    ),
    Program(
        "DLPack to NumPy",
        "a = np.from_dlpack(x.cpu())\nk[(int(a[0]) + 1,)](x, 64, B=16)",
        ("data of the host, not followed further, in a = np.from_dlpack(x.cpu())",),
        "assert np.from_dlpack(torch.arange(3, device=dev).cpu())[2] == 2\ny = torch.from_dlpack(x)\n"
        "assert y.is_cuda and y.shape == x.shape\nk[(4,)](y, 64, B=16)",
    ),
)
