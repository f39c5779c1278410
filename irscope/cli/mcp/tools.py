"""The tools that agents call: each is a function whose docstring is its description, and answers with JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from irscope.api.texts import PYTHON, EditPlace, place_at
from irscope.cli.captures import captures_of, stored_capture, stored_captures, tell_failures
from irscope.cli.mcp.answers import Offered, ToolAnswer, call_of, call_text
from irscope.cli.mcp.calls import (
    capture_subject,
    command_json,
    numbered_lines,
    program_subject,
    quiet,
    refuse_foreign,
    rows_of,
)
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.completing import with_sass
from irscope.store.disk import write_atomically
from irscope.store.recent import edits_folder, free_name, refuse_taken


def _list(kernel: str = "", target: str = "", last: bool = False, start: int = 0) -> ToolAnswer:
    """List stored captures."""
    words = ["ls", *([kernel] if kernel and not kernel.startswith("-") else [])]
    words += _options(where=f"target={target}" if target else "", last=last)
    answer = _listed(words, "captures", start)
    rows = [_without(row, None, "", []) for row in answer.rows]
    for row in rows:
        # Options that nobody set, and those that list what is supported.
        row["parts"] = {
            name: text for name, text in row["parts"].items() if text not in ("", "None") and text[0] != "("
        }
    return replace(answer, rows=rows, whole="irscope ls --json")


def _stages(
    capture: str,
    stage: str = "",
    after: str = "",
    source_lines: str = "",
    first_line: int = 1,
    last_line: int = 0,
    locations: bool = False,
) -> ToolAnswer:
    """Show a capture; or the numbered lines of a stage, or of the IR after a pass.

    Args:
    stage: source, ttir, ttgir, llir, ptx, sass, …
    after: a pass, as 'combine#2'
    source_lines: Python's, as '23-31,40'
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
    return ToolAnswer(head, "lines", rows, whole, page="first_line", numbers=numbers, notes=said).at(first_line)


def _summary(subject: str) -> ToolAnswer:
    answer = _listed(["show", subject], "captures")
    for row in answer.rows:
        versions = ("triton_version", "torch_version", "date", "command", "gpu")
        row["environment"] = {name: row["environment"][name] for name in versions}
        # Of interest to few, and long; the codes are enough to ask why.
        row["findings"] = list(dict.fromkeys(one["code"] for one in row["findings"]))
        row.pop("metadata")
    return answer


def _passes(capture: str, stage: str = "", match: str = "", changed: bool = False, start: int = 0) -> ToolAnswer:
    """List passes: options, time, changes."""
    words = ["passes", capture_subject(capture), *_options(stage=stage, match=match, changed=changed)]
    answer = _answer_of(capture, words, "passes", start)
    return replace(answer, rows=[_without(row, None, "", {}) for row in answer.rows])


def _diff(
    left: str, right: str = "", stage: str = "", one_pass: str = "", between: list[str] | None = None, start: int = 0
) -> ToolAnswer:
    """Compare two captures, or the IR of one around a pass, structurally.

    Args:
    one_pass: before and after it
    between: after each of two
    """
    words = ["diff", capture_subject(left)]
    if bool(right) + bool(one_pass) + bool(between) != 1:
        call = call_text("passes", {"capture": left, "changed": True})
        raise UsageError(f"give one of right, one_pass and between. Next, for the names of passes: {call}")
    if right:
        words += [capture_subject(right), *_options(stage=stage)]
    elif between:
        if len(between) != 2:
            raise UsageError(f"between={between!r}: write two passes, such as ['coalesce', 'pipeline'].")
        words += ["--between", *map(_value, between)]
    else:
        words += _options(**{"pass": one_pass})
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
    return ToolAnswer(row, "diff", lines, whole, start, notes=said)


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
) -> ToolAnswer:
    """Report what is slow: line, cause, compiled fixes.

    Args:
    operation: as 'tt.dot'
    value: as '%acc'
    sizes: as {n: 4096}
    grid: CTAs, as '64,8'
    """
    trusted = all(file.load().environment.is_trusted for file in stored_captures(capture_subject(capture)).files)
    words = ["why", capture, f"--tries={tries if trusted else 0}"]
    words += _options(line=line, op=operation, value=value, ignore=ignore, grid=grid)
    words += [f"--size={name}={number}" for name, number in (sizes or {}).items()]
    return _answer_of(capture, words, "findings", start)


def _layouts(
    capture: str, names: list[str] | None = None, value: str = "", operation: str = "", line: int = 0, start: int = 0
) -> ToolAnswer:
    """List layouts of the TTGIR.

    Args:
    names: as '#blocked', 'nvidia_mma'
    """
    from irscope.api.layouts import layouts_of_capture
    from irscope.layout.described import as_json, choose_layouts

    with quiet() as said:
        one = _one(capture_subject(capture))
        found = layouts_of_capture(one)
        if names or value or operation or line:
            found = choose_layouts(
                found, names=names or (), value=value or None, operation=operation or None, line=line or None
            )
        rows = [as_json(item, full=False) for item in found]
    head, whole = {"capture": one.id}, f"irscope layout {capture} --json"
    return ToolAnswer(head, "layouts", rows, whole, start, notes=said)


def _costs(capture: str, start: int = 0) -> ToolAnswer:
    """Rank accesses and layout conversions by waste."""
    answer = _listed(["layout", capture_subject(capture), "--costs"], "costs", start)
    return replace(answer, head={"capture": capture}, rows=[_without(row, None, "", []) for row in answer.rows])


def _ablate(
    capture: str, stage: str = "ttgir", passes: list[str] | None = None, pairs: bool = False, start: int = 0
) -> ToolAnswer:
    """Compile with each pass off in turn.

    Args:
    stage: ttir, ttgir, llir, cubin, all
    """
    words = ["ablate", capture_subject(capture), "--virtual", *_options(pairs=pairs)]
    words += [f"--pass={name}" for name in passes] if passes else _options(stage=stage)
    answer = _answer_of("", words, "variants", start)
    rows = [_without(row, None, "") for row in answer.rows]
    # Those that change the program first, in their order.
    return replace(answer, rows=sorted(rows, key=lambda row: bool(row.get("same_program"))))


def _check(
    capture: str,
    max_regs: int = 0,
    no_spills: bool = False,
    uses: list[str] | None = None,
    min_width: list[str] | None = None,
    pipelined: bool = False,
    no_finding: list[str] | None = None,
    start: int = 0,
) -> ToolAnswer:
    """Check assertions about a compiled kernel.

    Args:
    uses: instructions or operations, as 'wgmma'
    min_width: bits per thread, as 'tl.load=128'
    no_finding: codes, or 'any'
    """
    words = ["check", capture_subject(capture)]
    words += _options(max_regs=max_regs, no_spills=no_spills, pipelined=pipelined)
    words += _options(uses=uses, min_width=min_width, no_finding=no_finding)
    document, said = command_json(words)
    (row, *others) = document.pop("captures")
    _refuse_several(capture, [row, *others])
    head = {**row, **{name: value for name, value in document.items() if name != "irscope_json"}}
    rows, whole = head.pop("assertions"), f"irscope {' '.join(words)} --json"
    return ToolAnswer(head, "assertions", rows, whole, start, notes=said)


def _verify(capture: str, all_programs: bool = False, start: int = 0) -> ToolAnswer:
    """Find accesses out of bounds, races and deadlocks."""
    words = ["verify", capture_subject(capture), *_options(all_programs=all_programs)]
    return _answer_of(capture, words, "violations", start)


def _time(
    capture: str, part: str = "", sizes: dict[str, int] | None = None, grid: str = "", start: int = 0
) -> ToolAnswer:
    """Predict a launch's time, bound and lines.

    Args:
    part: h100, …
    """
    words = ["time", capture_subject(capture), *_options(part=part, grid=grid)]
    words += [f"--size={name}={number}" for name, number in (sizes or {}).items()]
    answer = _listed(words, "predictions", start)
    for row in answer.rows:
        row["next"] = call_of("why", {"capture": row["id"]})
    return answer


def _tune(
    capture: str, versus: list[str] | None = None, sizes: list[str] | None = None, grid: str = "", start: int = 0
) -> ToolAnswer:
    """Rank compiled configurations by predicted time.

    Args:
    versus: as 'num_warps=4,8'
    sizes: as 'M=1,4096'
    grid: as 'cdiv(M, 64)'
    """
    words = ["tune", capture_subject(capture), *_options(grid=grid)]
    words += [f"--vs={one}" for one in versus or ()] + [f"--size={one}" for one in sizes or ()]
    answer = _answer_of("", words, "configs", start)
    for row in answer.rows:
        row["next"] = call_of("why", {"capture": row["id"]})
    return answer


def _run(file: str, kernel: str = "", plan: str = "", start: int = 0) -> ToolAnswer:
    """Run a Python file and check its kernels' results, under a plan too."""
    rules = PassPlan.parse(plan)
    words = [f"--disable-pass={rule}" for rule in rules.disabled] + [f"--enable-only={rule}" for rule in rules.only]
    return _answer_of("", ["run", program_subject(file, kernel), *words], "launches", start)


def _verdict(before: str, after: str, start: int = 0) -> ToolAnswer:
    """Judge a rewrite: same result, at other sizes too? Faster? Two FILEs are run, on a GPU timed."""
    return _listed(["verify", *map(_value, (before, after)), "--better"], "verdicts", start)


def _bench(file: str, kernel: str = "", versus: list[str] | None = None, start: int = 0) -> ToolAnswer:
    """Time a launch and variants on the GPU."""
    words = ["bench", program_subject(file, kernel), *(f"--vs={one}" for one in versus or ())]
    return _answer_of("", words, "variants", start)


def _profile(capture: str, start: int = 0) -> ToolAnswer:
    """Show hardware counters of a capture, or of a FILE on the GPU."""
    return _answer_of(capture, ["profile", _value(capture)], "operations", start)


def _reduce(capture: str, finding: str = "", meaning: str = "", start: int = 0) -> ToolAnswer:
    """Reduce IR while it still fails, has a finding, or a pass changes its meaning."""
    subject = capture_subject(capture)
    if not finding and not meaning and stored_capture(subject).has_compiled:
        how = call_text("reduce", {"capture": capture, "finding": "IRS101"})
        raise UsageError(f"{capture!r} did not fail: give a finding to keep, or a pass as meaning. Next: {how}")
    words = ["reduce", subject, *_options(finding=finding, meaning=meaning)]
    document, said = command_json(words)
    (head,) = rows_of([document])
    ir: dict[str, Any] = head.pop("ir") or {}
    rows = str(ir.pop("text", "")).splitlines()
    return ToolAnswer(head | {"ir": ir}, "lines", rows, f"irscope {' '.join(words)} --json", start, notes=said)


def _upgrade(capture: str, to: str, start: int = 0) -> ToolAnswer:
    """Compare with another Triton: what changed, and which pass did it.

    Args:
    to: its Python
    """
    return _answer_of(capture, ["upgrade", capture_subject(capture), *_options(to=to)], "rows", start)


def _answer_of(capture: str, words: Sequence[str], key: str, start: int) -> ToolAnswer:
    """What a command prints of one capture, or of all that it works on: the rows of a key, and the rest as the head."""
    document, said = command_json(words)
    head, *others = rows_of(document if isinstance(document, list) else [document])
    _refuse_several(capture, [head, *others])
    rows = head.pop(key)
    if not rows and words[0] == "why":
        head["next"] = call_of("time", {"capture": head["id"]})
    return ToolAnswer(head, key, rows, f"irscope {' '.join(words)} --json", start, notes=said)


def _listed(words: Sequence[str], key: str, start: int = 0) -> ToolAnswer:
    """What a command prints of several things, each as a row."""
    document, said = command_json(words)
    return ToolAnswer({}, key, rows_of(document), f"irscope {' '.join(words)} --json", start, notes=said)


def _without(row: Mapping[str, Any], *nothing: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value not in nothing}


def _options(**values: str | int | Sequence[str] | None) -> list[str]:
    """The values that are given, as options of a command; a list's are separated by commas."""
    words: list[str] = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value:
            words.append(f"{option}={value if isinstance(value, (str, int)) else ','.join(value)}")
    return words


def _value(text: str) -> str:
    """A value that stands alone on a command line; raises UsageError for what would be an option there."""
    if text.startswith("-"):
        raise UsageError(f"{text!r} is an option, where a name is expected.")
    return text


def _refuse_several(capture: str, rows: Sequence[dict[str, Any]]) -> None:
    if len(rows) > 1:
        ids = ", ".join(row["id"] for row in rows[:8])
        raise UsageError(f"{capture!r} names {len(rows)} captures: give the id of one: {ids}. Next: list()")


def _one(subject: str, *, sass: bool = False) -> Capture:
    capture = stored_capture(subject)
    return with_sass(capture) if sass else capture


def record(
    file: str,
    kernel: str = "",
    signature: str = "",
    constexprs: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    target: str = "",
    plan: str = "",
    arguments: list[str] | None = None,
    config: str = "first",
    dry: bool = False,
    timeout_s: float = 300.0,
    start: int = 0,
) -> ToolAnswer:
    """Run a Python file and record its kernels; or compile one by its signature.

    Args:
    signature: as '*fp16:16, i32'; :16: divisible
    options: as {num_warps: 8}
    target: as cuda:90
    plan: passes off, as '-combine'
    """
    asked = RecordingOptions.of(
        {
            "signature": signature or None,
            "constexprs": constexprs or (),
            "options": options or (),
            "targets": target or (),
            "plan": plan,
            "arguments": arguments or (),
            "config": config,
            "dry": dry,
            "timeout_s": timeout_s,
        }
    )
    return _captured(program_subject(file, kernel), asked, start)


def recompile(
    capture: str,
    plan: str = "",
    options: dict[str, Any] | None = None,
    target: str = "",
    timeout_s: float = 300.0,
) -> ToolAnswer:
    """Compile a capture again: passes off, other options or target.

    Args:
    plan: as '-combine'; '+coalesce': others off
    options: as {num_warps: 8}
    """
    if not (plan or options or target):
        raise UsageError(
            f"nothing is to be changed. Next: {call_text('recompile', {'capture': capture, 'plan': '-combine'})}"
        )
    asked = {"plan": plan, "options": options or (), "targets": target or (), "timeout_s": timeout_s}
    return _captured(capture_subject(capture), RecordingOptions.of(asked), 0)


def _captured(subject: str, asked: RecordingOptions, start: int) -> ToolAnswer:
    from irscope.analysis.resources import table

    with quiet() as said:
        captures = captures_of(subject, replace(asked, disassemble=False))
        tell_failures(captures)
        rows = table(captures)
    # Row by row: what is not known of one is no loss to the others.
    shown = [_without(row, None, "") for row in rows]
    for row in shown:
        row["next"] = call_of("why" if row["status"] == "ok" else "stages", {"capture": row["id"]})
    return ToolAnswer({}, "captures", shown, "irscope ls --last --json", start, notes=said)


def edit(
    capture: str,
    at: str,
    lines: dict[str, str] | None = None,
    replace: dict[str, str] | None = None,
    text: str = "",
    variant: str = "",
    start: int = 0,
) -> ToolAnswer:
    """Edit the IR after a pass or of a stage, and resume the compile. Give lines, replace or text.

    Args:
    at: a pass, as 'ttgir:coalesce', or ttir, ttgir, llir, ptx
    lines: number → new text; empty removes
    replace: part, there once → new text
    """
    if at == PYTHON:
        how = call_text("edit_python", {"capture": capture})
        raise UsageError(f"at={at!r} is the kernel's Python text, which another tool runs. Next: {how}")
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), at)
        before = place.text()
    if not (lines or replace or text):
        shown = {"capture": capture, **({"stage": at} if at in place.capture.stages else {"after": at})}
        raise UsageError(f"nothing is to be changed. Next, for the text: {call_text('stages', shown)}")
    return _edited(subject, place, _with_edits(before, lines, replace, text), variant, start)


def edit_python(
    capture: str,
    lines: dict[str, str] | None = None,
    replace: dict[str, str] | None = None,
    text: str = "",
    variant: str = "",
    start: int = 0,
) -> ToolAnswer:
    """Edit the kernel's Python, run and compile it. Without an edit: show it."""
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), PYTHON)
        before = place.text()
    if not (lines or replace or text):
        rows = [f"{number}: {line}" for number, line in enumerate(before.splitlines(), 1)]
        head = {"capture": place.capture.id, "at": PYTHON}
        return ToolAnswer(head, "lines", rows, f"irscope edit {capture} --at source --text", start)
    if not place.capture.environment.is_trusted:
        raise UsageError(
            f"{place.capture.name} ({place.capture.id[:8]}) was not recorded on this machine, nor derived from one "
            "that was: this tool runs no Python of others. Next: "
            f"{call_text('edit', {'capture': capture, 'at': 'ttir'})}"
        )
    return _edited(subject, place, _with_edits(before, lines, replace, text), variant, start)


def _with_edits(before: str, lines: Mapping[str, str] | None, parts: Mapping[str, str] | None, text: str) -> str:
    """The edited text; raises UsageError for what does not fit the text."""
    if bool(lines) + bool(parts) + bool(text) > 1:
        raise UsageError("give one of lines, replace and text.")
    for old, new in (parts or {}).items():
        if (count := before.count(old) if old else 0) != 1:
            raise UsageError(f"replace: {old[:80]!r} is {count} times in the text, and must be there once.")
        before = before.replace(old, new)
    if lines:
        rows = before.split("\n")
        for number in sorted(lines, key=lambda one: int(one) if one.isdecimal() else 0, reverse=True):
            if not number.isdecimal() or not 0 < int(number) <= len(rows):
                raise UsageError(f"lines: {number!r} is not a line of the text, which has {len(rows)}.")
            rows[int(number) - 1 : int(number)] = [lines[number]] if lines[number] else []
        return "\n".join(rows)
    return text or before


def _edited(subject: str, place: EditPlace, edited: str, name: str, start: int) -> ToolAnswer:
    """What came of compiling the edited text, by `irscope edit`; raises RecordingError where it does not compile."""
    if name:
        refuse_taken(name)
    path = edits_folder() / f"{name or free_name(place.short)}{place.suffix}"
    write_atomically(path, edited.encode("utf-8", "surrogateescape"))
    words = ["edit", subject, f"--at={place.label}", f"--edited={path}", *([f"--name={name}"] if name else [])]
    document, said = command_json(words)
    found = cast("dict[str, Any]", document)
    if found["variant"] is None:
        is_python = place.label == PYTHON
        shown = {"capture": subject, **({} if is_python else _text_of(place))}
        again = call_text("edit_python" if is_python else "stages", shown)
        path.unlink(missing_ok=True)
        error = str(found["error"]).replace(str(path), place.label) or "the edited text is as it was."
        raise RecordingError(f"{error} Next, for the text: {again}")
    comparison: dict[str, Any] = found["comparison"]
    diffs: dict[str, Any] = comparison.pop("diffs", None) or {}
    lines: list[str] = [line for one in diffs.values() for line in one["unified"].splitlines()]
    head = {name: found[name] for name in ("capture", "at", "name", "variant", "error")}
    head |= {name: value for name, value in comparison.items() if name not in ("passes", "schedule")}
    head["next"] = call_of("stages" if found["error"] else "why", {"capture": found["variant"]})
    whole = f"irscope diff {found['capture']} {found['variant']} --json"
    return ToolAnswer(head, "diff", lines, whole, start, notes=said)


def _text_of(place: EditPlace) -> dict[str, str]:
    return {"stage" if place.label in place.capture.stages else "after": place.label}


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
    Offered("verdict", _verdict, "runs the file", "why"),
    Offered("bench", _bench, "runs the file", "record"),
    Offered("profile", _profile, "runs the file", "why"),
    Offered("reduce", _reduce, "compiles", "stages"),
    Offered("upgrade", _upgrade, "runs the file", "why"),
)
"""All of them, in the order in which they are listed."""
