"""The tools that compile an edited text of a capture: of the compiler's IR, and of the kernel's Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from irscope.api.edits import PYTHON, EditPlace, place_at
from irscope.cli.edit.names import edits_folder, free_name, refuse_taken
from irscope.cli.mcp.answers import Answer, call_of, call_text
from irscope.cli.mcp.calls import capture_subject, command_json, quiet
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import run_request
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.store.disk import write_atomically

__all__ = ["edit", "edit_python"]


def edit(
    capture: str,
    at: str,
    lines: dict[str, str] | None = None,
    replace: dict[str, str] | None = None,
    text: str = "",
    variant: str = "",
    start: int = 0,
) -> Answer:
    """Edit the IR after a pass, or what a stage made, compile on from it, and show what that changed.

    It runs Triton's compiler, and no code of the user's. Read the text with stages first: its line numbers are those
    that lines takes. The result is another capture, with a name. Give one of lines, replace and text.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    at: the text: a pass, as 'ttgir:coalesce', for the IR after it; or ttir, ttgir, llir, ptx.
    lines: number of a line → what stands in its place, as {"12": "  %3 = …"}; an empty text removes it.
    replace: part of the text → what stands in its place; each part must be there once.
    text: the whole edited text.
    variant: the name of the new capture; by default the place and a number.
    start: the first line of the diff to show.
    """
    if at == PYTHON:
        how = call_text("edit_python", {"capture": capture})
        raise UsageError(f"at={at!r} is the kernel's Python text, which another tool runs. Next: {how}")
    given = {"capture": capture, "at": at, "lines": lines, "replace": replace, "text": text, "variant": variant}
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), at, record=run_request, tell=say)
        before = place.text()
    if not (lines or replace or text):
        shown = {"capture": capture, **({"stage": at} if at in place.capture.stages else {"after": at})}
        raise UsageError(f"nothing is to be changed. Next, for the text: {call_text('stages', shown)}")
    return _edited("edit", given, subject, place, _with_edits(before, lines, replace, text), start)


def edit_python(
    capture: str,
    lines: dict[str, str] | None = None,
    replace: dict[str, str] | None = None,
    text: str = "",
    variant: str = "",
    start: int = 0,
) -> Answer:
    """Edit the Python text of a kernel, compile it as the launch did, and show what that changed.

    This executes the edited text, on a virtual GPU; the capture must have been recorded on this machine. Without lines,
    replace and text it only shows the text to edit. The result is another capture, with a name.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    lines: number of a line → what stands in its place, as {"12": "    x = …"}; an empty text removes it.
    replace: part of the text → what stands in its place; each part must be there once.
    text: the whole edited text.
    variant: the name of the new capture; by default the place and a number.
    start: the first line to show, of the diff, or of the text.
    """
    given = {"capture": capture, "lines": lines, "replace": replace, "text": text, "variant": variant}
    subject = capture_subject(capture)
    with quiet():
        place = place_at(_one(subject), PYTHON, record=run_request, tell=say)
        before = place.text()
    if not (lines or replace or text):
        rows = [f"{number}: {line}" for number, line in enumerate(before.splitlines(), 1)]
        head = {"capture": place.capture.id, "at": PYTHON}
        return Answer("edit_python", given, head, "lines", rows, f"irscope edit {capture} --at source --text", start)
    if not place.capture.environment.is_trusted:
        raise UsageError(
            f"{place.capture.name} ({place.capture.id[:8]}) was not recorded on this machine, nor made of what was: "
            f"this tool runs no Python of others. Next: {call_text('edit', {'capture': capture, 'at': 'ttir'})}"
        )
    return _edited("edit_python", given, subject, place, _with_edits(before, lines, replace, text), start)


def _one(subject: str) -> Capture:
    from irscope.cli.subject.stored import stored_capture

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


def _edited(tool: str, given: Mapping[str, Any], subject: str, place: EditPlace, edited: str, start: int) -> Answer:
    """What came of compiling the edited text, by `irscope edit`; raises RecordingError where it does not compile."""
    name: str = given["variant"]
    if name:
        refuse_taken(name)
    path = edits_folder() / f"{name or free_name(place)}{place.suffix}"
    write_atomically(path, edited.encode("utf-8", "surrogateescape"))
    words = ["edit", subject, f"--at={place.label}", f"--edited={path}", *([f"--name={name}"] if name else [])]
    document, said = command_json(words)
    found = cast("dict[str, Any]", document)
    if found["variant"] is None:
        shown = {"capture": given["capture"], **({} if tool == "edit_python" else _text_of(place))}
        again = call_text("edit_python" if tool == "edit_python" else "stages", shown)
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
    return Answer(tool, given, head, "diff", lines, whole, start, notes=said)


def _text_of(place: EditPlace) -> dict[str, str]:
    """The arguments of `stages` that show a text."""
    return {"stage" if place.label in place.capture.stages else "after": place.label}
