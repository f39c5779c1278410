"""The code of a kernel, ready to be walked: what each instruction does, reads and writes, and where branches go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.sass import SassFunction
from irscope.timing.arithmetic import guessed
from irscope.timing.floats import FLOATS
from irscope.timing.instructions import compiled
from irscope.timing.local_and_shared import spilled_words
from irscope.timing.needed import deciding
from irscope.timing.scalars import Step, address_of

__all__ = ["UNKNOWN_ITERATIONS", "Program"]

UNKNOWN_ITERATIONS = 8
"""How often a loop is assumed to run whose end data decide."""

_COMPARISONS = ("FSETP", "ISETP", "DSETP")
_STORING = ("STG", "ST", "STS", "STSM", "STL", "RED", "REDG", "ATOM", "ATOMG", "ATOMS")
_TO_GLOBAL = ("STG", "ST", "ATOMG", "ATOM", "RED", "REDG", "LDGSTS")


class Program:
    """The code of a kernel, ready to be walked."""

    def __init__(
        self, function: SassFunction, observed: Callable[[Instruction], bool], *, is_specialized: bool = False
    ) -> None:
        """`is_specialized`: whether its warps run partitions of their own."""
        self.code = function.instructions
        self.bases = [item.opcode.partition(".")[0] for item in self.code]
        labels = {label.name: label.index for label in function.labels}
        self.targets: dict[int, int] = {}
        self.is_observed = [observed(item) for item in self.code]
        self.reads = [frozenset(_reads(item)) for item in self.code]
        self.kept = {
            index: frozenset(item.writes).difference(item.reads)
            for index, item in enumerate(self.code)
            if item.predicate
        }
        """Instruction with a predicate → what it reads only in that it keeps it where the predicate does not hold."""
        # The mask of a copy is a predicate that the copy does not change.
        self.writes = [frozenset(() if item.opcode.startswith("LDGSTS") else item.writes) for item in self.code]
        self.spills: dict[int, tuple[tuple[str, str], ...]] = {}
        """Instruction that stores registers to local memory, or loads them → (from where, to where) of each word."""
        for index, base in enumerate(self.bases):
            if base in ("STL", "LDL"):
                words = spilled_words(self.code[index])
                self.spills[index] = words if base == "STL" else tuple((place, name) for name, place in words)
                touched = self.writes if base == "STL" else self.reads
                touched[index] = touched[index] | {place for _, place in words}
        for index, item in enumerate(self.code):
            if self.bases[index] in ("BRA", "CALL"):
                # CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)
                name = item.operands[-1].strip("`()") if item.operands else ""
                self.targets[index] = labels.get(name, index + 1)
        self.called = self._called()
        self.loads = {index for index, base in enumerate(self.bases) if base in ("LDG", "LD")}
        self.shared_loads = {index for index, base in enumerate(self.bases) if base in ("LDS", "LDSM")}
        self.addresses_need_shared = self._reaches_addresses(self.shared_loads)
        self.addresses_need_data = self.addresses_need_shared or self._reaches_addresses(self.loads)
        self.indexed_locals = {
            index
            for index, base in enumerate(self.bases)
            if base == "STL" and self.code[index].operands[0].strip("[]").partition("+")[0] != "R1"
        }
        """Stores to local memory at addresses that are computed: registers that are spilled lie where R1 says."""
        self.control = {
            index
            for index, base in enumerate(self.bases)
            if base in ("BRA", "EXIT", "RET", "CALL", "BRX", "BRXU", "JMP")
        }
        self.tables = {
            index: [labels.get(name, index + 1) for name in table.partition('"')[0].split(",")]
            for index, item in enumerate(self.code)
            # BRX R2 -0x2280 (*"BRANCH_TARGETS .L_x_51,.L_x_52"*)
            if self.bases[index] in ("BRX", "BRXU") and (table := item.text.partition("BRANCH_TARGETS ")[2])
        }
        """Branch through a register → where it goes by the number that chose the register's value."""
        self.is_specialized = is_specialized
        follows = self._next_of(labels.values())
        decides = deciding(self.reads, self.writes, self.kept, self._asked(), follows)
        rounded = {
            index: self.reads[index] for index, base in enumerate(self.bases) if base == "F2I" and decides[index]
        }
        self.has_float_indices = bool(rounded)
        """Whether what decides is computed of floating-point numbers."""
        to_round = deciding(self.reads, self.writes, self.kept, rounded, follows) if rounded else decides
        indices = {index for index, base in enumerate(self.bases) if rounded and base in FLOATS and to_round[index]}
        compared = {index for index, base in enumerate(self.bases) if base in _COMPARISONS and decides[index]}
        may_guess = self._reaches_addresses(compared)
        self.steps: list[Step | None] = []
        """What each instruction does; None where that decides neither the way nor an access."""
        for index, item in enumerate(self.code):
            step = compiled(item, index in indices) if decides[index] else None
            if step is not None and may_guess and index in compared:
                step = guessed(item, step)
            self.steps.append(step)

    def is_lesser_side(self, at: int, target: int) -> bool:
        """Whether a forward branch skips the lesser side of an if with an else: `@!P0 BRA b; a…; BRA end; b: …`."""
        end = self.targets.get(target - 1, 0)
        if target - 1 == at or self.bases[target - 1] != "BRA" or end <= target or not self._always(target - 1):
            return False
        return self._executed(target, end) > self._executed(at + 1, target)

    def left_loop(self, at: int, target: int) -> tuple[int, int] | None:
        """(head, latch) of the innermost loop that always goes back and that a branch leaves forwards; or None."""
        loops = [(to, latch) for latch, to in self.targets.items() if to <= at < latch < target and self._always(latch)]
        return max(loops, default=None)

    def _executed(self, begin: int, end: int) -> int:
        """About how many instructions a part of the code executes, if all of it runs."""
        loops = [at - to for at, to in self.targets.items() if begin <= to <= at < end]
        return end - begin + UNKNOWN_ITERATIONS * sum(loops)

    def _called(self) -> range:
        """The instructions of subroutines, which lie behind the kernel's own."""
        calls = [at for at, base in enumerate(self.bases) if base == "CALL"]
        entries = [self.targets[at] for at in calls if self.targets[at] > at + 1]
        return range(min(entries, default=len(self.code)), len(self.code))

    def _asked(self) -> dict[int, frozenset[str]]:
        """Instruction that branches, accesses memory or synchronises → the registers that decide what it does."""
        keeps_data = ("STS", "STSM") if self.addresses_need_shared or self.is_specialized else ()
        found: dict[int, frozenset[str]] = {}
        for index, base in enumerate(self.bases):
            if index in self.control:
                found[index] = self.reads[index]
            elif self.is_observed[index] and base in _STORING and base not in keeps_data:
                item = self.code[index]
                addresses = [address_of(one) for one in item.operands if "[" in one]
                names = {name for one in addresses if one is not None for name in one.names}
                found[index] = frozenset(names) | {one for one in self.reads[index] if one.startswith(("P", "UP"))}
            elif self.is_observed[index]:
                found[index] = self.reads[index]
        return found

    def _next_of(self, labelled: Collection[int]) -> dict[int, Sequence[int]]:
        """Instruction that ends a basic block → what may follow it."""
        end = len(self.code)
        returns = [at + 1 for at in self.targets if self.bases[at] == "CALL"]
        found: dict[int, Sequence[int]] = {at - 1: (at,) for at in labelled if 0 < at <= end}
        for at in self.control:
            base = self.bases[at]
            goes_on = () if self._always(at) else (min(at + 1, end),)
            if base in ("BRA", "CALL"):
                goes_on += (self.targets.get(at, at + 1),)
            elif base == "RET":
                goes_on += tuple(returns)
            elif base != "EXIT":
                goes_on += tuple(self.tables.get(at, labelled))
            found[at] = goes_on
        return found

    def _always(self, at: int) -> bool:
        """Whether a branch is taken by all who come there, its own operands included."""
        item = self.code[at]
        return not item.predicate and not any(one.lstrip("!").startswith(("P", "UP")) for one in item.operands[:-1])

    def _order(self) -> list[int]:
        """The code with its subroutines first: what they give is used by the kernel."""
        return [*self.called, *range(self.called.start)]

    def _reaches_addresses(self, sources: set[int]) -> bool:
        """Whether what instructions give goes into an address of global memory, by the order of the code."""
        data: set[str] = set()
        for index in self._order():
            item = self.code[index]
            if index in self.loads or self.bases[index] in _TO_GLOBAL:
                addresses = [address_of(one) for one in item.operands if "[" in one]
                if any(one is not None and not data.isdisjoint(one.names) for one in addresses):
                    return True
            if index in sources or not data.isdisjoint(self.reads[index]):
                data |= self.writes[index]
            elif not item.predicate:
                data -= self.writes[index]
        return False


def _reads(item: Instruction) -> Sequence[str]:
    names = [*item.reads]
    if item.predicate:
        names.append(item.predicate.lstrip("@!"))
        names += item.writes
    for operand in item.operands:
        text = operand.lstrip("!")
        # A predicate that is written stands among the operands too.
        if text.startswith(("P", "UP")) and (text not in item.writes or item.operands.count(text) > 1):
            names.append(text)
    return names
