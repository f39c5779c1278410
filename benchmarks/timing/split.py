"""The split of the families into those for tuning and those for validation, drawn before anything was measured.

Families whose names begin with `fresh_` were written later, without sight of the model: a second validation set.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Literal

Part = Literal["tuning", "validation", "fresh"]
PARTS: tuple[Part, ...] = ("tuning", "validation", "fresh")

SEED = 35


def split(names: Iterable[str]) -> dict[str, Part]:
    """Assign each family by its name: of all that are not fresh, in alphabetical order, a random half is for tuning."""
    every = sorted(names)
    ordered = [name for name in every if not name.startswith("fresh_")]
    tuning = set(random.Random(SEED).sample(ordered, len(ordered) // 2))
    parts: dict[str, Part] = {name: "tuning" if name in tuning else "validation" for name in ordered}
    return parts | {name: "fresh" for name in every if name.startswith("fresh_")}
