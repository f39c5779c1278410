"""Renders what a bisection found: the guilty pass, both sides with their commands, the steps, and its diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irscope.analysis.passes.bisected import Bisection, Step
from irscope.plan import PassPlan
from irscope.render.text.diff import render_unified
from irscope.render.text.tables import table


def bisection_text(found: Bisection, *, context: int = 3, width: int | None = None, color: bool = False) -> str:
    """What was found, for the terminal."""
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
            parts.append("Asked again, a side was judged otherwise: the check is not steady, and this means nothing.\n")
    if found.diff is not None:
        body = render_unified(
            found.diff.text_diff, color=color, context=context, left_name="before", right_name="after"
        )
        parts.append(f"before and after {found.diff.label}: {found.diff.text_diff.summary}\n{body}")
    elif len(found.guilty) == 1:
        commands = f"irscope diff {found.subject} {_plan_options(found.right.plan)}"
        parts.append(f"{found.guilty[0]} works on no MLIR that could be shown; {commands} shows what comes of it.\n")
    return "\n".join(parts)


def _plan_options(plan: str) -> str:
    """A plan as options of a command: `--disable-pass ttgir:pipeline#1`."""
    parsed = PassPlan.parse(plan)
    words = [f"--disable-pass {_quoted(str(rule))}" for rule in parsed.disabled]
    return " ".join([*words, *(f"--enable-only {_quoted(str(rule))}" for rule in parsed.only)])


def _command_of(found: Bisection, step: Step) -> str:
    """The command that compiles one side."""
    return " ".join(filter(None, ["irscope dump", found.subject, _plan_options(step.plan)]))


def bisection_json(found: Bisection) -> dict[str, Any]:
    """What was found, as JSON holds it."""
    return {
        "capture": found.base.id,
        "kernel": found.base.name,
        "target": str(found.base.target),
        "triton_version": found.base.environment.triton_version,
        "check": found.check,
        "mode": found.mode,
        "guilty": list(found.guilty),
        "is_steady": found.is_steady,
        "left": _step_json(found, found.left),
        "right": _step_json(found, found.right),
        "passes": list(found.passes),
        "kept": list(found.kept),
        "fixed": list(found.fixed),
        "tries": found.tries,
        "steps": [_step_json(found, step) for step in found.steps],
        "diff": found.diff and {"pass": found.diff.label, "unified": found.diff.text_diff.unified()},
    }


def _step_json(found: Bisection, step: Step) -> dict[str, Any]:
    return {
        "off": list(step.off),
        "plan": step.plan,
        "judgement": step.verdict.judgement,
        "saw": step.verdict.saw,
        "command": _command_of(found, step),
    }


def _quoted(rule: str) -> str:
    # A # within a word, and a * that matches no file, need none; quotes keep both safe in every shell.
    return f"'{rule}'" if "*" in rule else rule


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
        [str(number), f"{len(step.off)} off", step.verdict.judgement, step.verdict.saw, _briefly(step.off)]
        for number, step in enumerate(found.steps, 1)
    ]
    return table(["step", "passes", "judged", "saw", "off"], rows, width=width, color=color)


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
            saw = left.saw if left.judgement == "skip" else right.saw
            yield f"Nothing to bisect: {side} it cannot be judged ({saw})."
            if found.is_planned:
                yield "--check-compiles finds which pass of the plan the compile cannot do without."
        else:
            saw = f"({left.saw}, {right.saw})"
            yield f"Nothing to bisect: it is {left.judgement} {start} and {ends} too {saw}."
            if found.kept:
                yield "What decides it stays on, or is no pass; --check with --partial switches those off too."
        return
    if len(found.guilty) > 1:
        yield f"{guilty}: what lies between cannot be judged."
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
        lines.append(f"{name:>3}: {step.verdict.judgement} ({step.verdict.saw})")
        lines.append(f"     {_command_of(found, step)}")
    return "\n".join(lines) + "\n"
