"""`irscope verify`: whether launches access memory as they may, and whether passes and variants mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.output import Destination, under_titles
from irscope.cli.parameters import Argument, Option, Subject
from irscope.cli.streams import progress
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan

if TYPE_CHECKING:
    from irscope.verify.bits import BitsVerdict
    from irscope.verify.meaning import MeaningVerdict
    from irscope.verify.verdict import SafetyVerdict


def verify(
    subject: Subject = None,
    other: Annotated[
        str | None, Argument("[FILE|CAPTURE]", "Another compile of the same launches: do the two mean the same?")
    ] = None,
    versus: Annotated[
        list[str] | None,
        Option(
            "--vs",
            metavar="KEY=VALUE",
            help="Compare with a variant: plan=-pipeline (a pass off), target=hip:gfx942, num_warps=8, BLOCK_K=32, "
            "triton=PYTHON; repeatable.",
        ),
    ] = None,
    passes: Annotated[
        bool, Option("--passes", help="Name the first pass of TTIR or TTGIR that changed what the kernel means.")
    ] = False,
    bits: Annotated[
        bool,
        Option(
            "--bits",
            help="With --vs or a second capture: whether both give the same bits, with sums in the same order.",
        ),
    ] = False,
    all_programs: Annotated[
        bool, Option("--all-programs", help="Execute all programs of a launch, however many there are.")
    ] = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Find accesses out of bounds, races, passes that change what a kernel means, and variants that differ; no GPU.

    The IR of each launch is executed on the CPU as far as that needs it. The exit code is 1 where something is wrong
    or changed. docs/verify.md has the codes, and what is not checked.
    """
    if other is not None or versus:
        if passes:
            raise UsageError("--passes compares the passes of each capture: leave out the other side.")
        return _verify_pairs(subject, other, versus or [], bits, all_programs, to, record_options)
    if bits:
        raise UsageError("--bits compares two compiles: give a second CAPTURE, or --vs KEY=VALUE.")
    captures = captures_of(subject, record_options)
    if passes:
        return _verify_passes(captures, all_programs, to) or tell_incomplete(captures)
    from irscope.api import safety
    from irscope.render.text.verdict import render_verdict

    verdicts: dict[str, SafetyVerdict] = {one.id: safety(one, all_programs=all_programs) for one in captures}
    _emit(captures, verdicts, lambda one, color: render_verdict(verdicts[one.id], color=color), to)
    is_wrong = any(verdict.answer == "wrong" for verdict in verdicts.values())
    return 1 if is_wrong else tell_incomplete(captures)


def _verify_passes(captures: Sequence[Capture], all_programs: bool, to: Destination) -> int:
    from irscope.api import meaning
    from irscope.render.text.meaning import render_meaning

    verdicts: dict[str, MeaningVerdict] = {}
    with progress("runs the IR") as tell:
        for one in captures:
            verdicts[one.id] = meaning(one, all_programs=all_programs, progress=tell)
    _emit(captures, verdicts, lambda one, color: render_meaning(verdicts[one.id], color=color), to)
    return int(any(verdict.answer == "changed" for verdict in verdicts.values()))


def _verify_pairs(
    left: str | None,
    right: str | None,
    versus: Sequence[str],
    bits: bool,
    all_programs: bool,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    from irscope.api import meaning, same_bits
    from irscope.cli.diff import pairs_of
    from irscope.render.text.meaning import render_bits, render_meaning

    plans = [text.partition("=")[2] for text in versus if text.startswith("plan=")]
    for plan in plans:
        record_options = replace(record_options, plan=record_options.plan.joined(PassPlan.parse(plan)))
    pairs = pairs_of(left, right, record_options, [text for text in versus if not text.startswith("plan=")])
    captures = [one for one, _ in pairs]
    if bits:
        answers: dict[str, BitsVerdict] = {}
        with progress("runs the IR"):
            for one, variant in pairs:
                answers[one.id] = same_bits(one, variant, all_programs=all_programs)
        _emit(captures, answers, lambda one, color: render_bits(answers[one.id], color=color), to)
        return int(any(verdict.answer == "no" for verdict in answers.values()))
    verdicts: dict[str, MeaningVerdict] = {}
    with progress("runs the IR"):
        for one, variant in pairs:
            verdicts[one.id] = meaning(one, variant, all_programs=all_programs)
    _emit(captures, verdicts, lambda one, color: render_meaning(verdicts[one.id], color=color), to)
    return int(any(verdict.answer == "changed" for verdict in verdicts.values()))


def _emit(
    captures: Sequence[Capture],
    verdicts: dict[str, Any],
    text_of: Callable[[Capture, bool], str],
    to: Destination,
) -> None:
    def as_json(capture: Capture) -> dict[str, Any]:
        head = {"id": capture.id, "kernel": capture.name, "target": str(capture.target)}
        return head | verdicts[capture.id].as_json()

    to.emit(
        lambda: [as_json(one) for one in captures],
        lambda _, color: under_titles(captures, lambda one: text_of(one, color)),
    )
