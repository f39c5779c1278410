"""The colours of graphs, each named once; those of layouts come from `irscope.render.layout.colors`."""

from __future__ import annotations

INK, SOFT, PAPER, PLAIN = "#16181d", "#6b7280", "#ffffff", "#f1f3f5"
BORDER, FADED = "#9aa3af", "#c3c8d0"
FRAME, LOOP, INNER_LOOP, BRANCH = "#fafbfc", "#dfe7f3", "#cdd9ec", "#f4ecd8"
BACK = "#1d4ed8"
"""What goes to the next iteration of a loop."""
BAD = "#c81e1e"
"""What failed, or what costs time by itself: spills, layout conversions."""
