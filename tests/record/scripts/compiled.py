import torch


@torch.compile
def gate(x, y):
    return torch.nn.functional.gelu(x) * y + 1


x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
assert gate(x, y).shape == (64, 256)
assert gate(x, y).is_cuda
assert gate(x.cpu(), y.cpu()).device.type == "cpu"

net = torch.compile(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)).cuda())
net(torch.randn(8, 64, device="cuda")).sum().backward()
assert net[0].weight.grad.is_cuda


@torch.compile
class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x)) * x


@torch.compile(dynamic=False)
class Plain:
    def __call__(self, x):
        return x + 1


assert isinstance(Gated, type)
gated = Gated().cuda()
assert isinstance(gated, Gated)
gated(torch.randn(8, 64, device="cuda")).sum().backward()
assert gated.linear.weight.grad.is_cuda
assert isinstance(Plain(), Plain)
assert Plain()(x).is_cuda
