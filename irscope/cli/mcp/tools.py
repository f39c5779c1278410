"""The tools that agents call: each is a function whose docstring is its description, and answers with JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.cli.mcp.answers import Answer, Offered, call_of, call_text
from irscope.cli.mcp.calls import (
    capture_subject,
    command_json,
    numbered_lines,
    program_subject,
    quiet,
    refuse_foreign,
    rows_of,
)
from irscope.cli.mcp.making import edit, edit_python, recompile, record
from irscope.cli.streams import say
from irscope.cli.subject import stored_capture, stored_captures
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.record.variants.completing import with_sass

__all__ = ["TOOLS", "Offered"]


def _list(kernel: str = "", target: str = "", last: bool = False, start: int = 0) -> Answer:
    """List stored captures, the newest first.

    Args:
    kernel: pattern.
    """
    words = ["ls", *([kernel] if kernel and not kernel.startswith("-") else [])]
    words += [*_option("--where", f"target={target}" if target else ""), *(["--last"] if last else [])]
    document, said = command_json(words)
    rows = [{name: value for name, value in row.items() if value not in (None, "", [])} for row in rows_of(document)]
    for row in rows:
        # Options that nobody set, and those that list what is supported.
        row["parts"] = {
            name: text for name, text in row["parts"].items() if text not in ("", "None") and text[0] != "("
        }
    return Answer({}, "captures", rows, "irscope ls --json", start, notes=said)


def _stages(
    capture: str,
    stage: str = "",
    after: str = "",
    source_lines: str = "",
    first_line: int = 1,
    last_line: int = 0,
    locations: bool = False,
) -> Answer:
    """Show a capture; or the numbered lines of a stage, or of the IR after a pass.

    Args:
    stage: source, ttir, ttgir, llir, ptx, sass, ….
    after: a pass, as 'canonicalizer#2'.
    source_lines: only from these lines of Python, as '23-31,40'.
    locations: keep loc(…).
    """
    subject = capture_subject(capture)
    if not stage and not after:
        return _summary(subject)
    if stage and after:
        raise UsageError("stage and after do not go together: a stage, or the IR after a pass.")
    with quiet() as said:
        one = _one(subject, sass=stage == "sass")
        if after:
            refuse_foreign(one, [after])
        lines, total = numbered_lines(one, stage, after, source_lines, locations)
    last = last_line or total
    shown = [(number, text) for number, text in lines if number <= last]
    place = f"--stage {stage}" if stage else f"--after {after}"
    head: dict[str, Any] = {"capture": one.id, "stage": stage or after, "lines_of_text": total}
    if source_lines:
        head["chosen_lines"] = len(lines)
    rows = [f"{number}: {text}" for number, text in shown]
    numbers = [number for number, _ in shown]
    whole = f"irscope show {capture} {place}"
    return Answer(head, "lines", rows, whole, page="first_line", numbers=numbers, notes=said).at(first_line)


def _summary(subject: str) -> Answer:
    document, said = command_json(["show", subject])
    rows = [{**row, "environment": _versions(row["environment"])} for row in rows_of(document)]
    for row in rows:
        # Of interest to few, and long; the codes are enough to ask why.
        row["findings"] = _codes(row)
        row.pop("metadata")
    whole = f"irscope show {subject} --json"
    return Answer({}, "captures", rows, whole, notes=said)


def _codes(row: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["code"] for one in row["findings"]))


def _versions(environment: dict[str, Any]) -> dict[str, Any]:
    return {name: environment[name] for name in ("triton_version", "torch_version", "date", "command", "gpu")}


def _passes(capture: str, stage: str = "", match: str = "", changed: bool = False, start: int = 0) -> Answer:
    """List passes: options, time, changes."""
    words = ["passes", capture_subject(capture), *_option("--stage", stage), *_option("--match", match)]
    document, said = command_json([*words, *(["--changed"] if changed else [])])
    (row, *others) = rows_of(document)
    _refuse_several(capture, [row, *others])
    rows = [{name: value for name, value in one.items() if value not in (None, "", {})} for one in row.pop("passes")]
    whole = f"irscope passes {capture} --json"
    return Answer(row, "passes", rows, whole, start, notes=said)


def _diff(
    left: str, right: str = "", stage: str = "", one_pass: str = "", between: list[str] | None = None, start: int = 0
) -> Answer:
    """Compare two captures, or the IR of one around a pass, structurally.

    Args:
    one_pass: in place of right: before and after it.
    between: in place of right: after each of two passes.
    """
    words = ["diff", capture_subject(left)]
    if bool(right) + bool(one_pass) + bool(between) != 1:
        call = call_text("passes", {"capture": left, "changed": True})
        raise UsageError(f"give one of right, one_pass and between. Next, for the names of passes: {call}")
    if right:
        words += [capture_subject(right), *_option("--stage", stage)]
    elif between:
        if len(between) != 2:
            raise UsageError(f"between={between!r}: write two passes, such as ['coalesce', 'pipeline'].")
        words += ["--between", *map(_value, between)]
    else:
        words += _option("--pass", one_pass)
    if not right:
        refuse_foreign(_one(left), between or [one_pass])
    document, said = command_json(words)
    whole = f"irscope {' '.join(words)} --json"
    (row, *others) = rows_of(document)
    if others:
        raise UsageError(f"{left!r} names several captures: give the id of one. Next: list()")
    diffs: dict[str, Any] = row.pop("diffs", None) or {}
    texts = {name: one["unified"] for name, one in diffs.items()} if right else {"": row.pop("unified")}
    lines = [line for text in texts.values() for line in text.splitlines()]
    if right:
        row["diff_of"] = ", ".join(texts) or "no stage differs"
        row.pop("passes")
        row.pop("schedule")
    return Answer(row, "diff", lines, whole, start, notes=said)


def _why(
    capture: str,
    tries: int = 2,
    line: int = 0,
    operation: str = "",
    value: str = "",
    ignore: list[str] | None = None,
    sizes: dict[str, int] | None = None,
    grid: str = "",
    start: int = 0,
) -> Answer:
    """Report what is slow: line, cause, and fixes that were compiled; the worst first.

    Args:
    tries: compiles of fixes, at most.
    operation: as 'tt.dot'.
    value: as '%acc'.
    ignore: codes, as ['IRS101'].
    sizes: as if launched so, as {"n": 4096}.
    grid: CTAs, as '64,8'.
    """
    trusted = all(file.load().environment.is_trusted for file in stored_captures(capture_subject(capture)).files)
    words = ["why", capture_subject(capture), f"--tries={tries if trusted else 0}"]
    words += [*_option("--line", str(line) if line else ""), *_option("--op", operation), *_option("--value", value)]
    words += [*_option("--ignore", ",".join(ignore or ())), *_option("--grid", grid)]
    words += [f"--size={name}={number}" for name, number in (sizes or {}).items()]
    document, said = command_json(words)
    (row, *others) = rows_of(document)
    _refuse_several(capture, [row, *others])
    found = row.pop("findings")
    if not found:
        row["next"] = call_of("time", {"capture": row["id"]})
    whole = f"irscope why {capture} --json"
    return Answer(row, "findings", found, whole, start, notes=said)


def _layouts(
    capture: str, names: list[str] | None = None, value: str = "", operation: str = "", line: int = 0, start: int = 0
) -> Answer:
    """List layouts of the TTGIR: bases, uses, registers, copies, padding.

    Args:
    names: as '#blocked' or 'nvidia_mma'.
    """
    from irscope.api.layouts import layouts_of_capture
    from irscope.layout.described import as_json, choose_layouts

    with quiet() as said:
        one = _one(capture_subject(capture))
        found = layouts_of_capture(one, tell=say)
        if names or value or operation or line:
            found = choose_layouts(
                found, names=names or (), value=value or None, operation=operation or None, line=line or None
            )
        rows = [as_json(item, full=False) for item in found]
    head, whole = {"capture": one.id}, f"irscope layout {capture} --json"
    return Answer(head, "layouts", rows, whole, start, notes=said)


def _costs(capture: str, start: int = 0) -> Answer:
    """Rank memory accesses and layout conversions by what they waste."""
    document, said = command_json(["layout", capture_subject(capture), "--costs"])
    rows = [{name: value for name, value in row.items() if value not in (None, "", [])} for row in rows_of(document)]
    whole = f"irscope layout {capture} --costs --json"
    return Answer({"capture": capture}, "costs", rows, whole, start, notes=said)


def _ablate(
    capture: str, stage: str = "ttgir", passes: list[str] | None = None, pairs: bool = False, start: int = 0
) -> Answer:
    """Compile with each pass off in turn: failures, differences, resources.

    Args:
    stage: ttir, ttgir, llir, cubin, all.
    """
    words = ["ablate", capture_subject(capture), "--virtual", *(["--pairs"] if pairs else [])]
    words += [f"--pass={name}" for name in passes] if passes else _option("--stage", stage)
    document, said = command_json(words)
    rows = [{name: value for name, value in row.items() if value not in (None, "")} for row in document.pop("variants")]
    document.pop("irscope_json")
    # Those that change the program first, in their order.
    rows.sort(key=lambda row: bool(row.get("same_program")))
    whole = f"irscope ablate {capture} --virtual --json"
    return Answer(document, "variants", rows, whole, start, notes=said)


def _check(
    capture: str,
    max_regs: int = 0,
    no_spills: bool = False,
    max_shared: int = 0,
    uses: list[str] | None = None,
    min_width: list[str] | None = None,
    pipelined: bool = False,
    no_finding: list[str] | None = None,
    start: int = 0,
) -> Answer:
    """Check assertions about a compiled kernel.

    Args:
    uses: instructions or operations, as 'wgmma'.
    min_width: bits per thread, as 'tl.load=128'.
    no_finding: codes, or 'any'.
    """
    words = ["check", capture_subject(capture)]
    words += [*_option("--max-regs", str(max_regs or "")), *_option("--max-shared", str(max_shared or ""))]
    words += [name for name, asked in (("--no-spills", no_spills), ("--pipelined", pipelined)) if asked]
    words += [*_option("--uses", ",".join(uses or ())), *_option("--min-width", ",".join(min_width or ()))]
    words += _option("--no-finding", ",".join(no_finding or ()))
    document, said = command_json(words)
    (row, *others) = document.pop("captures")
    _refuse_several(capture, [row, *others])
    head = {**row, **{name: value for name, value in document.items() if name != "irscope_json"}}
    rows, whole = head.pop("assertions"), f"irscope {' '.join(words)} --json"
    return Answer(head, "assertions", rows, whole, start, notes=said)


def _verify(capture: str, all_programs: bool = False, start: int = 0) -> Answer:
    """Find accesses out of bounds, races and deadlocks, on the CPU."""
    words = ["verify", capture_subject(capture), *(["--all-programs"] if all_programs else [])]
    document, said = command_json(words)
    (row, *others) = rows_of(document)
    _refuse_several(capture, [row, *others])
    whole = f"irscope {' '.join(words)} --json"
    return Answer(row, "violations", row.pop("violations"), whole, start, notes=said)


def _time(capture: str, part: str = "", sizes: dict[str, int] | None = None, grid: str = "", start: int = 0) -> Answer:
    """Predict a launch's time, its bound and the share of each line.

    Args:
    part: h100, h200, …
    """
    words = ["time", capture_subject(capture), *_option("--part", part), *_option("--grid", grid)]
    words += [f"--size={name}={number}" for name, number in (sizes or {}).items()]
    document, said = command_json(words)
    rows = rows_of(document)
    for row in rows:
        row["next"] = call_of("why", {"capture": row["id"]})
    return Answer({}, "predictions", rows, f"irscope {' '.join(words)} --json", start, notes=said)


def _tune(
    capture: str, versus: list[str] | None = None, sizes: list[str] | None = None, grid: str = "", start: int = 0
) -> Answer:
    """Compile configurations of a kernel and rank them by predicted time.

    Args:
    versus: as ['num_warps=4,8'].
    sizes: as ['M=1,4096'].
    grid: as 'cdiv(M, 64)'.
    """
    words = ["tune", capture_subject(capture), *_option("--grid", grid)]
    words += [f"--vs={one}" for one in versus or ()] + [f"--size={one}" for one in sizes or ()]
    document, said = command_json(words)
    configs = document.pop("configs")
    document.pop("irscope_json", None)
    for row in configs:
        row["next"] = call_of("why", {"capture": row["id"]})
    return Answer(document, "configs", configs, f"irscope {' '.join(words)} --json", start, notes=said)


def _run(file: str, kernel: str = "", plan: str = "", start: int = 0) -> Answer:
    """Run a Python file and check its kernels' results, with a plan against every pass on."""
    words = ["run", program_subject(file, kernel), *_option("--plan", plan)]
    document, said = command_json(words)
    launches = document.pop("launches")
    document.pop("irscope_json", None)
    return Answer(document, "launches", launches, f"irscope {' '.join(words)} --json", start, notes=said)


TOOLS = (
    Offered("record", record, "runs the file", "why"),
    Offered("recompile", recompile, "compiles", "why"),
    Offered("edit", edit, "compiles", "why"),
    Offered("edit_python", edit_python, "runs the file", "why"),
    Offered("list", _list, "reads", "stages"),
    Offered("stages", _stages, "reads", "passes"),
    Offered("passes", _passes, "reads", "stages"),
    Offered("diff", _diff, "reads", "why"),
    Offered("why", _why, "reads", "costs"),
    Offered("layouts", _layouts, "reads", "costs"),
    Offered("costs", _costs, "reads", "why"),
    Offered("check", _check, "reads", "why"),
    Offered("ablate", _ablate, "compiles", "why"),
    Offered("verify", _verify, "reads", "time"),
    Offered("time", _time, "reads", "why"),
    Offered("tune", _tune, "compiles", "why"),
    Offered("run", _run, "runs the file", "record"),
)
"""All of them, in the order in which they are listed."""


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


def _value(text: str) -> str:
    """A value that stands alone on a command line; raises UsageError for what would be an option there."""
    if text.startswith("-"):
        raise UsageError(f"{text!r} is no name of a pass.")
    return text


def _refuse_several(capture: str, rows: Sequence[dict[str, Any]]) -> None:
    if len(rows) > 1:
        ids = ", ".join(row["id"] for row in rows[:8])
        raise UsageError(f"{capture!r} names {len(rows)} captures: give the id of one: {ids}. Next: list()")


def _one(subject: str, *, sass: bool = False) -> Capture:

    capture = stored_capture(subject)
    return with_sass(capture, tell=say) if sass else capture
