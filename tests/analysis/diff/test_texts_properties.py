"""What holds of every comparison, of any two texts of any kind."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.analysis.diff.texts import Ignored, diff_texts, word_marks
from irscope.model.capture import StageKind
from irscope.render.text.diff import render_side_by_side, render_unified
from tests.analysis.patching import check
from tests.analysis.snapshots import KINDS, TEXTS, distinct_modules, stage_text

IGNORED: list[frozenset[Ignored]] = [
    frozenset(),
    frozenset({"locations"}),
    frozenset({"locations", "names"}),
    frozenset({"locations", "names", "attributes"}),
]


def sample(rng: random.Random) -> tuple[str, StageKind]:
    if rng.random() < 0.6:
        return rng.choice(distinct_modules(25_000)), "mlir"
    name = rng.choice(TEXTS)
    return stage_text(name, rng.choice((4, 8))), KINDS[name.rpartition(".")[2]]


def altered(text: str, rng: random.Random) -> str:
    """The text with lines and characters cut, doubled, swapped and replaced."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 12)):
        at, to = sorted(rng.choices(range(len(lines) + 1), k=2))
        to = min(to, at + rng.randint(1, 20))
        match rng.randint(0, 4):
            case 0:
                del lines[at:to]
            case 1:
                lines[at:at] = lines[at:to]
            case 2:
                chunk = lines[at:to]
                del lines[at:to]
                place = rng.randint(0, len(lines))
                lines[place:place] = chunk
            case 3 if at < len(lines) and lines[at]:
                column = rng.randrange(len(lines[at]))
                lines[at] = lines[at][:column] + rng.choice(' {}()%#^!"@=:,x7') + lines[at][column + 1 :]
            case _:
                rng.shuffle(lines[at:to])
    return "\n".join(lines)


@given(st.randoms(use_true_random=False), st.sampled_from(IGNORED))
def test_the_patch_applies_to_altered_texts(rng: random.Random, ignore: frozenset[Ignored]) -> None:
    text, kind = sample(rng)
    other = altered(text, rng)
    diff = check(diff_texts(text, other, kind, ignore=ignore))
    check(diff_texts(other, text, kind, ignore=ignore))
    assert check(diff_texts(other, other, kind, ignore=ignore)).is_empty
    for width in (40, 80):
        render_side_by_side(diff, width=width)
    render_unified(diff)


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_patch_applies_between_texts_of_different_origin(rng: random.Random) -> None:
    (left, kind), (right, _) = sample(rng), sample(rng)
    check(diff_texts(left, right, kind))


@given(
    st.text(alphabet=' \n%#^!@{}()=:,"a.1', max_size=200),
    st.text(alphabet=' \n%#^!@{}()=:,"a.1', max_size=200),
    st.sampled_from(["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]),
)
def test_no_text_makes_it_raise(left: str, right: str, kind: StageKind) -> None:
    check(diff_texts(left, right, kind))
    assert diff_texts(left, left, kind).is_empty


@given(st.text(alphabet="%#ab1 ,.<>->", max_size=120), st.text(alphabet="%#ab1 ,.<>->", max_size=120))
def test_what_is_not_marked_is_common(left: str, right: str) -> None:
    def rest(text: str, marks: tuple[tuple[int, int], ...]) -> str:
        for start, end in reversed(marks):
            text = text[:start] + text[end:]
        return text.lstrip()

    left_marks, right_marks = word_marks(left, right)
    if left_marks or right_marks:
        assert "".join(rest(left, left_marks).split()) == "".join(rest(right, right_marks).split())
    else:
        assert left.lstrip() == right.lstrip()
