"""Passes of real compiles mean the same; edits of the IR after a pass are blamed on it, with a witness."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.render.text.verdict import render_meaning
from irscope.verify.meaning import MeaningVerdict, compare_captures, compare_texts, last_text, verify_passes
from tests.machine.recorded import SCRIPT, recorded, small_examples
from tests.machine.test_captured import MORE, WARPS
from tests.marks import newest_but
from tests.verify.test_safety import captures as safety_captures

pytest.importorskip("torch", reason="the examples are recorded with tensors of torch")
pytestmark = [pytest.mark.triton]
TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")
CASES = [f"{script} {target}" for script in ("small", "more", "warps") for target in TARGETS]
SAMPLE = {"small cuda:90"}


@pytest.mark.parametrize(
    "case",
    newest_but(["small cuda:90"], *CASES, rare=set(CASES) - SAMPLE),
)
def test_every_pass_of_a_compile_means_the_same(case: str) -> None:
    script, _, target = case.partition(" ")
    captures = recorded({"small": SCRIPT, "more": MORE, "warps": WARPS}[script], target)
    for capture in captures:
        if capture.status != "ok":
            continue
        verdict = verify_passes(capture)
        assert verdict.answer != "changed", render_meaning(verdict)
        if script == "small":
            assert verdict.answer == "same", (capture.name, render_meaning(verdict))
            assert len(verdict.rows) > 3


# Kernel, pass, and an edit of the IR after it.
PLANTED: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "a mask that is lost": ("triton add_kernel", "ttgir:coalesce#1", lambda text: _without(text, "tt.store", 3)),
    "another fill": (
        "triton softmax_kernel", "ttir:combine#1", lambda text: text.replace("0xFF800000", "0.000000e+00"),
    ),
    "a maximum that is a minimum": (
        "triton cross_entropy_kernel", "ttir:cse#1", lambda text: text.replace("arith.maxnumf", "arith.minnumf"),
    ),
    "swapped operands": (
        "triton layer_norm_forward_kernel", "ttir:cse#1", lambda text: _swapped(text, "arith.subf"),
    ),
    "a program of another axis": (
        "triton batched_matmul_kernel", "ttir:cse#1",
        lambda text: text.replace("program_id z", "program_id x").replace("program_id y", "program_id x"),
    ),
    "a wait that is lost": (
        "triton matmul_tma_kernel", "ttgir:pipeline#1", lambda text: _dropped(text, "ttng.wait_barrier"),
    ),
    "an accumulator that begins with one": (
        "triton matmul_naive_kernel", "ttgir:accelerate_matmul#1",
        lambda text: re.sub(r"dense<0\.0+e\+00>( : tensor<\w+xf32)", r"dense<1.0>\1", text),
    ),
    "a lost store": ("gluon transpose_kernel", "ttgir:canonicalizer#1", lambda text: _dropped(text, "tt.store")),
}  # fmt: skip


def _lines(text: str, word: str, edit: Callable[[str], str]) -> str:
    lines = text.splitlines()
    number = next(at for at, line in enumerate(lines) if word in line)
    lines[number] = edit(lines[number])
    return "\n".join(lines)


def _dropped(text: str, word: str) -> str:
    return _lines(text, word, lambda line: "")


def _without(text: str, word: str, operand: int) -> str:
    """Without the last operand of an operation."""

    def edit(line: str) -> str:
        head, colon, tail = line.partition(" : ")
        operands = head.split(", ")
        assert len(operands) == operand
        return ", ".join(operands[:-1]) + colon + tail

    return _lines(text, word, edit)


def _swapped(text: str, word: str) -> str:
    def edit(line: str) -> str:
        head, _, rest = line.partition(f"{word} ")
        left, right, *others = rest.replace(",", "").split(" ")
        return f"{head}{word} {right}, {left} {' '.join(others)}"

    return _lines(text, word, edit)


def planted(case: str) -> tuple[Capture, str]:
    """A capture one of whose passes did something wrong, and the pass."""
    kernel, label, edit = PLANTED[case]
    capture = small_examples("cuda:90")[kernel]
    labels = [one.label for one in capture.snapshots]
    place = labels.index(label) if label in labels else max(
        at for at, one in enumerate(capture.snapshots) if one.stage == "ttgir"
    )  # fmt: skip
    text = capture.text_after(capture.snapshots[place])
    assert text is not None
    edited = edit(text)
    assert edited != text
    wrong = replace(capture.snapshots[place], text=edited)
    return replace(capture, snapshots=(*capture.snapshots[:place], wrong)), wrong.label


@pytest.mark.newest
@pytest.mark.parametrize("case", PLANTED)
def test_what_a_pass_did_wrong_is_blamed_on_it(case: str) -> None:
    capture, label = planted(case)
    verdict = verify_passes(capture)
    assert verdict.answer == "changed"
    assert verdict.culprit is not None
    assert verdict.culprit.label == label
    assert "changed" in render_meaning(verdict)
    _is_shown(verdict)


def _is_shown(verdict: MeaningVerdict) -> None:
    """The witness is an element whose values differ, or the edit made the kernel fail."""
    culprit = verdict.culprit
    assert culprit is not None
    if culprit.difference is None:
        assert "fails" in culprit.detail
        return
    difference = culprit.difference
    assert difference.before != difference.after
    assert difference.agreement is not None
    assert not difference.agreement.passes


@pytest.mark.newest
def test_programs_that_wait_for_others_are_compared_together() -> None:
    waits = safety_captures("cuda:90")["meets_the_others"]
    verdict = verify_passes(waits, programs=2)
    assert (verdict.answer, verdict.programs) == ("same", 4), render_meaning(verdict)
    # A difference between two such compiles is that of all programs.
    text = last_text(waits)
    row = compare_texts(waits, text, text.replace("1.000000e+00", "2.000000e+00"))
    assert row.answer == "changed"
    assert row.difference is not None
    assert row.difference.program is None


@pytest.mark.exhaustive
def test_compiles_for_other_targets_mean_the_same() -> None:
    left, right = (small_examples(target)["triton matmul_naive_kernel"] for target in ("cuda:90", "hip:gfx942"))
    verdict = compare_captures(left, right)
    assert verdict.answer == "same"
    with pytest.raises(UsageError, match="the captures have different tensors"):
        compare_captures(left, small_examples("cuda:90")["triton softmax_kernel"])


@pytest.mark.newest
def test_what_cannot_be_run_is_not_decided() -> None:
    capture = small_examples("cuda:90")["triton add_kernel"]
    place = len(capture.snapshots) // 2
    before = capture.text_after(capture.snapshots[place])
    assert before is not None
    opaque = replace(capture.snapshots[place], text=before.replace("arith.addf", "arith.unheard_of"))
    verdict = verify_passes(replace(capture, snapshots=(*capture.snapshots[:place], opaque)))
    assert verdict.answer == "not decided"
    bare = replace(capture, launch=replace(capture.launch, record=None, grid=None))
    assert "without a launch" in verify_passes(bare).reason
