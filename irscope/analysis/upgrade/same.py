"""Whether two texts of a stage are the same: to a compiler that reads them, or to the structural diff."""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.passes.effects import count_text
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import stage_named

__all__ = ["STRICT", "alike", "same_text"]

STRICT: frozenset[Ignored] = frozenset({"locations"})
"""What does not count between compiles of one version, which print alike."""

_KEPT = 64

# %acc_12, %0, ^bb1, #blocked3; not the number of a result, as in %0#1
_NAME = re.compile(r"[%^][\w$.-]{1,200}|#[A-Za-z_]\w{0,200}")


@lru_cache(maxsize=_KEPT)
def _comparable(text: str, stage: str) -> str:
    """A text without its locations; of MLIR with values, labels and aliases numbered as they first appear."""
    kind = stage_named(stage).kind
    stripped = strip_locations(text, kind)
    if kind != "mlir":
        return stripped
    lines = stripped.splitlines()
    aliases = [line for line in lines if line.startswith("#")]
    numbers: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{match[0][0]}{len(numbers)}")

    body = [_NAME.sub(numbered, line).rstrip() for line in lines if line and not line.startswith("#")]
    # After the body, which decides their numbers; those that it does not name go by what they are.
    aliases.sort(key=lambda line: _NAME.sub(lambda match: numbers.get(match[0], "?"), line.partition(" = ")[2]))
    return "\n".join([*body, *sorted(_NAME.sub(numbered, line) for line in aliases)])


def same_text(left: str, right: str, stage: str) -> bool:
    """Whether a compiler that reads them makes the same of both: they differ in names and locations alone."""
    return left == right or _comparable(left, stage) == _comparable(right, stage)


def alike(left: str, right: str, ignore: frozenset[Ignored]) -> bool:
    """Whether the structural diff finds no difference of two texts of MLIR; `ignore`: as of `diff_texts`.

    Operations may stand in another order, so a compiler may make something else of the two.
    """
    if left == right:
        return True
    # Far cheaper than to align two texts that are not alike.
    if count_text(left).operations != count_text(right).operations:
        return False
    return same_text(left, right, "ttgir") or diff_texts(left, right, "mlir", ignore=ignore).is_empty
