"""What stands beside machine code: against nvdisasm's counts, against brute force and the profiles."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.source.annotations import annotate
from irscope.errors import UsageError
from irscope.ir.asm.instructions import spill_of
from irscope.ir.asm.operands import registers_of
from irscope.ir.asm.sass import format_sass, parse_sass, with_live_registers
from irscope.ir.columns import read_body
from irscope.ir.syntax import Ignored
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources
from irscope.model.evidence import Profile
from irscope.store.file import load
from irscope.target import Target

DATA = Path(__file__).parents[2] / "data"
ASM = DATA / "asm"
# /*0970*/   FADD R4, R5, R6 ;      // |  13   |   2    |   2    |
_COUNTED = re.compile(r"\s*/\*(?P<offset>[0-9a-f]{4})\*/[^/]*// \|\s*(?P<general>\d*)\s*\|")


def capture_of(stage: str, text: str, **more: int) -> Capture:
    target = Target("cuda", "90", 32) if stage == "sass" else Target("hip", "gfx942", 64)
    return Capture(Launch(Kernel("k")), target, artifacts=(Artifact(stage, text),), resources=Resources(**more))


@pytest.fixture(scope="module")
def softmax() -> str:
    """SASS in irscope's form, with the live registers that `nvdisasm -lrm count` printed."""
    listing, counted = (parse_sass((ASM / f"softmax_90.{name}.txt").read_text()) for name in ("nvdisasm", "live"))
    return format_sass(function.without_padding() for function in with_live_registers(listing, counted))


def test_live_registers_are_nvdisasms(softmax: str) -> None:
    printed = {
        int(match["offset"], 16): int(match["general"] or 0)
        for line in (ASM / "softmax_90.live.txt").read_text().split("\n")
        if (match := _COUNTED.match(line))
    }
    found = annotate(capture_of("sass", softmax, registers=24))
    lines = softmax.split("\n")
    by_offset = {int(lines[one.line - 1].split()[0], 16): one.live or 0 for one in found.instructions}
    assert by_offset == {offset: printed[offset] for offset in by_offset}
    assert len(by_offset) > 100
    assert found.counted_by == "nvdisasm"
    assert found.peak is not None
    assert found.peak.live == max(by_offset.values())
    assert (found.registers, found.stalled) == (24, None)


def test_without_them_irscope_counts_the_same(softmax: str) -> None:
    # nvdisasm counts none of a kernel with 255 registers: "Invalid register count".
    plain = re.sub(r"  G\d+:P\d:U\d+:Q\d+  ", "  ", softmax)
    counted, ours = (annotate(capture_of("sass", text)).instructions for text in (softmax, plain))
    assert annotate(capture_of("sass", plain)).counted_by == "irscope"
    differing = [(one.line, one.live, other.live) for one, other in zip(counted, ours, strict=True) if one != other]
    # Behind its end nvdisasm counts what its unreachable last lines would read.
    assert all(line >= counted[-3].line for line, *_ in differing), differing


def brute_force(text: str) -> dict[int, int]:
    """Line -> its live registers: those from which some way through the code leads to a read before a write."""
    body = read_body(text, "amdgcn", frozenset[Ignored]())
    reads: list[set[str]] = []
    writes: list[set[str]] = []
    kept: list[bool] = []
    for line, shape in enumerate(body.shapes):
        found: tuple[set[str], set[str]] = (set(), set())
        access = shape.access
        if access is not None:
            names = re.findall(r"\b(?:[vas]\d+|[vas]\[\d+:\d+\])", body.lines[line].partition(";")[0])
            holes = [hole for hole in access.holes if hole[0]]
            assert len(names) == len(holes), body.lines[line]
            for name, (width, mode) in zip(names, holes, strict=True):
                for register in registers_of(name, width):
                    if register[0] in "va":
                        for index, modes in enumerate(("rm", "wm")):
                            found[index].update([register] if mode in modes else [])
        reads.append(found[0])
        writes.append(found[1])
        kept.append(access is not None and access.is_partial)
    counts: dict[int, int] = {}
    registers = set().union(*reads, *writes)
    before: dict[str, set[int]] = {}
    into: list[list[int]] = [[] for _ in body.following]
    for line, following in enumerate(body.following):
        for after in following:
            into[after].append(line)
    for register in registers:
        reached: set[int] = set()
        waiting = [line for line, own in enumerate(reads) if register in own]
        while waiting:
            line = waiting.pop()
            if line not in reached:
                reached.add(line)
                waiting += [one for one in into[line] if register not in writes[one] or kept[one]]
        before[register] = reached
    for line, number in enumerate(body.numbers):
        counts[number] = sum(line in before[register] or register in writes[line] for register in registers)
    return counts


@pytest.mark.parametrize("name", ["add_gfx90a", "softmax_gfx1100", "matmul_gfx942"])
def test_live_registers_on_amd_are_those_of_brute_force(name: str) -> None:
    text = (ASM / f"{name}.amdgcn").read_text()
    found = annotate(capture_of("amdgcn", text, registers=8, accumulator_registers=4))
    expected = brute_force(text)
    assert {one.line: one.live for one in found.instructions} == {
        one.line: expected[one.line] for one in found.instructions
    }
    assert found.peak is not None
    assert found.peak.live == max(expected.values()) > 4
    assert found.registers == 12


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("        0010  B------:R-:W-:-:S01  @!P0 STL.128 [R1+0x10], R4", "store"),
        ("        0010  B------:R-:W-:-:S01  LDL.LU R4, [R1]", "load"),
        ("        0010  B------:R-:W-:-:S01  STG.E [R2.64], R4", ""),
        ("\tscratch_load_dwordx2 v[0:1], off, off offset:4 ; 8-byte Folded Reload", "load"),
        ("\tbuffer_store_dword v1, off, s[0:3], 0 ; 4-byte Folded Spill", "store"),
        ("\tglobal_load_dword v1, v2, s[0:1]", ""),
    ],
)
def test_spills_by_their_text(line: str, expected: str) -> None:
    assert spill_of(line) == expected


TICKS = """.target sm_90a
.section .text.k  // 6 instructions
        0000  B------:R-:W-:-:S01  HGMMA.64x128x16.F32 R24, gdesc[UR8], R24
        0010  B------:R-:W-:-:S01  WARPGROUP.DEPBAR.LE gsb0, 0x0
        0020  B------:R-:W-:-:S01  BAR.SYNC.DEFER_BLOCKING 0x0
        0030  B------:R-:W-:-:S01  SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3
        0040  B------:R-:W-:-:S01  STL [R1], R3
        0050  B------:R-:W-:-:S01  IADD3 R3, R3, 0x1, RZ
        0060  B------:R-:W-:-:S01  EXIT
"""


def test_ticks_are_of_dots_and_barriers() -> None:
    found = annotate(capture_of("sass", TICKS))
    assert [one.tick for one in found.instructions] == ["wgmma", "wgmma.control", "barrier", "mbarrier", "", "", ""]
    together = found.together([3, 5, 6, 7])
    assert (together.spills, together.ticks, together.counters) == (
        1,
        (("wgmma", 1), ("barrier", 1), ("mbarrier", 1)),
        None,
    )
    assert together.live == max(one.live or 0 for one in found.instructions[:5])


def test_stalls_are_those_of_the_profile() -> None:
    capture = load(DATA / "counters" / "softmax_kernel.irscope")
    assert capture.profile is not None
    found = annotate(capture)
    head, *rows = [row for row in csv.reader(io.StringIO(capture.profile.page)) if len(row) > 2]
    columns = [
        index for index, name in enumerate(head) if re.fullmatch(r"stall_\w+", name) and name != "stall_selected"
    ]
    waited = [sum(int(row[index].replace(",", "") or 0) for index in columns) for row in rows if len(row) == len(head)]
    ours = [one.counters.stalled for one in found.instructions if one.counters is not None]
    assert ours == waited[: len(ours)]
    assert sum(ours) == found.stalled
    assert found.stalled
    with pytest.raises(UsageError, match=r"profiled code that differs|is not a source page"):
        annotate(replace(capture, profile=Profile("Kernel Name,other\n")))


def test_only_machine_code_has_registers() -> None:
    with pytest.raises(UsageError, match="stage 'ttgir' is not machine code"):
        annotate(capture_of("ttgir", "module {\n}\n"), "ttgir")
    with pytest.raises(UsageError, match=r"holds no machine code as text: sass or amdgcn; it has ttgir\."):
        annotate(capture_of("ttgir", "module {\n}\n"))
