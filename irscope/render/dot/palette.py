"""The colours of graphs, each named once, and what they are in other themes; those of layouts are
`irscope.render.canvas`, and the same in each theme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.render.theme import theme_named

__all__ = [
    "BACK", "BAD", "BORDER", "BRANCH", "CHANGED", "CHANGED_EDGE", "EDGE", "FADED", "FAILED", "FRAME", "IDLE",
    "IDLE_EDGE", "INK", "INNER_LOOP", "LOOP", "PAPER", "PART_COLORS", "PLAIN", "SOFT", "STEADY", "UNKNOWN",
    "UNKNOWN_EDGE", "in_theme",
]  # fmt: skip

INK, SOFT, PAPER, PLAIN = "#16181d", "#6b7280", "#ffffff", "#f1f3f5"
EDGE, BORDER, FADED = "#4b5563", "#9aa3af", "#c3c8d0"
FRAME, LOOP, INNER_LOOP, BRANCH = "#fafbfc", "#dfe7f3", "#cdd9ec", "#f4ecd8"
STEADY = "#e5e7eb"
"""The turns of a pipelined loop in which all stages run."""
BACK = "#1d4ed8"
"""What goes to the next iteration of a loop."""
BAD = "#c81e1e"
"""What failed, or what costs time by itself: spills, layout conversions."""
CHANGED, IDLE, UNKNOWN, FAILED = "#bfe3d0", "#f6f7f9", "#fdf3cf", "#fbd5d5"
CHANGED_EDGE, IDLE_EDGE, UNKNOWN_EDGE = "#2f7d5b", "#d3d7de", "#b08900"
"""Of passes."""
PART_COLORS = {"dot": "#d55e00", "memory": "#0072b2", "shared": "#56b4e9", "exchange": "#cc79a7"}
"""Of what instructions do."""

_DARK: Mapping[str, str] = {
    INK: "#eceef2", SOFT: "#a9b0bc", PAPER: "#101216", PLAIN: "#1c222b",
    EDGE: "#a9b0bc", BORDER: "#5f6878", FADED: "#454c58",
    FRAME: "#191c22", LOOP: "#16263d", INNER_LOOP: "#1d3352", BRANCH: "#33290f", STEADY: "#30363d",
    BACK: "#7ab8ff", BAD: "#ff8a80",
    CHANGED: "#173d2d", IDLE: "#191c22", UNKNOWN: "#3d3210", FAILED: "#4d1f1f",
    CHANGED_EDGE: "#63c39b", IDLE_EDGE: "#383e49", UNKNOWN_EDGE: "#d8b03a",
    PART_COLORS["memory"]: "#4a9be0",
}  # fmt: skip
_PRINT: Mapping[str, str] = {INK: "#000000", SOFT: "#3f444c", EDGE: "#3f444c", BORDER: "#8c929c", FADED: "#8c929c"}
_OTHERS: Mapping[str, Mapping[str, str]] = {"light": {}, "dark": _DARK, "print": _PRINT}
# fillcolor="#dfe7f3"      BGCOLOR="#e5e7eb"; in a label a quote has a backslash before it, or is &quot;
_COLOR = re.compile(r'(?<=\w=")#[0-9a-f]{6}(?=")')


def in_theme(source: str, name: str | None) -> str:
    """A graph in the DOT language in the colours of a theme; None is light. Raises UsageError for one that is none."""
    colors = _OTHERS[theme_named(name or "light").name]
    return _COLOR.sub(lambda match: colors.get(match[0], match[0]), source)
