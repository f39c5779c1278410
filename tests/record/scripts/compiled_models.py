"""Five programs of increasing size under torch.compile, each with the kernels that it needs: forward and backward."""

import sys

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda"


class Mlp(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = functional.gelu(self.up(x))
        return self.down(hidden) + x


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.after = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).unbind(2)
        mixed = functional.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)))
        x = x + mixed.transpose(1, 2).reshape(batch, length, width)
        return self.mlp(self.after(x))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        return self.head(x.mean(dim=(2, 3)))


@torch.compile
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v


@torch.compile
def adam_step(parameters, gradients, means, squares, step):
    for parameter, gradient, mean, square in zip(parameters, gradients, means, squares, strict=True):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.sub_(mean / (square.sqrt() + 1e-8) / step)


@torch.compile
def branches(x):
    # A break of the graph: which way it goes depends on data.
    return x + 1 if x.sum() > 0 else x - 1


FREQUENCIES = torch.arange(0, 32, 2, dtype=torch.float32, device=DEVICE) / 32
OFFSETS = torch.arange(16, dtype=torch.float32)


@torch.compile(fullgraph=True, dynamic=True)
def rotate(x, positions):
    # Tensors of globals, on the GPU and on the host; scalars that are made on the device.
    angles = positions[:, None] * 10000.0**-FREQUENCIES + OFFSETS.to("cuda")
    first, second = x.chunk(2, -1)
    scale = torch.tensor(2.0, device=x.device)
    turned = torch.cat([first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1)
    return turned * scale


def train(model, shape):
    compiled = torch.compile(model.to(DEVICE))
    compiled(torch.randn(shape, device=DEVICE)).sum().backward()
    assert all(parameter.grad.shape == parameter.shape for parameter in model.parameters())


def attend():
    q, k, v = (torch.randn(2, 4, 32, 16, device=DEVICE, requires_grad=True) for _ in range(3))
    mask = torch.ones(32, 32, device=DEVICE, dtype=torch.bool).triu(1)
    masked_attention(q, k, v, mask).sum().backward()
    assert q.grad.shape == q.shape


def step():
    with torch.no_grad():
        rows = [[torch.randn(64, 32, device=DEVICE), torch.randn(64, device=DEVICE)] for _ in range(4)]
        adam_step(*rows, 3.0)


PROGRAMS = {
    "mlp": lambda: train(Mlp(), (8, 64)),
    "attention": attend,
    "step": step,
    "rotate": lambda: rotate(torch.randn(3, 32, device=DEVICE), torch.arange(3, device=DEVICE)),
    "branches": lambda: branches(torch.ones(8, device=DEVICE)),
    "block": lambda: train(Block(), (2, 32, 64)),
    "convolutions": lambda: train(Convolutions(), (2, 3, 16, 16)),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
