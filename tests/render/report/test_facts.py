"""What the page knows of operations' lives, against a plain count of its texts."""

from __future__ import annotations

from collections import Counter

from irscope.render.report.facts import packed_lives
from tests.analysis.lives.test_operations import plain_counts
from tests.analysis.trails import eventful
from tests.report_browser.captures import softmax

LOWERED = ("llvm", "nvvm", "rocdl", "builtin")


def followed(text: str) -> Counter[str]:
    counts = plain_counts(text)
    return Counter({name: count for name, count in counts.items() if name.partition(".")[0] not in LOWERED})


def unrolled(runs: list[int]) -> list[int]:
    return [step for step, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]


def test_every_operation_of_every_text_has_a_maker() -> None:
    capture = softmax()
    texts: list[str] = []

    def number_of(text: str) -> int:
        texts.append(text)
        return len(texts) - 1

    packed = packed_lives(capture, number_of)
    assert len(packed["texts"]) > 10
    for number, (made, gone) in packed["texts"].items():
        lines = unrolled(made)
        assert len(lines) == len(unrolled(gone)) == texts[number].count("\n") + 1
        assert sum(step != -1 for step in lines) == followed(texts[number]).total()
    modules = [capture.text_before(next(capture.passes())), *(one.text for one in capture.passes() if one.text)]
    befores = dict(zip((one.label for one in capture.passes() if one.text), modules, strict=False))
    for (first, last), changes in zip(packed["steps"], packed["changes"], strict=True):
        one, other = ([*capture.passes()][place] for place in (first, last))
        before, after = followed(befores[one.label] or ""), followed(other.text or "")
        for name, made, removed in changes:
            assert after[name] - before[name] == made - removed, (one.label, name)
        assert {name for name in before | after if before[name] != after[name]} <= {name for name, _, _ in changes}


def test_what_is_not_known_is_marked() -> None:
    packed = packed_lives(eventful(), len)
    assert ["ttg.convert_layout", 0, 1] in packed["changes"][1]
    (made, gone) = packed["texts"][len(eventful().snapshots[0].text or "")]
    assert {-2, 0} <= {*unrolled(made)}
    # Of the two conversions, which one the second pass removed; what stays to the end is removed by none.
    assert {-3, -1, 2} <= {*unrolled(gone)}
