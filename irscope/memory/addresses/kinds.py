"""Kind: the type of a value as far as addresses need it: shape, bits, and what a pointer points to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.tokens import closing, split_commas
from irscope.ir.mlir.types import element_bits

__all__ = ["MOST_ELEMENTS", "Kind", "kind_of", "kinds_of_results"]

MOST_ELEMENTS = 1 << 20
"""Elements of a tensor; Triton allows no more."""

# 128x1x!tt.ptr<f32>   64xi1
_SIZES = re.compile(r"(?:\d{1,9}x){0,16}")
# i32   i1
_INTEGER = re.compile(r"i(\d{1,3})$")


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a scalar or tensor."""

    shape: tuple[int, ...]
    element: str
    """`i32`, `f16`, `!tt.ptr<f16>`, …"""

    @property
    def bits(self) -> int:
        """Bits of an integer or pointer of at most 64 bits; 0 for everything else."""
        if self.element.startswith("!tt.ptr<") or self.element == "index":
            return 64
        match = _INTEGER.match(self.element)
        return int(match[1]) if match and int(match[1]) <= 64 else 0

    @property
    def pointee_bits(self) -> int:
        """Bits in memory of what a pointer points to; 0 for everything else."""
        if not self.element.startswith("!tt.ptr<"):
            return 0
        end = closing(self.element, self.element.index("<"))
        return element_bits(split_commas(self.element[len("!tt.ptr<") : end])[0])

    @property
    def pointee(self) -> Kind:
        """The type of what a load through such pointers gives."""
        end = closing(self.element, self.element.index("<"))
        return Kind(self.shape, split_commas(self.element[len("!tt.ptr<") : end])[0])


@lru_cache(maxsize=8192)
def kind_of(text: str) -> Kind:
    """Read a type; of one that is neither scalar nor tensor only the text is kept."""
    if not text.startswith("tensor<"):
        return Kind((), text)
    inside = split_commas(text[len("tensor<") : closing(text, len("tensor"))])[0]
    sizes = _SIZES.match(inside)
    written = sizes[0] if sizes else ""
    shape = tuple(int(size) for size in written.split("x") if size)
    return Kind(shape if prod(shape) <= MOST_ELEMENTS else (), inside[len(written) :])


def kinds_of_results(operation: Operation) -> tuple[Kind, ...]:
    """The kinds of an operation's results."""
    return tuple([kind_of(one.text) for one in operation.result_types])
