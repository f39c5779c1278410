"""Keeps a launch of a script on the GPU to run its variants, and says why that is not possible."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.cli.subject.named import is_script, split_subject
from irscope.errors import RecordingError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import request_for

if TYPE_CHECKING:
    from irscope.record.gpu.session import DeviceSession


def why_no_gpu(subject: str | None, record_options: RecordingOptions, capture: Capture) -> str:
    """Why the variants of a capture cannot run here, as one sentence; empty if they can."""
    if not capture.environment.gpu:
        return "Whether the result is the same, and the time, need a GPU: this was recorded without one."
    if not is_script(subject, record_options):
        return "Whether the result is the same, and the time, need the script that launches it: give the FILE."
    return ""


@contextmanager
def launch_on_gpu(
    subject: str | None, record_options: RecordingOptions, capture: Capture, number: int
) -> Generator[DeviceSession]:
    """Launch number `number` of the script that a capture was recorded from, kept on the GPU.

    Raises RecordingError if the script makes another launch this time, and NoDevice without a GPU.
    """
    from irscope.record.gpu.session import device_session

    file, kernel = split_subject(subject, record_options, "")
    request = request_for(file, replace(record_options, plan=PassPlan(), snapshots="none"), kernel=kernel)
    with device_session(request, number) as session:
        if session.baseline.text("source") != capture.text("source"):
            raise RecordingError(f"{file} launched another kernel, or with other arguments, when it ran again.")
        yield session
