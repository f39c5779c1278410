"""ELF files: cubin and hsaco."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irscope.errors import ParseError
from irscope.ir.asm.resources import count_instructions, parse_elf, read_cubin
from irscope.ir.asm.sass import parse_sass

DATA = Path(__file__).parents[2] / "data" / "asm"
BINARIES = sorted(path.name for path in DATA.iterdir() if path.suffix in (".cubin", ".hsaco"))
CUBINS = [name for name in BINARIES if name.endswith(".cubin")]


@pytest.mark.parametrize("name", BINARIES)
def test_sections_are_those_of_readelf(name: str) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    done = subprocess.run([readelf, "-S", "-W", DATA / name], capture_output=True, text=True, check=True)
    # "  [ 7] .text             PROGBITS        0000000000001700 000700 000cc0 00  AX  0   0 256"
    row = r"^  \[ *(\d+)\] (\S*) +(NULL|PROGBITS|NOBITS|STRTAB|SYMTAB|RELA|NOTE|\S+) +([0-9a-f]{16}) (\w+) (\w+) "
    expected = [
        (int(index), section, int(address, 16), int(offset, 16), int(size, 16))
        for index, section, _, address, offset, size in re.findall(row, done.stdout, re.MULTILINE)
    ]
    elf = parse_elf((DATA / name).read_bytes())
    found = [(index, one.name, one.address, one.offset, one.size_bytes) for index, one in enumerate(elf.sections)]
    assert found[1:] == expected[-len(found) + 1 :]
    assert len(found) == int(re.findall(r"There are (\d+) section", done.stdout)[0])


@pytest.mark.parametrize("name", CUBINS)
def test_a_cubin_has_as_many_instructions_as_nvdisasm_prints(name: str) -> None:
    elf = parse_elf((DATA / name).read_bytes())
    ((kernel_name, kernel),) = read_cubin(elf).items()
    (function,) = parse_sass((DATA / name.replace(".cubin", ".nvdisasm.txt")).read_text())
    assert kernel.code_bytes == 16 * len(function.instructions)
    assert kernel.instruction_count == len(function.without_padding().instructions)
    code = elf.function(kernel_name)
    assert code is not None
    encodings = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code), 16)]
    assert encodings == [item.encoding for item in function.instructions]


def test_an_hsaco_has_a_kernel_and_its_descriptor() -> None:
    elf = parse_elf((DATA / "add_gfx942.hsaco").read_bytes())
    assert elf.kernels == ("add_kernel",)
    code = elf.function("add_kernel")
    text = elf.section(".text")
    assert code is not None
    assert text is not None
    assert text.flag_letters == "AX"
    assert code == elf.contents(text)[: len(code)]
    assert elf.function("nothing") is None
    assert {"add_kernel.kd"} <= {symbol.name for symbol in elf.symbols if symbol.kind == "OBJECT"}


def test_only_padding_is_left_out_of_the_count() -> None:
    nop, branch_back, branch_self, exit_ = 0x7918, 0xFFFFFFF800FC7947, 0xFFFFFFFC00FC7947, 0x794D
    code = [struct.pack("<QQ", word, 0) for word in (nop, exit_, branch_self, nop, nop)]
    assert count_instructions(b"".join(code)) == 2
    code = [struct.pack("<QQ", word, 0) for word in (nop, exit_, branch_back, nop)]
    assert count_instructions(b"".join(code)) == 3
    assert count_instructions(b"") == count_instructions(b"short") == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an ELF file"),
        (b"MZ\x90\x00", "begins with b'MZ"),
        (b"\x7fELF\x01\x01", "64-bit little-endian"),
        (b"\x7fELF\x02\x01\x01", "ends in its header: 7 bytes"),
    ],
)
def test_what_is_no_elf_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_elf(data)


@pytest.mark.parametrize("name", BINARIES)
def test_a_file_cut_short_is_refused(name: str) -> None:
    data = (DATA / name).read_bytes()
    with pytest.raises(ParseError, match="cut short"):
        parse_elf(data[: len(data) // 2])


@settings(deadline=None)
@example("add_75.cubin", 0, b"\xff" * 64)
@given(st.sampled_from(BINARIES), st.integers(0, 10000), st.binary(min_size=1, max_size=64))
def test_a_damaged_file_is_read_or_refused(name: str, at: int, garbage: bytes) -> None:
    data = (DATA / name).read_bytes()
    damaged = data[:at] + garbage + data[at + len(garbage) :]
    try:
        elf = parse_elf(damaged)
    except ParseError:
        return
    for kernel in read_cubin(elf).values():
        assert kernel.instruction_count is None or kernel.instruction_count * 16 <= len(damaged)
