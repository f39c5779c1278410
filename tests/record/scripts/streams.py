import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl


@triton.jit
def increment_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)


x = torch.zeros(16, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    increment_kernel[(1,)](x)
stream.wait_stream(torch.cuda.current_stream())
assert isinstance(torch.cuda.current_stream().cuda_stream, int)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
increment_kernel[(2,)](x)
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0
assert end.query()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=stream):
    increment_kernel[(3,)](x)
graph.replay()
with torch.cuda.device(0), torch.cuda.device_of(x):
    increment_kernel[(4,)](x)
with torch.cuda.nvtx.range("a part"):
    torch.cuda.nvtx.range_push("another")
    torch.cuda.nvtx.range_pop()
torch.cuda.empty_cache()
torch.cuda.set_device(0)
torch.cuda.manual_seed_all(1)
torch.cuda.set_rng_state(torch.cuda.get_rng_state())
x.record_stream(stream)
assert torch.accelerator.current_accelerator().type == "cuda"


def work():
    y = torch.ones(16, device="cuda")
    increment_kernel[(5,)](y)
    assert y.is_cuda
    return y.device.type


thread = threading.Thread(target=work)
thread.start()
thread.join()
with ThreadPoolExecutor(1) as pool:
    assert pool.submit(work).result() == "cuda"
