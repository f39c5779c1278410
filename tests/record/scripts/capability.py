import json

import torch
import triton
import triton.language as tl


@triton.jit
def old_kernel(x_ptr):
    tl.store(x_ptr, 0)


@triton.jit
def new_kernel(x_ptr):
    tl.store(x_ptr, 1)


assert torch.cuda.is_available()
assert torch.cuda.device_count() == 1
major, minor = torch.cuda.get_device_capability()
properties = torch.cuda.get_device_properties(torch.cuda.current_device())
assert (properties.major, properties.minor) == (major, minor)
assert properties.name == torch.cuda.get_device_name(0)
x = torch.zeros(16, device="cuda", dtype=torch.int32)
if torch.version.hip is not None:
    assert torch.version.cuda is None
    kernel = new_kernel if "gfx94" in properties.gcnArchName else old_kernel
else:
    kernel = new_kernel if major >= 9 else old_kernel
compiled = kernel[(properties.multi_processor_count,)](x)
native = triton.runtime.driver.active.utils.get_device_properties(0)
target = triton.runtime.driver.active.get_current_target()
assert native["max_shared_mem"] == properties.shared_memory_per_block_optin
# As the fused softmax of Triton's tutorials does it: registers that are 0 would divide by 0.
occupancy = native["max_num_regs"] // (compiled.n_regs * target.warp_size * compiled.metadata.num_warps)
assert occupancy > 0
free, total = torch.cuda.mem_get_info()
assert free <= total == properties.total_memory
assert torch.cuda.is_bf16_supported() == (major >= 8)
torch.cuda.reset_peak_memory_stats()
print(
    json.dumps(
        {
            "name": properties.name,
            "target": [target.backend, str(target.arch)],
            "allocated": torch.cuda.memory_allocated(),
        }
    )
)
