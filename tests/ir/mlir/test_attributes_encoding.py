"""Encodings: every kind is read, strange ones stay text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import ParseError
from irscope.ir.mlir.attributes import Encoding, parse_encoding, read_aliases, read_encoding
from irscope.layout.rows import encoding_rank, parameters_text
from tests.layout.cases import CASES

MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 8]}>"


@pytest.mark.parametrize("case", CASES[::5], ids=[case.label for case in CASES[::5]])
def test_every_kind_has_parameters(case) -> None:
    encoding = parse_encoding(case.encoding)
    assert encoding.parameters
    assert encoding.space in ("registers", "shared")
    assert encoding.text == case.encoding
    if encoding.space == "shared":
        assert encoding_rank(encoding) == len(case.shape)


@pytest.mark.parametrize(
    ("text", "kind", "title"),
    [
        (f"#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>", "dot_op", "dot operand 0 of mma v2"),
        (f"#ttg.slice<{{dim = 1, parent = {MMA}}}>", "slice", "slice 1 of mma v2"),
        (
            "#ttg.padded_shared<[512:+16, 4096:+32] {order = [1, 0], shape = [128, 64]}>",
            "padded_shared",
            "padded shared",
        ),
        (
            "#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>",
            "tensor_memory_encoding",
            "tensor memory",
        ),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true}>", "nvmma_shared", "64-byte nvmma shared"),
        ("#vendor.new_thing<[a] (b)!>", "new_thing", "new thing"),
    ],
)
def test_title(text: str, kind: str, title: str) -> None:
    encoding = read_encoding(text)
    assert (encoding.kind, encoding.title) == (kind, title)
    assert str(encoding) == text


def test_padding_is_a_list_of_pairs() -> None:
    encoding = parse_encoding("#ttg.padded_shared<[512:+16, 4096:+32] {order = [1, 0], shape = [128, 64]}>")
    assert encoding[""] == ((512, 16), (4096, 32))
    assert encoding["shape"] == (128, 64)
    assert parameters_text(encoding).endswith("order = [1, 0], shape = [128, 64]")


def test_aliases_are_put_in() -> None:
    text = f"#mma = {MMA}\n#dot = #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = 2}}>\n#loc = loc(unknown)\n"
    aliases = read_aliases(text)
    assert set(aliases) == {"#mma", "#dot"}
    parent = parse_encoding("#dot", aliases)["parent"]
    assert isinstance(parent, Encoding)
    assert parent["warpsPerCTA"] == (8, 1)


def test_aliases_that_name_each_other_end() -> None:
    text = "#a = #ttg.slice<{dim = 0, parent = #b}>\n#b = #ttg.slice<{dim = 0, parent = #a}>\n"
    assert len(read_aliases(text)) == 2


def test_what_is_no_encoding_is_refused() -> None:
    with pytest.raises(ParseError, match="is not an encoding"):
        parse_encoding("blocked")


@given(st.text(alphabet='#ttg.blocked<{}>[]()=,: 0123aé"', max_size=60))
def test_any_text_is_read(text: str) -> None:
    read_encoding(text)


def test_sizes_of_any_length_are_read() -> None:
    digits = "9" * 5000
    assert read_encoding(f"#ttg.blocked<{{order = [{digits}, 1]}}>")["order"] == (0, 1)
    assert read_encoding(f"#ttg.padded_shared<[512:+{digits}]>")[""] == ((512, 0),)
    assert read_encoding("#ttg.padded_shared<[512:+x]>")[""] == ((512, 0),)
