"""The join of a profile to a capture's own instructions, and the refusal of every other code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.counters.operations import kernel_of_page, matched_instructions
from irscope.errors import UsageError
from irscope.model.capture import Artifact, Capture
from irscope.model.evidence import Profile
from tests.analysis.counters.pages import page_of, small_capture


def with_sass(capture: Capture, sass: str) -> Capture:
    artifacts = (replace(one, data=sass) if one.stage == "sass" else one for one in capture.artifacts)
    return replace(capture, artifacts=tuple(artifacts))


def test_each_instruction_has_its_own_counters() -> None:
    capture = small_capture()
    page = page_of(capture, lambda one: {"Instructions Executed": one.offset + 1})
    found = matched_instructions(replace(capture, profile=Profile(page)))
    text = capture.text("sass").splitlines()
    assert [one.counters.executed for one in found] == [1 + 16 * number for number in range(7)]
    assert all(one.text in text[one.line - 1] for one in found)
    assert [one.opcode for one in found] == ["LDC", "ULDC", "LDG", "FADD", "EXIT", "STG", "EXIT"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FADD", "FMUL"),
        ("@!P0 LDG", "@P0 LDG"),
        ("FADD R4, R4, R4", "FADD R4, R4, R5"),
        ("        0040  B------:R-:W-:-:S05  @P1 EXIT\n", ""),
        ("        0060", "        0070"),
        ("        0060  B------:R-:W-:-:S05  EXIT\n", ""),
    ],
)
def test_the_profile_of_other_code_is_refused(old: str, new: str) -> None:
    capture = small_capture()
    assert old in capture.text("sass")
    other = with_sass(capture, capture.text("sass").replace(old, new))
    for one, page in ((capture, page_of(other, lambda _: {})), (other, page_of(capture, lambda _: {}))):
        with pytest.raises(UsageError, match="code that differs from kernel"):
            kernel_of_page(one, page)


def test_other_disassemblers_write_operands_in_another_order() -> None:
    """As Nsight Compute 2025.3.1 and nvdisasm 12.8 write one and the same LDGSTS."""
    line = "        0030  B--2---:R-:W-:-:S05  FADD R4, R4, R4"
    ours = "        0030  -  LDGSTS.E.BYPASS.128 [R9], desc[UR18][R20.64], P1"
    theirs = "        0030  -  LDGSTS.E.BYPASS.128 desc[UR18][R20.64], P1, [R9]"
    capture, other = (
        with_sass(small_capture(), small_capture().text("sass").replace(line, one)) for one in (ours, theirs)
    )
    assert kernel_of_page(capture, page_of(other, lambda _: {})).name == "kernel"


def test_of_several_launches_the_first_of_this_code() -> None:
    capture = small_capture()
    other = with_sass(capture, capture.text("sass").replace("FADD", "FMUL"))
    pages = [page_of(other, lambda _: {}), *(page_of(capture, lambda _, n=n: {"# Samples": n}) for n in (3, 5))]
    assert kernel_of_page(capture, "".join(pages)).instructions[0].counters.samples == 3


def test_what_is_no_source_page_is_told_how_to_write_one() -> None:
    with pytest.raises(UsageError, match="--page source --csv --print-source sass"):
        kernel_of_page(small_capture(), "a,b\n1,2\n")


def test_a_capture_without_machine_code_has_nothing_to_join() -> None:
    capture = small_capture()
    bare = replace(capture, artifacts=(*capture.artifacts[:2], Artifact("sass", ""), capture.artifacts[3]))
    with pytest.raises(UsageError, match="no machine code"):
        kernel_of_page(bare, page_of(capture, lambda _: {}))
