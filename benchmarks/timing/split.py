"""The split of the families into those for tuning and those for validation, drawn before anything was measured."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Literal

Part = Literal["tuning", "validation"]

SEED = 35


def split(names: Iterable[str]) -> dict[str, Part]:
    """Assign each family by its name: of all of them, in alphabetical order, a random half is for tuning."""
    ordered = sorted(names)
    tuning = set(random.Random(SEED).sample(ordered, len(ordered) // 2))
    return {name: "tuning" if name in tuning else "validation" for name in ordered}
