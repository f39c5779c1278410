"""Compiles a capture again for the IR that its recording left out."""

from __future__ import annotations

from irscope.cli.output.talk import say
from irscope.cli.subject.captures import run_request, tell_origin
from irscope.errors import IrscopeError, StageNotFound
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions


def capture_with_all_texts(capture: Capture) -> Capture:
    """The same compile with the IR after every pass; raises StageNotFound if it cannot be compiled here."""
    from irscope.record.process.requests import request_from_capture

    say("The recording left this IR out (--snapshots all keeps it); compiling it again from the capture's source.")
    tell_origin(capture)
    request = request_from_capture(capture, RecordingOptions(plan=capture.plan, snapshots="all"))
    try:
        (again,) = run_request(request).captures
    except IrscopeError as error:
        raise StageNotFound(f"the recording left this IR out, and it cannot be compiled here: {error}") from error
    if again.environment.triton_version != capture.environment.triton_version:
        say(
            f"Made by Triton {again.environment.triton_version}; the capture is of "
            f"{capture.environment.triton_version}: they may differ."
        )
    return again
