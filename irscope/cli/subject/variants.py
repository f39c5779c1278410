"""What `ablate` and `bisect` share: the choice of a launch, checks of the passes named, and progress."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from irscope.cli.options import split_words
from irscope.cli.output.streams import raw_stderr
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, failure_text
from irscope.cli.subject.stored import is_ambiguous, only_one
from irscope.errors import PlanError, RecordingError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.completing import tell_not_kept, tell_origin

if TYPE_CHECKING:
    from rich.progress import Progress

    from irscope.record.variants.store import Variants


def one_capture(subject: str | None, record_options: RecordingOptions) -> tuple[Capture, int]:
    """The launch that a subject names, and its number from 1.

    Of several it is the first, which is said; where autotuning timed its configurations, the first that is launched.
    """
    captures = captures_of(subject, record_options)
    if is_ambiguous(captures, subject):
        only_one(captures, subject)
    tried = [one.autotuning for one in captures.files]
    index = next((place for place, one in enumerate(tried) if one is None or one.winner is not False), 0)
    capture = captures[index]
    if len(captures) > 1:
        say(
            f"{len(captures)} launches: this is number {index + 1}, {capture.name}. --launch N takes another, "
            "FILE::KERNEL another kernel."
        )
    tell_origin(capture, say)
    return capture, record_options.launch or index + 1


def baseline_of(variants: Variants, plan: PassPlan) -> Capture:
    """The capture that variants are compared with; raises RecordingError if it fails to compile."""
    baseline = variants.compile(plan)
    if variants.not_kept is not None:
        tell_not_kept(variants.not_kept, say)
    if not baseline.has_compiled:
        under = f" under the plan {str(plan)!r}" if plan else ""
        raise RecordingError(f"there is nothing to compare with{under}: {failure_text(baseline)}")
    return baseline


def split_stages(texts: list[str] | None) -> tuple[str, ...]:
    """The stages of `--stage`; empty for all."""
    names = split_words(texts)
    return () if "all" in names else tuple(dict.fromkeys(names))


def check_stages(capture: Capture, stages: tuple[str, ...]) -> None:
    """Raise PlanError for a stage in which no pass of a capture ran."""
    known = tuple(dict.fromkeys(snapshot.stage for snapshot in capture.passes()))
    for stage in stages:
        if stage not in known:
            raise PlanError(f"no pass ran in stage {stage!r}: there are {', '.join(known) or 'none'}, or all.")


def check_rules(capture: Capture, stages: tuple[str, ...], rules: tuple[PassRule, ...]) -> None:
    """Raise PlanError for a rule that names no pass of these stages."""
    PassPlan(rules).check(list(capture.passes()))
    for rule in rules:
        inside = [one for one in capture.passes() if rule.matches(one) and (not stages or one.stage in stages)]
        if not inside:
            stage = next(one.stage for one in capture.passes() if rule.matches(one))
            raise PlanError(f"'{rule}' is a pass of {stage}: --stage {stage} selects it.")


@contextmanager
def progress_bar() -> Generator[Progress]:
    """A progress bar with an estimate of the time; only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(file=raw_stderr()), disable=not sys.stderr.isatty(), transient=True
    ) as progress:
        yield progress
