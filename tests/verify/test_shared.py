"""Races in shared memory that were planted in the PTX, or in LLVM IR, are found; what the compiler wrote is safe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.analysis.checks.assertions import Safe
from irscope.analysis.checks.subject import Subject
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.verify.safety import verify_launch
from tests.marks import sampled
from tests.once import kept

KERNELS = Path(__file__).with_name("shared_kernels.py")
pytestmark = [pytest.mark.triton, pytest.mark.newest]
Change = Callable[[re.Match[str]], str]


def later(match: re.Match[str]) -> str:
    """A wait that leaves more groups open."""
    return f"{match[1]}{int(match[2]) + 8}"


# What is taken out of the code → its lines, what they become, and the kind of the race.
FAULTS: dict[str, tuple[str, Change, str]] = {
    "barrier": (r"^\s*bar(?:rier)?\.sync\s+0;", lambda _: "", "shared-race"),
    "cp.async": (r"^(\s*cp\.async\.wait_group\s+)(\d+)", later, "shared-race"),
    "wgmma": (r"^(\s*wgmma\.wait_group\.sync\.aligned\s+)(\d+)", later, "shared-race"),
    "mbarrier": (r"^\s*mbarrier\.try_wait\S* complete,[^;]*;", lambda _: "mov.pred complete, 1;", "shared-race"),
    "fence": (r"^\s*fence\.proxy\.async\S*;", lambda _: "", "proxy-fence"),
    "s_barrier": (r"^  tail call void @llvm\.amdgcn\.s\.barrier\(\).*", lambda _: "  ", "shared-race"),
    "asyncmark": (r"^(  tail call void @llvm\.amdgcn\.wait\.asyncmark\(i16 )(\d+)", later, "shared-race"),
    "tcgen05": (r"^\s*tcgen05\.wait::(?:ld|st)\S*;", lambda _: "", "shared-race"),
}
# Kernel, target, fault: each is in that kernel, and nothing else makes it right.
PLANTED = (
    ("products", "cuda:80", "barrier"), ("products", "cuda:80", "cp.async"), ("products", "cuda:90", "barrier"),
    ("products", "cuda:90", "cp.async"), ("products", "cuda:90", "wgmma"), ("products", "cuda:90", "fence"),
    ("products", "cuda:100", "cp.async"), ("products", "cuda:100", "fence"), ("products", "cuda:100", "mbarrier"),
    ("described_products", "cuda:90", "mbarrier"), ("described_products", "cuda:90", "wgmma"),
    ("described_products", "cuda:90", "fence"), ("described_products", "cuda:100", "mbarrier"),
    ("specialised_products", "cuda:100", "mbarrier"), ("normalised", "cuda:80", "barrier"),
    ("scanned", "cuda:80", "barrier"), ("counted", "cuda:80", "barrier"), ("transposed", "cuda:80", "barrier"),
    ("copied_through_shared", "cuda:80", "barrier"), ("products", "hip:gfx942", "s_barrier"),
    ("described_products", "hip:gfx942", "s_barrier"), ("normalised", "hip:gfx942", "s_barrier"),
    ("scanned", "hip:gfx942", "s_barrier"), ("counted", "hip:gfx942", "s_barrier"),
    ("transposed", "hip:gfx942", "s_barrier"), ("products", "hip:gfx950", "s_barrier"),
    ("products", "hip:gfx950", "asyncmark"), ("rescaled", "cuda:100", "tcgen05"),
)  # fmt: skip


_EVERY_DAY = ("cuda:90", "cuda:100", "hip:gfx942")
"""Each of the others has a fault of these, but for `asyncmark`: recording the script for a target takes seconds."""


def _planted(every: int) -> list[Any]:
    """The faults on three targets, one in so many; `make exhaustive` has all."""
    chosen = [case for case in PLANTED if case[1] in _EVERY_DAY][::every]
    return [pytest.param(*case, marks=() if case in chosen else pytest.mark.exhaustive) for case in PLANTED]


def captures(target: str) -> dict[str, Capture]:
    request = request_for(KERNELS, targets=(target,), disassemble=False)
    recorded = kept(("shared", KERNELS.read_text("utf-8"), target), lambda: tuple(record_request(request).captures))
    return {capture.name: capture for capture in recorded}


def stage_of(capture: Capture) -> str:
    return "ptx" if capture.target.backend == "cuda" else "llir"


def with_code(capture: Capture, text: str) -> Capture:
    stage = stage_of(capture)
    artifacts = tuple(replace(one, data=text) if one.stage == stage else one for one in capture.artifacts)
    return capture.with_(artifacts=artifacts)


def single_faults(capture: Capture, pattern: str, change: Change) -> Iterator[Capture]:
    """The capture with each of the lines changed, one at a time."""
    lines = capture.text(stage_of(capture)).split("\n")
    for place, line in enumerate(lines):
        if re.match(pattern, line):
            yield with_code(capture, "\n".join([*lines[:place], re.sub(pattern, change, line), *lines[place + 1 :]]))


@pytest.mark.parametrize("target", sampled(["cuda:90", "cuda:80", "cuda:100", "hip:gfx950", "hip:gfx942"], 2))
def test_what_the_compiler_wrote_is_safe(target: str) -> None:
    for name, capture in captures(target).items():
        if capture.failure is None and not name.startswith(("barrier_of", "wrong")):
            verdict = verify_launch(capture)
            assert (name, verdict.answer, verdict.undecided) == (name, "safe", ())
            code = "PTX" if capture.target.backend == "cuda" else "LLVM IR"
            assert verdict.shared == f"program (0, 0, 0), by thread in the {code}"


@pytest.mark.parametrize(("kernel", "target", "fault"), _planted(1))
def test_a_race_that_was_planted_is_found(kernel: str, target: str, fault: str) -> None:
    pattern, change, kind = FAULTS[fault]
    capture = captures(target)[kernel]
    text, count = re.subn(pattern, change, capture.text(stage_of(capture)), flags=re.MULTILINE)
    assert count
    verdict = verify_launch(with_code(capture, text))
    assert verdict.answer == "wrong", verdict
    violation = next(one for one in verdict.violations if one.kind == kind)
    lines = text.split("\n")
    assert len(violation.accesses) == 2
    for access in violation.accesses:
        assert access.operation in lines[access.line - 1]
        assert access.place.startswith(str(KERNELS))


@pytest.mark.parametrize(("kernel", "target", "fault"), _planted(3))
def test_one_missing_line_is_found_or_harmless(kernel: str, target: str, fault: str) -> None:
    """Never a crash, and never undecided; of the lines of one kind, one at least is needed."""
    pattern, change, _ = FAULTS[fault]
    verdicts = [verify_launch(one) for one in single_faults(captures(target)[kernel], pattern, change)]
    assert {verdict.answer for verdict in verdicts} <= {"safe", "wrong"}


@pytest.mark.parametrize(
    ("after", "answer"), [("", "wrong"), ("fence.proxy.async.shared::cta;", "safe"), ("inval", "safe")]
)
def test_an_mbarrier_that_a_bulk_load_writes_over_is_found(after: str, answer: str) -> None:
    """As Triton 3.6.0 leaves them in a specialised loop for Hopper: an H100 reads them in place of the tile."""
    capture = captures("cuda:90")["described_products"]
    text = capture.text("ptx")
    (first, *_) = re.findall(r"^\s*(@%p\d+) mbarrier\.init\S* \[", text, flags=re.MULTILINE)
    (tile, *_) = re.findall(r"cp\.async\.bulk\.tensor\S* \[ ?(%r\d+)", text)
    dead = f"{first} mbarrier.init.shared::cta.b64 [{tile}], 1;\n"
    dead += f"{first} mbarrier.inval.shared::cta.b64 [{tile}];" if after == "inval" else after
    # Before the copy, where the register holds the tile's address.
    changed = re.sub(r"^(\s*@%p\d+ cp\.async\.bulk\.tensor)", dead + r"\n\1", text, count=1, flags=re.MULTILINE)
    verdict = verify_launch(with_code(capture, changed))
    assert verdict.answer == answer, verdict
    assert {one.code for one in verdict.violations} == ({"IRS909"} if answer == "wrong" else set())


def test_a_barrier_that_half_a_warp_reaches_is_divergent() -> None:
    for target in ("cuda:90", "cuda:100"):
        wrong, right = (captures(target)[f"barrier_of_{name}"] for name in ("half_a_warp", "one_warp"))
        (violation,) = verify_launch(wrong).violations
        assert (violation.kind, violation.code) == ("divergent-barrier", "IRS910")
        assert violation.accesses[0].operation == "bar.sync"
        assert not verify_launch(right).violations


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_a_barrier_behind_a_branch_by_unknown_elements_is_not_decided(target: str) -> None:
    capture = captures(target)["barrier_of_a_branch"]
    text = capture.text(stage_of(capture))
    # The same of a return that a predicate decides: no thread may count as one that goes on.
    returns = re.sub(r"^(\s*@\S+) +bra.*;", r"\1 ret;", text, count=1, flags=re.MULTILINE)
    branch = "bra" if target == "cuda:90" else "br"
    cases = {branch: text, "ret": returns} if target == "cuda:90" else {branch: text}
    for name, changed in cases.items():
        verdict = verify_launch(with_code(capture, changed))
        assert verdict.answer == "not decided"
        reason = next(one for one in verdict.undecided if "shared memory" in one)
        assert f"has a predicate that is not computed ({name} at shared_kernels.py:" in reason
        assert "the elements of x_ptr, y_ptr were not recorded" in reason


def test_a_buffer_behind_the_allocated_ones_is_out_of_bounds() -> None:
    (violation,) = verify_launch(captures("cuda:90")["wrong_stages_of_two"]).violations[:1]
    assert (violation.code, violation.made_by) == ("IRS901", "the kernel")
    assert "of shared memory, of which the launch has 4096 bytes" in violation.detail


def test_what_is_read_after_a_store_is_not_taken_for_what_the_capture_holds() -> None:
    """`counted` reads and writes one tensor: its contents are known only as long as nothing was stored."""
    capture = captures("cuda:90")["counted"]
    load = r"^\s*ld\.global\b"
    text = re.sub(
        load, r"st.global.b32 [ %rd2 + 0 ], { %r40 };\n\g<0>", capture.text("ptx"), count=1, flags=re.MULTILINE
    )
    verdict = verify_launch(with_code(capture, text))
    assert verdict.answer == "not decided"
    assert "has a predicate that is not computed" in verdict.undecided[0]


def test_a_check_shows_the_race_with_its_accesses() -> None:
    capture = captures("cuda:90")["products"]
    pattern, change, _ = FAULTS["cp.async"]
    wrong = with_code(capture, re.sub(pattern, change, capture.text("ptx"), flags=re.MULTILINE))
    assert not Safe().breaches(Subject(capture))
    breach = Safe().breaches(Subject(wrong))[0]
    assert breach.text.startswith("IRS908 shared-race: an asynchronous unit writes")
    assert "made by: ttgir:pipeline#1" in breach.causes
    assert breach.place[0][0] == str(KERNELS)


def test_too_many_instructions_are_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.verify.safety.DEFAULT_INSTRUCTIONS", 10)
    verdict = verify_launch(captures("cuda:90")["products"])
    assert verdict.answer == "not decided"
    assert "more than 10 instructions" in verdict.undecided[0]
