"""Tensors that wrap others, and modules and parameters that are moved, swapped and copied with them."""

import copy

import torch
import triton
import triton.language as tl
from torch.nn import Linear, Parameter
from torch.utils import _pytree
from torch.utils._python_dispatch import return_and_correct_aliasing


@triton.jit
def dequantise(x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x_ptr + at, mask=at < n).to(tl.float32) * tl.load(scale_ptr)
    tl.store(out_ptr + at, values, mask=at < n)


class Scaled(torch.Tensor):
    """A quantised weight, as torchao's: a dense one is computed by a kernel, on the GPU alone."""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), dtype=torch.float32, device=data.device
        )

    def __init__(self, data, scale):
        self.data_, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["data_", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, _, size, stride):
        return cls(inner["data_"], inner["scale"])

    def __repr__(self):
        return "Scaled()"

    def dense(self):
        if not self.is_cuda:
            return self.data_ * self.scale
        assert self.data_.is_cuda
        assert self.data_.device.type == "cuda"
        out = torch.empty(self.shape, device=self.device)
        dequantise[(triton.cdiv(out.numel(), 128),)](self.data_, self.scale, out, out.numel(), BLOCK=128)
        return out

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        aten, kwargs = torch.ops.aten, kwargs or {}
        if func in (aten.detach.default, aten.alias.default, aten.clone.default, aten._to_copy.default):
            kwargs.pop("dtype", None)
            out = cls(*(func(one, **kwargs) for one in (args[0].data_, args[0].scale)))
            return return_and_correct_aliasing(func, args, kwargs, out)
        if func is aten.t.default:
            return cls(func(args[0].data_), args[0].scale)
        args, kwargs = _pytree.tree_map_only(Scaled, Scaled.dense, (args, kwargs))
        return func(*args, **kwargs)


def scaled(device):
    return Scaled(torch.ones(64, 64, dtype=torch.int8, device=device), torch.ones((), device=device))


def linear(device):
    layer = Linear(64, 64, bias=False, device=device)
    layer.weight = Parameter(scaled(device), requires_grad=False)
    assert isinstance(layer.weight, Scaled)
    assert layer.weight.device.type == device
    return layer


x = torch.ones(4, 64, device="cuda")
assert scaled("cuda").is_cuda
assert not scaled("cpu").is_cuda
assert torch.nn.functional.linear(x, scaled("cuda")).shape == (4, 64)
assert scaled("cpu").to("cuda").data_.is_cuda
assert scaled("cpu").cuda().is_cuda
for layer in (linear("cuda"), linear("cpu").to("cuda"), linear("cpu").cuda(), copy.deepcopy(linear("cuda"))):
    assert layer.weight.is_cuda
    assert layer(x).is_cuda
other = Linear(64, 64, bias=False, device="cuda")
other.load_state_dict(linear("cuda").state_dict(), assign=True)
assert isinstance(other.weight, Scaled)
assert other(x).is_cuda

first, second = torch.ones(4, device="cuda"), torch.zeros(8, device="cuda")
torch.utils.swap_tensors(first, second)
assert first.shape == (8,)
assert first.sum().item() == 0
assert second.sum().item() == 4
first, second = scaled("cuda"), torch.zeros(8)
torch.utils.swap_tensors(first, second)
assert not first.is_cuda
assert isinstance(second, Scaled)
assert second.is_cuda

torch.__future__.set_swap_module_params_on_conversion(True)
swapped = Linear(64, 64).to("cuda")
torch.__future__.set_swap_module_params_on_conversion(False)
swapped(x).sum().backward()
assert swapped.weight.is_cuda
assert swapped.weight.grad.is_cuda

parameter = Parameter(torch.ones(4))
parameter.data = parameter.data.cuda()
assert parameter.is_cuda
assert parameter.data.sum().item() == 4
parameter.data = torch.zeros(8, device="cuda", dtype=torch.float16)
assert parameter.shape == (8,)
assert parameter.dtype == torch.float16
parameter.data = parameter.data.cpu()
assert not parameter.is_cuda
wrapped = Parameter(scaled("cuda"), requires_grad=False)
wrapped.data = scaled("cuda")

nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged, device="cuda")
assert nested.is_cuda
assert (nested * 2).is_cuda
# Operators by their own names, as such classes call them.
assert torch.ops.aten.add(x, x).is_cuda
