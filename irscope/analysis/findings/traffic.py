"""The bytes that a program asks global memory for: the measure of what shared memory costs it."""

from __future__ import annotations

from math import prod

from irscope.ir.mlir.types import element_bits
from irscope.ir.mlir.uses import ModuleUses, OperationUse
from irscope.memory.machine import ACCESSES

__all__ = ["Traffic"]

_ITERATIONS_BITS = 4
_MOST_BITS = 16


class Traffic:
    """The bytes of a kernel's accesses to global memory, by the loops around them.

    How often a loop runs is not known: each counts 16 times, as it does for the order of findings.
    """

    def __init__(self, uses: ModuleUses) -> None:
        loops = [one for one in uses.module.walk() if one.kind == "loop"]
        self._loops = {one.first_line: loop.first_line for loop in loops for one in loop.walk() if one is not loop}
        """Line → that of the innermost loop around it: an inner loop comes after those around it."""
        self._sizes = {use.line: (_bytes_of(use), use.loops) for use in uses.operations if use.name in ACCESSES}
        self._all = sum(_repeated(*row) for row in self._sizes.values())

    def bytes_at(self, line: int) -> int:
        """What the access on a line of the TTGIR asks for, each time; 0 without one."""
        return self._sizes.get(line, (0, 0))[0]

    def share(self, size_bytes: int, loops: int) -> float:
        """The fraction of all traffic that some bytes within so many loops are; 1 if the kernel asks for none."""
        return _repeated(size_bytes, loops) / self._all if self._all else 1.0

    def told(self, line: int) -> str:
        """The bytes of all accesses within the loop around a line of the TTGIR, or outside of loops, in words.

        Of whole tiles: what a mask turns off is in them.
        """
        loop = self._loops.get(line)
        size = sum(size for at, (size, _) in self._sizes.items() if self._loops.get(at) == loop)
        inside = {at for at, around in self._loops.items() if around == loop}
        where = "in all" if not any(self._loops.get(at) for at in self._sizes) else "outside of loops"
        if loop is not None:
            has_inner = any(self._loops.get(at) in inside for at in self._sizes)
            where = f"in an iteration{', besides those of its inner loops' if has_inner else ''}"
        return f"global memory is asked for tiles of {size} bytes {where}"


def _repeated(size: int, loops: int) -> int:
    return size << min(_ITERATIONS_BITS * loops, _MOST_BITS)


def _bytes_of(use: OperationUse) -> int:
    """The bytes of an access: of what its pointers point to, of its result, or of the tile in shared memory."""
    pointees = [prod(kind.shape) * element_bits(kind.pointee) for kind in use.types if kind.pointee]
    tiles = [prod(kind.shape) * kind.element_bits for kind in (*use.result_types, *use.types)]
    return max(pointees or tiles, default=0) // 8
