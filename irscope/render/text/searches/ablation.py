"""Renders an Ablation for the terminal: one sorted table, and the passes that change nothing by name."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.passes.ablation import COUNT_NAMES, Ablation, SortKey, Variant
from irscope.render.text.figures import difference as signed
from irscope.render.text.figures import percent
from irscope.render.text.tables import WIDE, display_width, table

_TITLES = {
    "instructions": "instructions",
    "registers": "registers",
    "accumulators": "AGPRs",
    "spills": "spill B",
    "shared": "shared B",
    "occupancy": "occupancy",
    "convert_layouts": "converts",
}
_TITLES_ON_AMD = {"registers": "VGPRs", "shared": "LDS B"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One count of one variant: its value, and how far that is from the baseline's."""

    value: str
    difference: str = ""


def render_ablation(
    ablation: Ablation,
    *,
    sort: SortKey | None = None,
    every: bool = False,
    width: int | None = None,
    color: bool = False,
) -> str:
    """The table. The passes that change nothing are listed below it, or with `every` stand in it too."""
    shown = [variant for variant in ablation.sorted(sort) if every or ablation.changes(variant)]
    head = f"{ablation.capture[:8]} {ablation.kernel} {ablation.target}"
    parts = [f"{head}: {about(ablation)}\n", _table(ablation, shown, width, color)]
    for what, names in idle(ablation):
        parts.append(_listed(what, names, every, width))
    failures = [variant for variant in (ablation.baseline, *shown) if variant.message]
    if failures:
        parts.append(
            "".join(f"{variant.name or 'every pass on'}: {variant.message.splitlines()[0]}\n" for variant in failures)
        )
    if ablation.missing:
        parts.append(f"{ablation.missing} more were not compiled.\n")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def about(ablation: Ablation) -> str:
    """`Triton 3.9.0: passes of ttgir switched off, one at a time`."""
    where = f" on {ablation.gpu}" if ablation.gpu else ""
    plan = f" under the plan {ablation.baseline.plan!r}" if ablation.baseline.plan else ""
    pairs = ", and two" if any(len(variant.off) > 1 for variant in ablation.variants) else ""
    stages = ", ".join(ablation.stages)
    return f"Triton {ablation.triton_version}{where}: passes of {stages} switched off, one{pairs} at a time{plan}"


def idle(ablation: Ablation) -> list[tuple[str, list[str]]]:
    """(what they have in common, the variants' names) of those that change nothing, as far as there are such."""
    rows = [one for one in ablation.variants if not ablation.changes(one)]
    single, pairs = ([one.name for one in rows if (len(one.off) > 1) is two] for two in (False, True))
    kinds = (("change nothing", single), ("pairs give what one of the two gives", pairs))
    return [(f"{len(names)} {what}", names) for what, names in kinds if names]


def columns(ablation: Ablation) -> list[str]:
    """The counts that are known of any variant."""
    everything = (ablation.baseline, *ablation.variants)
    return [name for name in COUNT_NAMES if any(getattr(one.counts, name) is not None for one in everything)]


def column_title(ablation: Ablation, name: str) -> str:
    """The title of a count on this target."""
    amd = _TITLES_ON_AMD if ablation.target.startswith("hip:") else {}
    return amd.get(name, _TITLES[name])


def cell(ablation: Ablation, variant: Variant, name: str) -> Cell:
    """One count of one variant."""
    value = getattr(variant.counts, name)
    if value is None:
        return Cell("–" if variant.compiles else "")
    difference = ablation.difference(variant, name)
    text = percent(value / 100) if name == "occupancy" else f"{value:g}"
    return Cell(text, signed(difference) if difference else "")


def outcome(ablation: Ablation, variant: Variant) -> str:
    """The outcome: where it fails, or from which stage on it differs."""
    unfit = "" if variant.fits else "does not fit"
    if not variant.off:
        return unfit
    if variant.failed_in:
        return f"fails in {variant.failed_in}"
    if not variant.differs_from:
        result = "identical"
    elif ablation.same_program(variant):
        result = f"{variant.differs_from}, same binary"
    else:
        result = f"from {variant.differs_from}"
    return ", ".join(filter(None, [result, unfit]))


def measured(variant: Variant) -> tuple[str, str]:
    """(whether it computes the same, its time against the baseline's), empty strings if nothing was measured."""
    result = ""
    if variant.agreement is not None:
        result = variant.agreement.verdict
        if variant.agreement.verdict in ("close", "different") and variant.agreement.max_abs_error is not None:
            noise = f", noise {variant.agreement.noise:.2g}" if variant.agreement.noise is not None else ""
            result += f" ({variant.agreement.max_abs_error:.2g}{noise})"
    time = variant.ratio.text if variant.ratio and variant.off else ""
    if not variant.off and variant.timing is not None:
        time = f"{variant.timing.median_us:.1f} µs"
    return result, time


def _table(ablation: Ablation, variants: Sequence[Variant], width: int | None, color: bool) -> str:
    everything = [ablation.baseline, *variants]
    cells = _columns(ablation, everything)
    whole = table([*cells], [*zip(*cells.values(), strict=True)], color=color)
    if width is None or max(map(display_width, whole.splitlines())) <= width:
        return whole
    # Too wide: what is the same in every row needs no column, nor a pass the one stage that all are of.
    same = {head: rows[0] for head, rows in cells.items() if len(set(filter(None, rows))) == 1}
    cells = {head: rows for head, rows in cells.items() if head not in same}
    if len(ablation.stages) == 1:
        cells["off"] = [name.replace(f"{ablation.stages[0]}:", "") for name in cells["off"]]
    listed = ", ".join(f"{head} {value.strip()}" for head, value in same.items())
    return table([*cells], [*zip(*cells.values(), strict=True)], width=width, color=color) + (
        f"\nThe same in every row: {listed}.\n" if same else ""
    )


def _columns(ablation: Ablation, variants: Sequence[Variant]) -> dict[str, list[str]]:
    """The cells of each column, by its heading."""
    cells = {
        "off": [one.name or "every pass on" for one in variants],
        "artifacts": [outcome(ablation, one) for one in variants],
    }
    if any(one.agreement or one.timing for one in variants):
        cells["result"], cells["time"] = map(list, zip(*map(measured, variants), strict=True))
    for name in columns(ablation):
        cells[column_title(ablation, name)] = _aligned([cell(ablation, one, name) for one in variants])
    return cells


def _aligned(cells: Sequence[Cell]) -> list[str]:
    values = max((len(cell.value) for cell in cells), default=0)
    differences = max((len(cell.difference) for cell in cells), default=0)
    return [f"{cell.value:>{values}} {cell.difference:>{differences}}".rstrip() for cell in cells]


def _listed(head: str, names: Sequence[str], every: bool, width: int | None) -> str:
    if every:
        return f"{head}.\n"
    return textwrap.fill(
        f"{head}: {', '.join(names)}.",
        width or WIDE,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
