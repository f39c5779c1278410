"""Layouts given as text: their maps, the numbers they are for, and damaged ones, each with an answer or one line."""

from __future__ import annotations

import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from irscope.errors import IrscopeError, MissingTool, ParseError, UsageError
from irscope.layout.computed import computed_map
from irscope.layout.maps import is_surjective
from irscope.layout.typed import lanes_of, parse_typed, warps_of
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LayoutRow
from irscope.record.layouts.questions import ask_layout, bank_conflicts
from irscope.record.process.annotations import LayoutServer
from tests.layout.cases import CASES, blocked, mfma, mma2

pytest.importorskip("triton", reason="layouts are asked of the installed compiler, and Triton is not installed")
pytestmark = pytest.mark.triton

TARGET = Target.parse("cuda:90")
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MUTANTS = int(os.environ.get("IRSCOPE_MUTANTS", "150"))


@pytest.fixture(scope="module")
def server() -> Iterator[LayoutServer]:
    with LayoutServer() as process:
        yield process


def test_a_layout_given_as_text(server: LayoutServer) -> None:
    row = ask_layout(BLOCKED, (128, 64), 4, TARGET, "fp16", server=server)
    assert (row.encoding, row.elements) == (BLOCKED, ("f16",))
    assert row.map is not None
    assert row.map.layout.vectors("warp") == ((4, 0), (8, 0))
    assert ask_layout(BLOCKED, (128, 64), None, TARGET, server=server).answer == row.answer


@pytest.mark.parametrize(
    ("text", "target", "threads_per_warp", "lanes"),
    [
        (blocked((1, 4), (8, 8), (4, 1), (1, 0)), "cuda:90", None, 64),
        (blocked((1, 4), (8, 8), (4, 1), (1, 0)), "cuda:90", 64, 64),
        (blocked((1, 4), (4, 4), (4, 1), (1, 0)), "cuda:90", None, 16),
        (BLOCKED, "hip:gfx942", None, 32),
        (mfma(3, (32, 32, 8), False), "cuda:90", None, 64),
    ],
)
def test_another_warp_size_than_the_targets(
    text: str, target: str, threads_per_warp: int | None, lanes: int, server: LayoutServer
) -> None:
    asked = Target.parse(target)
    row = ask_layout(text, (64, 64), None, asked, threads_per_warp=threads_per_warp, server=server)
    assert row.map is not None
    assert row.map.layout.in_size("lane") == lanes


@pytest.mark.parametrize(
    ("text", "shape", "numbers", "error", "message"),
    [
        ("blocked", (64,), {}, ParseError, "is not an encoding"),
        (BLOCKED, (48, 64), {}, UsageError, "not a power of two"),
        (BLOCKED, (64, 64), {"num_warps": 8}, UsageError, "is for 4 warps, not for 8: write --num-warps 4"),
        (BLOCKED, (64, 64), {"num_ctas": 2}, UsageError, "is for 1 CTAs, not for 2"),
        (BLOCKED, (64, 64), {"threads_per_warp": 64}, UsageError, "32 threads per warp, not for 64"),
        (BLOCKED.replace("[4, 8]", "[4, 256]"), (64, 64), {}, UsageError, "1024 threads per warp is not"),
        (BLOCKED.replace("[1, 0]", "[0]"), (64, 64), {}, UsageError, "all lists must have one length"),
        (BLOCKED, (64,), {}, UsageError, "is for 2 dimensions"),
        (BLOCKED, (64, 64), {"dtype": "half"}, UsageError, "'half' is not an element type"),
        (mma2().replace("instrShape = [16, 8]", "instrShape = [1]"), (64, 64), {}, UsageError, "does not take"),
    ],
)
def test_what_does_not_fit(
    text: str, shape: tuple[int, ...], numbers: dict, error: type, message: str, server: LayoutServer
) -> None:
    with pytest.raises(error, match=message):
        ask_layout(text, shape, numbers.pop("num_warps", None), TARGET, server=server, **numbers)


def test_without_triton_some_maps_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "triton.py").write_text("raise ImportError('there is none')\n")
    with_triton = ask_layout(BLOCKED, (128, 64), 4, TARGET)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    row = ask_layout(BLOCKED, (128, 64), 4, TARGET)
    assert row.map is not None
    assert with_triton.map is not None
    assert row.map.layout == with_triton.map.layout
    assert "Triton" in row.map.note
    with pytest.raises(MissingTool, match=r"Triton is not installed here, and the map of #ttg\.nvidia_mma"):
        ask_layout(mma2(), (128, 64), 4, TARGET)


def test_conflicts_are_not_asked_where_the_compiler_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_args: object, **_named: object) -> None:
        raise AssertionError("the compiler was asked")

    monkeypatch.setattr(LayoutServer, "ask", ask)
    padded = (
        "!ttg.memdesc<64x64xf16, #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>, #ttg.shared_memory>"
    )
    pair = (f"tensor<64x64xf16, {BLOCKED}>", padded)
    assert bank_conflicts([pair], TARGET) == (None,)
    assert bank_conflicts([pair], Target.parse("hip:gfx942")) == (None,)


BASES = [
    *((case.encoding, case.shape, case.target, case.element) for case in CASES),
    *[("#ttg.padded_shared<[64:+8, 512:+4] {order = [1, 0], shape = [64, 64]}>", (64, 64), "hip:gfx950", "f16")] * 8,
    *[("#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>", (128, 128), "cuda:100", "f32")] * 4,
]
NUMBERS = [-1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 128, 1000, 65536, 1 << 32, 10**23]
LISTS = [[], [1], [1, 0], [2, 2], [0, 1], [1, 1, 1], [4, 1, 2], [0, 0]]


def damaged(text: str, chance: random.Random) -> str:
    """The text with one mistake: cut off, a sign or a field more or less, another number, rank or flag."""
    at = chance.randrange(1, len(text))
    how = chance.randrange(8)
    if how == 0:
        return text[:at]
    if how == 1:
        return text[:at] + text[at + 1 :]
    if how == 2:
        return text[:at] + chance.choice('<>{}[](),=#:x0139 -+"é\x1b') + text[at:]
    if how == 3:
        return re.sub(r"true|false", lambda _: chance.choice(["true", "false", "1", "maybe"]), text)
    pattern = {4: r"\w+ = (\[[^\]]*\]|\w+)(, )?", 5: r"\[[\d, ]+\]"}.get(how, r"\d+")
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = chance.choice(places)
    new = {4: "", 5: str(chance.choice(LISTS))}.get(how, str(chance.choice(NUMBERS)))
    return text[: place.start()] + new + text[place.end() :]


def answer(
    text: str, shape: tuple[int, ...], target: str, element: str, server: LayoutServer
) -> LayoutRow | IrscopeError:
    try:
        return ask_layout(text, shape, None, Target.parse(target), element, server=server)
    except IrscopeError as error:
        return error


def test_every_damaged_layout_has_an_answer_or_an_error_of_one_line(server: LayoutServer) -> None:
    chance = random.Random(os.environ.get("IRSCOPE_SEED", "16"))
    ends = Counter[str]()
    for _ in range(MUTANTS):
        text, shape, target, element = chance.choice(BASES)
        text = damaged(text, chance)
        shape = chance.choice([shape, shape, (*shape, 2), shape[1:] or (1,), tuple(48 for _ in shape), shape[::-1]])
        row = answer(text, shape, target, element, server)
        if isinstance(row, IrscopeError):
            said = str(row)
            assert "\n" not in said
            assert row.exit_code in (1, 2)
            assert not re.search(r"Traceback|\w+Error\b(?!:)|object has no|unpack|NoneType|signal \d", said), said
            ends[type(row).__name__] += 1
            continue
        # It still is a layout: then it is the one that its text says.
        encoding = parse_typed(text, shape)
        assert isinstance(row.answer, LayoutMap)
        layout = row.answer.layout
        assert is_surjective(layout), text
        if encoding.space == "registers":
            assert (layout.in_size("lane"), layout.in_size("warp")) == (lanes_of(encoding), warps_of(encoding)), text
        computed = computed_map(encoding, row.shape)
        if computed is not None:
            for name in layout.in_dims:
                ours = [vector for vector in computed.layout.vectors(name) if any(vector) or name != "register"]
                assert ours == [v for v in layout.vectors(name) if any(v) or name != "register"], text
            ends["computed too"] += 1
        ends["map"] += 1
    assert min(ends["map"], ends["computed too"], ends["UsageError"], ends["ParseError"]) > MUTANTS // 30, ends
