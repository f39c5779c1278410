"""Whether one compile of a launch is better than another: the same result, in less time; none of it is taken on trust.

The result is not that of a run of the program, which may return what it likes: the kernel's IR is executed on inputs
that the program never saw, all programs of the launch, and with other sizes. The time is that of the kernel too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from irscope.analysis.better import BetterAnswer, BetterVerdict
from irscope.analysis.findings.model import LEAST_SHARE
from irscope.api.timing import time, with_floor
from irscope.device.measurement import Measurement
from irscope.errors import IrscopeError, UsageError
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.launch import NO_LIMITS, RunLimits
from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord
from irscope.timing.predict import Prediction
from irscope.verify.meaning import MeaningVerdict, compare_captures, last_text
from irscope.verify.precision import lowered_precision

_EXECUTED = ("source", "ttir", "ttgir", "edited")
_MOST_PROGRAMS = 4096
"""Of a launch that is executed whole."""
_LIMITS = RunLimits(elements=1 << 30)
"""Of each execution: some 20 s."""


def verdict(
    before: Capture, after: Capture, *, measured: Measurement | None = None, all_programs: bool = False,
    progress: Callable[[str], None] | None = None,
) -> BetterVerdict:  # fmt: skip
    """Whether a launch computes the same as another one, in less time.

    Args:
        before: of a launch that was recorded with its arguments.
        after: its replacement: another kernel or compile, on the same tensors.
        measured: both on a GPU, where they were; without it the predicted times decide.
        all_programs: whether all programs are executed, however many they are and however long it takes.
        progress: gets what is being executed.

    The kernels are executed for all programs, on inputs drawn at random, then with other values of the sizes among
    their arguments, which keep their divisibility by 16. Above 4,096 programs, or a work of some 20 s for each side,
    some are executed, and the answer is at most `not decided`. The second must be safe, may not compute in fewer bits,
    and its machine code must be compiled from the IR that was executed.
    """
    tell = progress or (lambda _: None)
    most, limits = (None, NO_LIMITS) if all_programs else (_MOST_PROGRAMS, _LIMITS)
    tell(f"{after.name}: the programs of both, with the recorded sizes")
    try:
        meaning = compare_captures(before, after, programs=most, limits=limits)
    except UsageError as error:
        meaning = MeaningVerdict(reason=str(error))
        return BetterVerdict("changed", (str(error),), meaning, then=_next("diff", before, after))
    changed = [f"{row.label}: {row.detail}" for row in meaning.rows if row.answer == "changed"]
    undecided = [*_not_executed(before), *_not_executed(after)]
    if not changed and not undecided:
        changed = list(_other_sizes(before, after, tell))
        tell(f"{after.name}: whether its accesses are safe")
        changed += _unsafe(before, after)
        texts = [one.begun_text for one in (before, after)]
        if lowered := lowered_precision(*texts):
            changed.append(f"it computes in fewer bits: {lowered}")
        if measured is not None and measured.computes_other and measured.agreement is not None:
            changed.append(f"on {measured.device} the result is {measured.agreement.verdict}")
    if not changed and meaning.answer == "not decided":
        undecided += [meaning.reason or next(row.detail for row in meaning.rows if row.answer == "not decided")]
    if meaning.programs < meaning.all_programs:
        undecided.append(
            f"{meaning.programs} of {meaning.all_programs} programs were executed: record a smaller launch, or give "
            "--all-programs"
        )
    if changed or undecided:
        answer: BetterAnswer = "changed" if changed else "not decided"
        then = _next("diff", before, after) if changed else ("verify", {"capture": after.id})
        return BetterVerdict(answer, tuple(changed or undecided), meaning, measured=measured, then=then)
    tell(f"{after.name}: predicted times")
    return _timed(before, after, meaning, measured)


def _next(tool: str, before: Capture, after: Capture) -> tuple[str, dict[str, Any]]:
    return tool, {"left": before.id, "right": after.id}


def _not_executed(capture: Capture) -> Iterator[str]:
    """Why what a capture's machine code computes need not be what its IR does."""
    if capture.failure is not None:
        yield f"{capture.name} did not compile: {capture.failure.message}"
    elif capture.begun_from not in _EXECUTED:
        yield f"the compile of {capture.id[:8]} begins with its {capture.begun_from}, which is not executed"
    elif not capture.environment.is_trusted:
        yield f"{capture.id[:8]} was not recorded on this machine: its machine code may be another's"


def _other_sizes(before: Capture, after: Capture, tell: Callable[[str], None]) -> Iterator[str]:
    """With which values of an argument that is a size of a tensor the results differ."""
    records = before.launch.record, after.launch.record
    if records[0] is None or records[1] is None:
        return
    rows = [_integers(record) for record in records if record is not None]
    sizes = {size for one in records[0].arguments for size in (*one.shape, prod(one.shape))}
    is_masked = _masks_all(last_text(before))
    for value in sorted({one for one in rows[0].values() if one in sizes}):
        for other in _smaller(value, is_masked):
            # A stride of the same value stays the stride of that size.
            names = [name for name, one in rows[0].items() if one == value and rows[1].get(name) == value]
            if not names:
                continue
            tell(f"{after.name}: some programs of both, with {' = '.join(names)} = {other}")
            try:
                found = compare_captures(before, after, programs=64, values=dict.fromkeys(names, other), limits=_LIMITS)
            except IrscopeError:
                continue
            if found.answer == "changed":
                where = f"{' = '.join(names)} = {other} in place of {value}"
                yield f"with {where} the results differ: {found.rows[0].detail}"
                return


def _integers(record: LaunchRecord) -> dict[str, int]:
    """The integer arguments that a compile may not have made constants: 1 is one."""
    values = {one.path: one.value for one in record.arguments}
    return {name: one for name, one in values.items() if isinstance(one, int) and not isinstance(one, bool) and one > 1}


def _smaller(value: int, is_masked: bool) -> list[int]:
    """Smaller values that the compile may assume the same of: halves, and if any value is right close ones and few."""
    step = 16 if value % 16 == 0 else 1
    found = [value // 2 // step * step, *([value - step, step + 2 * (step == 1)] if is_masked else [])]
    return [one for one in dict.fromkeys(found) if 1 < one < value]


def _masks_all(text: str) -> bool:
    """Whether each access of a kernel has a mask: then it is made for any size."""
    accesses = [one for one in parse_mlir(text).walk() if one.opcode in ("load", "store", "async_copy_global_to_local")]
    return bool(accesses) and all(one.operand("mask") is not None for one in accesses)


def _unsafe(before: Capture, after: Capture) -> Iterator[str]:
    from irscope.api import safety

    found = safety(after).violations
    known = {one.kind for one in safety(before).violations} if found else set()
    yield from (f"{one.code} {one.title}: {one.detail}" for one in found[:1] if one.kind not in known)


def _timed(before: Capture, after: Capture, meaning: MeaningVerdict, measured: Measurement | None) -> BetterVerdict:
    from irscope.api import findings

    times: list[Prediction | None] = []
    untimed = f"{before.target} and {after.target} are different targets" if before.target != after.target else ""
    for one in (before, after):
        try:
            times.append(None if untimed else time(one))
        except IrscopeError as error:
            times.append(None)
            untimed = str(error)
    ours, theirs = times
    minimum = with_floor(after, theirs)[1] if theirs is not None else None
    worst = next(iter(findings(after)), None)
    ratio = theirs.seconds / ours.seconds if ours and theirs else None
    if measured is not None and measured.ratio is not None:
        is_faster, told = measured.ratio.different and measured.ratio.value < 1, f"measured {measured.ratio.text}"
    else:
        is_faster = ratio is not None and ratio < 1 - LEAST_SHARE
        told = f"predicted {ratio:.3g} times the time" if ratio is not None else f"not predicted: {untimed}"
    decided: BetterAnswer = "better" if is_faster else "not better"
    if measured is None and ratio is None:
        decided = "not decided"
    then = ("why" if worst is not None or not is_faster else "tune", {"capture": after.id})
    return BetterVerdict(
        decided, () if is_faster else (told,), meaning, ours, theirs, untimed, minimum, measured, then, worst
    )  # fmt: skip
