"""Makes the texts that a recording left out, from the capture's own source, where Triton is there."""

from __future__ import annotations

from irscope.capture import Capture
from irscope.cli.subject import How, run_request, tell_origin
from irscope.cli.talk import say
from irscope.errors import IrscopeError, StageNotFound


def capture_with_all_texts(capture: Capture) -> Capture:
    """The same compile with every pass's IR; raises StageNotFound where it can't be made here."""
    from irscope.record.requests import request_from_capture

    say("The recording left this IR out (--snapshots all keeps it); compiling it again from the capture's source.")
    tell_origin(capture)
    request = request_from_capture(
        capture, plan=str(capture.plan), snapshots="all", options=None, targets=(str(capture.target),)
    )
    try:
        (again,) = run_request(request, How()).captures
    except IrscopeError as error:
        raise StageNotFound(f"this IR was left out of the recording, and cannot be made here: {error}") from error
    if again.environment.triton_version != capture.environment.triton_version:
        say(
            f"Made by Triton {again.environment.triton_version}; the capture is of "
            f"{capture.environment.triton_version}: it may differ."
        )
    return again
