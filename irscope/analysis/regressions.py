"""Regressions from one compile to another: the facts of a compile, and for each which way is worse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from irscope.analysis.code import arithmetic_and_order, code_of
from irscope.analysis.resources import WRITTEN, instruction_families, resource_rows
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture

Value = int | float | str | tuple[str, ...]
Facts = Mapping[str, Value]
"""By name; a fact that is not known is left out."""
Verdict = Literal["worse", "better", "other"]
"""`other`: it changed, and neither way is better, or the change is within the tolerance."""

_MATRIX_UNITS = ("", "wmma", "mma", "mfma", "wgmma", "tcgen05")
"""The instructions of the matrix units, the best last; no target has both of two that stand beside each other."""
_INSTRUCTIONS = "count."
INSTRUCTION_RANK = 7
"""Of the counts of the instruction mix: after all other facts."""
MEASURED = ("time_us", "result")
"""The facts of a launch on a GPU; all others are of the compile."""
OF_ONE_SOURCE = ("arithmetic", "order", "machine_code")
"""The facts that are compared between compiles of one source alone: another source may compute something else."""
_MOST_SHOWN = 4
"""Of what differs in a fact of several texts."""

# ld.global.128   |   st.global.32
_WIDTH = re.compile(r"\.(\d{1,4})$")


@dataclass(frozen=True, slots=True)
class _Fact:
    """One thing that is known of a compile."""

    name: str
    title: str
    """As a table names it."""
    better: Literal["less", "more", "neither", "same"]
    """Of numbers, and of the ranks of texts. `same`: every change is worse, until results are shown to be the same."""
    rank: int
    """Changes of a lower rank come first, whatever their size."""
    tolerance: int = 0
    """The change, in percent of the value before, up to which it counts as neither worse nor better."""


FACTS = {
    one.name: one
    for one in (
        _Fact("failure", "fails", "less", 0),
        _Fact("result", "result", "less", 0),
        _Fact("meaning", "meaning", "less", 0),
        _Fact("time_us", "time", "less", 1, 2),
        _Fact("arithmetic", "arithmetic", "same", 1),
        _Fact("order", "order of memory", "same", 1),
        _Fact("spilled_bytes", "spills", "less", 2),
        _Fact("matrix_unit", "matrix unit", "more", 2),
        _Fact("load_bits", "load width", "more", 3, 5),
        _Fact("store_bits", "store width", "more", 3, 5),
        _Fact("pipeline_buffers", "pipeline", "more", 3),
        _Fact("findings", "findings", "less", 3),
        _Fact("occupancy_percent", "occupancy", "more", 4),
        _Fact("shared_bytes", "shared", "less", 5, 5),
        _Fact("tensor_memory_columns", "tensor memory", "less", 5),
        _Fact("registers", "registers", "less", 5, 5),
        _Fact("stack_bytes", "stack", "less", 5),
        _Fact("instruction_count", "instructions", "less", 6, 10),
        _Fact("machine_code", "machine code", "neither", INSTRUCTION_RANK),
    )
}
"""The facts of which a change is judged. Those of the instruction mix (`count.ld.global.128`) are compared too, and
neither way is better."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact that is not the same in two compiles; None where a compile lacks it."""

    name: str
    before: Value | None
    after: Value | None
    verdict: Verdict

    @property
    def fact(self) -> _Fact:
        """The value of the fact."""
        return _fact_named(self.name)

    @property
    def relative(self) -> float:
        """How large the change is: of numbers the difference over the greater one, from 0 to 1; 1 of all others."""
        if isinstance(self.before, (int, float)) and isinstance(self.after, (int, float)):
            return abs(self.after - self.before) / max(abs(self.after), abs(self.before))
        return 1.0

    @property
    def order(self) -> tuple[int, int, float, str]:
        """The key by which changes are sorted: what got worse first, then by rank, then by size."""
        return (self.verdict != "worse", self.fact.rank, -self.relative, self.name)

    @property
    def text(self) -> str:
        """`registers 107 → 115`, `findings +IRS101 −IRS502`."""
        if self.name == "machine_code":
            return "other machine code"
        if isinstance(self.before, tuple) or isinstance(self.after, tuple):
            removed, added = _differing(self.before, self.after)
            if self.name == "order":
                return f"{self.fact.title} {_order_text(removed, added)}"
            return " ".join([self.fact.title, *_signed(removed, added)])
        return f"{self.fact.title} {_shown(self.name, self.before)} → {_shown(self.name, self.after)}"


def _fact_named(name: str) -> _Fact:
    return FACTS.get(name) or _Fact(name, name.removeprefix(_INSTRUCTIONS), "neither", INSTRUCTION_RANK)


def facts_of(
    capture: Capture, findings: Iterable[str] | None = None, *, of_one_source: bool = False
) -> dict[str, Value]:
    """The facts of a capture; of one that did not compile the failure alone.

    Args:
        findings: the codes of its findings; without them nothing is stated of these.
        of_one_source: whether the facts of `OF_ONE_SOURCE` are among them.
    """
    if not capture.has_compiled:
        return {"failure": capture.failure.verdict if capture.failure else "failed"}
    facts: dict[str, Value] = {"failure": capture.failure.verdict if capture.failure else ""}
    facts |= {name: value for name, value in resource_rows(capture).items() if name in FACTS}
    if (spilled := capture.resources.spilled_bytes) is not None:
        facts["spilled_bytes"] = spilled
    families = instruction_families(capture, WRITTEN)
    facts["matrix_unit"] = max((_unit(name) for name in families), key=_MATRIX_UNITS.index, default="")
    for name, moving in (("load_bits", ("ld.global.", "cp.async.")), ("store_bits", ("st.global.",))):
        if (width := _mean_width(families, moving)) is not None:
            facts[name] = width
    facts["pipeline_buffers"] = _buffers_of(capture.texts.get("ttgir", ""))
    if findings is not None:
        facts["findings"] = tuple(sorted(set(findings)))
    if of_one_source:
        facts["arithmetic"], facts["order"] = arithmetic_and_order(capture)
        facts["machine_code"] = code_of(capture)
    return facts | {f"{_INSTRUCTIONS}{name}": count for name, count in families.items()}


def _buffers_of(text: str) -> int:
    """The most buffers that a pipelined load has, `local_alloc : () -> memdesc<3x128x64xf16>`; 1 without any."""
    allocations = (one for one in parse_mlir(text).walk() if one.opcode == "local_alloc" and not one.operands)
    shapes = (kind.shape for one in allocations for kind in one.result_types)
    return max((shape[0] for shape in shapes if len(shape) == 3), default=1)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much worse a fact may be."""

    number: float
    is_relative: bool
    """Of the value before, in percent; else in the fact's own unit."""

    def __str__(self) -> str:
        return f"{self.number:g}{'%' if self.is_relative else ''}"

    def allowed(self, before: float) -> float:
        return self.number / 100 * abs(before) if self.is_relative else self.number


def changed_facts(
    before: Facts, after: Facts, tolerances: Mapping[str, Tolerance] | None = None
) -> tuple[FactChange, ...]:
    """The facts that differ, what got worse first; `tolerances`: by name, in place of those of `FACTS`.

    Where one side has no binary, the failure alone is compared.
    """
    names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    if "failure" in names and not (len(before) > 1 and len(after) > 1):
        names = ["failure"]
    changes: dict[str, FactChange] = {}
    for name in names:
        was, now = before.get(name), after.get(name)
        changes[name] = FactChange(name, was, now, _verdict(_fact_named(name), was, now, tolerances or {}))
    spills = changes.get("spilled_bytes")
    if spills is not None and spills.verdict == "better" and spills.relative >= _MUCH:
        for name in _IN_EXCHANGE & changes.keys():
            changes[name] = replace(changes[name], verdict="other")
    return tuple(sorted(changes.values(), key=lambda change: change.order))


_IN_EXCHANGE = {"registers", "occupancy_percent"}
"""The price of fewer spills: not worse where `_MUCH` of the spills is gone."""
_MUCH = 0.5


def _verdict(fact: _Fact, before: Value | None, after: Value | None, tolerances: Mapping[str, Tolerance]) -> Verdict:
    if fact.better == "same":
        return "worse"
    if fact.better == "neither":
        return "other"
    if isinstance(before, tuple) or isinstance(after, tuple):
        removed, added = _differing(before, after)
        return "worse" if added else "better" if removed else "other"
    was, now = _number(fact.name, before), _number(fact.name, after)
    tolerance = tolerances.get(fact.name, Tolerance(fact.tolerance, True))
    if was is None or now is None or abs(now - was) <= tolerance.allowed(was):
        return "other"
    return "worse" if (now > was) == (fact.better == "less") else "better"


def _number(name: str, value: Value | None) -> float | None:
    if name == "matrix_unit" and isinstance(value, str):
        return float(_MATRIX_UNITS.index(value)) if value in _MATRIX_UNITS else None
    if isinstance(value, str):
        # A failure, or a result that is another: none is the best.
        return float(bool(value))
    return float(value) if isinstance(value, (int, float)) else None


def _differing(before: Value | None, after: Value | None) -> tuple[list[str], list[str]]:
    """(what is removed, what is added) of two tuples of texts, each as often as it is."""
    was = Counter(before if isinstance(before, tuple) else ())
    now = Counter(after if isinstance(after, tuple) else ())
    return list((was - now).elements()), list((now - was).elements())


def _order_text(removed: list[str], added: list[str]) -> str:
    """`BAR.SYNC -1`; where each synchronisation is as often as before, one that other accesses precede."""
    was, now = (Counter(text.rpartition("| ")[2] for text in texts) for texts in (removed, added))
    numbers = [f"{name} {now[name] - was[name]:+d}" for name in sorted({*was, *now}) if was[name] != now[name]]
    if numbers:
        return ", ".join(_first_of(numbers))
    if not removed:
        return "in another sequence"
    return f"at {removed[0].rpartition('| ')[2]}, which other accesses precede"


def _signed(removed: list[str], added: list[str]) -> list[str]:
    """`+IRS101 −IRS502`; of opcodes with their numbers `FFMA 18 → 16`."""
    numbers: dict[str, list[str]] = {}
    for side, texts in enumerate((removed, added)):
        for text in texts:
            name, counted, number = text.rpartition(" ×")
            if counted:
                numbers.setdefault(name, ["0", "0"])[side] = number
    if numbers:
        return [", ".join(_first_of([f"{name} {was} → {now}" for name, (was, now) in sorted(numbers.items())]))]
    return [*_first_of([f"+{text}" for text in added]), *_first_of([f"−{text}" for text in removed])]


def _first_of(texts: list[str]) -> list[str]:
    more = len(texts) - _MOST_SHOWN
    return [*texts[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _unit(family: str) -> str:
    name = family.split(".")[0]
    return name if name in _MATRIX_UNITS else ""


def _mean_width(families: Mapping[str, int], moving: tuple[str, ...]) -> float | None:
    """The mean of the bits that a thread moves by an instruction of some families; None if there is none."""
    rows = [
        (int(match[1]), n) for name, n in families.items() if name.startswith(moving) and (match := _WIDTH.search(name))
    ]
    total = sum(count for _, count in rows)
    return round(sum(width * count for width, count in rows) / total, 1) if total else None


_UNITS = {
    "occupancy_percent": " %",
    "time_us": " µs",
    **dict.fromkeys(("spilled_bytes", "shared_bytes", "stack_bytes"), " B"),
    **dict.fromkeys(("load_bits", "store_bits"), " bits"),
}
_NONE = {"failure": "compiles", "result": "the same", "meaning": "the same", "matrix_unit": "none"}


def _shown(name: str, value: Value | None) -> str:
    if value is None:
        return "none" if name.startswith(_INSTRUCTIONS) else "not known"
    if isinstance(value, (int, float)):
        return f"{value:,.6g}{_UNITS.get(name, '')}" if isinstance(value, float) else f"{value:,}{_UNITS.get(name, '')}"
    return str(value) or _NONE.get(name, "none")
