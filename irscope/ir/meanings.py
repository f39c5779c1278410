"""The meaning of an operation or instruction, in a few words: `meanings.json`, by language and prefix of the name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import cast

from irscope.model.capture import StageKind


def meanings_of(names: Iterable[str], kind: StageKind) -> dict[str, str]:
    """The meaning of each name that has one; of `ld.global.v4.b32` that of `ld.global`, its longest known start."""
    known = _tables().get(kind, {})
    meanings: dict[str, str] = {}
    for name in names:
        start = name
        while start and start not in known and kind != "mlir":
            start = start[: max(start.rfind("."), start.rfind("_"), 0)]
        if start in known:
            meanings[name] = known[start]
    return meanings


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, str]]:
    text = (files("irscope.ir") / "meanings.json").read_text("utf-8")
    return cast(dict[str, dict[str, str]], json.loads(text))
