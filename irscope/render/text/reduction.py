"""The result of `irscope reduce`: a file that can be run again, a text for an issue, JSON."""

from __future__ import annotations

import re
import shlex
from typing import Any

from irscope.analysis.reduce.model import Reduced, Size
from irscope.model.capture import PassSnapshot
from irscope.model.failure import Failure

__all__ = ["commands", "reduced_file", "reduction_json", "reduction_markdown", "reduction_text"]

_ARGUMENT = re.compile(r"[a-z][\w-]*$")
_MOST_SAID = 12


def commands(made: Reduced, file: str = "%s") -> tuple[str, ...]:
    """The command lines that show what is kept: of triton-opt if passes alone are needed, and of irscope."""
    own = ["irscope dump", file, "--into", made.into, "--target", str(made.capture.target)]
    own += [f"--disable-pass {shlex.quote(str(rule))}" for rule in made.case.pipeline.plan.disabled]
    own += [f"--enable-only {shlex.quote(str(rule))}" for rule in made.case.pipeline.plan.only]
    own += [f"--option {shlex.quote(f'{name}={value}')}" for name, value in made.case.options]
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
    head += ["", f"{made.capture.target}, {_versions(made)}", *_sentences(made)]
    return "\n".join([*(f"// {line}".rstrip() for line in head), "", made.text.strip(), ""])


def _versions(made: Reduced) -> str:
    return ", ".join(f"{name} {version}" for name, version in made.versions if version)


def _sentences(made: Reduced) -> list[str]:
    rows = [f"What is kept: {_one_line(made.kept)}"]
    rows.append(
        f"Reduced from {made.capture.name} ({made.origin}): {_change(made)}"
        + ("" if made.is_complete else "; interrupted, so it may be smaller yet")
    )
    return rows


def _change(made: Reduced) -> str:
    before, after = made.before, made.after
    passes = f", {before.passes} → {after.passes} passes" if before.passes != after.passes else ""
    return (
        f"{before.operations} → {after.operations} operations, {before.characters} → {after.characters} "
        f"characters{passes}"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def reduction_text(made: Reduced) -> str:
    """What was done, in a few lines."""
    steps = ", ".join(f"{count} {name}" for name, count in made.taken)
    rows = [
        f"kept: {_one_line(made.kept)}",
        f"{_change(made)}: {made.after.characters / max(made.before.characters, 1):.0%} of the text {made.origin}",
        f"gone: {steps or 'nothing'}",
        f"{made.compiled} candidates compiled, {made.repeated} known before, {made.seconds:.0f} s",
        *(f"run: {line}" for line in commands(made, "FILE")),
    ]
    if not made.is_complete:
        rows.append("interrupted: this is the smallest so far; the same command goes on from here.")
    return "\n".join(rows)


def reduction_markdown(made: Reduced) -> str:
    """A text ready for an issue."""
    failure = made.failure
    title = f"{made.kept[0].upper()}{made.kept[1:]}"
    rows = [
        f"### {_one_line(title)[:200]}",
        "",
        f"Target `{made.capture.target}`, {_versions(made)}. Reduced from a kernel of {made.before.operations} "
        f"operations ({made.origin}) by `irscope reduce`.",
        "",
        _fenced(made.text.strip(), "mlir"),
        "",
        "Save it as `reduced.mlir`, and run one of:",
        "",
        _fenced("\n".join(commands(made, "reduced.mlir")), "sh"),
    ]
    if failure is not None:
        rows += ["", "What it says:", "", _fenced(_said(failure), "")]
    return "\n".join([*rows, ""])


def _said(failure: Failure) -> str:
    lines = [line[:300] for line in failure.message.strip().splitlines()]
    return "\n".join([f"{failure.verdict}:", *lines[:_MOST_SAID], *(["…"] if len(lines) > _MOST_SAID else [])])


def _fenced(text: str, language: str) -> str:
    # A text may have a fence of its own.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def reduction_json(made: Reduced) -> dict[str, Any]:
    """The result as JSON holds it."""
    failure = made.failure
    return {
        "capture": made.capture.id,
        "kernel": made.capture.name,
        "target": str(made.capture.target),
        "kept": made.kept,
        "origin": made.origin,
        "into": made.into,
        "complete": made.is_complete,
        "before": _size(made.before),
        "after": _size(made.after),
        "text": made.text,
        "plan": str(made.case.pipeline.plan),
        "passes": [one.label for one in made.passes],
        "options": dict(made.case.options),
        "commands": list(commands(made)),
        "versions": dict(made.versions),
        "failure": None
        if failure is None
        else {"kind": failure.kind, "stage": failure.stage, "pass": failure.pass_label, "message": failure.message},
        "steps": [{"name": name, "count": count} for name, count in made.taken],
        "compiled": made.compiled,
        "repeated": made.repeated,
        "seconds": round(made.seconds, 3),
    }


def _size(size: Size) -> dict[str, int]:
    return {"operations": size.operations, "characters": size.characters, "passes": size.passes}
