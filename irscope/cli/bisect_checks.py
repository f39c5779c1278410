"""What `irscope bisect` can check of a variant: each judges one capture, and says what it saw."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from irscope.analysis.ablation import count_capture
from irscope.analysis.bisected import Verdict
from irscope.analysis.bisection import Judgement
from irscope.capture import Capture, PassSnapshot
from irscope.errors import RecordingError, UsageError
from irscope.record.variant_measure import Session

CANNOT_JUDGE = 125
"""The exit code that says so, as `git bisect run` has it."""
_CANNOT_RUN = (126, 127)


Check = Callable[[Capture, Path], Verdict]
"""Judges a variant that compiled, given it and its file."""


def command_check(
    command: str, passes: Sequence[PassSnapshot], timeout_s: float, echo: Callable[[str], None] | None
) -> Check:
    """A shell command: 0 is good, 125 cannot be judged, up to 127 is bad, as `git bisect run` has it.

    `passes` are those of the whole pipeline: the command is told which of them are off, besides the plan that says so.
    It may take `timeout_s` seconds, after which it cannot be judged. What it prints goes to `echo`, if anywhere.
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
                f"the check {command!r} ended with {code}, which is no judgement: 0 is good, {CANNOT_JUDGE} cannot be "
                f"judged, 1 to 124 is bad.\n{said[-2000:]}".rstrip()
            )
        judgement: Judgement = "good" if code == 0 else "skip" if code == CANNOT_JUDGE else "bad"
        return Verdict(judgement, f"exit code {code}")

    return check


def count_check(name: str, most: int) -> Check:
    """One count (`registers`, `spills`) that may be no more than `most`."""

    def check(capture: Capture, path: Path) -> Verdict:
        value = getattr(count_capture(capture), name)
        if value is None:
            return Verdict("skip", f"{name} not known")
        return Verdict("good" if value <= most else "bad", f"{name} {value}")

    return check


def compiles_check() -> Check:
    """Whether it compiles: whoever asks judges that before any check."""
    return lambda capture, path: Verdict("good", "compiles")


def result_check(session: Session) -> Check:
    """Whether the launch computes on the GPU what it computes with every pass on."""

    def check(capture: Capture, path: Path) -> Verdict:
        agreement = session.check(capture)
        if agreement.verdict == "failed":
            return Verdict("skip", agreement.detail or agreement.verdict)
        return Verdict("good" if agreement.passes else "bad", agreement.verdict)

    return check


def time_check(session: Session, most: float, rounds: int) -> Check:
    """Whether the launch takes no more than `most` times what it takes with every pass on."""

    def check(capture: Capture, path: Path) -> Verdict:
        agreement = session.check(capture)
        if agreement.verdict in ("fault", "timeout", "failed"):
            return Verdict("skip", agreement.detail or agreement.verdict)
        ((_, ratio),) = session.time([capture], rounds=rounds)
        return Verdict("good" if ratio.value <= most else "bad", ratio.text)

    return check


def one_asked(**asked: object) -> str:
    """The name of the one check that is asked for; raises UsageError for none or several."""
    given = [f"--{name.replace('_', '-')}" for name, value in asked.items() if value is not None and value is not False]
    if len(given) != 1:
        every = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise UsageError(
            f"{' and '.join(given)} are several checks: ask for one."
            if given
            else f"what is good? Give one of {every}."
        )
    return given[0]
