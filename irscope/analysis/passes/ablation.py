"""The effect of each pass: a compile with every pass against the same compile with one, or two, switched off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from typing import Any, Literal, get_args

from irscope.analysis.code import code_of, launched
from irscope.analysis.passes.effects import count_text
from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Capture, PassSnapshot, stage_named
from irscope.model.plain import picked
from irscope.plan import PassPlan, PassRule

SortKey = Literal[
    "effect", "time", "pass", "instructions", "registers", "spills", "shared", "occupancy", "convert_layouts"
]
SORT_KEYS: tuple[SortKey, ...] = get_args(SortKey)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The counts of one compile; None if not known, or if the compile failed before it."""

    instructions: int | None = None
    """Of the machine code."""
    registers: int | None = None
    """Per thread (on AMD: VGPRs, without accumulation VGPRs)."""
    accumulators: int | None = None
    """AMD: accumulation VGPRs."""
    spills: int | None = None
    """Bytes that each thread stores to and loads from spilled registers."""
    shared: int | None = None
    """Bytes of shared memory (LDS) per CTA."""
    occupancy: float | None = None
    """Per cent of the warps that a multiprocessor could hold."""
    convert_layouts: int | None = None
    """`ttg.convert_layout` operations at the end of the ttgir stage."""


COUNT_NAMES: tuple[str, ...] = tuple(field.name for field in fields(RowCounts))


@dataclass(frozen=True, slots=True)
class AblationRow:
    off: tuple[str, ...]
    """The passes that are off, as `PassSnapshot.label`; empty for the baseline."""
    plan: str
    counts: RowCounts
    program: str = ""
    """Equal for variants that run the same machine code the same way, or an empty string."""
    failed_in: str = ""
    """The pass, else the stage, that the compile failed in."""
    message: str = ""
    """What was said of the failure, or what a block asks for beyond what it can have."""
    fits: bool = True
    differs_from: str = ""
    """The first stage whose artifact is not byte for byte the baseline's, `metadata`, or an empty string."""
    agreement: Agreement | None = None
    """Whether it computes the same, where a GPU was asked."""
    timing: Timing | None = None
    ratio: Ratio | None = None
    """Its time over the baseline's."""

    @property
    def name(self) -> str:
        """The passes that are off, as one text."""
        return " ".join(self.off)

    @property
    def compiles(self) -> bool:
        return not self.failed_in

    @property
    def is_wrong(self) -> bool:
        """Whether a GPU found that it does not compute the same."""
        return self.agreement is not None and not self.agreement.passes


@dataclass(frozen=True, slots=True)
class Ablation:
    """A kernel's passes, each switched off in turn."""

    kernel: str
    target: str
    stages: tuple[str, ...]
    """Whose passes were switched off."""
    baseline: AblationRow
    """With every pass (of the plan it was asked with)."""
    variants: tuple[AblationRow, ...]
    """In the order of the pipeline, pairs behind the single passes."""
    capture: str = ""
    """The id of the capture that all were compiled from."""
    triton_version: str = ""
    irscope_version: str = ""
    gpu: str = ""
    """The GPU that checked and timed them, or an empty string."""
    missing: int = 0
    """Variants that were asked for, but not compiled before an interruption."""

    def changes(self, variant: AblationRow) -> bool:
        """Whether switching those passes off changes anything."""
        return not variant.compiles or variant.is_wrong or bool(variant.differs_from and not self.adds_nothing(variant))

    def same_program(self, variant: AblationRow) -> bool:
        """Whether it runs the very machine code of the baseline."""
        return bool(variant.program) and variant.program == self.baseline.program

    def adds_nothing(self, variant: AblationRow) -> bool:
        """Whether a pair gives the very machine code that one of its passes gives when it is off alone."""
        alone = {one.program for one in self.variants if len(one.off) == 1 and one.off[0] in variant.off}
        return len(variant.off) > 1 and variant.program in alone

    def difference(self, variant: AblationRow, count: str) -> float | None:
        """One count less the baseline's; None where either is not known."""
        ours, theirs = getattr(variant.counts, count), getattr(self.baseline.counts, count)
        return None if ours is None or theirs is None else ours - theirs

    def sorted(self, key: SortKey | None = None) -> tuple[AblationRow, ...]:
        """The variants, those that matter most first.

        `effect`: what fails, then what computes something else, other machine code, the same machine code by another
        way, and nothing at all; among those, the largest change of any count, as a factor. `time`: what fails, then the
        slowest. A count: the largest change. `pass`: the order of the pipeline. None: `time` where there is one, else
        `effect`.
        """
        key = key or ("time" if any(variant.ratio is not None for variant in self.variants) else "effect")
        if key == "pass":
            return self.variants
        return tuple(sorted(self.variants, key=lambda variant: (self._rank(variant, key), variant.compiles)))

    def _rank(self, variant: AblationRow, key: SortKey) -> tuple[float, ...]:
        if key == "effect":
            if not variant.compiles:
                return (0, 0.0)
            rank = 4 if not variant.differs_from else (3 if self.same_program(variant) else 2)
            return (1 if variant.is_wrong else rank, -self._largest_change(variant))
        if key == "time":
            timed = variant.ratio is not None
            return (variant.compiles, not variant.is_wrong, not timed, -(variant.ratio.value if variant.ratio else 0.0))
        change = self.difference(variant, key)
        return (variant.compiles, change is None, -abs(change or 0.0))

    def _largest_change(self, variant: AblationRow) -> float:
        factors = [0.0]
        for name in COUNT_NAMES:
            ours, theirs = getattr(variant.counts, name), getattr(self.baseline.counts, name)
            if ours is not None and theirs is not None:
                factors.append(abs(math.log((ours + 1) / (theirs + 1))))
        return max(factors)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON holds it, each variant with its differences to the baseline."""
        return picked(
            self,
            "kernel target stages capture triton_version irscope_version gpu missing",
            baseline=self._variant_json(self.baseline),
            variants=[self._variant_json(variant) for variant in self.variants],
        )

    def _variant_json(self, variant: AblationRow) -> dict[str, Any]:
        return picked(
            variant,
            "off plan compiles failed_in message differs_from program",
            identical=variant.compiles and not variant.differs_from,
            same_program=self.same_program(variant),
            counts=asdict(variant.counts),
            differences={name: self.difference(variant, name) for name in COUNT_NAMES},
            agreement=variant.agreement and variant.agreement.as_json(),
            timing=variant.timing and variant.timing.as_json(),
            ratio=variant.ratio and variant.ratio.as_json(),
        )


def count_capture(capture: Capture) -> RowCounts:
    resources = capture.resources
    found = occupancy_of(capture)
    return RowCounts(
        instructions=resources.instruction_count,
        registers=resources.registers,
        accumulators=resources.accumulator_registers,
        spills=resources.spilled_bytes,
        shared=resources.shared_bytes,
        occupancy=None if found is None else 100 * found.fraction,
        convert_layouts=count_text(capture.text("ttgir")).convert_layouts if "ttgir" in capture.stages else None,
    )


def measure_variant(capture: Capture, baseline: Capture, off: Sequence[str] = ()) -> AblationRow:
    """The outcome of a compile with the passes `off` switched off, against the baseline."""
    failure = None if capture.has_compiled else capture.failure
    counts = count_capture(capture)
    if failure:
        # A compile that failed half-way has no counts of its own.
        counts = replace(RowCounts(), convert_layouts=counts.convert_layouts)
    return AblationRow(
        off=tuple(off),
        plan=str(capture.plan),
        counts=counts,
        program="" if failure else code_of(capture),
        failed_in=failure.where if failure else "",
        message=capture.failure.message if capture.failure else "",
        fits=capture.failure is None or failure is not None,
        differs_from="" if capture is baseline else first_difference(capture, baseline),
    )


def first_difference(capture: Capture, baseline: Capture) -> str:
    """The first stage whose artifact is not byte for byte the baseline's, or an empty string.

    `metadata` where it is only what Triton's metadata says of how to launch it. A binary that the assembler made of the
    same text is the same one: ptxas makes other bytes of it now and then.
    """
    theirs = {artifact.stage: artifact.data for artifact in baseline.artifacts}
    for artifact in capture.artifacts:
        if artifact.stage in theirs and artifact.data != theirs[artifact.stage]:
            told_otherwise = any(item.outcome == "skipped" for item in capture.passes() if item.stage == artifact.stage)
            if not stage_named(artifact.stage).is_binary or told_otherwise:
                return artifact.stage
    return "metadata" if capture.has_compiled and launched(capture) != launched(baseline) else ""


def passes_that_may_be_off(capture: Capture) -> list[PassSnapshot]:
    """The passes that a plan can switch off; of LLVM's those that it asks for, where the capture names them."""
    return [*capture.passes(), *(one for one in capture.passes("llvm") if one.argument)]


def passes_to_ablate(capture: Capture, stages: Sequence[str] = (), rules: Iterable[PassRule] = ()) -> tuple[str, ...]:
    """The labels of the passes that ran, of these stages (by default all) and that a rule names."""
    chosen = tuple(rules)
    return tuple(
        snapshot.label
        for snapshot in passes_that_may_be_off(capture)
        if snapshot.outcome != "skipped"
        and (not stages or snapshot.plan_stage in stages)
        and (not chosen or any(rule.matches(snapshot) for rule in chosen))
    )


def plan_without(plan: PassPlan, off: Iterable[str]) -> PassPlan:
    """The plan with more passes off, given by label."""
    return plan.without(*(PassRule.parse(label) for label in off))


def pairs_worth_trying(ablation: Ablation, named: bool) -> Iterator[tuple[str, str]]:
    """The pairs to switch off together: of passes that compile alone and change something, or of all where `named`."""
    single = [variant for variant in ablation.variants if len(variant.off) == 1 and variant.compiles]
    chosen = [variant.off[0] for variant in single if named or not ablation.same_program(variant)]
    return combinations(chosen, 2)
