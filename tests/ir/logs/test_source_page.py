"""The source page of Nsight Compute: as version 2025.3.1 writes it, as others may, and whatever else a file holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.logs.source_page import Counters, read_source_page

PAGE = """"Kernel Name","add_kernel",
"Address","Source","# Samples","Instructions Executed","Predicated-On Thread Instructions Executed","Access Size",\
"L1 Tag Requests Global","L1 Conflicts Shared N-Way","L2 Theoretical Sectors Global",\
"L2 Theoretical Sectors Global Ideal","stall_long_sb","stall_selected","stall_long_sb (Not Issued)"
"0x7efb1f7a3700","      LDC R1, c[0x0][0x28]","16","1024","32768","-","0","0","0","0","0","16","0"
"0x7efb1f7a3710","@!P0  LDG.E R4, desc[UR4][R2.64]","7","1,024","31,000","32","4,096","0","16,384","9,000","5","2","4"
"0x7efb1f7a3720","      STS.128 [R7+UR4], R16","0","100","3200","128","0","4","0","0","0","0","0"
"Kernel Name","other",
"Address","Source","Instructions Executed"
"7efb1f7a3700","      EXIT","3"
"""


def test_the_counters_of_each_instruction_of_each_launch() -> None:
    add, other = read_source_page(PAGE)
    assert (add.name, other.name) == ("add_kernel", "other")
    assert [one.offset for one in add.instructions] == [0, 0x10, 0x20]
    load, store = add.instructions[1:]
    assert load.text == "@!P0  LDG.E R4, desc[UR4][R2.64]"
    assert load.counters == Counters(1024, 31000, 7, (("long_sb", 5), ("selected", 2)), 16384, 9000, 4096, 0)
    assert load.counters.stalled == 5
    # Averages per instruction, of 100.
    assert (store.access_bits, store.counters.wavefronts) == (128, 400)
    assert other.instructions[0].counters == Counters(executed=3)


def test_wavefronts_are_taken_as_they_are_where_the_page_has_them() -> None:
    page = PAGE.replace('"L1 Conflicts Shared N-Way"', '"L1 Conflicts Shared N-Way","L1 Wavefronts Shared"')
    page = page.replace('"128","0","4","0"', '"128","0","4","450","0"')
    assert read_source_page(page)[0].instructions[2].counters.wavefronts == 450


def test_a_launch_alone_reads_as_in_the_whole() -> None:
    for kernel in read_source_page(PAGE):
        assert read_source_page(kernel.page) == (kernel,)


def test_counters_are_summed_and_what_is_missing_stays_unknown() -> None:
    parts = [one.counters for one in read_source_page(PAGE)[0].instructions]
    total = Counters.sum(parts)
    assert (total.executed, total.samples, total.sectors) == (2148, 23, 16384)
    assert total.stalls == (("selected", 18), ("long_sb", 5))
    assert Counters.sum([Counters(executed=1), Counters()]) == Counters(executed=1)
    assert Counters.sum([]) == Counters()


@pytest.mark.parametrize("text", ["", "kernel,time\na,3\n", '"Kernel Name","x"\n', '"Address","Source"\n'])
def test_other_files_have_no_launches(text: str) -> None:
    assert [kernel for kernel in read_source_page(text) if kernel.instructions] == []


@given(st.text(), st.integers(0, len(PAGE)), st.integers(0, 40))
def test_damaged_pages_are_read_as_far_as_they_go(text: str, at: int, length: int) -> None:
    for kernel in read_source_page(PAGE[:at] + text + PAGE[at + length :]):
        assert all(one.offset == int(one.offset) for one in kernel.instructions)
        Counters.sum([one.counters for one in kernel.instructions])
