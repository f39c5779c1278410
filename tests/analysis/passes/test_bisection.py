"""The search for a guilty pass: what it finds is true, and it asks seldom."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.passes.bisection import (
    BisectVerdict,
    Flip,
    Judge,
    Judgement,
    Off,
    absent_passes,
    first_passes,
    needed_passes,
)

COUNTS = st.integers(1, 120)


def asking(ask: Callable[[Off], Judgement]) -> Judge:
    return Judge(lambda off: BisectVerdict(ask(off)))


def otherwise(judgement: Judgement) -> Judgement:
    return "bad" if judgement == "good" else "good"


def log(count: int) -> int:
    return ceil(log2(count)) if count > 1 else 0


@given(st.data(), COUNTS, st.sampled_from(["good", "bad"]))
def test_one_pass_whose_absence_flips(data: st.DataObject, count: int, with_all: Judgement) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    kept = frozenset(data.draw(st.sets(st.integers(0, count - 1)))) - {guilty}
    judge = asking(lambda off: otherwise(with_all) if guilty in off else with_all)
    flip = absent_passes(judge, count, kept)
    assert flip.guilty
    assert (flip.left.off, flip.right.off) == (frozenset(), {guilty})
    assert (flip.left.judgement, flip.right.judgement) == (with_all, otherwise(with_all))
    assert flip.guilty == (guilty,)
    assert len(judge.questions) <= log(count) + 3


@given(st.data(), COUNTS)
def test_one_pass_whose_presence_flips_counted_from_the_front(data: st.DataObject, count: int) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    kept = frozenset(data.draw(st.sets(st.integers(0, count - 1)))) - {guilty}
    judge = asking(lambda off: "good" if guilty in off else "bad")
    flip = first_passes(judge, count, kept)
    assert flip.guilty
    assert flip.guilty == (guilty,)
    assert flip.right.off == {number for number in range(guilty, count) if number not in kept}
    assert len(judge.questions) <= log(count) + 2


@given(st.data(), st.integers(2, 80))
def test_several_that_must_be_absent_together(data: st.DataObject, count: int) -> None:
    together = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=5))
    judge = asking(lambda off: "bad" if together <= off else "good")
    flip = absent_passes(judge, count)
    assert flip.guilty
    assert flip.right.off == together
    assert len(flip.guilty) == 1
    assert len(judge.questions) <= len(together) * (log(count) + 3)


@given(st.data(), st.integers(2, 80))
def test_any_one_of_several_will_do(data: st.DataObject, count: int) -> None:
    """Monotone too: the fewest whose absence flips is one of them."""
    alternatives = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    judge = asking(lambda off: "bad" if off & alternatives else "good")
    flip = absent_passes(judge, count)
    assert flip.guilty
    assert len(flip.right.off) == 1
    assert flip.right.off <= alternatives


def arbitrary(seed: int, skips: float) -> Callable[[Off], Judgement]:
    """An answer to each question that depends on nothing but the question."""
    from random import Random

    def ask(off: Off) -> Judgement:
        random = Random(f"{seed} {sorted(off)}")
        if off and random.random() < skips:
            return "skip"
        return "good" if random.random() < 0.5 else "bad"

    return ask


@given(st.integers(), st.integers(1, 40), st.sampled_from([0.0, 0.3, 0.9]))
@pytest.mark.parametrize("search", [absent_passes, first_passes])
def test_what_is_found_is_true_whatever_the_answers(
    search: Callable[..., Flip], seed: int, count: int, skips: float
) -> None:
    ask = arbitrary(seed, skips)
    judge = asking(ask)
    flip = search(judge, count)
    ends = {ask(frozenset()), ask(frozenset(range(count)))}
    if len(ends) == 1 or "skip" in ends:
        assert not flip.guilty
        return
    assert flip.guilty
    assert flip.left.off < flip.right.off
    assert ask(flip.left.off) == flip.left.judgement
    assert ask(flip.right.off) == flip.right.judgement
    assert {flip.left.judgement, flip.right.judgement} == {"good", "bad"}
    if not skips:
        assert len(flip.guilty) == 1


@given(st.integers(), st.integers(1, 40))
def test_of_several_each_is_needed(seed: int, count: int) -> None:
    judge = asking(arbitrary(seed, 0.0))
    flip = absent_passes(judge, count)
    if flip.guilty:
        for one in flip.right.off:
            assert judge(flip.right.off - {one}).judgement != flip.right.judgement


@given(st.data(), st.integers(3, 60))
def test_around_what_cannot_be_judged(data: st.DataObject, count: int) -> None:
    """A stretch of the row that cannot be judged leaves every pass of it in doubt, the guilty one among them."""
    guilty = data.draw(st.integers(0, count - 1))
    first = data.draw(st.integers(1, count - 1))
    last = data.draw(st.integers(first, count - 1))
    skipped = range(first, last + 1)

    def ask(off: Off) -> Judgement:
        return "skip" if len(off) in skipped else "bad" if guilty in off else "good"

    flip = first_passes(asking(ask), count)
    assert flip.guilty
    assert guilty in flip.guilty
    sizes = (len(flip.left.off), len(flip.right.off))
    assert sizes[1] - sizes[0] == 1 or all(size in skipped for size in range(sizes[0] + 1, sizes[1]))


def test_a_question_is_asked_once() -> None:
    asked: list[Off] = []

    def ask(off: Off) -> Judgement:
        asked.append(off)
        return "bad" if {3, 60} <= off else "good"

    absent_passes(asking(ask), 64)
    assert len(asked) == len(set(asked))


def test_the_same_at_both_ends_is_no_flip() -> None:
    judge = asking(lambda off: "good")
    answer = absent_passes(judge, 50)
    assert not answer.guilty
    assert len(judge.questions) == 2
    assert answer.right.off == frozenset(range(50))


@given(st.data(), st.integers(1, 100))
def test_what_a_compile_cannot_do_without(data: st.DataObject, count: int) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1)))
    tries: list[Off] = []

    def compiles(off: Off) -> bool:
        tries.append(off)
        return not off & needed

    assert needed_passes(compiles, count) == needed
    assert len(tries) <= 2 * count
    assert len(tries) <= 1 + 2 * len(needed) * (log(count) + 1)
    assert len(tries) == len(set(tries))


@given(st.data(), st.integers(2, 60))
def test_one_of_two_that_stand_in_for_each_other_is_kept(data: st.DataObject, count: int) -> None:
    pair = data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2))
    needed = needed_passes(lambda off: not pair <= off, count)
    assert len(needed) == 1
    assert needed <= pair
