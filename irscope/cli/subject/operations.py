"""Adds to a capture which operation of its TTGIR each instruction is from, where it can be found out here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.cli.output.talk import say
from irscope.cli.subject.captures import run_compile
from irscope.cli.subject.keeping import update_stored
from irscope.errors import IrscopeError
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest


def with_operations(
    capture: Capture, *, sass: bool = True, run: Callable[[RecordRequest], Capture] = run_compile
) -> Capture:
    """A capture with the operations of its instructions; its TTGIR is compiled again for that once, and this is kept.

    `run` does the compile. Without `sass` it stops at PTX, and the operations of SASS may be missing. Only where the
    same Triton is, and of a capture that was recorded here: of any other nothing is compiled unasked.
    """
    from irscope.record.compile.operations import STAGES_OF_OPERATIONS, find_operations
    from irscope.record.triton.versions import triton_version

    missing = {stage for stage in STAGES_OF_OPERATIONS if stage in capture.stages and (sass or stage != "sass")}
    missing -= {row.stage for row in capture.operations}
    if not missing or "ttgir" not in capture.stages:
        return capture
    if capture.environment.triton_version != triton_version() or not capture.environment.is_trusted:
        return capture
    try:
        found = find_operations(capture, run, missing)
        full = replace(capture, operations=(*capture.operations, *found))
    except IrscopeError as error:
        say(f"Which operation each instruction is from could not be found out: {error}")
        return capture
    for reason in dict.fromkeys(row.reason for row in found if row.reason):
        say(f"Which operation each instruction is from is not known: {reason}.")
    update_stored(capture, full)
    return full
