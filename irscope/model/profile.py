"""The hardware's counters of a launch, per SASS instruction, as Nsight Compute exported them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What was measured of one launch of a capture's kernel."""

    page: str
    """Nsight Compute's source page of that launch as CSV: a row for each instruction."""
    device: str = ""
    """The name of the GPU; empty if the report does not say it."""
    tool: str = ""
    """`Nsight Compute 2025.3.1.0`; empty where only its export was read."""
    own_binary: bool = False
    """Whether the capture's own binary was launched; otherwise its instructions were compared as texts."""
