"""The results of searches as text and JSON: an ablation, a bisection, a reduction with its file."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from irscope.analysis.passes.ablation import COUNT_NAMES, Ablation, AblationRow, SortKey
from irscope.analysis.passes.bisection import Bisection, BisectStep
from irscope.analysis.reduce.model import Reduced, ReducedPython
from irscope.model.capture import Failure, PassSnapshot
from irscope.model.plain import picked
from irscope.plan import PassPlan
from irscope.render.text.diff import render_unified
from irscope.render.text.tables import WIDE, display_width, fenced, percent, table
from irscope.render.text.tables import difference as signed

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
class _Cell:
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
    kinds = (("change nothing", single), ("pairs have the effect of one of the two", pairs))
    return [(f"{len(names)} {what}", names) for what, names in kinds if names]


def columns(ablation: Ablation) -> list[str]:
    """The counts that are known of any variant."""
    everything = (ablation.baseline, *ablation.variants)
    return [name for name in COUNT_NAMES if any(getattr(one.counts, name) is not None for one in everything)]


def column_title(ablation: Ablation, name: str) -> str:
    amd = _TITLES_ON_AMD if ablation.target.startswith("hip:") else {}
    return amd.get(name, _TITLES[name])


def cell(ablation: Ablation, variant: AblationRow, name: str) -> _Cell:
    value = getattr(variant.counts, name)
    if value is None:
        return _Cell("–" if variant.compiles else "")
    difference = ablation.difference(variant, name)
    text = percent(value / 100) if name == "occupancy" else f"{value:g}"
    return _Cell(text, signed(difference) if difference else "")


def outcome(ablation: Ablation, variant: AblationRow) -> str:
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


def measured(variant: AblationRow) -> tuple[str, str]:
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


def _table(ablation: Ablation, variants: Sequence[AblationRow], width: int | None, color: bool) -> str:
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


def _columns(ablation: Ablation, variants: Sequence[AblationRow]) -> dict[str, list[str]]:
    cells = {
        "off": [one.name or "every pass on" for one in variants],
        "artifacts": [outcome(ablation, one) for one in variants],
    }
    if any(one.agreement or one.timing for one in variants):
        cells["result"], times = map(list, zip(*map(measured, variants), strict=True))
        if any(times):
            cells["time"] = times
    for name in columns(ablation):
        cells[column_title(ablation, name)] = _aligned([cell(ablation, one, name) for one in variants])
    return cells


def _aligned(cells: Sequence[_Cell]) -> list[str]:
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


def bisection_text(found: Bisection, *, context: int = 3, width: int | None = None, color: bool = False) -> str:
    base = found.base
    head = f"{base.id[:8]} {base.name} {base.target}, Triton {base.environment.triton_version}: {found.check}"
    parts = [
        f"{head}\n{_scope(found)}\n",
        _steps(found, width, color),
        "".join(f"{line}\n" for line in _sentences(found)),
    ]
    if found.guilty:
        parts += [_sides(found)]
        if not found.is_steady:
            parts.append(
                "Repeated, the check judged one side differently: the check is not deterministic, this means nothing.\n"
            )
    if found.diff is not None:
        body = render_unified(found.diff, color=color, context=context, left_name="before", right_name="after")
        parts.append(f"before and after {found.guilty[0]}: {found.diff.summary}\n{body}")
    elif len(found.guilty) == 1:
        commands = " ".join(["irscope diff", found.subject, *_plan_options(found.right.plan)])
        parts.append(f"{found.guilty[0]} has no MLIR to show; {commands} shows its effect.\n")
    return "\n".join(parts)


def _command_of(result: Bisection, step: BisectStep) -> str:
    return " ".join(["irscope dump", result.subject, *_plan_options(step.plan)])


def _plan_options(plan: str) -> list[str]:
    """A plan as options of a command: `--disable-pass ttgir:pipeline#1`."""
    # A # within a word, and a * that matches no file, need no quotes; with them both are safe in every shell.
    rules = PassPlan.parse(plan)
    words = [("--disable-pass", str(rule)) for rule in rules.disabled] + [
        ("--enable-only", str(rule)) for rule in rules.only
    ]
    return [f"{option} '{rule}'" if "*" in rule else f"{option} {rule}" for option, rule in words]


def bisection_json(result: Bisection) -> dict[str, Any]:
    names = (
        "capture=base.id kernel=base.name triton_version=base.environment.triton_version check mode guilty is_steady"
    )
    return picked(
        result,
        names + " passes kept fixed tries target=base.target",
        left=_step_json(result, result.left),
        right=_step_json(result, result.right),
        steps=[_step_json(result, step) for step in result.steps],
        diff=result.diff and {"pass": result.guilty[0], "unified": result.diff.unified()},
    )


def _step_json(result: Bisection, step: BisectStep) -> dict[str, Any]:
    names = "off plan judgement=verdict.judgement observed=verdict.observed"
    return picked(step, names, command=_command_of(result, step))


def _scope(found: Bisection) -> str:
    which = "passes that the plan switches off" if found.is_planned else "passes"
    text = f"{len(found.passes)} {which}"
    if found.kept:
        text += (
            f"; {len(found.kept)} stay on, without which it does not compile ({found.tries} tries): "
            f"{', '.join(found.kept)}"
        )
    if found.fixed:
        text += f"; {len(found.fixed)} more of the plan's, of other stages, stay off: {', '.join(found.fixed)}"
    return text


def _steps(found: Bisection, width: int | None, color: bool) -> str:
    rows = [
        [str(number), f"{len(step.off)} off", step.verdict.judgement, step.verdict.observed, _briefly(step.off)]
        for number, step in enumerate(found.steps, 1)
    ]
    return table(["step", "passes", "judged", "observed", "off"], rows, width=width, color=color)


def _briefly(off: Sequence[str]) -> str:
    return ", ".join(off) if len(off) <= 2 else f"{off[0]} … {off[-1]}"


def _sentences(found: Bisection) -> Iterator[str]:
    left, right = found.left.verdict, found.right.verdict
    guilty = " or ".join(found.guilty)
    start = f"with {', '.join(found.fixed)} off" if found.fixed else "with every pass on"
    if not guilty:
        ends = "under the plan" if found.is_planned else "with all of them off" + (" but those" if found.kept else "")
        if "skip" in (left.judgement, right.judgement):
            side = start if left.judgement == "skip" else ends
            observed = left.observed if left.judgement == "skip" else right.observed
            yield f"Nothing to bisect: {side} it cannot be judged ({observed})."
            if found.is_planned:
                yield "--check compiles finds which pass of the plan the compile cannot do without."
        else:
            observed = f"({left.observed}, {right.observed})"
            yield f"Nothing to bisect: it is {left.judgement} {start} and {ends} too {observed}."
            if found.kept:
                yield "The cause stays on, or is not a pass; --check with --partial switches those off too."
        return
    if len(found.guilty) > 1:
        yield f"{guilty}: the variants in between cannot be judged."
    elif found.mode == "first":
        yield f"{guilty}: with the passes before it on and those behind it off, its presence decides."
    elif found.left.off:
        together = ", ".join(found.left.off)
        yield f"{guilty}: its absence alone does not decide, only together with {together} off."
    else:
        yield f"{guilty}: its absence alone decides{', ' + start if found.fixed else ''}."


def _sides(found: Bisection) -> str:
    lines: list[str] = []
    for name, step in (("on", found.left), ("off", found.right)):
        lines.append(f"{name:>3}: {step.verdict.judgement} ({step.verdict.observed})")
        lines.append(f"     {_command_of(found, step)}")
    return "\n".join(lines) + "\n"


_ARGUMENT = re.compile(r"[a-z][\w-]*$")
_MOST_SAID = 12


def commands(made: Reduced, file: str = "%s") -> tuple[str, ...]:
    """The command lines that show what is kept: of triton-opt if passes alone are needed, and of irscope."""
    own = ["irscope dump", file, "--into", made.into, "--target", str(made.capture.target)]
    own += _switches(made.case.pipeline.plan, made.case.options)
    own += [f"--timeout {made.hangs_after_s:g}"] if made.hangs_after_s else []
    tool = _triton_opt(made, file)
    return (*([tool] if tool else []), " ".join(own))


def _triton_opt(made: Reduced, file: str) -> str:
    """The command line of triton-opt; empty where it could not run all that is needed."""
    failed = made.failure
    if failed is None or not failed.pass_label or not made.passes:
        return ""
    flags = [_flag(one) for one in made.passes]
    return f"triton-opt {file} {' '.join(flags)}" if all(flags) else ""


def _flag(snapshot: PassSnapshot) -> str:
    if not _ARGUMENT.match(snapshot.argument):
        return ""
    options = f'="{snapshot.options}"' if snapshot.options else ""
    return "" if '"' in snapshot.options else f"--{snapshot.argument}{options}"


def reduced_file(made: Reduced) -> str:
    """The reduced IR, with the commands and versions as comments before it."""
    head = [f"RUN: {line}" for line in commands(made)]
    head += ["", f"{made.capture.target}, {_versions(made.versions)}", *_sentences_of_reduction(made)]
    return "\n".join([*(f"// {line}".rstrip() for line in head), "", made.text.strip(), ""])


def _versions(rows: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {version}" for name, version in rows if version)


def _sentences_of_reduction(made: Reduced) -> list[str]:
    end = "" if made.is_complete else "; interrupted, so it may be smaller yet"
    return [
        f"What is kept: {_one_line(made.kept)}",
        f"Reduced from {made.capture.name} ({made.origin}): {_change(made)}{end}",
    ]


def _change(made: Reduced) -> str:
    before, after = made.before, made.after
    passes = f", {before.passes} → {after.passes} passes" if before.passes != after.passes else ""
    return (
        f"{before.operations} → {after.operations} operations, {before.characters} → {after.characters} "
        f"characters{passes}"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _python_command(made: ReducedPython, file: str) -> str:
    words = ["irscope dump", f"{file}::{made.capture.name}", f"--signature {shlex.quote(made.case.signature)}"]
    words += [f"--constexpr {shlex.quote(f'{name}={value}')}" for name, value in made.case.constants]
    return " ".join([*words, f"--target {made.capture.target}", *_switches(made.capture.plan, made.options)])


def _switches(plan: PassPlan, options: tuple[tuple[str, Any], ...]) -> list[str]:
    rows = [f"--disable-pass {shlex.quote(str(rule))}" for rule in plan.disabled]
    rows += [f"--enable-only {shlex.quote(str(rule))}" for rule in plan.only]
    return rows + [f"--option {shlex.quote(f'{name}={value}')}" for name, value in options]


def python_file(made: ReducedPython) -> str:
    """The reduced Python text, with its command as a comment before it."""
    head = [f"RUN: {_python_command(made, '%s')}", "", f"{made.capture.target}, {_versions(made.versions)}"]
    head += [f"What is kept: {_one_line(made.kept)}"]
    return "\n".join([*(f"# {line}".rstrip() for line in head), made.case.text])


def reduction_text(made: Reduced | None, python: ReducedPython | None = None) -> list[str]:
    rows: list[str] = []
    if made is not None:
        rows += [
            f"kept: {_one_line(made.kept)}",
            f"{_change(made)}: {made.after.characters / max(made.before.characters, 1):.0%} of the text {made.origin}",
            f"removed: {_steps_of_reduction(made.taken)}",
            f"{made.compiled} candidates compiled, {made.repeated} known before, {made.seconds:.0f} s",
            *(f"run: {line}" for line in commands(made, "FILE")),
        ]
        if not made.is_steady:
            rows.append("the result did not reproduce when compiled again: the criterion is flaky.")
    if python is not None:
        rows += [
            f"kept of the Python text: {_one_line(python.kept)}",
            f"{python.lines_before} → {python.lines} lines; removed: {_steps_of_reduction(python.taken)}",
            f"{python.compiled} candidates compiled, {python.seconds:.0f} s",
            f"run: {_python_command(python, 'FILE')}",
        ]
    if any(one is not None and not one.is_complete for one in (made, python)):
        rows.append(f"interrupted: this is the smallest so far; {_how_to_go_on(made)}.")
    return rows


def _how_to_go_on(made: Reduced | None) -> str:
    if made is None or made.is_complete or not made.goes_on:
        return "the same command starts anew"
    return "the same command, without --fresh, resumes"


def _steps_of_reduction(taken: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{count} {name}" for name, count in taken) or "nothing"


def reduction_markdown(made: Reduced | None, python: ReducedPython | None = None) -> str:
    result = made or python
    if result is None:
        return ""
    title = f"{result.kept[0].upper()}{result.kept[1:]}"
    parts = [f"### {_one_line(title)[:200]}", f"Target `{result.capture.target}`, {_versions(result.versions)}."]
    if made is not None:
        parts += [
            f"Reduced from a kernel of {made.before.operations} operations ({made.origin}) by `irscope reduce`:",
            fenced(made.text.strip(), "mlir"),
            "Save it as `reduced.mlir`, and run" + (" one of:" if len(commands(made)) > 1 else ":"),
            fenced("\n".join(commands(made, "reduced.mlir")), "sh"),
        ]
    if python is not None:
        parts += [
            f"As Python, reduced from {python.lines_before} lines:",
            fenced(python.case.text.strip(), "python"),
            fenced(_python_command(python, "reduced.py"), "sh"),
        ]
    if result.failure is not None:
        parts += ["Its message:", fenced(_said(result.failure), "")]
    return "\n\n".join(parts) + "\n"


def _said(failure: Failure) -> str:
    lines = [line[:300] for line in failure.message.strip().splitlines()]
    return "\n".join([f"{failure.verdict}:", *lines[:_MOST_SAID], *(["…"] if len(lines) > _MOST_SAID else [])])


def reduction_json(made: Reduced | None, python: ReducedPython | None = None) -> dict[str, Any]:
    result = made or python
    if result is None:
        return {}
    document = picked(
        result,
        "capture=capture.id kernel=capture.name kept target=capture.target",
        complete=all(side is None or side.is_complete for side in (made, python)),
        versions=dict(result.versions),
        failure=result.failure and picked(result.failure, "kind stage pass=pass_label message"),
        ir=None,
        python=None,
    )
    if made is not None:
        document["ir"] = picked(
            made,
            "origin into steady=is_steady text repeated plan=case.pipeline.plan",
            before=asdict(made.before),
            after=asdict(made.after),
            passes=[step.label for step in made.passes],
            options=dict(made.case.options),
            commands=list(commands(made)),
            **_work(made),
        )
    if python is not None:
        document["python"] = picked(
            python,
            "lines_before lines text=case.text signature=case.signature",
            constexprs=dict(python.case.constants),
            command=_python_command(python, "%s"),
            **_work(python),
        )
    return document


def _work(made: Reduced | ReducedPython) -> dict[str, Any]:
    steps = [{"name": name, "count": count} for name, count in made.taken]
    return picked(made, "compiled", steps=steps, seconds=round(made.seconds, 3))
