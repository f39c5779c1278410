"""The lives of operations: counts against a plain count, names without meaning, planted births and deaths."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import cycle

import pytest

from irscope.analysis.lives.identity import Origin
from irscope.analysis.lives.operations import Lives, Sighting, is_named, operation_lives, sightings
from irscope.ir.locations.model import Chain
from irscope.model.capture import Capture
from irscope.record.process.requests import request_from_capture
from irscope.record.process.session import record_request
from tests.analysis.snapshots import DUMPS
from tests.analysis.trails import COPY, LOAD, dumped, module, sample, store, through
from tests.ir.renaming import WAYS, Way, renamed
from tests.marks import newest_but

CONVERSION = "ttg.convert_layout"
TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942")


def conversions(capture: Capture) -> Lives:
    return operation_lives(capture, lambda name: is_named(name, "convert_layout"))


def fates(lives: Lives) -> list[tuple[tuple[int, ...], int | None]]:
    """(steps that may have made it, step that removed it) of each."""
    return [(life.made_by, life.removal and life.removal.step) for life in lives.lives]


def plain_counts(text: str) -> Counter[str]:
    """Operations by a regular expression over the lines, with nothing of irscope's own readers."""
    pattern = r"^\s*(?:%[^=\"]*? = )?\"?([a-z_]\w*(?:\.\w+)+)(?=[\s\"(<>])(?! = )"
    return Counter(re.findall(pattern, text, re.MULTILINE))


def check_counts(capture: Capture, most_steps: int = 40) -> int:
    """Each count is that of a plain search, and each difference what was made less what was removed."""
    lives = operation_lives(capture, lambda name: "." in name and name != "builtin.module")
    names = {life.last.name for life in lives.lives}
    first, *plain = (
        plain_counts(text) for text in (lives.trail.first or "", *(one.right for one in lives.trail.steps[:most_steps]))
    )
    for name in names:
        own = replace(lives, lives=tuple(life for life in lives.lives if life.last.name == name))
        present = sum(life.counted_from < 0 for life in own.lives)
        assert present == first[name], name
        counts = {one.step: one for one in own.counts()}
        for index, (step, theirs) in enumerate(zip(own.trail.steps, plain, strict=False)):
            one = counts.get(index)
            present += one.made - one.removed if one else 0
            assert present == theirs[name], (name, step.label)
            assert one is None or one.count == present
            assert present == sum(life.is_there(index) for life in own.lives)
    return len(names)


@pytest.mark.parametrize("name", DUMPS)
def test_counts_of_every_operation_of_dumps(name: str) -> None:
    assert check_counts(dumped(name)) > 30


@pytest.mark.triton
@pytest.mark.parametrize("target", newest_but([], *TARGETS, rare=["cuda:80", "cuda:100"]))
def test_counts_of_every_operation(target: str) -> None:
    assert check_counts(sample(target)) > 60


@pytest.mark.parametrize(("name", "way"), list(zip(DUMPS, cycle(WAYS))))
def test_names_of_values_say_nothing(name: str, way: Way) -> None:
    capture = dumped(name)
    other = through(
        *(renamed(text, way) for text in (capture.text("source"), *(one.text or "" for one in capture.snapshots)))
    )
    for dialect in ("ttg.", "tt.", "scf."):

        def is_wanted(name: str, dialect: str = dialect) -> bool:
            return name.startswith(dialect)

        one, two = (operation_lives(each, is_wanted) for each in (capture, other))
        assert [(life.births, life.removal, life.lines) for life in one.lives] == [
            (life.births, life.removal, life.lines) for life in two.lives
        ]


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.slow
@pytest.mark.parametrize("target", newest_but([], *TARGETS, rare=["cuda:80", "cuda:100"]))
def test_without_the_pass_that_made_it_it_is_not_there(target: str) -> None:
    capture = sample(target)
    lives = conversions(capture)
    made: dict[int, Counter[Chain]] = {}
    for life in lives.lives:
        if life.is_certain and life.counted_from >= 0:
            made.setdefault(life.counted_from, Counter())[life.first.chain] += 1
    assert len(made) > 1
    for step, places in made.items():
        label = lives.trail.steps[step].label
        asked = request_from_capture(capture, plan=f"-{label}", snapshots="all", disassemble=False, layouts=False)
        without = record_request(replace(asked, last_stage=lives.trail.steps[step].passes[0].stage)).captures[0]
        (skipped,) = [one for one in without.passes() if one.label == label]
        assert skipped.outcome == "skipped"
        there = Counter(one.chain for one in seen_in(lives.trail.steps[step].right))
        left = Counter(one.chain for one in seen_in(without.text_after(skipped) or ""))
        gone = sum(life.removal is not None and life.removal.step == step for life in lives.lives)
        for place, count in places.items():
            assert there[place] - left[place] >= count - gone, (label, place)


def seen_in(text: str) -> list[Sighting]:
    return list(sightings(text, lambda name: name == CONVERSION))


# ── planted ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_deleted_and_an_equal_one_made_elsewhere() -> None:
    """The diff calls that a move; the locations say that they are two."""
    before = module("conv %1 x 7", store("%1"))
    after = module("arith.nothing 8", "conv %1 x 8", store("%1"))
    lives = conversions(through(before, after))
    assert fates(lives) == [((-1,), 0), ((0,), None)]
    ((count),) = lives.counts()
    assert (count.count, count.made, count.removed, count.is_certain) == (1, 1, 1, True)


def test_the_location_says_which_of_two_is_gone() -> None:
    before = module("conv %1 x 7", store("%1"), "conv %2 x 8", store("%2"))
    for line in (7, 8):
        lives = conversions(through(before, module(f"conv %1 x {line}", store("%1"), store("%1"))))
        gone = [life for life in lives.lives if life.removal]
        assert [(one.chain[0].line, one.is_certain) for one in gone] == [(15 - line, True)]


@pytest.mark.parametrize("line", [0, 7])
def test_of_equal_ones_only_the_number_is_known(line: int) -> None:
    before = module(f"conv %1 x {line}", f"conv %2 x {line}", store("%1"), store("%2"))
    lives = conversions(through(before, module(f"conv %1 x {line}", store("%1"), store("%1"))))
    assert sorted(life.removal.among if life.removal else 0 for life in lives.lives) == [0, 2]
    assert [(one.removed, one.is_certain) for one in lives.counts()] == [(1, False)]
    # And which is the new one.
    lives = conversions(through(module(f"conv %1 x {line}", store("%1"), store("%1")), before))
    assert [life.made_by for life in lives.lives] == [(-1, 0), (-1, 0)]
    assert [(one.made, one.is_certain) for one in lives.counts()] == [(1, False)]


def test_uncertainty_that_does_not_matter_is_none() -> None:
    """Both of two equal ones were made by the same pass: of the one that is left, that is known."""
    two = module("conv %1 x 7", "conv %2 x 7", store("%1"), store("%2"))
    lives = conversions(through(module(store("%p")), two, module("conv %1 x 7", store("%1"), store("%1"))))
    assert sorted(fates(lives), key=str) == [((0,), 1), ((0,), None)]
    assert [one.is_certain for one in lives.counts()] == [True, False]


def test_operands_tell_equal_ones_apart() -> None:
    before = module("conv %1 x 7", "conv %2 y 7", store("%1"), store("%2"))
    lives = conversions(through(before, module("conv %1 y 7", store("%1"))))
    (gone,) = [life for life in lives.lives if life.removal]
    assert "%x" in gone.first.text
    assert gone.is_certain


def test_what_moved_or_changed_is_the_same() -> None:
    before = module("conv %1 x 7", "%2 = arith.other 8", store("%1"))
    moved = module("%2 = arith.other 8", "conv %1 x 7", store("%1"))
    changed = moved.replace("sizePerThread = [2]", "sizePerThread = [4]")
    unknown = changed.replace('loc("k.py":7:5)', "loc(unknown)")
    lives = conversions(through(before, moved, changed, unknown))
    assert fates(lives) == [((-1,), None)]
    assert lives.lives[0].line_after(0) == lives.lives[0].line_after(-1) + 1
    # The last text does not know it.
    assert lives.lives[0].chain[0].line == 7


def test_rewritten_in_place() -> None:
    capture = through(LOAD, COPY)
    (copy,) = operation_lives(capture, lambda name: is_named(name, "async_copy_global_to_local")).lives
    assert copy.births[0].origin == Origin("replaces", ("tt.load",))
    (gone,) = operation_lives(capture, lambda name: name == "tt.load").lives
    assert gone.removal is not None
    assert gone.removal.replacements == ("ttg.async_copy_global_to_local", "ttg.local_load")
    # Nothing of another line has to do with it.
    (room,) = operation_lives(capture, lambda name: name == "ttg.local_alloc").lives
    assert room.births[0].origin == Origin("beside", ("tt.store",))


def test_made_beside_what_stays() -> None:
    before = module(store("%y", 7), store("%x", 8))
    lives = conversions(through(before, module("conv %1 x 8", store("%y", 7), store("%1", 8))))
    assert lives.lives[0].births[0].origin == Origin("beside", ("tt.store",))


def test_texts_that_were_not_kept() -> None:
    one, none = module("conv %1 x 7", store("%1")), module(store("%x"))
    lives = conversions(through(none, one, None, None, none))
    assert fates(lives) == [((0,), 1)]
    assert [step.label for step in lives.trail.steps] == ["ttgir:p1#1", "ttgir:p2#1 … ttgir:p4#1"]
    lives = conversions(through(none, one, None))
    assert fates(lives) == [((0,), None)]
    assert [one.label for one in lives.trail.behind] == ["ttgir:p2#1"]
    # Of the first text it is not known who made it.
    late = replace(through("", None, one), artifacts=())
    lives = conversions(late)
    assert fates(lives) == [((-1,), None)]
    assert [one.label for one in lives.trail.before] == ["ttgir:p1#1", "ttgir:p2#1"]
