"""The verdict on a launch: safe, wrong with its violations, or not decided with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os.path import basename
from typing import Any, Literal

Answer = Literal["safe", "wrong", "not decided"]
ViolationKind = Literal[
    "out-of-bounds", "program-race", "thread-race", "lost-order", "never-ends", "failed-assertion", "misaligned",
    "shared-race", "proxy-fence", "divergent-barrier", "uninitialised-read",
]  # fmt: skip
_KINDS: Mapping[ViolationKind, tuple[str, str]] = {
    "out-of-bounds": ("IRS901", "access out of bounds"),
    "program-race": ("IRS902", "race between programs"),
    "thread-race": ("IRS903", "race between threads of a program"),
    "lost-order": ("IRS904", "load moved across a store"),
    "never-ends": ("IRS905", "wait that never ends"),
    "failed-assertion": ("IRS906", "failed assertion"),
    "misaligned": ("IRS907", "misaligned access"),
    "shared-race": ("IRS908", "missing barrier or wait"),
    "proxy-fence": ("IRS909", "missing proxy fence"),
    "divergent-barrier": ("IRS910", "divergent barrier"),
    "uninitialised-read": ("IRS911", "read of uninitialised memory"),
}
"""Kind of violation → its code, as docs/verify.md lists them, and what it is in a few words."""
KERNEL = "the kernel"
"""What made a violation that is there in the IR of the front end."""


@dataclass(frozen=True, slots=True)
class AccessWitness:
    """One access to memory that takes part in a violation."""

    operation: str
    """`tt.load`, as the IR names it; of shared memory an instruction of the PTX: `st.shared.b32`."""
    place: str
    """`FILE:LINE` of the user's Python; empty where the IR has no location."""
    line: int
    """1-based line of the text that was executed: of the IR, or of the PTX."""
    program: tuple[int, int, int] | None = None
    """The program instance along x, y and z; None where any may do it."""
    element: tuple[int, ...] | None = None
    """The index of the element in the operation's tensor; empty for a scalar."""
    warp: int | None = None
    lane: int | None = None

    def __str__(self) -> str:
        words = [self.operation]
        if self.place:
            file, _, line = self.place.rpartition(":")
            words.append(f"{basename(file)}:{line}" if file else self.place)
        if self.program is not None:
            words.append(f"program {self.program}")
        if self.warp is not None and self.lane is not None:
            words.append(f"warp {self.warp} lane {self.lane}")
        if self.element:
            words.append(f"element {list(self.element)}")
        return "  ".join(words)

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault of the launch, with the accesses that show it."""

    kind: ViolationKind
    detail: str
    """The fault in one sentence, with its numbers."""
    accesses: tuple[AccessWitness, ...] = ()
    address: str = ""
    """The argument and the bytes behind its first element: `x_ptr + 4096 bytes`."""
    made_by: str = KERNEL
    """`the kernel`, where the IR of the front end has it; else the label of the first pass after which it is there."""

    @property
    def code(self) -> str:
        """`IRS901`."""
        return _KINDS[self.kind][0]

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return _KINDS[self.kind][1]

    @property
    def place(self) -> tuple[tuple[str, int], ...]:
        """(file, line) of the first access that has a line of Python; empty without one."""
        stated = next((access.place for access in self.accesses if access.place), "")
        file, _, line = stated.rpartition(":")
        return ((file, int(line)),) if file and line.isdecimal() else ()

    @property
    def evidence(self) -> tuple[str, ...]:
        """The address, the accesses, and what made it."""
        address = (f"address: {self.address}",) if self.address else ()
        return (*address, *map(str, self.accesses), f"made by: {self.made_by}")

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --json`."""
        plain = asdict(self)
        accesses = plain.pop("accesses")
        return {"code": self.code, **plain, "accesses": accesses}


@dataclass(frozen=True, slots=True)
class SafetyVerdict:
    """The verdict on one launch."""

    violations: tuple[Violation, ...] = ()
    undecided: tuple[str, ...] = ()
    """What could not be decided, each with what is missing."""
    programs: int = 0
    """How many programs of the launch were executed."""
    all_programs: int = 0
    """How many it has."""
    notes: tuple[str, ...] = ()
    shared: str = ""
    """What was checked of shared memory: `program (0, 0, 0), by thread in the PTX`; `not used`; `not checked: …`."""
    proved: bool = False
    """Whether z3 proved that the programs that were not executed stay in bounds, and never access the same address."""

    @property
    def answer(self) -> Answer:
        """`safe` holds for this launch, with its arguments and all its programs; it is never a guess."""
        if self.violations:
            return "wrong"
        is_whole = self.proved or self.programs == self.all_programs
        return "safe" if is_whole and not self.undecided else "not decided"

    @property
    def summary(self) -> str:
        """The answer in one line: with the first violation, or the first reason."""
        if self.violations:
            first = self.violations[0]
            where = "".join(f" at {basename(file)}:{line}" for file, line in first.place)
            return f"wrong: {first.code} {first.title}{where}"
        reason = f": {self.undecided[0]}" if self.undecided else f": {self.scope}"
        return f"{self.answer}{reason}"

    @property
    def scope(self) -> str:
        """What was executed."""
        if not self.all_programs:
            return "nothing was executed"
        if self.proved:
            programs = f"all {self.all_programs} programs ({self.programs} executed, the others by a proof)"
        elif self.programs == self.all_programs:
            programs = f"all {self.programs} programs" if self.programs != 1 else "its one program"
        else:
            programs = f"{self.programs} of {self.all_programs} programs (--all-programs executes the others)"
        shared = f"; shared memory: {self.shared}" if self.shared else ""
        return f"accesses to global memory of {programs}, for the arguments of this launch{shared}"

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --json`."""
        violations = [violation.as_json() for violation in self.violations]
        return {"answer": self.answer, **asdict(self), "violations": violations}
