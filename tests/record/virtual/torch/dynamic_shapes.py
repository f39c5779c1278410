"""Which sizes `torch.compile` makes symbols, call by call: Dynamo on CPU tensors, and then the virtual GPU.

`python -m tests.record.virtual.torch.dynamic_shapes [SEEDS]` prints the cases and how many differ.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
import torch._inductor.compile_fx as inductor

from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target

_SIZES = 1, 8, 8, 24, 40
_Calls = list[tuple[tuple[int, int], tuple[int, int], int, tuple[int, ...]]]


def calls_of(seed: int) -> tuple[bool | None, _Calls]:
    """The argument `dynamic`, and for each call the shapes of two tensors, a number, and the axes that are marked."""
    pick = random.Random(seed)
    dynamic = pick.choice([None, None, True, False])
    calls: _Calls = []
    for _ in range(pick.randrange(2, 6)):
        first, second = ((pick.choice(_SIZES), pick.choice(_SIZES)) for _ in range(2))
        marked = tuple(axis for axis in range(2) if first[axis] > 1 and pick.random() < 0.1)
        calls.append((first, second, pick.choice((2, 3, 7)), marked))
    return dynamic, calls


def graphs_of(seed: int, device: str, **options: Any) -> list[Any]:
    """What was compiled: for each call the graph's inputs, with symbols numbered as they come; [] for none."""
    made: list[Any] = []

    def compiled(graph: Any, inputs: Any, **_: Any) -> Any:
        numbers: dict[str, str] = {}

        def named(size: Any) -> Any:
            return size if isinstance(size, int) else numbers.setdefault(str(size), f"s{len(numbers)}")

        nodes = [node.meta for node in graph.graph.nodes if node.op == "placeholder"]
        values = [meta.get("example_value", meta.get("val")) for meta in nodes]
        shapes = [tuple(map(named, value.shape)) for value in values if isinstance(value, torch.Tensor)]
        for value in values:
            if not isinstance(value, torch.Tensor):
                named(value)
        made[-1] += [(shapes, len(numbers))]
        return graph.forward

    def function(x: Any, y: Any, n: int) -> tuple[Any, Any]:
        return x.sum() * n + y.sum(), x * 2

    dynamic, calls = calls_of(seed)
    torch._dynamo.reset()
    real = inductor.compile_fx
    inductor.compile_fx = compiled
    try:
        run = torch.compile(function, dynamic=dynamic, **(options or {"backend": compiled}))
        for first, second, number, marked in calls:
            made.append([])
            x, y = torch.ones(first, device=device), torch.ones(second, device=device)
            for axis in marked:
                torch._dynamo.mark_dynamic(x, axis)
            run(x, y, number)
    finally:
        inductor.compile_fx = real
    return made


def main() -> None:
    """Compare both, and end with exit code 1 if any case differs."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    expected = {seed: graphs_of(seed, "cpu") for seed in seeds}
    wrong = 0
    with virtual_gpu(Target.parse("cuda:90")):
        for seed in seeds:
            found = graphs_of(seed, "cuda", backend="inductor")
            if found != expected[seed]:
                wrong += 1
                print(seed, calls_of(seed), f"\n  Dynamo: {expected[seed]}\n  here:   {found}")
    symbolic = sum(count > 0 for graphs in expected.values() for made in graphs for _, count in made)
    graphs = sum(len(made) for graphs in expected.values() for made in graphs)
    print(f"{len(seeds)} programs, {graphs} graphs, {symbolic} with symbols, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
