"""The stage to blame, found with compilers of texts of which it is known."""

from __future__ import annotations

import pytest

from irscope.analysis.regressions import changed_facts, facts_of
from irscope.analysis.upgrade.blame import blame_of
from irscope.analysis.upgrade.model import Blame
from irscope.model.trial import Graft, Side
from tests.analysis.upgrade.compilers import STAGES, TextCompiler, answered


def blamed(before: TextCompiler, after: TextCompiler) -> tuple[Blame, list[Graft]]:
    ours, theirs = before.whole(), after.whole()
    changes = changed_facts(facts_of(ours), facts_of(theirs))
    compilers: dict[Side, TextCompiler] = {"before": before, "after": after}
    found, asked = answered(blame_of(ours, theirs, changes), compilers)
    assert isinstance(found, Blame)
    return found, list(asked)


@pytest.mark.parametrize("stage", STAGES)
def test_the_stage_that_adds_registers(stage: str) -> None:
    found, asked = blamed(TextCompiler("1"), TextCompiler("2", {stage: 30}))
    assert found.stages == (stage,)
    assert found.is_sure
    # Of five artifacts, what is left of those two is compiled whole that are asked for in the middle.
    assert len({one.stage for one in asked if not one.last_stage}) <= 3
    assert len(found.probes) <= (3 if stage in STAGES[2:] else 4)


@pytest.mark.parametrize("stage", STAGES)
def test_the_other_way_round_where_the_new_one_does_not_read_the_old(stage: str) -> None:
    found, _ = blamed(TextCompiler("1"), TextCompiler("2", {stage: 30}, refuses=STAGES))
    assert found.stages == (stage,)
    assert {one.by for one in found.probes if one.like} <= {"before"}


def test_several_stages_where_neither_reads_the_other() -> None:
    found, _ = blamed(TextCompiler("1", refuses=("llir",)), TextCompiler("2", {"ptx": 30}, refuses=("llir",)))
    assert found.stages == ("llir", "ptx")
    assert not found.is_sure


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_stage_that_fails(stage: str) -> None:
    found, _ = blamed(TextCompiler("1"), TextCompiler("2", fails=stage))
    assert found.stages == (stage,)
    again, _ = blamed(TextCompiler("1", fails=stage), TextCompiler("2"))
    assert again.stages == (stage,)


def test_a_graft_that_is_not_valid_leaves_a_doubt() -> None:
    found, _ = blamed(TextCompiler("1"), TextCompiler("2", {"ptx": 30}, forgets="llir"))
    assert found.stages == ("ptx",)
    assert not found.is_sure
    assert "its own llir" in found.doubts[0]
    sure, _ = blamed(TextCompiler("1"), TextCompiler("2", {"ptx": 30}, forgets="ttir"))
    assert sure.is_sure


def test_what_is_the_same_is_not_grafted() -> None:
    """From one front end on, and with the same TTIR, the first stage that may be to blame is TTGIR's."""
    before, after = TextCompiler("1"), TextCompiler("1", {"llir": 30})
    found, asked = blamed(before, after)
    assert found.stages == ("llir",)
    assert not any(one.stage in ("source", "ttir") for one in asked)


def test_stages_that_compensate_are_told_apart_from_one_that_does_it_alone() -> None:
    found, _ = blamed(TextCompiler("1"), TextCompiler("2", {"ttgir": 90, "ptx": -60}))
    assert not found.is_sure
    assert any("several stages" in one for one in found.doubts)
