"""The search: what it ends with is minimal, does not depend on the number of jobs, and survives a signal."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, islice

import pytest

from irscope.analysis.reduce.model import Case, EditableProgram, Pipeline, Search, halved, read_program
from irscope.analysis.reduce.steps import STEPS
from irscope.ir.mlir.editable import write_editable
from irscope.model.capture import PassSnapshot
from irscope.plan import PassPlan, PassRule
from tests.analysis.reduce.programs import LOOP

LABELS = "ttgir:coalesce#1 ttgir:canonicalizer#1 ttgir:pipeline#1 ttgir:canonicalizer#2 llir:to_llvmir#1 llir:cse#1"
PASSES = tuple(
    PassSnapshot(index, rule.stage or "", rule.name, rule.occurrence or 1, rule.name)
    for index, rule in enumerate(map(PassRule.parse, LABELS.split()))
)


class Judge:
    """Says of cases whether they are interesting, `ahead` of them at a time."""

    def __init__(self, *words: str, passes: Iterable[str] = (), options: Iterable[str] = (), ahead: int = 1) -> None:
        self.words, self.passes, self.options, self.ahead = words, {*passes}, {*options}, ahead
        self.asked: list[Case] = []

    def holds(self, case: Case) -> bool:
        self.asked.append(case)
        return (
            all(word in case.text for word in self.words)
            and self.passes <= {*case.pipeline.running}
            and self.options <= {name for name, _ in case.options}
        )

    def first(self, cases: Iterable[Case]) -> int | None:
        waiting = enumerate(cases)
        while batch := [*islice(waiting, self.ahead)]:
            for place, case in batch:
                if self.holds(case):
                    return place
        return None


def begun(judge: Judge) -> Search[EditableProgram, Case]:
    program = read_program(LOOP)
    program.pipeline = Pipeline.of(PASSES, ("ttgir", "llir"))
    program.options = (("num_stages", 3), ("maxnreg", 64))
    assert judge.holds(program.case())
    return Search(program, program.case(), judge.first, STEPS)


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_what_is_left_is_what_is_needed(ahead: int) -> None:
    judge = Judge('"tt.store"', '"scf.if"', passes=["ttgir:pipeline#1"], options=["maxnreg"], ahead=ahead)
    search = begun(judge)
    search.run()
    left = [one.name for one in search.program.walk()]
    # The condition's own terminators cannot go.
    assert sorted(left) == ["builtin.module", "scf.if", "scf.yield", "scf.yield", "tt.func", "tt.return", "tt.store"]
    assert search.best.pipeline.running == ("ttgir:pipeline#1",)
    assert search.best.options == (("maxnreg", 64),)
    assert write_editable(search.program) == search.best.text
    assert judge.holds(search.best)


def test_the_number_of_jobs_decides_nothing() -> None:
    found: set[str] = set()
    for ahead in (1, 3):
        search = begun(Judge('"arith.mulf"', "tt.divisibility", ahead=ahead))
        search.run()
        found.add(search.best.text)
    assert len(found) == 1


def test_the_best_survives_a_signal() -> None:
    judge = Judge('"tt.store"')
    whole = begun(judge)
    whole.run()
    for after in (1, 4, 9):
        search = begun(judge := Judge('"tt.store"'))
        real = judge.holds

        def holds(case: Case, judge: Judge = judge, real=real, after: int = after) -> bool:  # type: ignore[no-untyped-def]
            if len(judge.asked) > after:
                raise KeyboardInterrupt
            return real(case)

        judge.holds = holds  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert real(search.best)
        assert write_editable(search.program) == search.best.text


def test_halving_finds_what_brute_force_finds() -> None:
    """What must stay is a set: all else goes, whatever the order and however many there are."""
    chance = random.Random(2)
    for size in range(9):
        for needed in combinations(range(size), min(2, size)):
            edits = chance.sample(range(size), size)
            gone: set[int] = set()

            def first(cases: Iterable[frozenset[int]], needed: tuple[int, ...] = needed) -> int | None:
                return next((place for place, case in enumerate(cases) if not case & {*needed}), None)

            def shrunk(chosen: frozenset[int], gone: set[int] = gone) -> frozenset[int]:
                return frozenset(gone | chosen)

            def taken(chosen: frozenset[int], case: frozenset[int], gone: set[int] = gone) -> None:
                gone |= chosen

            halved(edits, shrunk, first, taken)
            assert gone == {*range(size)} - {*needed}


def plans() -> Iterator[tuple[Pipeline, str]]:
    whole = Pipeline.of(PASSES, ("ttgir", "llir"))
    labels = whole.running
    yield whole, ""
    yield whole.without(frozenset(labels[:1])), "+ttgir:canonicalizer#1 +ttgir:pipeline#1 +ttgir:canonicalizer#2"
    yield whole.without(frozenset(labels[4:])), "-llir:*"
    yield Pipeline.of(PASSES, ("ttgir",), "ttgir:pipeline#1"), "+ttgir:pipeline#1 +ttgir:canonicalizer#2"


@pytest.mark.parametrize(("pipeline", "plan"), [*plans()])
def test_a_pipeline_is_a_plan(pipeline: Pipeline, plan: str) -> None:
    assert str(pipeline.plan) == plan
    runs = [one.label for one in PASSES if one.label in pipeline.every and not PassPlan.parse(plan).skips(one)]
    assert tuple(runs) == pipeline.running


def test_passes_that_were_off_stay_off() -> None:
    passes = (replace(PASSES[0], outcome="skipped"), *PASSES[1:])
    assert str(Pipeline.of(passes, ("ttgir", "llir")).plan).startswith("+ttgir:canonicalizer#1")
