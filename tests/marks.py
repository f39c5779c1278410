"""Marks that several tests share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def newest_but(older: Iterable[str], *cases: str) -> list[Any]:
    """These cases as parameters: `older` are run under every version of Triton, the others under the newest alone."""
    return [pytest.param(one, marks=() if one in older else pytest.mark.newest) for one in cases]
