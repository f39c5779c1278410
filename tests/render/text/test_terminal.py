"""What reaches a terminal: colours, the pager, tables."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.model.capture import StageKind, stage_named
from irscope.render.text.tables import display_width, shorten, table, visible
from irscope.render.text.terminal import PALETTE, color_of, highlight, page, use_color

DATA = Path(__file__).parents[2] / "data" / "locations" / "3.9.0"
KINDS: list[StageKind] = ["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]
COLOR = re.compile("\x1b\\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_colours_are_all_that_is_added(path: Path) -> None:
    text, kind = path.read_text(), stage_named(path.suffix[1:]).kind
    colored = highlight(text, kind)
    assert COLOR.sub("", colored) == text
    assert colored != text


@given(st.text(max_size=60), st.sampled_from(KINDS))
def test_no_text_brings_control_characters_of_its_own(text: str, kind: StageKind) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", COLOR.sub("", highlight(text, kind)))


def test_an_escape_is_shown_and_not_obeyed() -> None:
    assert visible("a\x1b]0;title\x07\x7f\x9b\tb\r\n\n") == "a␛]0;title␇␡\\x9b\tb\n\n"


def luminance(number: int) -> float:
    """The relative luminance of a colour of the 256, by WCAG 2 (https://www.w3.org/TR/WCAG21/#dfn-relative-luminance)."""
    if number >= 232:
        levels = [8 + 10 * (number - 232)] * 3
    else:
        steps = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
        levels = [0 if step == 0 else 55 + 40 * step for step in steps]
    red, green, blue = (
        level / 255 / 12.92 if level / 255 <= 0.04045 else ((level / 255 + 0.055) / 1.055) ** 2.4 for level in levels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_palette_can_be_read_on_black_and_on_white() -> None:
    for token, number in PALETTE.items():
        assert number >= 16, token  # the first sixteen are whatever the terminal makes of them
        on_black, on_white = (luminance(number) + 0.05) / 0.05, 1.05 / (luminance(number) + 0.05)
        assert min(on_black, on_white) > 3.5, (token, number)


def test_a_kind_of_word_has_the_colour_of_the_kind_above_it() -> None:
    from pygments.token import Comment, Name, Token

    assert color_of(Comment.Single) == PALETTE[Comment]
    assert color_of(Name.Variable) is None
    assert color_of(Token) is None


@pytest.mark.parametrize(
    ("environ", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm"}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_when_to_use_colours(environ: dict[str, str], terminal: bool, expected: bool) -> None:
    assert use_color(Terminal() if terminal else io.StringIO(), environ) is expected


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert use_color(stream, {}) is False


def test_what_is_no_terminal_gets_the_text_as_it_is() -> None:
    stream = io.StringIO()
    page("a\x1b[0Kb", stream, {"PAGER": "false"})
    assert stream.getvalue() == "a\x1b[0Kb"


@pytest.mark.parametrize("pager", ["", "cat", "no-such-program-anywhere", "'unclosed"])
def test_a_terminal_without_a_pager_gets_the_text(pager: str) -> None:
    stream = Terminal()
    page("a\x1b[0K\x1b[38;5;33mb\x1b[39m", stream, {"PAGER": pager})
    assert stream.getvalue() == "a␛[0K\x1b[38;5;33mb\x1b[39m\n"


def test_the_pager_reads_the_text(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"import sys; open({str(out)!r}, 'w').write(sys.argv[1] + sys.stdin.read())"
    environ = {**os.environ, "PAGER": "false", "IRSCOPE_PAGER": f'"{sys.executable}" -c "{script}" "a b "'}
    with (tmp_path / "stream").open("w") as file:
        file.isatty = lambda: True  # type: ignore[method-assign]
        page("text … \n", file, environ)
    assert out.read_text() == "a b text … \n"
    assert (tmp_path / "stream").read_text() == ""


def test_a_pager_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as file:
        file.isatty = lambda: True  # type: ignore[method-assign]
        page("x\n" * 1_000_000, file, {**os.environ, "IRSCOPE_PAGER": f'"{sys.executable}" -c pass'})


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        page("x\n" * 100_000, stream, {})
        stream.write("more")  # goes nowhere, and closing the stream does not fail either


def test_a_table_sets_numbers_to_the_right() -> None:
    text = table(["pass", "ms", "share"], [["combine", 1.25, "3.2 %"], ["coalesce", 12, None], ["cse", None, "-"]])
    assert text == ("pass        ms  share\ncombine   1.25  3.2 %\ncoalesce    12\ncse                 -\n")


def test_a_table_fits_its_width() -> None:
    rows = [["a_kernel_with_a_long_name", "its description is longer still", 12345]]
    text = table(["kernel", "description", "n"], rows, width=40)
    assert text.splitlines()[1] == "a_kernel_with_…  its description…  12345"
    assert all(display_width(line) <= 40 for line in text.splitlines())


def test_what_does_not_fit_is_set_in_blocks() -> None:
    rows = [["a_kernel_with_a_long_name", "num_warps=8 BLOCK=128", "", 12345], [None, "num_warps=4", "x", 1]]
    text = table(["kernel", "with", "note", "n"], rows, width=40, whole=("kernel", "with"))
    assert text == (
        "a_kernel_with_a_long_name\n  with num_warps=8 BLOCK=128  n 12345\n  with num_warps=4  note x  n 1\n"
    )
    # What is wider than a line by itself is not cut either.
    assert "  with num_warps=8 BLOCK=128\n" in table(["kernel", "with", "note", "n"], rows, width=10)


def test_a_table_may_have_no_header_no_rows_and_short_rows() -> None:
    assert table(["", ""], [["a", 1], ["bb"]]) == "a   1\nbb\n"
    assert table(["a", "b"], []) == "a  b\n"
    assert table([], []) == ""
    assert table(["a"], [["x"]], color=True) == "\x1b[1ma\x1b[22m\nx\n"


def test_a_cell_stays_on_its_line_and_brings_no_escapes() -> None:
    assert table(["a"], [["x\ny\x1b[2J"]]) == "a\nx y␛[2J\n"


def test_wide_characters_take_two_columns() -> None:
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert shorten("日本語", 5) == "日本…"
    assert shorten("abc", 0) == ""
    assert table(["a", "b"], [["日本", "x"], ["ab", "y"]]) == "a     b\n日本  x\nab    y\n"


@given(
    st.lists(st.lists(st.text(max_size=12) | st.integers() | st.none(), max_size=4), max_size=5), st.integers(30, 90)
)
def test_a_table_never_fails(rows: list[list[object]], width: int) -> None:
    text = table(["one", "two", "three"], rows, width=width)
    numbers = {str(cell) for row in rows for cell in row[:3] if isinstance(cell, int)}
    assert all(number in text for number in numbers)
