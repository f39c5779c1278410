"""A launch made again on the inputs of another process's: on the CPU, with Python for kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are exchanged are torch's")

from irscope.device.measurement import Agreement  # noqa: E402
from irscope.ir.mlir.uses import PointerUse, PointerUses  # noqa: E402
from irscope.record.gpu.launch import check_outputs, store_inputs, store_outputs, take_inputs  # noqa: E402
from irscope.record.gpu.memory import KeptArguments  # noqa: E402

Kernel = Callable[[list[Any]], None]


def kept(arguments: list[Any], kernel: Kernel, uses: str = "r rw w") -> tuple[KeptArguments, Callable[[], None]]:
    names = [f"p{number}" for number in range(len(arguments))]
    rows = tuple(PointerUse(name, "r" in use, "w" in use) for name, use in zip(names, uses.split(), strict=True))
    held = KeptArguments(names, arguments, {}, PointerUses(rows))

    def run() -> None:
        kernel(held.arguments)

    held.take_reference(run)
    return held, run


def arguments(seed: int) -> list[Any]:
    """Floats that are read, floats that are read and changed, and an output; all but the last from a seed."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(64, generator=draw), torch.randn(64, generator=draw), torch.zeros(64)]


def adds(given: list[Any]) -> None:
    given[1].mul_(2)
    given[2][:60] = given[0][:60] + given[1][:60]


def exchanged(before: Kernel, after: Kernel, folder: Path, uses: str = "r rw w") -> Agreement | str:
    """What comes of a launch by two kernels, whose scripts draw other numbers."""
    inputs, outputs = folder / "inputs", folder / "outputs"
    inputs.mkdir()
    outputs.mkdir()
    ours, _ = kept(arguments(1), before)
    theirs, run = kept(arguments(2), after, uses)
    store_inputs(ours, inputs)
    if why_not := take_inputs(theirs, inputs):
        return why_not
    theirs.take_reference(run)
    store_outputs(theirs, run, outputs)
    return check_outputs(ours, outputs)


def test_other_floats_are_replaced_and_the_same_kernel_is_identical(tmp_path: Path) -> None:
    assert exchanged(adds, adds, tmp_path) == Agreement("identical", 0.0, 0.0)


def test_one_element_that_differs_is_found_in_what_is_changed_and_in_the_output(tmp_path: Path) -> None:
    def other(given: list[Any]) -> None:
        adds(given)
        given[2][7] += 1

    def spoils(given: list[Any]) -> None:
        adds(given)
        given[1][3] = 9.0

    def leaves_out(given: list[Any]) -> None:
        given[1].mul_(2)
        given[2][:59] = given[0][:59] + given[1][:59]

    for number, (kernel, argument) in enumerate(((other, "p2"), (spoils, "p1"), (leaves_out, "p2"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = exchanged(adds, kernel, folder)
        assert isinstance(found, Agreement)
        assert (found.verdict, found.differing, found.argument) == ("different", 1, argument)


def test_another_order_of_rounding_is_close(tmp_path: Path) -> None:
    """The oracle: what differs is a unit in the last place at most, in elements that are not zero."""

    def rounded(given: list[Any]) -> None:
        adds(given)
        given[2][:60] = torch.nextafter(given[2][:60], torch.full((60,), 1e9))

    found = exchanged(adds, rounded, tmp_path)
    assert isinstance(found, Agreement)
    assert (found.verdict, found.differing) == ("close", 60)


def test_integers_of_another_run_are_not_taken(tmp_path: Path) -> None:
    def nothing(given: list[Any]) -> None:
        del given

    first, _ = kept([torch.tensor([1, 2])], nothing, "r")
    second, _ = kept([torch.tensor([1, 3])], nothing, "r")
    store_inputs(first, tmp_path)
    assert take_inputs(first, tmp_path) == ""
    assert take_inputs(second, tmp_path).startswith("p0 holds other integers")
    with_number = KeptArguments(
        ["p0", "n"], [torch.tensor([1, 2]), 5], {}, PointerUses((PointerUse("p0", True, False),))
    )
    assert take_inputs(with_number, tmp_path).startswith("the two launches differ in scalars")


def test_other_tensors_and_other_uses_are_not_compared(tmp_path: Path) -> None:
    assert exchanged(adds, adds, tmp_path, "r rw rw") == (
        "the two launches differ in scalars or tensors, or in their use of them"
    )
