"""The tools that make captures: of a program, of a capture with something changed, and of an edited text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from irscope.api.edits import PYTHON, EditPlace, place_at
from irscope.cli.captures import captures_of, run_request, tell_failures
from irscope.cli.mcp.answers import Answer, call_of, call_text
from irscope.cli.mcp.calls import capture_subject, command_json, program_subject, quiet
from irscope.cli.streams import say
from irscope.cli.subject import stored_capture
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.disk import write_atomically
from irscope.store.recent import edits_folder, free_name, refuse_taken


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
) -> Answer:
    """Run a Python file (the user's code) and record its kernels; or compile one by its signature.

    Args:
    signature: types, as '*fp16:16, i32'; :16 means divisible.
    options: as {"num_warps": 8}.
    target: as cuda:90.
    plan: passes off, as '-combine -ttgir:coalesce'.
    config: first, all, index or KEY=VALUE.
    dry: in a copy of the folder.
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
) -> Answer:
    """Compile a capture's IR again with passes off, other options or for another target.

    Args:
    plan: as '-combine'; '+coalesce': all others off.
    options: as {"num_warps": 8}.
    """
    if not (plan or options or target):
        raise UsageError(
            f"nothing is to be changed. Next: {call_text('recompile', {'capture': capture, 'plan': '-combine'})}"
        )
    asked = {"plan": plan, "options": options or (), "targets": target or (), "timeout_s": timeout_s}
    return _captured(capture_subject(capture), RecordingOptions.of(asked), 0)


def _captured(subject: str, asked: RecordingOptions, start: int) -> Answer:
    """The captures of a subject with these options, as rows of the table."""
    from irscope.analysis.resources import table

    with quiet() as said:
        captures = captures_of(subject, dataclasses.replace(asked, disassemble=False))
        tell_failures(captures)
        rows = table(captures)
    # Row by row: what is not known of one is no loss to the others.
    shown = [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]
    for row in shown:
        row["next"] = call_of("why" if row["status"] == "ok" else "stages", {"capture": row["id"]})
    return Answer({}, "captures", shown, "irscope ls --last --json", start, notes=said)


def edit(
    capture: str,
    at: str,
    lines: dict[str, str] | None = None,
    replace: dict[str, str] | None = None,
    text: str = "",
    variant: str = "",
    start: int = 0,
) -> Answer:
    """Edit the IR after a pass or of a stage, compile on from it, show what changed. Give lines, replace or text.

    Args:
    at: a pass, as 'ttgir:coalesce', or ttir, ttgir, llir, ptx.
    lines: number (as in stages) → new text, empty removes it.
    replace: part, there once → new text.
    variant: its name.
    """
    if at == PYTHON:
        how = call_text("edit_python", {"capture": capture})
        raise UsageError(f"at={at!r} is the kernel's Python text, which another tool runs. Next: {how}")
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), at, record=run_request, tell=say)
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
) -> Answer:
    """Edit the kernel's Python, run it, compile it as the launch did. Without an edit: show it."""
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), PYTHON, record=run_request, tell=say)
        before = place.text()
    if not (lines or replace or text):
        rows = [f"{number}: {line}" for number, line in enumerate(before.splitlines(), 1)]
        head = {"capture": place.capture.id, "at": PYTHON}
        return Answer(head, "lines", rows, f"irscope edit {capture} --at source --text", start)
    if not place.capture.environment.is_trusted:
        raise UsageError(
            f"{place.capture.name} ({place.capture.id[:8]}) was not recorded on this machine, nor derived from one "
            "that was: this tool runs no Python of others. Next: "
            f"{call_text('edit', {'capture': capture, 'at': 'ttir'})}"
        )
    return _edited(subject, place, _with_edits(before, lines, replace, text), variant, start)


def _one(subject: str) -> Capture:

    return stored_capture(subject)


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
                raise UsageError(f"lines: {number!r} is no line of the text, which has {len(rows)}.")
            rows[int(number) - 1 : int(number)] = [lines[number]] if lines[number] else []
        return "\n".join(rows)
    return text or before


def _edited(subject: str, place: EditPlace, edited: str, name: str, start: int) -> Answer:
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
    return Answer(head, "diff", lines, whole, start, notes=said)


def _text_of(place: EditPlace) -> dict[str, str]:
    """The arguments of `stages` that show a text."""
    return {"stage" if place.label in place.capture.stages else "after": place.label}
