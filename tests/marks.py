"""Marks that several tests share."""

from __future__ import annotations

from collections.abc import Collection
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
