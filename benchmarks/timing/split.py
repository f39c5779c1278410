"""The split of the families into those for tuning and those for validation, drawn before anything was measured.

Families whose names begin with `fresh_` were written later, without sight of the model: a second validation set. Those
whose names begin with `specialized_` have specialised warps, which are modelled and were not measured before. Those of
`unseen_` and `library_` were also written without sight of the model, after it had been fitted: kernels of other kinds,
and kernels of released libraries. Those of `held_` came after all of these, without sight of the model or of any
measured time, and those of `blind_` after them in the same way.
Those of `everyday_` came next, in the same way: kinds of kernels that are written most days. Those of `review_` came
after them, in the same way: kernels that libraries contain and users tune, good configurations and poor ones. Those of
`wide_` and `shelf_` came last, in the same way: 26 configurations of one problem each, and kernels of more released
libraries.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Literal, get_args

Part = Literal[
    "tuning", "validation", "fresh", "specialized", "unseen", "libraries", "held_out", "blind", "everyday", "review",
    "wide", "shelf",
]  # fmt: skip
PARTS: tuple[Part, ...] = get_args(Part)
_PREFIXES: dict[str, Part] = {
    "fresh_": "fresh",
    "specialized_": "specialized",
    "unseen_": "unseen",
    "library_": "libraries",
    "held_": "held_out",
    "blind_": "blind",
    "everyday_": "everyday",
    "review_": "review",
    "wide_": "wide",
    "shelf_": "shelf",
}

SEED = 35


def split(names: Iterable[str]) -> dict[str, Part]:
    """Assign each family by its name: of those of the first set, in alphabetical order, a random half is for tuning."""
    every = sorted(names)
    later: dict[str, Part] = {}
    for name in every:
        for prefix, part in _PREFIXES.items():
            if name.startswith(prefix):
                later[name] = part
    ordered = [name for name in every if name not in later]
    tuning = set(random.Random(SEED).sample(ordered, len(ordered) // 2))
    parts: dict[str, Part] = {name: "tuning" if name in tuning else "validation" for name in ordered}
    return parts | later
