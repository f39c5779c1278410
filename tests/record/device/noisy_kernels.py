"""Ten kernels written with torch on the CPU: each with its sums in an order of one's choice, and wrong versions of it.

`run(arguments, order, wrong)`: the last argument is the output. `order`: how sums are split, 0 is the baseline's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Run = Callable[[list[Any], int, str], None]


@dataclass(frozen=True)
class Case:
    """One kernel with its arguments."""

    name: str
    make: Callable[[torch.Generator], list[Any]]
    run: Run
    uses: str
    wrongs: tuple[str, ...]
    """The ways in which `run` can be told to be wrong."""


def ordered_sum(x: torch.Tensor, order: int) -> torch.Tensor:
    """The sum of the last dimension in float32, in one of several orders: strided groups, then a tree over them."""
    groups = (32, 8, 128, 4, 64, 16, 512, 256)[order % 8]
    size = x.shape[-1]
    padded = torch.nn.functional.pad(x.float(), (0, -size % groups))
    parts = padded.unflatten(-1, (-1, groups)) if order % 2 else padded.unflatten(-1, (groups, -1)).transpose(-1, -2)
    total = torch.zeros(parts.shape[:-2] + parts.shape[-1:])
    for index in range(parts.shape[-2]):
        total = total + parts[..., index, :]
    while total.shape[-1] > 1:
        half = total.shape[-1] // 2
        total = total[..., :half] + total[..., half : 2 * half]
    return total[..., 0]


def _randn(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=generator).to(dtype)


def _softmax(arguments: list[Any], order: int, wrong: str) -> None:
    memory, out = arguments
    columns = out.shape[1]
    # Each row is followed by what a kernel without its mask would read.
    x = memory.float() if wrong == "dropped mask" else memory[:, :columns].float()
    top = x.amax(-1, keepdim=True)
    e = torch.exp(x - top)
    total = ordered_sum(e, order)[:, None]
    if wrong == "stale sum":
        total = torch.cat([total[:1], total[:-1]])
    if wrong == "one sum of a neighbour":
        total[5] = total[6]
    out.copy_((e / total)[:, :columns])


def _softmax_backward(arguments: list[Any], order: int, wrong: str) -> None:
    y, dy, dx = arguments
    product = y * dy
    if wrong == "dropped mask":
        product = torch.cat([product, product[:, :24].roll(1, 0)], 1)
    # The sum is rounded to the tensors' own format, as libraries do.
    total = ordered_sum(product, order).to(y.dtype)[:, None]
    if wrong == "stale sum":
        total = total.roll(1, 0)
    if wrong == "one sum of a neighbour":
        total[7] = total[8]
    dx.copy_(y * (dy - (0 if wrong == "no sum" else total)))


def _layer_norm(arguments: list[Any], order: int, wrong: str) -> None:
    x, weight, bias, out = arguments
    wide = x.float()
    columns = wide.shape[1]
    if wrong == "dropped mask":
        wide = torch.cat([wide, torch.zeros(wide.shape[0], 24)], 1)
    mean = ordered_sum(wide, order)[:, None] / columns
    centred = wide - mean
    variance = ordered_sum(centred * centred, order)[:, None] / columns
    if wrong == "stale variance":
        variance = variance.roll(1, 0)
    if wrong == "one mean of a neighbour":
        mean[3] = mean[4]
    y = (wide - mean)[:, :columns] * torch.rsqrt(variance + 1e-5)
    scale = weight.float().roll(1) if wrong == "swapped index" else weight.float()
    out.copy_(y * scale + bias.float())


def _matmul(arguments: list[Any], order: int, wrong: str) -> None:
    a, b, c = arguments
    inner = a.shape[1]
    step = (32, 16, 64, 8, 128, 48, 24, 96)[order % 8]
    total = torch.zeros(a.shape[0], b.shape[1])
    last = inner - step if wrong == "one step short" else inner
    for start in range(0, last, step):
        left = a[:, start : start + step].float()
        right = b[start : start + step].float()
        if wrong == "stale buffer" and start == 3 * step:
            right = b[start - step : start].float()
        if wrong == "stale tile" and start == 2 * step:
            left[32:64] = a[32:64, start - step : start].float()
        if wrong == "swapped index" and start == step:
            left = left.flip(1)
        total = total + left @ right
    c.copy_(total)


def _attention(arguments: list[Any], order: int, wrong: str) -> None:
    q, k, v, out = arguments
    size, head = q.shape
    scores = (q.float() @ k.float().t()) * head**-0.5
    if wrong != "dropped mask":
        scores = scores.masked_fill(torch.ones(size, size).triu(1).bool(), float("-inf"))
    block = (64, 32, 128, 16, 256, 64, 32, 16)[order % 8]
    top = torch.full((size, 1), float("-inf"))
    total, sums = torch.zeros(size, head), torch.zeros(size)
    for number, start in enumerate(range(0, size, block)):
        part = scores[:, start : start + block]
        fresh = torch.maximum(top, part.amax(1, keepdim=True))
        shrink = torch.exp(top - fresh).nan_to_num()
        p = torch.exp(part - fresh).nan_to_num()
        values = v[start : start + block].float()
        if wrong == "stale buffer" and number == 1:
            values = v[start - block : start].float()
        if wrong != "no rescaling":
            total, sums = total * shrink, sums * shrink[:, 0]
        total = total + p.to(q.dtype).float() @ values
        sums = sums + ordered_sum(p, order)
        top = fresh
    out.copy_(total / sums[:, None])


def _cross_entropy(arguments: list[Any], order: int, wrong: str) -> None:
    logits, labels, loss, gradient = arguments
    x = logits.float()
    top = x.amax(1, keepdim=True)
    e = torch.exp(x - top)
    total = ordered_sum(e[:, : -8 if wrong == "short sum" else None], order)[:, None]
    rows = torch.arange(len(labels))
    target = labels.roll(1) if wrong == "swapped index" else labels
    loss.copy_((torch.log(total) + top)[:, 0] - x[rows, target])
    p = e / total
    p[rows, target] -= 1.0
    gradient.copy_(p if wrong == "no mean" else p / len(labels))


def _rope(arguments: list[Any], order: int, wrong: str) -> None:
    x, cos, sin, out = arguments
    half = x.shape[1] // 2
    left, right = x[:, :half].float(), x[:, half:].float()
    c, s = cos.float(), sin.float()
    if wrong == "swapped index":
        c = c.roll(1, 0)
    if wrong == "swapped halves":
        left, right = right, left
    # A product that is rounded, or not, before it is added: what a fused multiply-add changes.
    if order % 2:
        first = (left.double() * c - right.double() * s).float()
        second = (right.double() * c + left.double() * s).float()
    else:
        first, second = left * c - right * s, right * c + left * s
    out.copy_(torch.cat([first, -second if wrong == "wrong sign" else second], 1))


def _gelu(arguments: list[Any], order: int, wrong: str) -> None:
    x, gate, out = arguments
    wide = x.double() if order % 2 else x.float()
    y = 0.5 * wide * (1 + torch.tanh(0.7978845608 * (wide + 0.044715 * wide**3)))
    other = gate.roll(1, 1) if wrong == "swapped index" else gate
    out.copy_(y.float() * (1.0 if wrong == "no gate" else other.float()))


def _column_sums(arguments: list[Any], order: int, wrong: str) -> None:
    x, dy, gradient = arguments
    product = (x.float() * dy.float()).t()
    if wrong == "dropped mask":
        product = torch.cat([product, product[:, :5]], 1)
    if wrong == "one block short":
        product = product[:, :-16]
    if wrong == "stale block":
        product[:, 64:96] = product[:, 32:64].clone()
    gradient.copy_(ordered_sum(product, order))


def _quantize(arguments: list[Any], order: int, wrong: str) -> None:
    x, scales, out = arguments
    wide = x.float()
    norm = torch.sqrt(ordered_sum(wide * wide, order) / wide.shape[1])[:, None]
    y = wide / norm
    scale = y.abs().amax(1, keepdim=True) / 127
    if wrong == "stale scale":
        scale = scale.roll(1, 0)
    out.copy_(torch.round(y / scale).clamp(-128, 127).to(torch.int8))
    scales.copy_(scale[:, 0])


HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def cases(dtype: torch.dtype) -> list[Case]:
    """The ten kernels on tensors of a dtype."""

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype)

    def softmaxed(g: torch.Generator) -> list[Any]:
        return [torch.softmax(_randn(g, 64, 1000), 1).to(dtype), _randn(g, 64, 1000, dtype=dtype), empty(64, 1000)]

    return [
        Case(
            "softmax",
            lambda g: [_randn(g, 64, 1024, dtype=dtype), empty(64, 1000)],
            _softmax,
            "r w",
            ("dropped mask", "stale sum", "one sum of a neighbour"),
        ),
        Case(
            "softmax_backward",
            softmaxed,
            _softmax_backward,
            "r r w",
            ("dropped mask", "stale sum", "one sum of a neighbour", "no sum"),
        ),
        Case(
            "layer_norm",
            lambda g: [
                (_randn(g, 64, 1000) + 1).to(dtype),
                _randn(g, 1000, dtype=dtype),
                _randn(g, 1000, dtype=dtype),
                empty(64, 1000),
            ],
            _layer_norm,
            "r r r w",
            ("dropped mask", "stale variance", "one mean of a neighbour", "swapped index"),
        ),
        Case(
            "matmul",
            lambda g: [_randn(g, 128, 512, dtype=dtype), _randn(g, 512, 128, dtype=dtype), empty(128, 128)],
            _matmul,
            "r r w",
            ("one step short", "stale buffer", "stale tile", "swapped index"),
        ),
        Case(
            "attention",
            lambda g: [*(_randn(g, 256, 64, dtype=dtype) for _ in range(3)), empty(256, 64)],
            _attention,
            "r r r w",
            ("dropped mask", "stale buffer", "no rescaling"),
        ),
        Case(
            "cross_entropy",
            lambda g: [
                _randn(g, 64, 2000, dtype=dtype),
                torch.randint(0, 2000, (64,), generator=g),
                torch.empty(64),
                empty(64, 2000),
            ],
            _cross_entropy,
            "r r w w",
            ("short sum", "swapped index", "no mean"),
        ),
        Case(
            "rope",
            lambda g: [
                _randn(g, 256, 128, dtype=dtype),
                *(
                    f(torch.arange(256.0)[:, None] * torch.rand(64, generator=g)).to(dtype)
                    for f in (torch.cos, torch.sin)
                ),
                empty(256, 128),
            ],
            _rope,
            "r r r w",
            ("swapped index", "swapped halves", "wrong sign"),
        ),
        Case(
            "gelu",
            lambda g: [_randn(g, 128, 500, dtype=dtype), _randn(g, 128, 500, dtype=dtype), empty(128, 500)],
            _gelu,
            "r r w",
            ("swapped index", "no gate"),
        ),
        Case(
            "column_sums",
            lambda g: [_randn(g, 500, 700, dtype=dtype), _randn(g, 500, 700, dtype=dtype), torch.empty(700)],
            _column_sums,
            "r r w",
            ("dropped mask", "one block short", "stale block"),
        ),
        Case(
            "quantize",
            lambda g: [
                _randn(g, 128, 500, dtype=dtype),
                torch.empty(128),
                torch.empty(128, 500, dtype=torch.int8),
            ],
            _quantize,
            "r w w",
            ("stale scale",),
        ),
    ]


def plant(kind: str, outputs: list[torch.Tensor], generator: torch.Generator) -> None:
    """Make a right result wrong in one place, as a store that goes wrong would; by a tenth of the value at least."""
    whole = [out for out in outputs if out.dim() == 2] or outputs
    out = whole[int(torch.randint(0, len(whole), (1,), generator=generator))]
    flat = out.view(-1)
    one, other = (int(torch.randint(0, flat.numel(), (1,), generator=generator)) for _ in range(2))

    def alike(left: int, right: int) -> bool:
        least = 0.1 * abs(float(flat[left])) if out.is_floating_point() else 0.0
        return abs(float(flat[left]) - float(flat[right])) <= least

    for _ in range(flat.numel()):
        if not alike(one, other):
            break
        other = (other + 1) % flat.numel()
    if kind == "one element is another's":
        flat[one] = flat[other].clone()
    elif kind == "one element is zero":
        while float(flat[one]) == 0:
            one = (one + 1) % flat.numel()
        flat[one] = 0
    elif kind == "one row is its neighbour":
        rows = out if out.dim() == 2 else out.view(-1, 4)
        row = one % (rows.shape[0] - 1)
        while torch.equal(rows[row], rows[row + 1]):
            row = (row + 1) % (rows.shape[0] - 1)
        rows[row] = rows[row + 1].clone()
    elif kind == "two elements are swapped":
        kept = flat[one].clone()
        flat[one] = flat[other].clone()
        flat[other] = kept
    elif kind == "a tile is shifted":
        start = one % (flat.numel() - 20)
        while torch.equal(flat[start : start + 16], flat[start + 1 : start + 17]):
            start = (start + 1) % (flat.numel() - 20)
        flat[start : start + 16] = flat[start + 1 : start + 17].clone()
    else:
        raise ValueError(kind)


PLANTS = (
    "one element is another's",
    "one element is zero",
    "one row is its neighbour",
    "two elements are swapped",
    "a tile is shifted",
)
