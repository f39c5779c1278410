"""`irscope verify`: whether launches access memory as they may, with a witness where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.output import Destination, under_titles
from irscope.cli.parameters import Option, Subject
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

if TYPE_CHECKING:
    from irscope.verify.verdict import SafetyVerdict


def verify(
    subject: Subject = None,
    all_programs: Annotated[
        bool, Option("--all-programs", help="Execute all programs of a launch, however many there are.")
    ] = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Find accesses out of bounds, races, loads moved across stores and waits that never end, without a GPU.

    The IR of each launch is executed on the CPU as far as its addresses need it. The exit code is 1 where something is
    wrong. docs/verify.md has the codes, and what is not checked.
    """
    from irscope.api import safety
    from irscope.render.text.verdict import render_verdict

    captures = captures_of(subject, record_options)
    verdicts: dict[str, SafetyVerdict] = {one.id: safety(one, all_programs=all_programs) for one in captures}

    def as_json(capture: Capture) -> dict[str, Any]:
        head = {"id": capture.id, "kernel": capture.name, "target": str(capture.target)}
        return head | verdicts[capture.id].as_json()

    to.emit(
        lambda: [as_json(one) for one in captures],
        lambda _, color: under_titles(captures, lambda one: render_verdict(verdicts[one.id], color=color)),
    )
    is_wrong = any(verdict.answer == "wrong" for verdict in verdicts.values())
    return 1 if is_wrong else tell_incomplete(captures)
