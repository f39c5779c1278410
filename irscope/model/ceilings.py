"""Ceilings: what a GPU was measured to reach."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Ceilings"]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a GPU was measured to reach."""

    device: str
    """As its driver names it."""
    target: str
    bytes_per_s: float
    """Of a large copy, bytes read plus bytes written."""
    flops_per_s: tuple[tuple[str, float], ...] = ()
    """(torch's name of a dtype, rate of its matrix product)."""
    date: str = ""
