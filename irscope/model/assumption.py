"""Placeholder values in place of data that the virtual GPU did not compute, and what they decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

_SHOWN = 4
"""How many decisions, or checks, a sentence names."""

DecisionKind = Literal[
    "argument", "attribute", "constexpr", "grid", "shape", "branch", "check", "loop", "conversion", "error"
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What an assumed value decided."""

    kind: DecisionKind
    """`check`: an assert, or a test before a raise, taken to pass. `conversion`: the value was not followed further.
    `error`: an exception that the value led to."""
    what: str
    """The parameter (`n`), its attribute or constant (`n: tt.divisibility=16`), or the text of the statement."""
    place: str = ""
    """FILE:LINE of a branch, check or loop, without the folder."""

    @property
    def text(self) -> str:
        """`n: tt.divisibility=16`; `if n == 0 (item3.py:4)`; `the shape in y = torch.empty(n) (item3.py:5)`."""
        prefix = _PREFIXES.get(self.kind, "")
        return f"{prefix}{self.what} ({self.place})" if self.place else f"{prefix}{self.what}"


_PREFIXES: dict[DecisionKind, str] = {
    "shape": "the shape in ",
    "error": "the error in ",
    "conversion": "data of the host, not followed further, in ",
}


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that the virtual GPU gave in place of data that nobody computed, and what followed from it."""

    name: str
    """What `--assume` calls it: the variable that it was assigned to, the kernel's parameter, or FILE:LINE."""
    value: str
    """As Python prints it."""
    file: str = ""
    line: int = 0
    """1-based line of the read."""
    expression: str = ""
    """The text of what was read."""
    given: bool = False
    """Whether the user set the value with `--assume`."""
    decided: tuple[Decision, ...] = ()

    @property
    def place(self) -> str:
        """FILE:LINE of the read, without the folder."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}" if self.file else ""

    @property
    def only_checked(self) -> bool:
        """Whether it decided nothing but checks that were taken to pass."""
        return bool(self.decided) and all(decision.kind == "check" for decision in self.decided)

    @property
    def text(self) -> str:
        """`n: assumed 0, from item3.py:16, which decided n: tt.divisibility=16; --assume n=VALUE sets it`."""
        whats = list(dict.fromkeys(decision.text for decision in self.decided if decision.kind != "check"))
        # An argument's attribute or constant says more than its name.
        whats = [what for what in whats if not any(other.startswith((f"{what}: ", f"{what}=")) for other in whats)]
        more = f" and {len(whats) - _SHOWN} more" if len(whats) > _SHOWN else ""
        decided = f", which decided {', '.join(whats[:_SHOWN])}{more}" if whats else ""
        how = f"set by --assume, read at {self.place}" if self.given else f"assumed {self.value}, from {self.place}"
        value = f"{self.value}, " if self.given else ""
        return f"{self.name}: {value}{how}{decided}" + ("" if self.given else f"; --assume {self.name}=VALUE sets it")


def joined(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Several accounts of what was assumed as one: each assumption once, with all that any says it decided."""
    found: dict[tuple[str, str, int], Assumption] = {}
    for item in assumptions:
        held = found.setdefault((item.name, item.file, item.line), item)
        found[item.name, item.file, item.line] = replace(
            held, decided=tuple(dict.fromkeys((*held.decided, *item.decided)))
        )
    return tuple(found.values())


def notes_of(assumptions: Iterable[Assumption]) -> tuple[str, ...]:
    """Assumptions as sentences, all checks in one."""
    assumptions = tuple(assumptions)
    notes = [f"{item.text}." for item in assumptions if item.decided and not item.only_checked]
    checks = [check for item in assumptions for check in item.decided if check.kind == "check"]
    texts = list(dict.fromkeys(f"{check.place} ({check.what})" for check in checks))
    if texts:
        rest = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
        notes.append(f"Taken to pass, for nothing was computed: {', '.join(texts[:_SHOWN])}{rest}.")
    undecided = [f"{item.name}={item.value}" for item in assumptions if not item.decided]
    if undecided:
        rest = f" and {len(undecided) - _SHOWN} more" if len(undecided) > _SHOWN else ""
        texts = ", ".join(undecided[:_SHOWN])
        notes.append(f"Placeholder values that were read, and decided nothing that could be followed: {texts}{rest}.")
    return tuple(notes)
