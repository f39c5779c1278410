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

import irscope
from irscope.errors import UsageError
from irscope.model.capture import StageKind, stage_named
from irscope.render.canvas import Rgb, fills, ink_of, luminance
from irscope.render.text.tables import display_width, shorten, table, table_rows, visible
from irscope.render.text.terminal import (
    PALETTE,
    SHADES,
    Theme,
    color_of,
    highlight,
    highlight_python,
    page,
    theme_of,
    themed,
    use_color,
)

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


def rgb(number: int) -> Rgb:
    """A colour of the 256 behind the first sixteen, which are whatever the terminal makes of them."""
    assert number >= 16
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return level, level, level
    red, green, blue = (
        55 + 40 * step if step else 0 for step in ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    )
    return red, green, blue


def contrast(one: Rgb, other: Rgb) -> float:
    """Source: WCAG 2.2, "contrast ratio"."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


BLACK, WHITE = (0, 0, 0), (255, 255, 255)
BACKGROUNDS: dict[Theme, tuple[Rgb, ...]] = {
    # xterm; Windows Terminal; GNOME; Visual Studio Code; One Dark; Solarized Dark
    "dark": (BLACK, (12, 12, 12), (23, 20, 33), (30, 30, 30), (40, 44, 52), (0, 43, 54)),
    # xterm, Visual Studio Code; One Light; Quiet Light; Solarized Light
    "light": (WHITE, (250, 250, 250), (245, 245, 245), (253, 246, 227)),
}


def test_every_colour_can_be_read() -> None:
    assert {*PALETTE.values()} == {*SHADES}
    for number, shades in SHADES.items():
        assert min(contrast(rgb(number), ground) for ground in (BLACK, WHITE)) >= 4.5, number
        for theme, grounds in BACKGROUNDS.items():
            assert min(contrast(rgb(shades[theme]), ground) for ground in grounds) >= 4.5, (number, theme)
    for count in (1, 8, 16, 17, 64):
        assert all(contrast(fill, ink_of(fill)) >= 4.5 for fill in fills(count)), count


def test_no_other_colours_are_written() -> None:
    # All else is the terminal's own: the eight of ANSI, but for black, white, yellow and the bright ones.
    package = Path(irscope.__file__).parent
    for path in package.rglob("*.py"):
        for codes in re.findall(r"\\x1b\[([0-9;]+)m", path.read_text("utf-8")):
            assert {*codes.split(";")} <= {"0", "1", "2", "7", "22", "27", "31", "32", "35", "36", "39"} or (
                path.name == "terminal.py" and codes.startswith(("38;", "48;"))
            ), (path, codes)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"COLORFGBG": "15;0"}, "dark"),
        ({"COLORFGBG": "0;default;15"}, "light"),
        ({"COLORFGBG": "default;default"}, None),
        ({"COLORFGBG": "15;0", "IRSCOPE_THEME": "light"}, "light"),
    ],
)
def test_the_theme_of_a_terminal(environ: dict[str, str], expected: Theme | None) -> None:
    assert theme_of(environ) == expected
    with pytest.raises(UsageError, match="'sepia' is not a theme: write dark or light"):
        theme_of(environ | {"IRSCOPE_THEME": "sepia"})


def test_colours_have_the_shades_of_the_theme() -> None:
    text = "\x1b[38;5;131m243 131\x1b[39m\x1b[38;5;33m\x1b[1m"
    assert themed(text, None) == text
    assert themed(text, "dark") == text.replace("5;131", "5;174")
    assert themed(text, "light") == text.replace("5;131", "5;124")


def test_python_is_coloured_by_the_same_palette() -> None:
    colored = highlight_python("def f(x): return 'a' and 1  # \x1b")
    assert COLOR.sub("", colored) == "def f(x): return 'a' and 1  # ␛"
    assert "\x1b[38;5;131mf\x1b[39m" in colored


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
    text = table(["kernel", "description", "n"], rows, width=42)
    assert text == (
        "kernel\n    description                          n\n"
        "a_kernel_with_a_long_name\n    its description is longer still  12345\n"
    )
    rows = [["k", "a b " * 20], ["j", "one_name_that_is_as_wide_as_its_column"]]
    assert table(["kernel", "description"], rows, width=46).splitlines() == [
        "kernel  description",
        "k       " + "a b " * 9 + "a",
        "        " + "b a " * 9 + "b",
        "        a b",
        "j       one_name_that_is_as_wide_as_its_column",
    ]


def test_one_long_word_does_not_make_every_row_taller() -> None:
    path = "/a/folder/that/lies/deep/in/another/folder/file"
    rows = [["ok", "ptxas", path, ""], ["ok", "torch", "2.13", ""], ["note", "GPU", "there is none here", ""]]
    assert table(["", "what", "found", "remedy"], rows, width=50).splitlines() == [
        "      what   found",
        "ok    ptxas",
        f"    {path}",
        "ok    torch  2.13",
        "note  GPU    there is none here",
    ]


_WORDS = st.text(alphabet="abcXYZ_09.:#=/", min_size=1, max_size=70)
_CELLS = st.lists(_WORDS, max_size=12).map(" ".join) | st.integers() | st.none()


@given(st.data(), st.integers(60, 200), st.integers(1, 9))
def test_no_table_cuts_a_word(data: st.DataObject, width: int, count: int) -> None:
    rows = data.draw(st.lists(st.lists(_CELLS, min_size=count, max_size=count), min_size=1, max_size=4))
    texts = table_rows([f"column{index}" for index in range(count)], rows, width=width)
    for row, text in zip(rows, texts[1:], strict=True):
        words = [word for cell in row if cell is not None for word in str(cell).split()]
        assert sorted(text.split()) == sorted(words)
    for line in filter(None, "".join(texts).splitlines()):
        assert display_width(line) <= max(width, 4 + max(map(display_width, line.split()))), line


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
    assert table(["one", "two", "three"], rows).count("\n") == len(rows) + 1
    assert len(table_rows(["one", "two", "three"], rows, width=width)) == len(rows) + 1
