"""A launch made again by the process of another interpreter: its inputs, and what it leaves, go through files.

Both processes run the same script up to the same launch. What that is given need not be the same in both (random
numbers of another torch), so the one's floats are put in the place of the other's. Integers are not: they may be
addresses, or indices that only fit their own launch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import torch

from irscope.device.measurement import Agreement
from irscope.record.gpu.memory import KeptArguments
from irscope.record.gpu.values import float_format

__all__ = ["check_outputs", "store_inputs", "store_outputs", "take_inputs"]

_POISONS = (0, 1)
_HEADER = "memory.json"


def store_inputs(kept: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> None:
    """Store the memory of a launch as it was given, but what is only written."""
    (folder / _HEADER).write_text(json.dumps(_header(kept)), "utf-8")
    for number, one in enumerate(kept.storages):
        if not one.is_output:
            torch.save(one.pristine.cpu(), folder / str(number))
            alive()


def take_inputs(kept: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> str:
    """Put stored inputs in the place of a launch's own; returns why that cannot be done, or an empty text.

    The reference of the launch is no longer one then, unless the inputs were the same.
    """
    if json.loads((folder / _HEADER).read_text("utf-8")) != _header(kept):
        return "the two launches have other numbers or tensors, or use them otherwise"
    floats: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number, one in enumerate(kept.storages):
        if one.is_output:
            continue
        given = torch.load(folder / str(number), weights_only=True).to(one.pristine.device)
        alive()
        if torch.equal(given, one.pristine):
            continue
        if one.mixed or float_format(one.dtype) is None:
            return f"{one.name} holds other integers when the script is run by the other environment"
        floats.append((one.pristine, given))
    for own, given in floats:
        own.copy_(given)
    return ""


def store_outputs(
    kept: KeptArguments, run: Callable[[], None], folder: Path, alive: Callable[[], None] = lambda: None
) -> None:
    """Launch with each poison, and store the memory that the launch changes."""
    for poison in _POISONS:
        kept.fill(poison)
        run()
        for number, one in enumerate(kept.storages):
            if one.reference is not None:
                torch.save(one.body.cpu(), folder / f"{poison}-{number}")
                alive()


def check_outputs(kept: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> Agreement:
    """Compare what `store_outputs` of another process stored with what this launch leaves, as a variant's runs are."""
    poisons = cycle(_POISONS)

    def put() -> None:
        poison = next(poisons)
        for number, one in enumerate(kept.storages):
            path = folder / f"{poison}-{number}"
            # What the other launch left alone is as it was at the launch.
            if path.exists():
                one.body.copy_(torch.load(path, weights_only=True))
                alive()

    return kept.check(put, alive, most=len(_POISONS))


def _header(kept: KeptArguments) -> list[object]:
    """What must be the same of two launches: their numbers, the memory behind their tensors, what becomes of it."""
    memory = [[one.names, one.pristine.numel(), str(one.dtype), one.is_output] for one in kept.storages]
    return [[repr(one) for one in kept.arguments if isinstance(one, (bool, int, float))], memory]
