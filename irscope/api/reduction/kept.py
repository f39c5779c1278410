"""What a reduction keeps true of a capture, one of: its failure, a finding, or that a command exits with 0.

What makes the thing to keep of the first compile of a text is of type `KeptOf`: None if it is not so there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.measures import Reach, reach_of
from irscope.analysis.findings.model import KINDS
from irscope.analysis.findings.needs import OF_SASS
from irscope.analysis.findings.studied import Studied
from irscope.analysis.reduce.likeness import Likeness, likeness_of, without_place
from irscope.errors import DAMAGE, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture, Failure
from irscope.record.process.disassembly import disassembled
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.candidates import Judge
from irscope.store.file import SUFFIX, save

__all__ = [
    "Kept", "KeptOf", "failing_alike", "if_it_holds", "kept_check", "kept_failure", "kept_finding", "refuse_lost",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that is true of the capture, and of every smaller one that is accepted."""

    text: str
    """In words."""
    judge: Judge
    """Whether it is true of a request."""
    likeness: Likeness | None = None
    """Of the failure, if it is one."""
    last_stage: str = ""
    """How far a compile must go; empty for the binary."""
    layouts: bool = False
    """Whether the layouts must be known."""
    lasts: bool = True
    """Whether what a request comes to is the same the next time."""

    def text_of(self, made: Capture) -> str:
        """The same in words, with the figures of a smaller capture: it may need fewer bytes, and fails alike."""
        if self.likeness is None or made.failure is None or not self.likeness.is_of(made.failure):
            return self.text
        return _failure_text(made.failure)


KeptOf = Callable[[RecordRequest, Capture], Kept | None]


def if_it_holds(kept: Kept) -> KeptOf:
    """What was true of a capture, if it is so of a text."""
    return lambda request, capture: kept if kept.judge(request, (capture,)) is True else None


def failing_alike(recorded: Capture) -> KeptOf:
    """The failure of a capture; where its passes ran together, and it does not tell which failed, as a text tells."""
    kept = kept_failure(recorded)

    def of(request: RecordRequest, capture: Capture) -> Kept | None:
        if kept.judge(request, (capture,)) is True:
            return kept
        return kept_failure(capture) if _is_close(recorded.failure, capture.failure) else None

    return of


def _is_close(one: Failure | None, other: Failure | None) -> bool:
    """Whether two failures differ at most in that only one of them tells the pass."""
    if one is None or other is None or one.stage != other.stage or (one.pass_label and other.pass_label):
        return False
    return likeness_of(replace(one, pass_label="")) == likeness_of(replace(other, pass_label=""))


def kept_failure(capture: Capture, failure: Failure | None = None) -> Kept:
    """The failure of a capture, or the one that a compile of its text gave; raises UsageError where it has none."""
    failure = failure or capture.failure
    if failure is None:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) did not fail: what is to be kept? Give one of --check CMD, --finding "
            "CODE, --vs KEY=VALUE."
        )
    likeness = likeness_of(failure)
    holds = _of_one(lambda other: likeness.is_of(other.failure))
    return Kept(_failure_text(failure), holds, likeness, _stage_of(failure))


def _failure_text(failure: Failure) -> str:
    """A failure in words, with the figures of what failed."""
    if failure.kind == "timeout":
        return f"it hangs in {failure.where}"
    return f"it {failure.verdict}: {without_place(failure.headline)}"


def _of_one(holds: Callable[[Capture], bool]) -> Judge:
    """Judges requests by what each is compiled to."""
    return lambda request, made: holds(made[0]) if made else request


def _stage_of(failure: Failure) -> str:
    # What does not fit has been made.
    return "" if failure.kind == "fit" else failure.stage


def kept_finding(capture: Capture, code: str) -> Kept:
    """That a finding of a code is among those of the capture; raises UsageError where it is not."""
    code = next((one.code for one in KINDS.values() if code in (one.code, one.name)), code)
    if code not in KINDS:
        raise UsageError(f"--finding {code!r}: no finding has that code.{did_you_mean(code, KINDS)}")
    if code in OF_SASS:
        capture = disassembled(capture)
    found = next((one for one in findings_of(capture) if one.code == code), None)
    if found is None:
        codes = ", ".join(dict.fromkeys(one.code for one in findings_of(capture)))
        raise UsageError(f"{capture.name} ({capture.id[:8]}) has no finding {code}: it has {codes or 'none'}.")
    stages: dict[Reach, str] = {
        "ttgir": "ttgir", "assembly": {"cuda": "ptx", "hip": "amdgcn"}.get(capture.target.backend, ""), "binary": "",
    }  # fmt: skip

    def holds(other: Capture) -> bool:
        if not other.has_compiled:
            return False
        try:
            studied = Studied(disassembled(other) if code in OF_SASS else other)
            return any(one.code == code for one in findings_of(studied))
        except DAMAGE:
            return False

    return Kept(
        f"it has a finding {code} ({KINDS[code].name})", _of_one(holds), None, stages[reach_of(found)], layouts=True
    )


def kept_check(command: str, timeout_s: float, echo: Callable[[str], None] | None) -> Kept:
    """That a shell command exits with 0, as that of `ablate --check` does if it is good; failed compiles count too."""
    from irscope.analysis.passes.checks import command_check

    def holds(capture: Capture) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"candidate{SUFFIX}")
            save(capture, path)
            judge = command_check(command, tuple(capture.passes()), timeout_s, echo)
            return judge(capture, path).judgement == "good"

    return Kept(f"{command!r} exits with 0", _of_one(holds), lasts=False)


def refuse_lost(
    capture: Capture, what: str, tried: Sequence[str], unread: Sequence[str] = (), made: Capture | None = None
) -> RecordingError:
    """The error where what is to be kept is not true of the capture when it is compiled again.

    `tried`: the texts that were compiled. `unread`: those that MLIR does not read. `made`: what the last gave.
    """
    if not tried:
        why = (
            f"MLIR does not read {' and '.join(unread)} with Triton as it is installed here, and only what it reads is "
            "reduced"
            if unread
            else "the capture holds no IR"
        )
        advice = " --python FILE reduces the Python text of the kernel." if capture.launch.kernel.source else ""
        return RecordingError(f"{capture.name} ({capture.id[:8]}): {what}, but {why}: nothing to reduce.{advice}")
    return RecordingError(
        f"{capture.name} ({capture.id[:8]}): that {what} is not so when it is compiled again from "
        f"{' or '.join(tried)} with Triton as it is installed here"
        f"{_how_it_ended(made)}: nothing to reduce. "
        "irscope show CAPTURE says which version recorded it."
    )


def _how_it_ended(made: Capture | None) -> str:
    if made is None:
        return ""
    if made.failure is None:
        return " (it compiled)"
    return f" (it {made.failure.verdict}: {without_place(made.failure.headline)})"
