"""`irscope verify`: whether launches access memory as they may, and whether passes and variants mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.command import Subject
from irscope.cli.diff import paired, pairs_of
from irscope.cli.launches import is_script, program_request
from irscope.cli.output import Destination
from irscope.cli.streams import progress
from irscope.device.measurement import Measurement
from irscope.errors import MissingTool, NoDevice, UsageError
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan


def verify(
    subject: Subject = None,
    other: str | None = None,
    versus: list[str] | None = None,
    passes: bool = False,
    bits: bool = False,
    all_programs: bool = False,
    for_all_arguments: bool = False,
    better: bool = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Find accesses out of bounds, races, passes that change a kernel's meaning, and variants that differ; no GPU.

    The IR of each launch is executed on the CPU where a check needs values. The exit code is 1 for an error or a
    changed meaning. docs/verify.md has the codes, and what is not checked.

    Options:
        other = [FILE|CAPTURE]: Another compile of the same launches, to compare with.
        versus = --vs KEY=VALUE: Compare with a variant: plan=-pipeline (a pass off), target=hip:gfx942, num_warps=8,
            BLOCK_K=32, triton=PYTHON; repeatable.
        --passes: Name the first pass of TTIR or TTGIR that changed the kernel's meaning.
        --bits: With --vs or a second capture: whether both give the same bits: sums in the same order.
        --all-programs: Execute all programs of a launch, however many there are.
        --for-all-arguments: Prove with z3 that no access is out of bounds for any integer arguments, or find a
            counterexample.
        --better: With --vs or a second capture: whether that is better, the same result in less predicted time, for
            other sizes too; of two FILEs with a GPU, in less measured time. The exit code is 0 only where it is.
    """
    from irscope.api import meaning, safety, safety_for_all_arguments, same_bits
    from irscope.render.text.verdict import render_bits, render_meaning, render_verdict

    if better:
        if (other is None and not versus) or passes or bits or for_all_arguments:
            raise UsageError("--better compares two compiles: give a second FILE or CAPTURE, or --vs KEY=VALUE, alone.")
        return _better(subject, other, versus or [], all_programs, to, record_options)
    if for_all_arguments and (other is not None or versus or passes or bits):
        raise UsageError("--for-all-arguments is about one compile of each launch: leave out the other options.")
    if other is not None or versus:
        if passes:
            raise UsageError("--passes compares the passes of each capture: leave out the other side.")
        pairs = _pairs(subject, other, versus or [], record_options)
        bases = [one for one, _ in pairs]
        others = {one.id: variant for one, variant in pairs}
        compare, render, bad = (same_bits, render_bits, "no") if bits else (meaning, render_meaning, "changed")
        return _answer(bases, lambda one, _: compare(one, others[one.id], all_programs=all_programs), render, bad, to)
    if bits:
        raise UsageError("--bits compares two compiles: give a second CAPTURE, or --vs KEY=VALUE.")
    captures = captures_of(subject, record_options)
    if passes:
        judge = partial(meaning, all_programs=all_programs)
        is_wrong = _answer(captures, lambda one, tell: judge(one, progress=tell), render_meaning, "changed", to)
    elif for_all_arguments:
        is_wrong = _answer(captures, lambda one, _: safety_for_all_arguments(one), render_verdict, "counterexample", to)
    else:
        judge = partial(safety, all_programs=all_programs, earlier=captures)
        is_wrong = _answer(captures, lambda one, _: judge(one), render_verdict, "wrong", to)
    return is_wrong or tell_incomplete(captures)


def _pairs(
    left: str | None, right: str | None, versus: Sequence[str], record_options: RecordingOptions
) -> list[tuple[Capture, Capture]]:
    plans = [text.partition("=")[2] for text in versus if text.startswith("plan=")]
    for plan in plans:
        record_options = replace(record_options, plan=record_options.plan.joined(PassPlan.parse(plan)))
    return pairs_of(left, right, record_options, [text for text in versus if not text.startswith("plan=")])


def _better(
    subject: str | None, other: str | None, versus: Sequence[str], all_programs: bool, to: Destination,
    record_options: RecordingOptions,
) -> int:  # fmt: skip
    from irscope.api.better import verdict
    from irscope.render.text.verdict import render_better

    if other is None:
        pairs, timer = _pairs(subject, None, versus, record_options), None
    else:
        sides = [captures_of(one, record_options, becomes_last=False) for one in (subject or "last", other)]
        counts = [len(side) for side in sides]
        if counts[0] != counts[1] or (counts[0] > 1 and len({one.name for one in sides[0]}) < counts[0]):
            names = ["; ".join(f"{one.name} ({one.id[:8]})" for one in side) for side in sides]
            raise UsageError(
                f"--better compares launch with launch: {names[0]} versus {names[1]}. Name one on each side."
            )
        pairs = paired(*sides)
        timer = _timer((subject, other), (sides[0], sides[1]), record_options)
    measured = {one.id: timer(one, two) if timer else None for one, two in pairs}
    with progress("runs the IR") as tell:
        verdicts = {
            one.id: verdict(one, two, measured=measured[one.id], all_programs=all_programs, progress=tell)
            for one, two in pairs
        }
    to.emit_each(
        [one for one, _ in pairs],
        lambda one: picked(one, "id kernel=name target") | verdicts[one.id].as_json(),
        lambda one, width, color: render_better(verdicts[one.id], color=color),
    )
    return int(any(one.answer != "better" for one in verdicts.values()))


def _timer(
    subjects: tuple[str | None, str],
    sides: tuple[Sequence[Capture], Sequence[Capture]],
    record_options: RecordingOptions,
) -> Callable[[Capture, Capture], Measurement] | None:
    """What measures two launches of scripts on this machine's GPU; None where there is none, or no scripts."""
    from irscope.api.gpu import PairTimer, require_gpu

    if record_options.targets or not all(is_script(one, record_options) for one in subjects):
        return None
    try:
        require_gpu(None, "--better")
    except (NoDevice, MissingTool):
        return None
    options = replace(record_options, snapshots="none", disassemble=False, layouts=False)
    before, after = (program_request(one, options) for one in subjects)
    return PairTimer((before, after), sides, 100, True).measurement


def _answer(
    captures: Sequence[Capture],
    judge: Callable[[Capture, Callable[[str], None] | None], Any],
    render: Callable[..., str],
    bad: str,
    to: Destination,
) -> int:
    """Print or write the verdict on each capture; returns the exit code, 1 where one is `bad`."""
    with progress("runs the IR") as tell:
        verdicts = {one.id: judge(one, tell) for one in captures}
    to.emit_each(
        captures,
        lambda one: picked(one, "id kernel=name target") | verdicts[one.id].as_json(),
        lambda one, width, color: render(verdicts[one.id], color=color),
    )
    return int(any(verdict.answer == bad for verdict in verdicts.values()))
