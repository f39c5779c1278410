"""The registers that hold a value at each instruction of SASS or AMD GPU assembly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.ir.body.columns import Body

__all__ = ["LiveValues", "live_values", "makers_of"]

_GENERAL = {"sass": "R", "amdgcn": "va"}
"""The first letters of the registers that every thread has its own of."""
_FLAGS = ("P", "UP", "vcc", "exec", "scc")
"""The first letters of those that guard an instruction."""


@dataclass(frozen=True, slots=True)
class LiveValues:
    """The live values of a text, for each of its lines."""

    body: Body
    at: tuple[int, ...]
    """Line → the values that it reads or writes, or that pass it by, in general registers: bit n for value n."""
    counts: tuple[int, ...]
    """Line → the registers that they are in: what a line writes may be where what it reads was."""

    def values(self, line: int) -> Iterator[int]:
        """Those of a line, as indices of `Body.names`."""
        return _bits(self.at[line])


def live_values(body: Body) -> LiveValues:
    """The live values of a text on physical registers; of any other text, none."""
    count = len(body.following)
    letters = _GENERAL.get(body.kind, "")
    general = sum(1 << value for value, name in enumerate(body.names) if name[:1] in letters and name[1:].isdecimal())
    reads, writes = [0] * count, [0] * count
    for line in range(count):
        defined = {body.values[line][index] for index in body.shapes[line].defines if index < len(body.values[line])}
        writes[line] = _mask(defined) & general
        reads[line] = _mask(body.uses[line]) & general
    kept = [_kept(body, line) for line in range(count)]
    # Live behind a line: what its successors read, or pass on without having written it.
    before = [0] * count
    into: list[list[int]] = [[] for _ in range(count)]
    for line, following in enumerate(body.following):
        for after in following:
            into[after].append(line)
    waiting = list(range(count))
    queued = [True] * count
    while waiting:
        line = waiting.pop()
        queued[line] = False
        behind = 0
        for after in body.following[line]:
            behind |= before[after]
        found = reads[line] | (behind & ~(0 if kept[line] else writes[line]))
        if found == before[line]:
            continue
        before[line] = found
        for other in into[line]:
            if not queued[other]:
                queued[other] = True
                waiting.append(other)
    of_register: dict[str, int] = {}
    for value in _bits(general):
        name = body.names[value]
        of_register[name] = of_register.get(name, 0) | 1 << value
    counts = tuple(
        live.bit_count() + sum(not live & of_register[body.names[value]] for value in _bits(written & ~live))
        for live, written in zip(before, writes, strict=True)
    )
    return LiveValues(body, tuple(before[line] | writes[line] for line in range(count)), counts)


def makers_of(body: Body) -> dict[int, int]:
    """Value → the first line that computes it of other values; of a constant alone, the first that writes it.

    A constant that a value begins with (`CS2R R8, SRZ` before a loop or a masked load) has no location of its own: the
    line table gives it that of the instruction beside it.
    """
    makers = {value: line for value, line in enumerate(body.definers) if line >= 0}
    is_flag = [name.startswith(_FLAGS) for name in body.names]
    computed: dict[int, int] = {}
    for line, uses in enumerate(body.uses):
        if not all(is_flag[value] for value in uses):
            values, defines = body.values[line], body.shapes[line].defines
            computed.update(
                (values[index], line) for index in defines if index < len(values) and values[index] not in computed
            )
    return makers | computed


def _kept(body: Body, line: int) -> bool:
    """Whether what stood in the registers that a line writes may remain: it is under a guard, or has a mask."""
    access = body.shapes[line].access
    return access is not None and access.is_partial


def _mask(values: set[int] | tuple[int, ...]) -> int:
    found = 0
    for value in values:
        found |= 1 << value
    return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
