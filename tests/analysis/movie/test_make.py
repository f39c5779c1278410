"""A movie: counts against a plain search of the texts, operations added and removed, main values, never guessed."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from irscope.analysis.movie.make import MOST_VALUES, movie_of, of_stages
from irscope.analysis.movie.model import Movie
from irscope.analysis.passes.effects import pass_effects
from irscope.model.capture import Capture
from tests.analysis.lives.test_operations import plain_counts
from tests.analysis.movie.staged import staged
from tests.analysis.snapshots import DUMPS
from tests.analysis.trails import COPY, LOAD, module, store, through

LOADS = r"^(?:tt\.(?:load|descriptor_load)|ttg\.async_copy_global_to_local|amdg(?:pu)?\.buffer_load(?:_to_local)?)$"
STORES = r"^(?:tt\.(?:store|descriptor_store)|amdg(?:pu)?\.buffer_store)$"
DOTS = r"^(?:tt\.dot|ttng\.warp_group_dot)$"
# llvm.inline_asm has_side_effects asm_dialect = att "@$5 st.global.v4.b32 [ $4 + 0 ], …", "r,l,b"
ASSEMBLY = re.compile(r'llvm\.inline_asm[^"\n]*"([^"\n]*)"')
LOWERED_ACCESS = r"\b(?:ld|st)\.global\b|\bcp\.async\.c[ag]\b"
LOWERED_SYNC = r"\bbar\.sync\b|\bwait(?:_group)?\b"
SHUFFLE = (
    r"nvvm\.shfl|shfl\.sync|rocdl\.(?:ds_bpermute|ds_swizzle|update\.dpp|permlane\w*) |amdgcn\.(?:update\.dpp|permlane)"
)
SYNCS = r"\.(?:\w+_)?(?:barrier|wait)(?:_\w+)?$"


@pytest.fixture(scope="module")
def movies() -> dict[str, tuple[Capture, Movie, list[str]]]:
    """(capture, movie, the text of each frame) of each stored dump."""
    found: dict[str, tuple[Capture, Movie, list[str]]] = {}
    for name in DUMPS:
        capture = staged(name)
        texts = [capture.text("source"), *(one.text for one in capture.passes() if one.text is not None)]
        found[name] = capture, movie_of(capture), texts
    return found


def matching(counts: Counter[str], pattern: str) -> int:
    return sum(count for name, count in counts.items() if re.search(pattern, name))


@pytest.mark.parametrize("name", DUMPS)
def test_each_frame_counts_what_its_text_has(movies: dict[str, tuple[Capture, Movie, list[str]]], name: str) -> None:
    _, movie, texts = movies[name]
    assert len(texts) > 10
    for frame, text in zip(movie.frames, texts, strict=True):
        plain = plain_counts(text)
        counts = frame.counts
        # The plain search knows names with a dialect: `module` has none.
        assert counts.operations == plain.total() + len(re.findall(r"^module\b", text, re.MULTILINE)), frame.name
        assert counts.conversions == plain["ttg.convert_layout"], frame.name
        assembly = "\n".join(ASSEMBLY.findall(text))
        in_assembly = [len(re.findall(one, assembly)) for one in (LOWERED_ACCESS, LOWERED_SYNC)]
        buffers = len(re.findall(r"rocdl\.raw\.ptr\.buffer\.(?:load|store)\b", text))
        accesses = matching(plain, LOADS) + matching(plain, STORES) + in_assembly[0] + buffers
        assert counts.accesses == accesses, frame.name
        assert counts.dots == matching(plain, DOTS), frame.name
        assert counts.syncs == matching(plain, SYNCS) + in_assembly[1], frame.name
        is_lowered = "llvm.func" in text
        assert bool(frame.families) == is_lowered
        if is_lowered:
            families = dict(frame.families)
            assert families.get("shuffle", 0) == len(re.findall(SHUFFLE, text)), frame.name
            shared = {name: len(re.findall(rf"llvm\.{word} [^\n]*!llvm\.ptr<3>", text))
                      + len(re.findall(rf"\b{name[:2]}\.shared\b", assembly))
                      for name, word in (("ld.shared", "load"), ("st.shared", "store"))}  # fmt: skip
            assert {name: families.get(name, 0) for name in shared} == shared, frame.name


@pytest.mark.parametrize("name", DUMPS)
def test_what_came_less_what_went_is_the_difference(
    movies: dict[str, tuple[Capture, Movie, list[str]]], name: str
) -> None:
    _, movie, texts = movies[name]
    before = plain_counts(texts[0])
    for frame, text in zip(movie.frames[1:], texts[1:], strict=True):
        found = Counter(dict(frame.net))
        for one in frame.changes:
            assert one.made or one.removed
            found[one.operation] += one.made - one.removed
        after = plain_counts(text)
        wanted = {kind: after[kind] - before[kind] for kind in before | after}
        assert {kind: count for kind, count in found.items() if count and kind != "module"} == {
            kind: count for kind, count in wanted.items() if count
        }, frame.name
        assert all(kind.partition(".")[0] in ("llvm", "nvvm", "rocdl", "builtin") for kind, _ in frame.net)
        before = after


@pytest.mark.parametrize("name", DUMPS)
def test_the_frames_are_the_passes_that_changed_something(
    movies: dict[str, tuple[Capture, Movie, list[str]]], name: str
) -> None:
    capture, movie, _ = movies[name]
    changed = [one.snapshot.label for one in pass_effects(capture) if not one.is_idle]
    assert [label for frame in movie.frames[1:] for label in frame.passes] == changed
    assert movie.frames[0].passes == ()
    assert movie.not_kept == ()


def test_the_values_of_a_matmul_are_followed_to_the_hardware(
    movies: dict[str, tuple[Capture, Movie, list[str]]],
) -> None:
    """The types are those that the dot's own line has in the text."""
    _, movie, texts = movies["matmul.cuda90"]
    assert len(movie.values) == MOST_VALUES
    assert [value.role for value in movie.values] == [
        "loaded",
        "loaded",
        "first operand",
        "second operand",
        "result",
        "stored",
    ]
    followed = 0
    for frame, text in zip(movie.frames, texts, strict=True):
        dots = re.findall(r"(?:tt\.dot|warp_group_dot) .* -> tensor<([\dx]+)x(f32)(?:, (#\w+))?>", text)
        if len(dots) != 1:
            assert frame.held[4].state in ("gone", "several")
            continue
        followed += 1
        ((shape, element, alias),) = dots
        (tile,) = frame.held[4].tiles
        assert ("x".join(map(str, tile.shape)), tile.element, tile.alias) == (shape, element, alias)
        definition = re.search(rf"^{re.escape(alias)} = (.*)$", text, re.MULTILINE) if alias else None
        assert tile.encoding == (definition[1] if definition else "")
        names = [line for line in text.split("\n") if "tt.dot " in line or "warp_group_dot " in line]
        assert frame.held[4].operations[0] in names[0]
    assert followed > 15
    kinds = [tile.encoding.partition("<")[0] for frame in movie.frames for tile in frame.held[4].tiles]
    assert list(dict.fromkeys(kinds)) == ["", "#ttg.blocked", "#ttg.nvidia_mma"]
    # The copies of a pipelined load are all of it; nothing says which of them is the load.
    copies = [
        frame.held[0] for frame in movie.frames if frame.held[0].operations == ("ttg.async_copy_global_to_local",)
    ]
    assert {one.state for one in copies} == {"several"}
    assert all(tile.encoding.startswith("#ttg.nvmma_shared") for one in copies for tile in one.tiles)


def test_a_load_that_becomes_a_copy_is_followed_by_its_place() -> None:
    movie = movie_of(through(LOAD, COPY))
    assert [(value.role, value.operation, value.place) for value in movie.values] == [
        ("loaded", "tt.load", "k.py:7"),
        ("stored", "tt.store", "k.py:9"),
    ]
    assert [frame.held[0].operations for frame in movie.frames] == [("tt.load",), ("ttg.async_copy_global_to_local",)]
    assert movie.frames[1].held[1].operations == ("tt.store",)


def test_no_load_is_taken_for_another() -> None:
    """A load of another line is not followed to; of two from one place it is not said which one it is."""
    elsewhere = module("%1 = tt.load %p : tensor<8x!tt.ptr<f32>, #b> 8", store("%1"))
    (loaded, *_) = movie_of(through(LOAD, elsewhere)).frames[1].held
    assert (loaded.state, loaded.tiles) == ("gone", ())
    one, two = (f"%{name} = tt.load %p : tensor<8x!tt.ptr<f32>, #b> 7" for name in "12")
    twice = module(one, two, store("%1"), store("%2"))
    movie = movie_of(through(twice, COPY))
    assert {frame.held[0].state for frame in movie.frames[1:]} == {"unclear"}


def test_what_llvm_has_is_no_value(movies: dict[str, tuple[Capture, Movie, list[str]]]) -> None:
    _, movie, texts = movies["softmax.cuda90"]
    lowered = [frame for frame, text in zip(movie.frames, texts, strict=True) if "tt.load" not in text]
    assert lowered
    assert {held.state for frame in lowered for held in frame.held} == {"gone"}
    assert any(frame.net for frame in lowered)
    assert not any(frame.net for frame in movie.frames if frame not in lowered)


def test_without_texts_there_is_nothing_to_show() -> None:
    movie = movie_of(through(LOAD, None))
    assert [frame.passes for frame in movie.frames] == [()]
    assert movie.not_kept == ("ttgir:p1#1",)
    merged = movie_of(through(LOAD, None, COPY))
    assert [frame.passes for frame in merged.frames] == [(), ("ttgir:p1#1", "ttgir:p2#1")]


def test_a_part_of_the_stages(movies: dict[str, tuple[Capture, Movie, list[str]]]) -> None:
    _, movie, _ = movies["matmul.cuda90"]
    part = of_stages(movie, ["ttgir"])
    assert {frame.stage for frame in part.frames[1:]} == {"ttgir"}
    assert part.frames[0] == movie.frames[movie.frames.index(part.frames[1]) - 1]
