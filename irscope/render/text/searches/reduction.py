"""The result of `irscope reduce`: a file that can be run again, a text for an issue, JSON."""

from __future__ import annotations

import re
import shlex
from typing import Any

from irscope.analysis.reduce.model import Reduced, ReducedPython, Size
from irscope.model.capture import Failure, PassSnapshot
from irscope.plan import PassPlan

__all__ = ["commands", "python_file", "reduced_file", "reduction_json", "reduction_markdown", "reduction_text"]

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
    head += ["", f"{made.capture.target}, {_versions(made.versions)}", *_sentences(made)]
    return "\n".join([*(f"// {line}".rstrip() for line in head), "", made.text.strip(), ""])


def _versions(rows: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {version}" for name, version in rows if version)


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


def _python_command(made: ReducedPython, file: str) -> str:
    """The command line of irscope that compiles the reduced Python text."""
    words = ["irscope dump", f"{file}::{made.kernel}", f"--signature {shlex.quote(made.case.signature)}"]
    words += [f"--constexpr {shlex.quote(f'{name}={value}')}" for name, value in made.case.constants]
    return " ".join([*words, f"--target {made.target}", *_switches(made.plan, made.options)])


def _switches(plan: PassPlan, options: tuple[tuple[str, Any], ...]) -> list[str]:
    rows = [f"--disable-pass {shlex.quote(str(rule))}" for rule in plan.disabled]
    rows += [f"--enable-only {shlex.quote(str(rule))}" for rule in plan.only]
    return rows + [f"--option {shlex.quote(f'{name}={value}')}" for name, value in options]


def python_file(made: ReducedPython) -> str:
    """The reduced Python text, with its command as a comment before it."""
    head = [f"RUN: {_python_command(made, '%s')}", "", f"{made.target}, {_versions(made.versions)}"]
    head += [f"What is kept: {_one_line(made.kept)}"]
    return "\n".join([*(f"# {line}".rstrip() for line in head), made.case.text])


def reduction_text(made: Reduced | None, python: ReducedPython | None = None) -> list[str]:
    """What was done, in a few lines."""
    rows: list[str] = []
    if made is not None:
        rows += [
            f"kept: {_one_line(made.kept)}",
            f"{_change(made)}: {made.after.characters / max(made.before.characters, 1):.0%} of the text {made.origin}",
            f"gone: {_steps(made.taken)}",
            f"{made.compiled} candidates compiled, {made.repeated} known before, {made.seconds:.0f} s",
            *(f"run: {line}" for line in commands(made, "FILE")),
        ]
        if not made.is_steady:
            rows.append("when the result was compiled again, this was not so: it is true now and then.")
    if python is not None:
        rows += [
            f"kept of the Python text: {_one_line(python.kept)}",
            f"{python.lines_before} → {python.lines} lines; gone: {_steps(python.taken)}",
            f"{python.compiled} candidates compiled, {python.seconds:.0f} s",
            f"run: {_python_command(python, 'FILE')}",
        ]
    if any(one is not None and not one.is_complete for one in (made, python)):
        rows.append(f"interrupted: this is the smallest so far; {_how_to_go_on(made)}.")
    return rows


def _how_to_go_on(made: Reduced | None) -> str:
    if made is None or made.is_complete or not made.goes_on:
        return "the same command starts anew"
    return "the same command, without --fresh, goes on from here"


def _steps(taken: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{count} {name}" for name, count in taken) or "nothing"


def reduction_markdown(made: Reduced | None, python: ReducedPython | None = None) -> str:
    """A text ready for an issue."""
    one = made or python
    if one is None:
        return ""
    title = f"{one.kept[0].upper()}{one.kept[1:]}"
    rows = [f"### {_one_line(title)[:200]}", "", f"Target `{one.capture.target}`, {_versions(one.versions)}.", ""]
    if made is not None:
        rows += [
            f"Reduced from a kernel of {made.before.operations} operations ({made.origin}) by `irscope reduce`:",
            "",
            _fenced(made.text.strip(), "mlir"),
            "",
            "Save it as `reduced.mlir`, and run" + (" one of:" if len(commands(made)) > 1 else ":"),
            "",
            _fenced("\n".join(commands(made, "reduced.mlir")), "sh"),
            "",
        ]
    if python is not None:
        rows += [
            f"As Python, reduced from {python.lines_before} lines:",
            "",
            _fenced(python.case.text.strip(), "python"),
            "",
            _fenced(_python_command(python, "reduced.py"), "sh"),
            "",
        ]
    if one.failure is not None:
        rows += ["What it says:", "", _fenced(_said(one.failure), ""), ""]
    return "\n".join(rows)


def _said(failure: Failure) -> str:
    lines = [line[:300] for line in failure.message.strip().splitlines()]
    return "\n".join([f"{failure.verdict}:", *lines[:_MOST_SAID], *(["…"] if len(lines) > _MOST_SAID else [])])


def _fenced(text: str, language: str) -> str:
    # A text may have a fence of its own.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def reduction_json(made: Reduced | None, python: ReducedPython | None = None) -> dict[str, Any]:
    """The result as JSON holds it."""
    one = made or python
    if one is None:
        return {}
    document: dict[str, Any] = {
        "capture": one.capture.id,
        "kernel": one.capture.name,
        "target": str(one.capture.target),
        "kept": one.kept,
        "complete": all(side is None or side.is_complete for side in (made, python)),
        "versions": dict(one.versions),
        "failure": _failure(one.failure),
        "ir": None,
        "python": None,
    }
    if made is not None:
        document["ir"] = {
            "origin": made.origin,
            "into": made.into,
            "steady": made.is_steady,
            "before": _size(made.before),
            "after": _size(made.after),
            "text": made.text,
            "plan": str(made.case.pipeline.plan),
            "passes": [step.label for step in made.passes],
            "options": dict(made.case.options),
            "commands": list(commands(made)),
            **_work(made),
            "repeated": made.repeated,
        }
    if python is not None:
        document["python"] = {
            "lines_before": python.lines_before,
            "lines": python.lines,
            "text": python.case.text,
            "signature": python.case.signature,
            "constexprs": dict(python.case.constants),
            "command": _python_command(python, "%s"),
            **_work(python),
        }
    return document


def _work(made: Reduced | ReducedPython) -> dict[str, Any]:
    steps = [{"name": name, "count": count} for name, count in made.taken]
    return {"steps": steps, "compiled": made.compiled, "seconds": round(made.seconds, 3)}


def _failure(failure: Failure | None) -> dict[str, str] | None:
    if failure is None:
        return None
    return {"kind": failure.kind, "stage": failure.stage, "pass": failure.pass_label, "message": failure.message}


def _size(size: Size) -> dict[str, int]:
    return {"operations": size.operations, "characters": size.characters, "passes": size.passes}
