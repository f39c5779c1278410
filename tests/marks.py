"""Marks that several tests share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest


def newest_but(older: Collection[str], *cases: str, rare: Collection[str] = ()) -> list[Any]:
    """These cases as parameters: `older` are run under every version of Triton, the others under the newest alone.

    `rare` are those that `make exhaustive` alone runs.
    """
    marks = {
        case: pytest.mark.exhaustive if case in rare else pytest.mark.newest for case in cases if case not in older
    }
    return [pytest.param(one, marks=marks.get(one, ())) for one in cases]


def sampled(cases: Iterable[Any], every: int, *, name: Callable[[Any], str] = str) -> list[Any]:
    """These cases as parameters, each with its name: one in so many is run every day, all by `make exhaustive`."""
    return [
        pytest.param(case, id=name(case), marks=pytest.mark.exhaustive if at % every else ())
        for at, case in enumerate(cases)
    ]
