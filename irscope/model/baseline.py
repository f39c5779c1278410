"""A baseline: the facts of each kernel's variants, written down to be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Baseline", "BaselineFacts", "BaselineValue"]

BaselineValue = int | float | str | tuple[str, ...]
BaselineFacts = Mapping[str, BaselineValue]
"""By name."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was written down of some kernels."""

    kernels: Mapping[str, Mapping[str, BaselineFacts]] = field(default_factory=dict[str, Any])
    """`KERNEL TARGET` → variant → its facts. A variant is `x=*fp16%16 n=i32 BLOCK=64 num_warps=8`."""
    tolerances: tuple[str, ...] = ()
    """How much worse facts may be: `registers=4`."""
    triton_versions: tuple[str, ...] = ()
    """Those that compiled them."""
