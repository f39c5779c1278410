import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n) * factor, offsets < n)


@triton.jit
def scale_backward_kernel(g_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(g_ptr + offsets, offsets < n) * factor, offsets < n)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), factor, BLOCK=256)
        ctx.save_for_backward(x)
        ctx.factor = factor
        return out

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        assert gradient.is_cuda
        assert gradient.device == x.device
        # A read of data within a backward pass.
        assert torch.equal(gradient, gradient.clone())
        assert not torch.isnan(gradient).any()
        out = torch.empty(gradient.shape, device=gradient.device, dtype=gradient.dtype)
        scale_backward_kernel[(triton.cdiv(x.numel(), 256),)](
            gradient.contiguous(), out, x.numel(), ctx.factor, BLOCK=256
        )
        return out, None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.norm = torch.nn.LayerNorm(128)
        self.second = torch.nn.Linear(128, 8)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        return self.second(Scale.apply(torch.nn.functional.gelu(self.norm(self.first(x))), 2.0))


net = Net().cuda().train()
assert all(parameter.is_cuda for parameter in net.parameters())
assert net.steps.is_cuda
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(2):
    x = torch.randn(16, 64, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1))
    loss = torch.nn.functional.cross_entropy(net(x), torch.randint(0, 8, (16,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.3f}", loss)
assert net.first.weight.grad.shape == (128, 64)
assert net.first.weight.grad.is_cuda

# A leaf on the host, as many tests have them: its gradient comes back to the host.
leaf = torch.randn(32, 32, requires_grad=True)
Scale.apply(leaf.cuda(), 3.0).sum().backward()
assert leaf.grad.device.type == "cpu"
assert leaf.grad.shape == leaf.shape
(gradient,) = torch.autograd.grad(Scale.apply(leaf.to("cuda"), 3.0).sum(), leaf)
assert not gradient.is_cuda

# Mixed precision.
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    out = net(x)
    assert out.dtype == torch.bfloat16
    total = torch.nn.functional.softmax(out, dim=-1).sum()
    assert total.dtype == torch.float32
scaler.scale(total).backward()
scaler.step(optimizer)
scaler.update()

with torch.no_grad():
    assert not net(x).requires_grad
with torch.inference_mode():
    net(x).sum().item()
state = {name: value.cpu() for name, value in net.state_dict().items()}
assert all(not value.is_cuda for value in state.values())
