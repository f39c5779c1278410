"""Finds the passes that a check of a kernel depends on, with few compiles: the search, its checks, and its result.

A question is a set of passes to switch off; the answer says how a compile without them is judged. Nothing here
compiles anything. Every search rests on one fact: where the two ends of a row of questions are judged differently,
there is a place in the row where the judgement flips, and halving finds one, whatever lies between. So what is found is
always true; that it is the only such place holds where the answers are monotone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from irscope.analysis.diff.texts import TextDiff
from irscope.analysis.passes.ablation import count_capture, plan_without
from irscope.device.measurement import Session
from irscope.errors import RecordingError
from irscope.model.capture import Capture, PassSnapshot
from irscope.plan import PassPlan, PassRule

Judgement = Literal["good", "bad", "skip"]
"""`skip`: it cannot be judged (it does not compile)."""

Off = frozenset[int]
"""Passes to switch off, by their place in the pipeline, 0-based."""


@dataclass(frozen=True, slots=True)
class BisectVerdict:
    """How one variant was judged."""

    judgement: Judgement
    observed: str = ""


@dataclass(frozen=True, slots=True)
class BisectQuestion:
    """One question that was asked, and its answer."""

    off: Off
    verdict: BisectVerdict

    @property
    def judgement(self) -> Judgement:
        return self.verdict.judgement


@dataclass(frozen=True, slots=True)
class Flip:
    """Two sets of passes off; the passes in which they differ are found if the two are judged differently."""

    left: BisectQuestion
    """With fewer passes off."""
    right: BisectQuestion
    """With more."""

    @property
    def guilty(self) -> tuple[int, ...]:
        """The passes that are on on the left and off on the right: one, or where some could not be judged several.

        Empty if both sides are judged alike, or one of them cannot be judged: there is nothing to find between them.
        """
        judgements = {self.left.judgement, self.right.judgement}
        return tuple(sorted(self.right.off - self.left.off)) if judgements == {"good", "bad"} else ()


class Judge:
    """Asks each question once, and keeps what was asked, in order."""

    def __init__(self, ask: Callable[[Off], BisectVerdict]) -> None:
        self._ask = ask
        self._known: dict[Off, BisectQuestion] = {}

    def __call__(self, off: Off) -> BisectQuestion:
        if off not in self._known:
            self._known[off] = BisectQuestion(off, self._ask(off))
        return self._known[off]

    @property
    def questions(self) -> tuple[BisectQuestion, ...]:
        """What was asked so far."""
        return tuple(self._known.values())


def first_passes(judge: Judge, count: int, kept: Off = frozenset()) -> Flip:
    """The pass whose presence flips the judgement, counted from the front: the first N on, and one less.

    Asks 2 + log2(count) questions, rounded up, where each can be judged.
    """
    return _halve(judge, _growing(frozenset(), frozenset(range(count)) - kept))


def absent_passes(judge: Judge, count: int, kept: Off = frozenset()) -> Flip:
    """The fewest passes whose absence flips the judgement, with every other pass on.

    The first is found as `first_passes` does. Where its absence alone does not do, the search goes on for what must be
    absent with it. On the right side of the flip only what is needed for it is off; on the left one of those less. Only
    where what is found so far cannot be judged by itself, other passes are off on both sides.

    Asks 3 + log2(count) questions for one pass, rounded up, and about as many again for each further one.
    """
    found = flip = first_passes(judge, count, kept)
    needed: Off = frozenset()
    while flip.guilty:
        found = flip
        needed = needed | set(flip.guilty)
        if judge(needed).judgement == flip.right.judgement:
            return _smallest(judge, needed)
        # Alone these do not flip it, with what else was off they did: the next is among that.
        flip = _halve(judge, _growing(needed, flip.right.off - needed))
    return found


def _smallest(judge: Judge, needed: Off) -> Flip:
    wanted = judge(needed).judgement
    while len(needed) > 1:
        idle = next((one for one in sorted(needed) if judge(needed - {one}).judgement == wanted), None)
        if idle is None:
            break
        needed = needed - {idle}
    sides = [judge(needed - {one}) for one in sorted(needed)]
    left = next((side for side in sides if side.judgement != "skip"), judge(frozenset()))
    return Flip(left, judge(needed))


def needed_passes(compiles: Callable[[Off], bool], count: int) -> Off:
    """The passes that a compile cannot do without: with all the others off it goes through.

    Runs of passes are switched off as one, where that fails by halves. So with few of them needed it takes about
    2 · needed · log2(count / needed) tries, and fewer than 2 · count at the most.
    """
    off: Off = frozenset()
    needed: Off = frozenset()
    tried: dict[Off, bool] = {}
    waiting = [range(count)]
    while waiting:
        run = waiting.pop()
        without = off | set(run)
        if without not in tried:
            tried[without] = compiles(without)
        if tried[without]:
            off = without
        elif len(run) == 1:
            needed = needed | set(run)
        else:
            middle = len(run) // 2
            waiting += [run[middle:], run[:middle]]
    return needed


def _growing(start: Off, more: Off) -> list[Off]:
    """`start`, then with one more pass off each time, the last of the pipeline first."""
    order = sorted(more, reverse=True)
    return [start | set(order[:size]) for size in range(len(order) + 1)]


def _halve(judge: Judge, row: Sequence[Off]) -> Flip:
    """The place in a row of ever larger sets where the judgement flips."""
    low, high = 0, len(row) - 1
    left, right = judge(row[low]), judge(row[high])
    if "skip" in (left.judgement, right.judgement) or left.judgement == right.judgement:
        return Flip(left, right)
    while high - low > 1:
        for middle in _halves(low, high):
            question = judge(row[middle])
            if question.judgement != "skip":
                break
        else:
            # Nothing between the two can be judged.
            break
        if question.judgement == left.judgement:
            low = middle
        else:
            high = middle
    return Flip(judge(row[low]), judge(row[high]))


def _halves(low: int, high: int) -> Iterator[int]:
    spans = deque([(low, high)])
    while spans:
        start, end = spans.popleft()
        middle = (start + end) // 2
        if start < middle < end:
            yield middle
            spans.extend(((start, middle), (middle, end)))


Mode = Literal["off", "first"]


@dataclass(frozen=True, slots=True)
class BisectStep:
    """One variant that was judged."""

    off: tuple[str, ...]
    """The passes that are off, of those that were looked at."""
    plan: str
    verdict: BisectVerdict


@dataclass(frozen=True, slots=True)
class Bisection:
    base: Capture
    """The kernel with every pass on."""
    check: str
    """The condition for a good compile, in words."""
    mode: Mode
    passes: tuple[str, ...]
    """The labels of those that were looked at."""
    is_planned: bool
    """Whether they are the passes that a plan switches off; else all."""
    kept: tuple[str, ...]
    """Those of them that stayed on: the compile cannot do without them."""
    tries: int
    """The compiles that it took to find those."""
    steps: tuple[BisectStep, ...]
    left: BisectStep
    """The side with fewer passes off."""
    right: BisectStep
    guilty: tuple[str, ...] = ()
    """What the judgement hangs on: off on the right and on on the left. Several where what lies between cannot be
    judged; none where nothing was found."""
    is_steady: bool = True
    """Whether both sides were judged the same when they were asked again."""
    fixed: tuple[str, ...] = ()
    """What the plan switches off besides: these stay off on every side."""
    subject: str = ""
    """What names `base` in a command."""
    diff: TextDiff | None = None
    """What the one guilty pass did, with what is off on the left off; None where it works on no MLIR."""


def short_plan(off: Collection[str], every: Sequence[str]) -> PassPlan:
    """The plan that switches these passes off, by naming them or, in a stage where that is shorter, what stays on."""
    plan = PassPlan()
    for stage in dict.fromkeys(label.partition(":")[0] for label in every):
        inside = [label for label in every if label.startswith(f"{stage}:")]
        gone = [label for label in inside if label in off]
        left = [label for label in inside if label not in off]
        if len(gone) > 1 and not left:
            plan = plan.without(PassRule("*", stage))
        elif left and len(left) < len(gone):
            plan = PassPlan(plan.disabled, plan.only + tuple(PassRule.parse(label) for label in left))
        else:
            plan = plan_without(plan, gone)
    return plan


Check = Callable[[Capture, Path], BisectVerdict]
"""Judges a variant that compiled, from its capture and its file."""


def compiles_check(capture: Capture, path: Path) -> BisectVerdict:
    """Whether the variant compiles, which is judged before any check."""
    return BisectVerdict("good", "compiles")


@dataclass(frozen=True, slots=True)
class BisectSearch:
    """The condition that a bisection searches for, and the candidate passes."""

    check: Check = compiles_check
    words: str = ""
    mode: Mode = "off"
    """`off`: the fewest passes that flip the check when they are off and all others on. `first`: the pass that flips it
    when the passes before it are on and those after it off."""
    stages: tuple[str, ...] | None = None
    """Whose passes; empty for all, None for all but the optimisers of LLVM and ptxas."""
    partial: bool = False
    """Whether failed compiles are judged too, by the stages that they reached."""

    @property
    def only_compiles(self) -> bool:
        """Whether a variant that compiles is good, whatever it is."""
        return self.check is compiles_check


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

    def check(capture: Capture, path: Path) -> BisectVerdict:
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
            return BisectVerdict("skip", f"took more than {timeout_s:g} s")
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
        return BisectVerdict(judgement, f"exit code {code}")

    return check


def count_check(name: str, most: int) -> Check:
    """One count (`registers`, `spills`) that may be at most `most`."""

    def check(capture: Capture, path: Path) -> BisectVerdict:
        value = getattr(count_capture(capture), name)
        if value is None:
            return BisectVerdict("skip", f"{name} not known")
        return BisectVerdict("good" if value <= most else "bad", f"{name} {value}")

    return check


def result_check(session: Session) -> Check:
    """Whether the launch computes the same as with every pass on."""

    def check(capture: Capture, path: Path) -> BisectVerdict:
        agreement = session.check(capture)
        if agreement.verdict == "failed":
            return BisectVerdict("skip", agreement.detail or agreement.verdict)
        return BisectVerdict("good" if agreement.passes else "bad", agreement.verdict)

    return check


def time_check(session: Session, most: float, rounds: int) -> Check:
    """Whether the launch takes at most `most` times the time with every pass on."""

    def check(capture: Capture, path: Path) -> BisectVerdict:
        agreement = session.check(capture)
        if agreement.verdict in ("fault", "timeout", "failed"):
            return BisectVerdict("skip", agreement.detail or agreement.verdict)
        ((_, ratio),) = session.time([capture], rounds=rounds)
        if ratio is None:
            return BisectVerdict("skip", "not timed")
        return BisectVerdict("good" if ratio.value <= most else "bad", ratio.text)

    return check
