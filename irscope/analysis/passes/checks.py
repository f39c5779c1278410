"""Checks of the variants of a bisection: each judges a capture, and says what it saw."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from irscope.analysis.passes.ablation import count_capture
from irscope.analysis.passes.bisected import Check, Verdict
from irscope.analysis.passes.bisection import Judgement
from irscope.device.measurement import Session
from irscope.errors import RecordingError
from irscope.model.capture import Capture, PassSnapshot

_CANNOT_JUDGE = 125
"""The exit code for "cannot judge", the same as in `git bisect run`."""
_CANNOT_RUN = (126, 127)


def command_check(
    command: str, passes: Sequence[PassSnapshot], timeout_s: float, echo: Callable[[str], None] | None
) -> Check:
    """A shell command, with the exit codes of `git bisect run`: 0 is good, 125 cannot judge, 1 to 124 is bad.

    `passes` are those of the whole pipeline, of which the command's environment names the ones that are off. A command
    that runs longer than `timeout_s` seconds cannot judge. Its output goes to `echo`, or nowhere if that is None.
    """

    def check(capture: Capture, path: Path) -> Verdict:
        environment = {
            **os.environ,
            "IRSCOPE_CAPTURE": str(path),
            "IRSCOPE_PLAN": str(capture.plan),
            "IRSCOPE_PASSES_OFF": " ".join(one.label for one in passes if capture.plan.skips(one)),
        }
        line = command.replace("{capture}", shlex.quote(str(path)))
        try:
            done = subprocess.run(
                line,
                shell=True,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict("skip", f"took more than {timeout_s:g} s")
        said = done.stdout.decode("utf-8", "replace")
        if echo is not None and said:
            echo(said)
        code = done.returncode
        if code in _CANNOT_RUN or code < 0 or code > 128:
            raise RecordingError(
                f"the check {command!r} exited with {code}, which is not a judgement: 0 is good, {_CANNOT_JUDGE} "
                f"cannot judge, 1 to 124 is bad.\n{said[-2000:]}".rstrip()
            )
        judgement: Judgement = "good" if code == 0 else "skip" if code == _CANNOT_JUDGE else "bad"
        return Verdict(judgement, f"exit code {code}")

    return check


def count_check(name: str, most: int) -> Check:
    """One count (`registers`, `spills`) that may be at most `most`."""

    def check(capture: Capture, path: Path) -> Verdict:
        value = getattr(count_capture(capture), name)
        if value is None:
            return Verdict("skip", f"{name} not known")
        return Verdict("good" if value <= most else "bad", f"{name} {value}")

    return check


def result_check(session: Session) -> Check:
    """Whether the launch computes the same on the GPU as with every pass on."""

    def check(capture: Capture, path: Path) -> Verdict:
        agreement = session.check(capture)
        if agreement.verdict == "failed":
            return Verdict("skip", agreement.detail or agreement.verdict)
        return Verdict("good" if agreement.passes else "bad", agreement.verdict)

    return check


def time_check(session: Session, most: float, rounds: int) -> Check:
    """Whether the launch takes at most `most` times the time with every pass on."""

    def check(capture: Capture, path: Path) -> Verdict:
        agreement = session.check(capture)
        if agreement.verdict in ("fault", "timeout", "failed"):
            return Verdict("skip", agreement.detail or agreement.verdict)
        ((_, ratio),) = session.time([capture], rounds=rounds)
        return Verdict("good" if ratio.value <= most else "bad", ratio.text)

    return check
