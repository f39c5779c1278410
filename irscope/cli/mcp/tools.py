"""The tools that agents call: each is a function whose docstring is its description, and answers with JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.cli.mcp.answers import Answer, Offered, call_text
from irscope.cli.mcp.calls import capture_subject, command_json, numbered_lines, quiet, refuse_foreign, rows_of
from irscope.cli.mcp.making import edit, edit_python, recompile, record
from irscope.cli.streams import say
from irscope.cli.subject import stored_capture, stored_captures
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.record.variants.completing import with_sass

__all__ = ["TOOLS", "Offered"]


def _list(kernel: str = "", target: str = "", last: bool = False, start: int = 0) -> Answer:
    """List the captures that are stored on this machine, the newest first.

    Args:
    kernel: part of the kernel's name, or a pattern such as 'matmul*'.
    target: only those of this target or backend.
    last: only those of the last recording.
    start: the first row to show.
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
    """Show a capture and its stages; or the text of one stage, or the IR after a pass, line by line with numbers.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    stage: source, ttir, ttgir, llir, ptx, sass or amdgcn. Without it: the signature, options, resources and stages.
    after: the IR after this pass, as 'ttgir:coalesce' or 'canonicalizer#2', in place of a stage.
    source_lines: only what comes from these lines of the kernel's Python file, as '31' or '23-31,40'.
    first_line: the first line of the text to show, from 1.
    last_line: the last one; 0 for the end.
    locations: keep the loc(…) of each line.
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
    """List the passes of a compile: stage, name, options, time, whether it changed the IR, and by how much.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    stage: only those of this stage: ttir, ttgir, llir.
    match: only those whose name contains this.
    changed: only those that changed the IR.
    start: the first row to show.
    """
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
    """Compare two captures, or the IR of one capture around a pass; structurally, so that renumbering is no difference.

    For two plans, make the second capture by recompile. The answer has what differs in options, resources and
    instructions, and the lines of a unified diff of the first stage that differs.

    Args:
    left: the capture before: an id, a .irscope file, or 'last'.
    right: the capture after.
    stage: the stage whose texts are compared line by line.
    one_pass: in place of right: compare before and after this pass, as 'ttgir:coalesce#1'.
    between: in place of right: two passes, to compare the IR after each.
    start: the first line of the diff to show.
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
    """Report what is slow in a kernel: the line, the cause, and fixes; the worst first.

    A fix that was compiled says what it changed. Only a capture that was recorded on this machine is compiled for
    that, and no code of the user's runs.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    tries: at most so many compiles to try fixes; 0 compiles nothing.
    line: only what concerns this line of the Python file.
    operation: only these operations, as 'load' or 'tt.dot'.
    value: only what concerns this value of the TTGIR, as '%acc'.
    ignore: codes or names of kinds to leave out, as ['IRS101'].
    sizes: integer arguments as if the kernel was launched with them, as {"n": 4096}.
    grid: the number of programs as if it was launched so, as '1024' or '64,8'.
    start: the first row to show.
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
    whole = f"irscope why {capture} --json"
    return Answer(row, "findings", found, whole, start, notes=said)


def _layouts(
    capture: str, names: list[str] | None = None, value: str = "", operation: str = "", line: int = 0, start: int = 0
) -> Answer:
    """List the layouts of a capture's TTGIR: the encoding, its bases, who uses it, registers, copies and padding.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    names: only these: aliases such as '#blocked', or kinds such as 'nvidia_mma'.
    value: only that of this value, as '%acc'.
    operation: only those of these operations, as 'tt.load'.
    line: only those of this line of the Python file.
    start: the first row to show.
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
    """Rank the accesses to global and shared memory and the layout conversions of a kernel by what they waste.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    start: the first row to show.
    """
    document, said = command_json(["layout", capture_subject(capture), "--costs"])
    rows = [{name: value for name, value in row.items() if value not in (None, "", [])} for row in rows_of(document)]
    whole = f"irscope layout {capture} --costs --json"
    return Answer({"capture": capture}, "costs", rows, whole, start, notes=said)


def _ablate(
    capture: str, stage: str = "ttgir", passes: list[str] | None = None, pairs: bool = False, start: int = 0
) -> Answer:
    """Compile a capture with each pass off in turn: what fails, whether the program differs, and what it takes then.

    It runs Triton's compiler once for each pass, for seconds to minutes, and no code of the user's. The variants are
    kept, so that the same call is fast.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    stage: whose passes: ttir, ttgir, llir, cubin, or all.
    passes: only these passes, as ['coalesce', 'ttgir:pipeline'].
    pairs: also two at a time.
    start: the first row to show.
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
    """Check assertions about a compiled kernel: each says whether it holds, and where it does not.

    That it compiles is always asserted.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    max_regs: at most so many registers a thread; 0 for any number.
    no_spills: no register is spilled.
    max_shared: at most so many bytes of shared memory a block; 0 for any number.
    uses: families of instructions, or operations of the IR, that it has: ['wgmma', 'cp.async.128'].
    min_width: accesses of global memory that move so many bits a thread at once: ['tl.load=128', 'tl.store@31=64'].
    pipelined: loads that the dots of a loop read are begun in an iteration before.
    no_finding: codes or names of findings that why must not have: ['IRS101'], or ['any'].
    start: the first row to show.
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
    """Verify a launch: accesses out of bounds, races, missing barriers and fences, lost order, endless waits.

    The launch is executed on the CPU, as far as its addresses need it; no code of the user's runs. The answer is
    'safe', 'wrong' with each violation and its two accesses, or 'not decided' with what is missing.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    all_programs: execute all programs of the launch, however many there are.
    start: the first row to show.
    """
    words = ["verify", capture_subject(capture), *(["--all-programs"] if all_programs else [])]
    document, said = command_json(words)
    (row, *others) = rows_of(document)
    _refuse_several(capture, [row, *others])
    whole = f"irscope {' '.join(words)} --json"
    return Answer(row, "violations", row.pop("violations"), whole, start, notes=said)


TOOLS = (
    Offered("record", record, "runs the file"),
    Offered("recompile", recompile, "compiles"),
    Offered("edit", edit, "compiles"),
    Offered("edit_python", edit_python, "runs the file"),
    Offered("list", _list, "reads"),
    Offered("stages", _stages, "reads"),
    Offered("passes", _passes, "reads"),
    Offered("diff", _diff, "reads"),
    Offered("why", _why, "reads"),
    Offered("verify", _verify, "reads"),
    Offered("layouts", _layouts, "reads"),
    Offered("costs", _costs, "reads"),
    Offered("check", _check, "reads"),
    Offered("ablate", _ablate, "compiles"),
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
