"""A script's launch held on the GPU, to run its variants; and what to say where there is none."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from irscope.capture import Capture
from irscope.cli.subject import How
from irscope.errors import RecordingError
from irscope.record.requests import request_for
from irscope.record.variant_measure import Session


def why_no_gpu(subject: str | None, asked: How, capture: Capture) -> str:
    """Why a capture's variants cannot be run here, as one sentence; empty where they can."""
    if not capture.environment.gpu:
        return "Whether the result is the same, and the time, need a GPU: this was recorded without one."
    if not _script_of(subject) or asked.signature is not None:
        return "Whether the result is the same, and the time, need the script that launches it: give the FILE."
    return ""


@contextmanager
def launch_on_gpu(subject: str | None, asked: How, capture: Capture, number: int) -> Generator[Session]:
    """The launch of a script that a capture was recorded of, its `number`-th, held on the GPU.

    Raises RecordingError where the script launches something else this time, and NoDevice without a GPU.
    """
    from irscope.record.device_session import device_session

    file, _, kernel = (subject or "").partition("::")
    request = request_for(
        file, kernel=kernel, targets=asked.targets, arguments=asked.arguments, configs=asked.config, snapshots="none"
    )
    with device_session(request, number, timeout_s=asked.timeout_s, interpreter=asked.interpreter) as session:
        if session.baseline.text("source") != capture.text("source"):
            raise RecordingError(f"{file} launched another kernel, or with other arguments, when it ran again.")
        yield session


def _script_of(subject: str | None) -> str:
    file = (subject or "").partition("::")[0]
    return file if file.endswith(".py") and Path(file).is_file() else ""
