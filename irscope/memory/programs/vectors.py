"""Vectors: scalars of a kernel that depend on the program alone, as one value for each program."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from math import prod

import numpy as np

from irscope.memory.addresses.numbers import Integers, Number, Source, constant, token_of, wrapped

__all__ = ["Vectors"]


class Vectors:
    """The programs, and each scalar that differs between them: an atom whose value is known for every program."""

    def __init__(self, programs: Integers, grid: tuple[int, int, int]) -> None:
        self.programs = programs
        """The programs, each as x + width * (y + height * z)."""
        self.grid = grid
        self._of: dict[int, Integers] = {}

    @property
    def count(self) -> int:
        """How many programs there are."""
        return self.programs.size

    def program_id(self, axis: int) -> Number:
        """The program id along an axis."""
        return self.named(self.programs // prod(self.grid[:axis]) % self.grid[axis], 32)

    def named(self, values: Integers, bits: int) -> Number:
        """The scalar that has these values: a constant if all are equal."""
        low, high = int(values.min()), int(values.max())
        if low == high:
            return constant(low, bits)
        apart = values - low
        token = token_of(apart.tobytes())
        self._of[token] = apart
        return Number(
            np.array(low, np.int64), (), bits, np.array(token, np.uint64), int(np.gcd.reduce(apart)), 0, high - low,
            frozenset({Source("program", str(token))}), terms=((token, 1),),
        )  # fmt: skip

    def of_token(self, token: int) -> Integers | None:
        """The values of an atom; None if it is none that differs between the programs alone."""
        return self._of.get(token)

    def of_source(self, source: Source) -> Integers | None:
        """The values, less the least, of the scalar that something depends on; None if it is no such scalar."""
        return self._of.get(int(source.text)) if source.kind == "program" and source.text.isdigit() else None

    def split(self, number: Number) -> tuple[Integers, dict[int, int]] | None:
        """What a scalar, or the one unknown part of a tensor, adds in each program, and (token → factor) of the rest.

        None if it is no linear combination of atoms.
        """
        total = np.zeros(1, np.int64)
        if number.tokens is None:
            return total, {}
        if not number.is_rigid or not number.terms:
            return None
        check, rest = 0, dict[int, int]()
        for token, factor in number.terms:
            check += token * factor
            if token in self._of:
                total = total + self._of[token] * np.int64(factor)
            else:
                rest[token] = factor
        return (total, rest) if check % (1 << 64) == int(number.tokens.flat[0]) else None

    def values(self, number: Number) -> Integers | None:
        """The values of a scalar, one or one for each program; None if it depends on more than the program."""
        found = self.split(number)
        if found is None or found[1] or number.known.size != 1:
            return None
        return wrapped(number.known.reshape(1) + found[0], number.bits)
