"""SASS: nvdisasm's output, the normal form, control fields."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ir.asm.control_flow import read_functions
from irscope.ir.asm.instructions import CodeLabel, ControlInfo
from irscope.ir.asm.opcodes import classify
from irscope.ir.asm.sass import (
    Instruction,
    LiveRegisters,
    OpaqueLine,
    SassFunction,
    format_sass,
    parse_sass,
    with_live_registers,
)
from irscope.ir.locations.assembly import read_sass
from irscope.ir.locations.model import Frame

DATA = Path(__file__).parents[2] / "data" / "asm"
LISTINGS = sorted(path.name for path in DATA.glob("*.nvdisasm.txt"))


def read(name: str) -> tuple[SassFunction, ...]:
    return parse_sass((DATA / name).read_text())


def raw_instructions(name: str) -> list[tuple[int, str, int, int]]:
    """(offset, text, low, high) by a second, naive reading: one regular expression over the whole listing."""
    pattern = r"/\*([0-9a-f]{4})\*/ +([^;]+?) ?; +/\* 0x([0-9a-f]{16}) \*/\n +/\* 0x([0-9a-f]{16}) \*/"
    found = re.findall(pattern, (DATA / name).read_text())
    return [(int(offset, 16), text, int(low, 16), int(high, 16)) for offset, text, low, high in found]


@pytest.mark.parametrize("name", LISTINGS)
def test_every_instruction_of_a_listing_is_read(name: str) -> None:
    (function,) = read(name)
    expected = raw_instructions(name)
    assert [(item.offset, item.text, *(item.encoding or ())) for item in function.instructions] == expected
    assert not function.opaque
    lines = (DATA / name).read_text().split("\n")
    assert all(f"/*{item.offset:04x}*/" in lines[item.line - 1] for item in function.instructions)


@pytest.mark.parametrize("name", LISTINGS)
def test_control_fields_agree_with_the_bits_written_out(name: str) -> None:
    (function,) = read(name)
    for item in function.instructions:
        assert item.encoding is not None
        bits = f"{item.encoding[1]:064b}{item.encoding[0]:064b}"[::-1]  # bits[n] is bit n of the 128
        control = item.control
        assert control is not None
        assert control.stall == int(bits[105:109][::-1], 2)
        assert control.yields == (bits[109] == "0")
        assert (7 if control.write_barrier is None else control.write_barrier) == int(bits[110:113][::-1], 2)
        assert (7 if control.read_barrier is None else control.read_barrier) == int(bits[113:116][::-1], 2)
        assert control.waits_for == tuple(n for n in range(6) if bits[116 + n] == "1")


@pytest.mark.parametrize("name", LISTINGS)
def test_reuse_bits_are_what_the_text_calls_reuse(name: str) -> None:
    """The bits stand next to the control fields: an error of one bit in where those begin would show here."""
    (function,) = read(name)
    for item in function.instructions:
        assert item.encoding is not None
        assert bin(item.encoding[1] >> (122 - 64) & 15).count("1") == item.text.count(".reuse"), item.text
    assert any(".reuse" in item.text for item in function.instructions)


@pytest.mark.parametrize("name", LISTINGS)
def test_a_scoreboard_is_waited_for_only_once_set(name: str) -> None:
    """What the fields mean, not only where they are: in straight code a barrier is set before it is waited for."""
    (function,) = read(name)
    function = function.without_padding()
    assert all(item.opcode != "BRA" for item in function.instructions)
    armed: set[int] = set()
    for item in function.instructions:
        assert item.control is not None
        assert set(item.control.waits_for) <= armed, item
        armed |= {barrier for barrier in (item.control.write_barrier, item.control.read_barrier) if barrier is not None}
    loads = [item for item in function.instructions if item.opcode.startswith("LDG")]
    assert loads
    assert all(item.control and item.control.write_barrier is not None for item in loads)


@pytest.mark.parametrize("name", LISTINGS)
def test_the_normal_form_of_a_listing_reads_back(name: str) -> None:
    functions = read(name)
    assert parse_sass(format_sass(functions)) == functions


def test_the_normal_form_is_one_line_an_instruction() -> None:
    functions = [function.without_padding() for function in read("add_80.nvdisasm.txt")]
    lines = format_sass(functions).splitlines()
    assert lines[:5] == [
        ".target sm_80",
        ".section .text.add_kernel  // 38 instructions",
        lines[2],
        "        0000  B------:R-:W-:-:S02  MOV R1, c[0x0][0x28]",
        lines[4],
    ]
    assert re.fullmatch(r'//## File "[^"]*make.py", line \d+', lines[2])
    assert lines[-1] == "        0250  B------:R-:W-:-:S05  EXIT"
    assert "NOP" not in "".join(lines)


def test_locations_are_chains_innermost_first() -> None:
    (function,) = read("softmax_90.nvdisasm.txt")
    chains = {item.location for item in function.instructions}
    deepest = max(chains, key=len)
    assert [frame.file.rpartition("/")[2] for frame in deepest] == ["standard.py", "standard.py", "make.py"]
    assert all(frame.line > 0 for frame in deepest)


@pytest.mark.parametrize("name", LISTINGS)
def test_locations_agree_with_the_reader_of_locations(name: str) -> None:
    text = format_sass(read(name))
    locations = read_sass(text)
    for function in parse_sass(text):
        for item in function.instructions:
            assert locations.chain_at(item.line) == item.location


def test_live_registers_join_by_offset() -> None:
    counted = read("softmax_90.live.txt")
    (function,) = with_live_registers(read("softmax_90.nvdisasm.txt"), counted)
    by_offset = {item.offset: item for item in function.instructions}
    # nvdisasm: /*0970*/ FMUL R4, R15.reuse, R8 ;  // |  13   |   2    |   2    |
    assert by_offset[0x970].live == LiveRegisters(general=13, predicate=2, uniform=2)
    assert by_offset[0x970].encoding is not None
    peak = max(item.live.general for item in function.instructions if item.live)
    assert peak <= 22, "ptxas gave the kernel 22 registers"
    assert parse_sass(format_sass([function])) == (function,)


def test_padding_is_the_branch_to_itself_and_what_follows() -> None:
    (function,) = read("softmax_90.nvdisasm.txt")
    assert [item.opcode for item in function.instructions[-function.padding :]] == ["BRA"] + ["NOP"] * 12
    trimmed = function.without_padding()
    assert trimmed.instructions[-1].opcode == "EXIT"
    assert trimmed.labels == ()
    assert trimmed.padding == 0


def test_a_loop_at_the_end_is_no_padding() -> None:
    text = ".section .text.k\n.L_x_0:\n  0000  -  NOP\n  0010  -  BRA `(.L_x_0)\n  0020  -  NOP\n.L_x_1:\n"
    (function,) = parse_sass(text)
    assert function.padding == 1
    assert function.without_padding().labels == (CodeLabel(".L_x_0", 0),)


def test_families_of_a_kernel_are_counted() -> None:
    (function,) = read_functions((DATA / "softmax_90.nvdisasm.txt").read_text(), "sass")
    counts = Counter(classify(item.opcode, item.operands) for item in function.instructions)
    assert counts["ld.global.128"] == counts["st.global.128"] == 2
    assert counts["shuffle"] == (DATA / "softmax_90.nvdisasm.txt").read_text().count("SHFL")
    assert read_functions("text", "mlir") == ()


controls = st.builds(
    ControlInfo,
    stall=st.integers(0, 15),
    yields=st.booleans(),
    write_barrier=st.none() | st.integers(0, 6),
    read_barrier=st.none() | st.integers(0, 6),
    wait_mask=st.integers(0, 63),
)


@settings(deadline=None)
@given(controls)
def test_control_text_and_bits_round_trip(control: ControlInfo) -> None:
    assert ControlInfo.parse(str(control)) == control
    write = 7 if control.write_barrier is None else control.write_barrier
    read_barrier = 7 if control.read_barrier is None else control.read_barrier
    bits = control.stall | (not control.yields) << 4 | write << 5 | read_barrier << 8 | control.wait_mask << 11
    assert ControlInfo.decode((0, bits << 41)) == control


frames = st.builds(Frame, st.sampled_from(["/k/a.py", "b.py", "my file.py"]), st.integers(1, 999), st.just(0))
instructions = st.builds(
    Instruction,
    offset=st.integers(0, 2**40),
    opcode=st.sampled_from(["LDG.E.128", "FFMA", "BRA.U", "UTCHMMA", "CS2R"]),
    operands=st.lists(
        st.sampled_from(["R1", "desc[UR6][R2.64+0x800]", "c[0x0][0x28]", "!PT", "`(.L_x_0)", "gdesc[UR4]"]),
        max_size=4,
    ).map(tuple),
    predicate=st.sampled_from(["", "@P0", "@!UP1", "@!PT"]),
    control=st.none() | controls,
    location=st.lists(frames, max_size=3).map(tuple),
    live=st.none() | st.builds(LiveRegisters, *[st.integers(0, 300) | st.integers(0, 999_999_999)] * 4),
)


@st.composite
def functions(draw: st.DrawFn) -> SassFunction:
    items = tuple(draw(st.lists(instructions, max_size=8)))
    places = sorted(draw(st.lists(st.integers(0, len(items)), max_size=4)))
    marks = sorted(draw(st.lists(st.integers(0, len(items)), max_size=2)))
    return SassFunction(
        draw(st.sampled_from(["add_kernel", "_ZN3foo$bar", "k.2"])),
        items,
        tuple(CodeLabel(f".L_x_{number}", index) for number, index in enumerate(places)),
        tuple(OpaqueLine(f"?? unknown {number}", index) for number, index in enumerate(marks)),
        draw(st.sampled_from(["", "sm_75", "sm_100a"])),
    )


@settings(deadline=None)
@given(st.lists(functions(), max_size=3).map(tuple))
def test_any_functions_round_trip(value: tuple[SassFunction, ...]) -> None:
    assert parse_sass(format_sass(value)) == value


fragments = st.sampled_from(
    [
        ".section .text.k",
        ".target sm_90a",
        "/*0010*/ FADD R1, R2 ; /* 0x0000000000007919 */",
        "/* 0x000e2e0000002100 */",
        "/*0020*/ ;",
        "0030  B------:R-:W0:-:S07  G1  X",
        "0030  -  MOV",
        ".L_x_0:",
        '//## File "a", line 1 inlined at "b", line 2',
        '//## File "b", line 2',
        '//## File "", line 0',
        "// | GPR | PRED |",
        "// | 3 | x |",
        "// | 99999999999999999999 |",
        "what is this",
        "\x00\ufffd(((",
    ]
)
texts = st.lists(fragments | st.text(max_size=40), max_size=25).map("\n".join)


@settings(deadline=None)
@given(texts)
def test_any_text_is_read_and_its_normal_form_is_stable(text: str) -> None:
    once = parse_sass(text)
    assert parse_sass(format_sass(once)) == once


@settings(deadline=None)
@given(st.sampled_from(LISTINGS), st.integers(0, 12000), st.integers(0, 400), st.text(max_size=9))
def test_a_damaged_listing_is_still_read(name: str, start: int, length: int, inserted: str) -> None:
    text = (DATA / name).read_text()
    functions_read = parse_sass(text[:start] + inserted + text[start + length :])
    assert sum(len(function.instructions) for function in functions_read) <= len(raw_instructions(name)) + 1
