"""Whether two texts of a stage are the same but for names, numbers and locations."""

from __future__ import annotations

from functools import lru_cache

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.passes.effects import count_text
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import stage_named

__all__ = ["same_text", "stripped"]

_STRICT: frozenset[Ignored] = frozenset({"locations"})
_KEPT = 64


@lru_cache(maxsize=_KEPT)
def stripped(text: str, stage: str) -> str:
    """A text without its locations."""
    return strip_locations(text, stage_named(stage).kind)


def same_text(left: str, right: str, stage: str, ignore: frozenset[Ignored] = _STRICT) -> bool:
    """Whether they are the same; `ignore`: as of `diff_texts`. Only MLIR is renumbered: of others names count."""
    if left == right:
        return True
    kind = stage_named(stage).kind
    if kind != "mlir":
        return stripped(left, stage) == stripped(right, stage)
    # Far cheaper than to align two texts that are not alike.
    if count_text(left).operations != count_text(right).operations:
        return False
    return stripped(left, stage) == stripped(right, stage) or diff_texts(left, right, kind, ignore=ignore).is_empty
