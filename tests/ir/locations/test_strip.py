"""Texts without their locations, and texts cut down to some lines."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.locations.model import TextLocations
from irscope.ir.locations.stages import filter_lines, lines_selected, read_locations
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import StageKind, stage_named
from tests.work import MEASURES, Measure

DATA = Path(__file__).parents[2] / "data" / "locations"
STAGES = sorted(str(path.relative_to(DATA)) for path in DATA.glob("3.*/*"))
KINDS: list[StageKind] = ["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]


def kind_of(name: str) -> StageKind:
    return stage_named(name.rpartition(".")[2]).kind


def read(name: str) -> str:
    return (DATA / name).read_text()


@pytest.mark.parametrize("name", STAGES)
def test_stripping_leaves_no_debris(name: str) -> None:
    stripped = strip_locations(read(name), kind_of(name))
    debris = r"\bloc\(|#loc|#di_|!dbg|!DI|\.loc\b|\.file\b|\.debug_(?!frame)|//##|__tmp\d|\.Ltmp\d|\.py\b"
    assert re.findall(debris, stripped) == []
    assert read_locations(stripped, kind_of(name)).chains == ()
    assert strip_locations(stripped, kind_of(name)) == stripped


@pytest.mark.parametrize("name", STAGES)
def test_stripping_keeps_everything_else_byte_for_byte(name: str) -> None:
    """Every line that is left is a line of the text, in its order, less a location and nothing else."""
    lines = iter(read(name).split("\n"))
    for left in strip_locations(read(name), kind_of(name)).split("\n"):
        assert any(without_location(line, name) == left for line in lines), left


def without_location(line: str, name: str) -> str:
    """The line without its location, by patterns that are good enough for the texts here."""
    if kind_of(name) == "llvm":
        return re.sub(r",? !dbg !\d+", "", line)
    if kind_of(name) == "mlir":
        # loc(#loc3)   loc("x"(#loc3))   loc(callsite(#loc1 at #loc2))
        return re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", line)
    return line


@pytest.mark.parametrize("name", STAGES)
def test_stripping_keeps_every_operation(name: str) -> None:
    text, kind = read(name), kind_of(name)
    stripped = strip_locations(text, kind).splitlines()
    located = [line for number, line in enumerate(text.splitlines(), 1) if read_locations_of(name).chain_at(number)]
    assert located
    kept = {without_location(line, name) for line in stripped}
    assert [line for line in located if without_location(line, name) not in kept] == []


@cache
def read_locations_of(name: str) -> TextLocations:
    return read_locations(read(name), kind_of(name))


@pytest.mark.triton
@pytest.mark.parametrize("name", [name for name in STAGES if kind_of(name) == "mlir" and name.startswith("3.9")])
def test_mlir_without_locations_is_the_same_module(name: str, tmp_path: Path) -> None:
    from triton._C.libtriton import amd, ir, nvidia  # type: ignore[import-not-found]

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)

    def printed(text: str) -> str:
        path = tmp_path / "module.mlir"
        path.write_text(text)
        try:
            return ir.parse_mlir_module(str(path), context).str_nodebug()
        except RuntimeError as error:
            pytest.skip(f"the installed Triton does not read the IR of 3.9.0: {error}")

    original = printed(read(name))
    path = tmp_path / "stripped.mlir"
    path.write_text(strip_locations(read(name), "mlir"))
    assert ir.parse_mlir_module(str(path), context).str_nodebug() == original


def test_what_only_looks_like_a_location_stays() -> None:
    text = '%0 = tt.call @loc(%a) {x = "loc(y)"} : i32 loc("k(.py":1:1)\n%1 = a.b loc(\n'
    assert strip_locations(text, "mlir") == '%0 = tt.call @loc(%a) {x = "loc(y)"} : i32\n%1 = a.b loc(\n'


def test_metadata_that_is_no_debug_information_stays() -> None:
    text = """\
define void @k() !dbg !6 {
  br label %1, !dbg !7, !llvm.loop !8
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(file: !2)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "k.py", directory: "/")
!6 = distinct !DISubprogram(name: "k", file: !2, types: !10)
!7 = !DILocation(line: 1, scope: !6)
!8 = distinct !{!8, !9}
!9 = !{!"llvm.loop.unroll.disable"}
!10 = !{null}
"""
    assert (
        strip_locations(text, "llvm")
        == """\
define void @k() {
  br label %1, !llvm.loop !8
}
!llvm.module.flags = !{!1}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!8 = distinct !{!8, !9}
!9 = !{!"llvm.loop.unroll.disable"}
"""
    )


def kept(name: str, first: int, last: int) -> str:
    text, kind = read(name), kind_of(name)
    selected = lines_selected(read_locations(text, kind), lambda file: "locations" in file, range(first, last + 1))
    return strip_locations(filter_lines(text, kind, selected), kind)


def test_a_kept_operation_stands_in_its_regions() -> None:
    text = kept("3.9.0/product.cuda90.ttgir", 41, 41)
    lines = [line.split(" =")[0].split("(")[0] for line in text.splitlines()]
    assert lines[:2] == ["#blocked", "#mma"]  # the layouts that the kept lines name, and no others
    assert [line.strip().split(" ")[0] for line in lines[2:]] == [
        *["module", "tt.func", "//", "%total_33:6", "//", "%7", "%total_64", "scf.yield", "}", "//", "}", "//", "}"],
        *["//", "}", "}"],
    ]
    assert "      // … 23 lines\n" in text


@pytest.mark.parametrize("name", [name for name in STAGES if name.endswith(("ttir", "ttgir"))])
def test_only_regions_around_the_selected_line_are_kept(name: str) -> None:
    text = read(name)
    lines = text.split("\n")
    for number in range(1, len(lines), 7):
        line = lines[number - 1]
        if not line.strip() or line[0] in "#!":
            continue
        # Printed MLIR indents each region by two: the regions around a line begin where it is indented less.
        around, indent = {line}, _indent(line)
        for above in reversed(lines[: number - 1]):
            if above.strip() and above.lstrip()[0] not in "#!}^" and _indent(above) < indent:
                indent = _indent(above)
                around.add(above)
        kept = filter_lines(text, "mlir", {number}).split("\n")
        kept = [one for one in kept if one.endswith("{") and one.lstrip()[0] != "}" and _indent(one) < _indent(line)]
        assert set(kept) == around - {line}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_a_kept_block_argument_brings_its_operation() -> None:
    text = kept("3.9.0/chains.cuda90.ttir", 25, 25)
    assert "^bb0(%biggest_18: f32, %biggest_19: f32):\n" in text
    assert '"tt.reduce"(%moved_14)' in text
    assert '"tt.reduce"(%total_16)' not in text


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("3.9.0/chains.cuda90.llir", ["define ptx_kernel void @chains(", "}"]),
        ("3.9.0/chains.cuda90.ptx", [".visible .entry chains(", ".reqntid 128", "// %bb.0:", "}"]),
        ("3.9.0/chains.cuda90.sass", [".section\t.text.chains"]),
        ("3.9.0/chains.gfx942.amdgcn", ["chains:  ", ".LBB1_4:", ".Lfunc_end1:"]),
    ],
)
def test_a_kept_instruction_has_its_function_and_its_block(name: str, context: list[str]) -> None:
    text = kept(name, 24, 24)
    for expected in context:
        assert any(line.strip().startswith(expected) for line in text.splitlines()), f"{expected!r} is not in\n{text}"
    assert "damped" not in text
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize("name", STAGES)
def test_filtering_says_how_much_is_left_out(name: str) -> None:
    text, kind = read(name), kind_of(name)
    locations = read_locations(text, kind)
    selected = lines_selected(locations, lambda file: True, range(20, 26))
    filtered = filter_lines(text, kind, selected)
    whole = text.splitlines()
    comment = re.compile(r"\s*(?://|;) … \d+ lines?$")
    assert {whole[number - 1] for number in selected} <= set(filtered.splitlines())
    assert all(line in whole or comment.match(line) for line in filtered.splitlines())
    assert filter_lines(text, kind, set()) == ""
    everything = filter_lines(text, kind, range(1, len(whole) + 1))
    assert everything == "".join(f"{line}\n" for line in whole)


SAMPLES = {name: read(name) for name in STAGES if len(read(name)) < 30_000}


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A stage with a piece cut out, a piece put in, or cut off in the middle."""
    text = SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))]
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 400)))
    pieces = [
        '"',
        "loc(",
        "callsite(",
        "fused<",
        "[",
        ")",
        "}",
        "{\n",
        "#loc1",
        "!dbg !7",
        "\n",
        "\\",
        "\x00",
        "9" * 5000,
    ]
    piece = "".join(draw(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=4)))
    tail = draw(st.booleans())
    return text[:start] + piece + (text[end:] if tail else "")


@given(damaged(), st.sampled_from(KINDS), st.sets(st.integers(-2, 400), max_size=5))
def test_nothing_is_raised_for_a_damaged_text(text: str, kind: StageKind, lines: set[int]) -> None:
    locations = read_locations(text, kind, llir=text, ptx=text)
    if kind != "binary":
        assert len(locations.by_line) == text.count("\n") + (not text.endswith("\n") and text != "")
    strip_locations(text, kind)
    filter_lines(text, kind, lines)


HOSTILE = [
    'loc("',
    "loc(",
    "loc(callsite(",
    "loc(fused<",
    '%0 = a.b loc("x"(#loc1))\n#loc1 = loc(callsite(#loc1 at #loc1))\n',
    "!dbg !1",
    "!1 = !DILocation(line: 1, scope: !1, inlinedAt: !1)\n",
    '\t.loc\t1 1 1, function_name $L__info_string0, inlined_at 1 1 1 // "\n',
    '\t//## File "a", line 1 inlined at "a", line 1\n',
    "\t.loc\t1 1 1 ; a.py:1:1 @[ a.py:1:1 @[ \n",
    "{\n",
    "}\n",
    "/*",
    '"',
    "0: ^bb1\n",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("work", MEASURES)
def test_a_hostile_text_takes_linear_work(piece: str, kind: StageKind, work: Measure) -> None:
    def read(times: int) -> None:
        text = piece * times
        read_locations(text, kind, llir=text, ptx=text)
        strip_locations(text, kind)
        filter_lines(text, kind, {1, 1000})

    # How deep inlining is followed has a bound, from which on work is linear.
    longer = replace(work, length=max(work.length, 20_000)) if "@[" in piece else work
    assert longer.is_linear(read, len(piece))
