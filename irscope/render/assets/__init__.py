"""The style sheets and scripts that rendered pages hold, as real files."""

from __future__ import annotations

from importlib.resources import files


def read_asset(name: str) -> str:
    """The text of one asset, such as `memory.css`."""
    return (files(__name__) / name).read_text("utf-8")
