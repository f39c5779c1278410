"""What programs do that is no launch: classes under torch.compile, states of generators, profiles, cuBLAS."""

import copy
import sys

import pytest
import torch
import triton
import triton.language as tl
import triton.profiler as proton


@triton.jit
def scale_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * 2)


class Choices:
    """A mapping that keeps what it is given for ever, and is no dict."""

    def __init__(self):
        self.kept = {}
        self.writes = 0

    def __contains__(self, key):
        return key in self.kept

    def __getitem__(self, key):
        return self.kept[key]

    def __setitem__(self, key, value):
        self.writes += 1
        self.kept[key] = value


x = torch.ones(64, device="cuda")
tuned = triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=[])(scale_kernel)
choices = tuned.cache = Choices()
tuned[(1,)](x)
tuned[(1,)](x)
assert choices.writes == 0
assert tuned.best_config.kwargs == {"BLOCK": 32}


# A generator's state is its seed and its offset.
state = torch.cuda.get_rng_state()
assert (state.shape, state.dtype, state.device.type) == ((16,), torch.uint8, "cpu")
torch.manual_seed(7)
assert torch.cuda.initial_seed() == 7
assert torch.cuda.get_rng_state().view(torch.int64).tolist() == [7, 0]
torch.cuda.set_rng_state(state)
assert torch.equal(torch.cuda.get_rng_state(), state)
assert len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count() == len(torch.cuda.default_generators)
generator = torch.cuda.default_generators[torch.cuda.current_device()]
assert isinstance(generator, torch.Generator)
seed, offset = generator.get_state().view(torch.int64)
offset += 4
generator.set_state(torch.stack([seed, offset]).view(torch.uint8))
assert generator.get_offset() == 4
with torch.random.fork_rng():
    torch.cuda.manual_seed_all(9)
assert generator.get_offset() == 4
with pytest.raises(RuntimeError, match="RNG state is wrong size"):
    generator.set_state(torch.get_rng_state())
own = torch.Generator(device="cuda").manual_seed(3)
assert own.initial_seed() == own.clone_state().initial_seed() == 3
assert torch.rand(4, device="cuda", generator=own).is_cuda
on_host = torch.Generator().manual_seed(3)
assert on_host.device.type == "cpu"
assert on_host.get_state().numel() == torch.get_rng_state().numel() == 5056
assert torch.rand(4, generator=on_host).equal(torch.rand(4, generator=torch.Generator().manual_seed(3)))
copy.deepcopy(own)


# Profiles are empty, products have no data.
session = proton.start("a_profile", hook="triton")
proton.deactivate(session)
proton.activate(session)
with proton.scope("a scope", {"flops": 1.0}):
    scale_kernel[(1,)](x, BLOCK=64)
proton.finalize()
if torch.version.hip is None and hasattr(sys.modules["triton._C.libtriton"], "nvidia"):
    from triton._C.libtriton import nvidia

    cublas = nvidia.cublas.CublasLt(torch.empty(1 << 20, device="cuda", dtype=torch.uint8))
    a = torch.ones(16, 16, device="cuda", dtype=torch.float16)
    cublas.matmul(a, a, a)

# What is measured, is called.
assert triton.testing.do_bench(lambda: scale_kernel[(2,)](x, BLOCK=64)) > 0
assert len(triton.testing.do_bench(lambda: scale_kernel[(2,)](x, BLOCK=64), quantiles=[0.5, 0.2, 0.8])) == 3
assert triton.testing.do_bench_cudagraph(lambda: scale_kernel[(2,)](x, BLOCK=64)) > 0


# Graphs, and what else torch.cuda has.
static = torch.zeros(64, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    scale_kernel[(3,)](static, BLOCK=64)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle(), capture_error_mode="thread_local"):
    scale_kernel[(3,)](static, BLOCK=64)
graph.instantiate()
graph.replay()
net = torch.nn.Linear(64, 64).cuda()
sample = torch.ones(2, 64, device="cuda", requires_grad=True)
graphed = torch.cuda.make_graphed_callables(net, (sample,))
graphed(sample).sum().backward()
assert net.weight.grad.is_cuda
with torch.cuda.amp.autocast(dtype=torch.float16):
    assert net(sample).dtype == torch.float16
torch.cuda.amp.GradScaler().scale(net(sample).sum()).backward()
for amount in ("allocated_bytes.all.peak", "reserved_bytes.all.current", "num_alloc_retries"):
    assert torch.cuda.memory_stats()[amount] == 0
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 0
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
event = side.record_event()
event.wait()
event.synchronize()
print("done")
