"""Typed layouts: what is cut off, missing or out of range is named, and needs no Triton to be found."""

from __future__ import annotations

import re

import pytest

from irscope.errors import IrscopeError, ParseError, UsageError
from irscope.ir.mlir.attributes import read_encoding
from irscope.layout.typed import blocks_of, lanes_of, parse_typed, target_of, warps_of
from tests.layout.cases import CASES, Case, blocked, dot, mfma, mma2, mma3, sliced, swizzled

BLOCKED = blocked((1, 4), (8, 4), (4, 1), (1, 0))
PADDED = "#ttg.padded_shared<[64:+8, 512:+4] {order = [1, 0], shape = [64, 64]}>"
TENSOR = "#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>"
KINDS = (
    *{read_encoding(case.encoding).kind: case for case in CASES}.values(),
    Case(PADDED, (64, 64)),
    Case(TENSOR, (128, 128)),
)


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_threads_warps_and_blocks_follow_from_the_text(case: Case) -> None:
    encoding = parse_typed(case.encoding, case.shape)
    assert warps_of(encoding) == (case.num_warps if encoding.space == "registers" else None)
    assert blocks_of(encoding) == case.num_ctas
    wide = case.target.startswith("hip:gfx9")
    assert lanes_of(encoding) == ((64 if wide else 32) if encoding.space == "registers" else None)


@pytest.mark.parametrize("case", KINDS, ids=lambda case: read_encoding(case.encoding).kind)
def test_a_text_that_is_cut_off_is_an_error_that_says_so(case: Case) -> None:
    for end in range(1, len(case.encoding)):
        with pytest.raises(IrscopeError) as caught:
            parse_typed(case.encoding[:end], case.shape)
        message = str(caught.value)
        assert "\n" not in message
        assert case.encoding[:end].strip() in message
        if "<" in case.encoding[:end]:
            assert "is missing at its end" in message, message


def test_what_is_missing_at_the_end_completes_the_text() -> None:
    text = sliced(1, BLOCKED)
    for end in range(text.index("<") + 1, len(text)):
        with pytest.raises(ParseError) as caught:
            parse_typed(text[:end], (64,))
        closed = re.search(r": '([\]}>]+)' is missing", str(caught.value))
        assert closed is not None
        assert text[end:].replace("]", "").endswith(closed[1].replace("]", "")[-2:])


@pytest.mark.parametrize("case", KINDS, ids=lambda case: read_encoding(case.encoding).kind)
def test_a_parameter_that_is_left_out_is_named(case: Case) -> None:
    optional = {"kWidth", "alignment", "block"}
    for name, _ in read_encoding(case.encoding).parameters:
        if not name or (name in optional and "linear<" not in case.encoding.replace("shared_linear", "")):
            continue
        without = re.sub(
            rf"\b{name} = (#.*>(?=[,}}])|\[\[.*?\]\]|\[[^\]]*\]|\{{.*\}}(?=}})|\w+)(, )?", "", case.encoding, count=1
        )
        without = without.replace(", }", "}").replace(", >", ">")
        with pytest.raises(UsageError, match=rf"is incomplete: .*\b{name}\b.*missing|is missing"):
            parse_typed(without, case.shape)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        (BLOCKED.replace("order", "ordre"), (64, 64), "blocked has no 'ordre'. Did you mean 'order'"),
        (BLOCKED.replace("[8, 4]", "[8, 3]"), (64, 64), "threadsPerWarp must be a list of powers of two"),
        (BLOCKED.replace("[8, 4]", "[8, -4]"), (64, 64), "threadsPerWarp must be"),
        (BLOCKED.replace("[8, 4]", f"[8, {'9' * 40}]"), (64, 64), "is malformed"),
        (BLOCKED.replace("[8, 4]", "[8, 1048576]"), (64, 64), "at most 65536"),
        (BLOCKED.replace("[1, 0]", "[1, 1]"), (64, 64), "order must be every dimension once"),
        (BLOCKED.replace("[8, 4]", "[8, 4, 1]"), (64, 64), "all lists must have one length"),
        (BLOCKED.replace("[8, 4]", "8"), (64, 64), "threadsPerWarp = 8 must be"),
        (BLOCKED, (64,), "is for 2 dimensions, and the shape 64 has 1"),
        (BLOCKED, (48, 64), "a size that is not a power of two"),
        (BLOCKED, (1 << 20, 1 << 20), "more than 16777216 elements"),
        (BLOCKED + " and more", (64, 64), "nothing may follow the encoding, but 'and more' does"),
        (BLOCKED.replace("{", "{sizePerThread = [1, 4], "), (64, 64), "gives sizePerThread twice"),
        (BLOCKED.replace("]", ")", 1), (64, 64), r"malformed at '\), .*: '\]' is missing"),
        (BLOCKED.replace("blocked", "bloked"), (64, 64), "there is no layout 'bloked'. Did you mean 'blocked'"),
        (sliced(2, BLOCKED), (64,), "dim = 2, but the parent has 2 dimensions"),
        (sliced(1, swizzled(1, 1, 1, (1, 0))), (64,), "the parent must be a layout in registers"),
        (dot(2, mma2(), 2), (64, 64), "opIdx = 2 must be 0 or 1"),
        (PADDED.replace("64:+8", "64:+x"), (64, 64), "is malformed"),
        (PADDED.replace("64:+8", "64:+7"), (64, 64), "intervals and their padding"),
        (PADDED.replace("[64:+8, 512:+4] ", ""), (64, 64), "intervals and their padding, such as .* is missing"),
        ("#ttg.blocked", (64, 64), "is malformed"),
        ("blocked", (64, 64), "is not an encoding"),
    ],
)
def test_what_is_wrong_is_named(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(IrscopeError, match=message):
        parse_typed(text, shape)


def test_spaces_are_as_free_as_the_compilers() -> None:
    spaced = BLOCKED.replace(" = ", "=").replace(", ", " ,  ")
    assert parse_typed(spaced, (64, 64)).parameters == parse_typed(BLOCKED, (64, 64)).parameters


@pytest.mark.parametrize(
    ("texts", "target"),
    [
        ([BLOCKED], "cuda:90"),
        ([blocked((1, 4), (8, 8), (4, 1), (1, 0))], "hip:gfx942"),
        ([BLOCKED, mma2()], "cuda:80"),
        ([sliced(0, mma3(64))], "cuda:90"),
        ([swizzled(1, 1, 1, (1, 0)), dot(0, mfma(4, (16, 16, 32), True), 8)], "hip:gfx950"),
        ([TENSOR], "cuda:100"),
    ],
)
def test_a_target_that_has_them(texts: list[str], target: str) -> None:
    assert str(target_of([read_encoding(text) for text in texts])) == target
