import copy

import torch

CUDA = torch.device("cuda:0")

for made in (
    torch.ones(4, device="cuda"),
    torch.ones(4, device="cuda:0"),
    torch.ones(4, device=torch.device("cuda")),
    torch.ones(4, device=0),
    torch.ones(4).cuda(),
    torch.ones(4).cuda(0),
    torch.ones(4).to("cuda", torch.float16),
    torch.ones(4).to(device="cuda", dtype=torch.float16, non_blocking=True),
    torch.ones(4).pin_memory().to(0),
    torch.ones(4, pin_memory=True).cuda(non_blocking=True),
    torch.ones(4).to(torch.ones(1, device="cuda")),
    torch.tensor([1, 2], device="cuda"),
    torch.as_tensor([1, 2], device="cuda"),
    torch.empty(4, device="cuda").to(torch.bfloat16),
    torch.cuda.FloatTensor(4),
    torch.cuda.HalfTensor([1.0, 2.0]),
    torch.ones(4).type("torch.cuda.HalfTensor"),
    torch.ones(4, device="cuda") + torch.tensor(1.0),
    torch.normal(0.0, 1.0, (4,), device="cuda"),
    torch.randn(4, generator=torch.Generator("cuda").manual_seed(0), device="cuda"),
    torch.rand_like(torch.ones(4), device="cuda"),
    torch.ones(4, device="cuda").new_zeros(3),
    torch.nn.Linear(2, 2, device="cuda").weight,
    torch.nn.Parameter(torch.ones(4, device="cuda")),
    copy.deepcopy(torch.ones(4, device="cuda")),
    torch.eye(3, device="cuda") @ torch.eye(3, device="cuda"),
    torch.ones(4, device="cuda")[torch.tensor([0, 1])],
    torch.cat([torch.ones(4, device="cuda")] * 2),
):
    assert made.is_cuda
    assert made.device == CUDA
    assert made.device.index == 0
    assert made.get_device() == 0
    assert not made.is_meta
    assert not made.is_cpu
    assert "cuda" in str(made.device)
assert torch.ones(4, device="cuda").type() == "torch.cuda.FloatTensor"
assert isinstance(torch.ones(4, device="cuda"), torch.cuda.FloatTensor)
assert torch.Generator(device="cuda").device.type == "cuda"
assert isinstance(torch.default_generator, torch.Generator)

with torch.device("cuda"):
    assert torch.ones(4).is_cuda
    assert torch.nn.Linear(2, 2).weight.is_cuda
    assert not torch.ones(4, device="cpu").is_cuda
assert not torch.ones(4).is_cuda
torch.set_default_device("cuda")
assert torch.zeros(4).is_cuda
assert torch.arange(4).is_cuda
torch.set_default_device(None)
assert not torch.zeros(4).is_cuda

# A tensor that the script itself makes without data, stays so.
abstract = torch.empty(4, 4, device="meta")
assert abstract.is_meta
assert (abstract + 1).device.type == "meta"
assert not (abstract @ abstract).is_cuda

back = torch.ones(4, device="cuda").cpu()
assert back.device.type == "cpu"
assert not back.is_cuda
assert back.tolist() == [1.0] * 4 or len(back.tolist()) == 4
assert (torch.randn(99999, device="cuda").cpu() + 1).device.type == "cpu"
assert torch.randn(99999, device="cuda").to("cpu").cuda().is_cuda
module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).to("cuda").half()
assert next(module.parameters()).is_cuda
assert module(torch.ones(2, 2, device="cuda", dtype=torch.float16)).is_cuda
assert not next(module.cpu().parameters()).is_cuda

x = torch.zeros(8, device="cuda")
x += 1
x.mul_(2).add_(torch.ones(8, device="cuda"))
x[2:4] = 5
x.fill_(3)
x.zero_()
torch.add(x, x, out=x)
