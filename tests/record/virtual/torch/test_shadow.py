"""What the virtual GPU claims to know of its tensors, against plain CPU tensors that went through the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("triton", reason="the virtual GPU stands in for Triton's driver, and Triton is not installed")
pytestmark = [
    pytest.mark.triton,
    pytest.mark.newest,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    """What tells a virtual GPU of a launch's arguments; the GPU is there while the tests of this module run."""
    import torch

    from irscope.model.capture import Target
    from irscope.record.virtual.gpu import virtual_gpu

    with virtual_gpu(Target.parse("cuda:90")):
        # Threads of a test's own would change the sums.
        torch.set_num_threads(1)
        from irscope.record.virtual.torch.session import forget_written

        yield forget_written


def known_values(tensor: Any) -> Any:
    """What the virtual GPU claims of a tensor; None where it claims nothing."""
    from irscope.record.virtual.torch import memory as virtual_memory

    # As the mode itself looks at it: for the program, no tensor is data-less.
    with _torch()._C.DisableTorchFunction():
        found = virtual_memory.values_of(tensor)
    return None if found is None or found.is_placeholder else found.values


def test_small_random_numbers_are_drawn_and_stored_apart_from_data(device: Any) -> None:
    from irscope.record.virtual.torch.memory import recorded_values

    torch = _torch()
    lengths = torch.randint(0, 500, (64,), device="cuda", dtype=torch.int32) * 2
    found = recorded_values(lengths, 0)
    assert found["drawn"]
    assert "data" not in found
    assert 0 <= found["least"] < found["greatest"] < 1000
    assert recorded_values(torch.arange(64, device="cuda"), 0).keys() == {"data", "least", "greatest"}
    # A table of indices: its range alone. Of random floats nothing.
    table = torch.randint(0, 1000, (1 << 14,), device="cuda")
    assert recorded_values(table, 0).keys() == {"least", "greatest"}
    assert not recorded_values(torch.rand(64, device="cuda"), 1 << 20)


class Pair:
    """One tensor twice: on the virtual GPU, and on the CPU."""

    def __init__(self, virtual: Any, real: Any) -> None:
        self.virtual, self.real = virtual, real


def start(kind: int, size: int) -> Pair:
    """A tensor to begin with; the values of the last kind are nobody's to know."""
    import torch

    numbers = torch.arange(size * 3).reshape(size, 3)
    makers: tuple[Callable[[Any], Any], ...] = (
        lambda place: torch.arange(size * 3, device=place).reshape(size, 3),
        lambda place: torch.zeros(size, 3, device=place, dtype=torch.int64),
        lambda place: torch.full((size, 3), 7, device=place),
        lambda place: torch.tensor(numbers.tolist(), device=place),
        lambda place: (numbers * 5 % 7).to(place),
        lambda place: torch.ones(size, 3, device=place) * 0.5,
        lambda place: torch.linspace(0, 1, size * 3, device=place).view(size, 3),
        lambda place: torch.eye(size, 3, device=place),
    )
    if kind < len(makers):
        return Pair(makers[kind]("cuda"), makers[kind]("cpu"))
    return Pair(torch.empty(size, 3, device="cuda", dtype=torch.int64), torch.randint(50, 99, (size, 3)))


def _write_part(a: Any, b: Any) -> None:
    a[0] = b.reshape(-1)[0]


def _write_mask(a: Any, b: Any) -> None:
    a[a > 2] = 1


def _write_indexed(a: Any, b: Any) -> None:
    import torch

    rows = torch.zeros(1, dtype=torch.int64, device=a.device)
    a.index_put_((rows,), torch.ones((), dtype=a.dtype, device=a.device))


def _write_out(a: Any, b: Any) -> None:
    import torch

    torch.add(b, 1, out=a) if a.shape == b.shape and a.dtype == b.dtype else None


def _write_all(a: Any, b: Any) -> None:
    a[:] = 4


def _write_foreach(a: Any, b: Any) -> None:
    import torch

    torch._foreach_add_([a], 2)


def _write_data(a: Any, b: Any) -> None:
    a.data.mul_(2)


def _write_gradient(a: Any, b: Any) -> None:
    import torch

    leaf = torch.ones(2, device=a.device, requires_grad=True)
    leaf.grad = torch.zeros(2, device=a.device)
    (leaf * 3).sum().backward()
    a.copy_(leaf.grad.sum().expand(a.shape))


def _swap(a: Any, b: Any) -> None:
    a.data = b.data if a.shape == b.shape and a.dtype == b.dtype else a.data


MAKES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + 1,
    lambda a, b: a * b if a.shape == b.shape else a * 2,
    lambda a, b: a[0],
    lambda a, b: a[..., :2],
    lambda a, b: a[..., ::2],
    lambda a, b: a.t() if a.dim() == 2 else a,
    lambda a, b: a.reshape(-1),
    lambda a, b: a.unsqueeze(0).expand(2, *a.shape).contiguous()[1],
    lambda a, b: a.flatten().cumsum(0),
    lambda a, b: a.sum(),
    lambda a, b: a.max(),
    lambda a, b: a.cummax(-1)[0] if a.dim() else a,
    lambda a, b: a.to(dtype=_float32()),
    lambda a, b: a.clone(),
    lambda a, b: a.detach(),
    lambda a, b: _torch().cat([a.flatten(), b.flatten().to(a.dtype)]),
    lambda a, b: _torch().stack([a, a]),
    lambda a, b: _torch().where(a > 1, a, -a),
    lambda a, b: _torch().empty_like(a).copy_(a),
    lambda a, b: _torch().zeros_like(a),
    lambda a, b: a.view(_torch().int32) if a.dtype == _torch().int64 and a.dim() and a.stride(-1) == 1 else a,
    lambda a, b: a.flatten().sort().values,
    lambda a, b: a.chunk(2)[0] if a.dim() and a.shape[0] else a,
    lambda a, b: a == 4,
    lambda a, b: a.flatten()[b.flatten()[:1].long() * 0] if a.numel() and b.numel() else a,
    lambda a, b: _torch().nn.functional.pad(a, (1, 0)) if a.dim() else a,
    lambda a, b: a.diff() if a.dim() else a,
)
WRITES: tuple[Callable[[Any, Any], None], ...] = (
    lambda a, b: a.add_(1),
    lambda a, b: a.zero_(),
    lambda a, b: a.fill_(3),
    lambda a, b: a.copy_(b) if a.shape == b.shape else None,
    lambda a, b: a.flatten().mul_(3) if a.is_contiguous() else None,
    lambda a, b: a.clamp_(max=2),
    lambda a, b: a.t_() if a.dim() == 2 else None,
    lambda a, b: a.masked_fill_(a > 3, 9),
    _write_part,
    _write_mask,
    _write_indexed,
    _write_out,
    _write_all,
    _write_foreach,
    _write_data,
    _write_gradient,
    _swap,
)


def _torch() -> Any:
    import torch

    return torch


def _float32() -> Any:
    return _torch().float32


def both(step: Callable[[Any, Any], Any], first: Pair, second: Pair) -> Pair | None:
    """One step on either side; None where the real one refuses it."""
    try:
        real = step(first.real, second.real)
    except (RuntimeError, IndexError, TypeError):
        return None
    virtual = step(first.virtual, second.virtual)
    return Pair(virtual, real) if isinstance(real, _torch().Tensor) else None


def check(pairs: list[Pair]) -> int:
    """How many tensors are known; each must be what the CPU says."""
    torch = _torch()
    count = 0
    for pair in pairs:
        assert pair.virtual.is_cuda
        assert tuple(pair.virtual.shape) == tuple(pair.real.shape)
        values = known_values(pair.virtual)
        if values is not None:
            count += 1
            assert values.dtype == pair.real.dtype
            assert torch.equal(values, pair.real), (values, pair.real)
    return count


STEP = st.tuples(st.booleans(), st.integers(0, 63), st.integers(0, 63), st.integers(0, 63))


@settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    kinds=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=3),
    steps=st.lists(STEP, min_size=1, max_size=14),
)
def test_what_is_known_is_what_the_cpu_has(
    device: Any, kinds: list[tuple[int, int]], steps: list[tuple[bool, int, int, int]]
) -> None:
    run_steps(device, kinds, steps)


def run_steps(device: Any, kinds: list[tuple[int, int]], steps: list[tuple[bool, int, int, int]]) -> int:
    """Go through one sequence of steps; returns how many values were compared."""
    pairs = [start(kind, size) for kind, size in kinds]
    compared = check(pairs)
    for writes, which, one, other in steps:
        first, second = pairs[one % len(pairs)], pairs[other % len(pairs)]
        if writes and which % (len(WRITES) + 1) == len(WRITES):
            # A kernel was given it, and wrote.
            device(None, None, (first.virtual,))
            first.real.fill_(11 if first.real.dtype != _torch().bool else True)
        elif writes:
            both(WRITES[which % len(WRITES)], first, second)
        elif (made := both(MAKES[which % len(MAKES)], first, second)) is not None:
            pairs.append(made)
        compared += check(pairs)
    return compared


def test_the_property_compares_something(device: Any) -> None:
    every = [(writes, which, 0, 0) for which in range(len(MAKES)) for writes in (False,)]
    assert run_steps(device, [(0, 3)], every) > len(MAKES) * 10


HAND: tuple[tuple[str, str, Any], ...] = (
    ("a view sees what is written to its base", "x = arange(6); y = x.view(2, 3)[1]; x += 1; r = y", [4, 5, 6]),
    ("a base sees what is written to its view", "x = zeros(4, dtype=i64); x[1:3] = 5; r = x", [0, 5, 5, 0]),
    ("an unknown part makes all unknown", "x = arange(4); x[1] = empty((), dtype=i64); r = x", None),
    ("written whole, it is known again", "x = empty(3, dtype=i64); x.fill_(2); r = x", [2, 2, 2]),
    ("a known copy", "x = empty(3, dtype=i64); x.copy_(arange(3)); r = x", [0, 1, 2]),
    ("an unknown copy", "x = arange(3); x.copy_(empty(3, dtype=i64)); r = x", None),
    ("out= of known operands", "x = empty(3, dtype=i64); torch.add(arange(3), 1, out=x); r = x", [1, 2, 3]),
    ("out= of unknown operands", "x = arange(3); torch.add(empty(3, dtype=i64), 1, out=x); r = x", None),
    ("index_put", "x = zeros(4); x.index_put_((tensor([1, 1]),), tensor([2.0, 3.0]), True); r = x", [0, 5, 0, 0]),
    ("scatter", "r = zeros(3).scatter_(0, tensor([2, 0]), tensor([1.0, 4.0]))", [4, 0, 1]),
    ("from the CPU", "r = torch.tensor([1, 2]).cuda() * 3", [3, 6]),
    ("to the CPU and back", "x = arange(3); y = x.cpu(); x.zero_(); r = y.cuda()", [0, 1, 2]),
    ("not initialised", "r = torch.empty_like(arange(3))", None),
    ("random", "r = torch.randn(3, device='cuda')", None),
    ("random like a known one", "r = torch.rand_like(zeros(3))", None),
    ("random in place", "r = zeros(3).uniform_()", None),
    ("dropout of a known one", "r = torch.nn.functional.dropout(ones(8), 0.5)", None),
    ("random integers stand in", "r = torch.randint(0, 9, (3,), device='cuda')", None),
    ("what follows from random integers", "r = torch.randint(0, 9, (3,), device='cuda').cumsum(0) + 1", None),
    ("detached", "x = ones(2).requires_grad_(); r = (x * 2).detach()", [2, 2]),
    (
        "a gradient is added to",
        "x = ones(2).requires_grad_(); x.grad = zeros(2); (x * 3).sum().backward(); r = x.grad",
        None,
    ),
    (
        "a gradient set to zero, then added to",
        "x = ones(2).requires_grad_(); x.sum().backward(); x.grad.zero_(); x.sum().backward(); r = x.grad",
        None,
    ),
    (
        "an optimiser",
        "x = ones(2).requires_grad_(); x.grad = ones(2); torch.optim.SGD([x], lr=0.5).step(); r = x",
        [0.5] * 2,
    ),
    (
        "an optimiser without gradients known",
        "x = ones(2).requires_grad_(); x.sum().backward(); torch.optim.SGD([x], lr=0.5).step(); r = x",
        None,
    ),
    (
        "running averages",
        "m = zeros(3); torch.nn.functional.batch_norm(empty(4, 3), m, ones(3), training=True); r = m",
        None,
    ),
    ("another type on the same bytes", "x = ones(2); x.view(torch.int32).zero_(); r = x", [0, 0]),
    ("inference mode", "with torch.inference_mode(): x = arange(3); x += 1; r = x * 2", [2, 4, 6]),
    ("inference mode, unknown", "with torch.inference_mode(): x = arange(3); x += empty(3, dtype=i64); r = x", None),
    ("set data", "x = zeros(2); x.data = ones(2); r = x", [1, 1]),
    ("resized", "x = arange(4); x.untyped_storage().resize_(64); r = x", None),
    ("a deep copy", "import copy; x = arange(2); y = copy.deepcopy(x); x += 5; r = y", [0, 1]),
    ("a mask", "x = arange(5); r = x[x > 2]", [3, 4]),
    ("unique", "r = tensor([3, 1, 3]).unique()", [1, 3]),
    ("too many", "r = zeros(1 << 20)", None),
    ("a matrix product", "r = (torch.eye(2, device='cuda') @ tensor([[1.0], [2.0]])).flatten()", [1, 2]),
    ("as strided", "x = arange(6); y = torch.as_strided(x, (2,), (3,)); x[3] = 9; r = y", [0, 9]),
    ("conjugated", "x = tensor([1 + 2j]); r = x.conj().imag", [-2]),
    ("a graph replayed", "x = arange(3); torch.cuda.CUDAGraph().replay(); r = x", None),
)


@pytest.mark.parametrize(("program", "expected"), [row[1:] for row in HAND], ids=[row[0] for row in HAND])
def test_by_hand(device: Any, program: str, expected: Any) -> None:
    torch = _torch()
    names: dict[str, Any] = {"torch": torch, "i64": torch.int64}
    for name in ("arange", "zeros", "ones", "empty", "tensor", "full"):
        names[name] = _on_device(getattr(torch, name))
    exec(program, names)
    values = known_values(names["r"])
    if expected is None:
        assert values is None
    else:
        assert values is not None
        assert values.tolist() == expected


def _on_device(make: Any) -> Any:
    return lambda *args, **kwargs: make(*args, device="cuda", **kwargs)


def test_the_programs_own_random_numbers_are_not_used_up(device: Any) -> None:
    torch = _torch()
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    torch.nn.functional.dropout(torch.ones(8, device="cuda"))
    torch.ones(8, device="cuda").bernoulli_()
    assert torch.equal(torch.rand(4), expected)
