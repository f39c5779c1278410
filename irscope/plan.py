"""Which passes run: PassRule and PassPlan, as objects and as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from irscope.errors import PlanError, did_you_mean, folded

# ttgir:canonicalizer#2  |  combine  |  triton-combine  |  llir:*
# llvm:InvalidateAnalysisPass<llvm::AAManager>#1 is LLVM's own name
_RULE = re.compile(
    r"^(?:(?P<stage>[A-Za-z_][\w.]*):)?(?P<name>\*|[A-Za-z_][\w.-]*(?:<[\w:.-]+>)?)(?:#(?P<occurrence>[1-9]\d{0,8}))?$"
)


LLVM = "llvm"
"""The stage of a rule for LLVM's own passes: `llvm:licm#2`. A rule without a stage names none of them."""


class NamedPass(Protocol):
    """What a rule is matched with: a snapshot, or a pass that is about to run."""

    @property
    def stage(self) -> str: ...
    @property
    def plan_stage(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def occurrence(self) -> int: ...
    @property
    def argument(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PassRule:
    """The name of one pass, or of several: `combine`, `ttgir:coalesce`, `canonicalizer#2`, `llir:*`."""

    name: str
    """The builder's name or MLIR's argument, with underscores or dashes; `*` for every pass."""
    stage: str | None = None
    occurrence: int | None = None
    """1-based, among the passes of that name in the stage; None for all of them."""

    @staticmethod
    def parse(text: str) -> PassRule:
        """Read one rule; raises PlanError if the text is not one."""
        match = _RULE.match(text.strip())
        if match is None:
            raise PlanError(
                f"{text!r} is not a pass: write NAME, STAGE:NAME, NAME#N or STAGE:NAME#N with N from 1, "
                "such as ttgir:canonicalizer#2."
            )
        occurrence = match["occurrence"]
        return PassRule(match["name"], match["stage"], int(occurrence) if occurrence else None)

    def __str__(self) -> str:
        stage = f"{self.stage}:" if self.stage else ""
        return f"{stage}{self.name}" + (f"#{self.occurrence}" if self.occurrence else "")

    def matches(self, candidate: NamedPass) -> bool:
        """Whether the rule names a pass."""
        if self.stage is not None and self.stage not in (candidate.stage, candidate.plan_stage):
            return False
        if self.occurrence is not None and self.occurrence != candidate.occurrence:
            return False
        return self.name == "*" or folded(self.name) in (folded(candidate.name), folded(candidate.argument))


@dataclass(frozen=True, slots=True)
class PassPlan:
    """Which passes are switched off, and in which stages only the named passes run.

    As text, rules separated by spaces or line breaks: `-RULE` switches passes off, `+RULE` keeps passes on and switches
    every other pass of the rule's stage off. A line that begins with `#` is a comment.
    """

    disabled: tuple[PassRule, ...] = ()
    only: tuple[PassRule, ...] = ()
    """In a stage that has such rules, passes that match none of them are off. Each rule names its stage."""

    def __post_init__(self) -> None:
        for rule in self.only:
            if rule.stage is None:
                raise PlanError(
                    f"'+{rule}' must name its stage, such as ttgir:{rule}: it switches the others of that stage off."
                )
        # Duplicate rules are dropped: the text of the plan is part of a capture's identity.
        object.__setattr__(self, "disabled", tuple(dict.fromkeys(self.disabled)))
        object.__setattr__(self, "only", tuple(dict.fromkeys(self.only)))

    @staticmethod
    def parse(text: str) -> PassPlan:
        """Read a plan; raises PlanError with the number of the wrong line."""
        disabled: list[PassRule] = []
        only: list[PassRule] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#"):
                continue
            for word in line.split():
                if word[0] not in "+-":
                    raise PlanError(f"line {number} of the plan: {word!r} must begin with '-' (off) or '+' (keep on).")
                rule = PassRule.parse(word[1:])
                (disabled if word[0] == "-" else only).append(rule)
        return PassPlan(tuple(disabled), tuple(only))

    def __str__(self) -> str:
        return " ".join([*(f"-{rule}" for rule in self.disabled), *(f"+{rule}" for rule in self.only)])

    def __bool__(self) -> bool:
        return bool(self.disabled or self.only)

    @property
    def names_llvm(self) -> bool:
        """Whether it has rules for LLVM's own passes."""
        return any(rule.stage == LLVM for rule in (*self.disabled, *self.only))

    def skips(self, candidate: NamedPass) -> bool:
        """Whether the plan switches a pass off."""
        of_llvm = candidate.plan_stage == LLVM
        if any(rule.matches(candidate) for rule in self.disabled if not of_llvm or rule.stage == LLVM):
            return True
        kept = [rule for rule in self.only if rule.stage == candidate.plan_stage]
        return bool(kept) and not any(rule.matches(candidate) for rule in kept)

    def without(self, *rules: PassRule) -> PassPlan:
        """The plan with more passes switched off."""
        return PassPlan(self.disabled + rules, self.only)

    def joined(self, more: PassPlan) -> PassPlan:
        """The plan with the rules of another one too."""
        return PassPlan(self.disabled + more.disabled, self.only + more.only)

    def check(self, passes: Sequence[NamedPass]) -> None:
        """Raise PlanError for the first rule that names none of the passes of a complete pipeline."""
        for rule in self.unmatched(passes):
            near = _nearest(rule, passes) or " 'irscope passes' lists those that ran."
            raise PlanError(f"no pass is named '{rule}'.{near}")

    def unmatched(self, passes: Sequence[NamedPass]) -> Iterator[PassRule]:
        """The rules that name none of these passes."""
        for rule in (*self.disabled, *self.only):
            if not any(rule.matches(candidate) for candidate in passes):
                yield rule


def _nearest(rule: PassRule, passes: Iterable[NamedPass]) -> str:
    passes = list(passes)
    counts: dict[tuple[str, str], int] = {}
    for one in passes:
        key = one.plan_stage, one.argument or one.name if one.plan_stage == LLVM else one.name
        counts[key] = max(one.occurrence, counts.get(key, 0))
    same_name = [(stage, n) for (stage, name), n in counts.items() if folded(name) == folded(rule.name)]
    if same_name:
        where = ", ".join(f"{n} in {stage}" for stage, n in same_name)
        return f" The pipeline has {rule.name}, {where}."
    # Of a rule with a stage, the passes of that stage alone are near.
    passes = [one for one in passes if rule.stage in (None, one.stage, one.plan_stage)] or passes
    known = {one.name for one in passes} | {one.argument for one in passes if one.argument}
    if rule.stage == LLVM:
        known = {one.argument or one.name for one in passes}
    elif "-" not in rule.name:
        known = {one.name for one in passes}
    return did_you_mean(rule.name, known)
