"""Oracle: the maps against the vendors' instruction documents, each formula written from the document it names.

- "PTX ISA" 8.5 and later, section 9.7.14 "Warp Level Matrix Multiply-Accumulate": figures and formulas of the fragments
  of mma.m16n8k16 (f16), m16n8k8 (f16, tf32) and m16n8k32 (s8); 9.7.15 "Asynchronous Warpgroup Level Matrix ...": the
  fragments of wgmma.m64nNk16, m64nNk8 and m64nNk32, and "Shared Memory Matrix Layout": its 32-, 64- and 128-byte modes.
- "AMD Instinct MI300" (CDNA3) and "CDNA4" instruction set architectures, chapter "Matrix Arithmetic Instructions":
  lanes and registers of V_MFMA; the same in AMD's "Matrix Instruction Calculator".
- "RDNA3" and "RDNA4" instruction set architectures, section "Wave Matrix Multiply Accumulate (WMMA)".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from irscope.layout.maps import MemoryMap, ThreadMap
from irscope.layout.rows import query_type
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LinearLayout
from tests.layout.cases import dot, mfma, mma2, mma3, nvmma, offset_of, wmma

triton = pytest.importorskip(
    "triton", reason="the layouts come from the installed compiler, and Triton is not installed"
)
pytestmark = pytest.mark.triton
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])

Formula = Callable[[int, int, int], tuple[int, int]]
"""(register, lane, warp) → (row, column)."""


@dataclass(frozen=True)
class Fragment:
    name: str
    encoding: str
    shape: tuple[int, int]
    element: str
    formula: Formula
    target: str = "cuda:80"
    num_warps: int = 1
    since: tuple[int, int] = (3, 6)


def _ptx_mma() -> list[Fragment]:
    one = mma2((1, 1))
    rows = [
        # .f16 m16n8k16: row = groupID for a0 a1 a4 a5, else groupID + 8; col = 2·(lane%4) + (i&1), + 8 from a4 on
        Fragment("mma.m16n8k16 f16 A", dot(0, one, 2), (16, 16), "f16",
                 lambda i, t, w: (
                     t // 4 + (0 if i < 2 or 4 <= i < 6 else 8), t % 4 * 2 + (i & 1) + (8 if i >= 4 else 0))),
        Fragment("mma.m16n8k16 f16 B", dot(1, one, 2), (16, 8), "f16",
                 lambda i, t, w: (t % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), t // 4)),
        Fragment("mma.m16n8k16 bf16 A", dot(0, one, 2), (16, 16), "bf16",
                 lambda i, t, w: (
                     t // 4 + (0 if i < 2 or 4 <= i < 6 else 8), t % 4 * 2 + (i & 1) + (8 if i >= 4 else 0))),
        # .f16 m16n8k8: row = groupID for a0 a1, groupID + 8 for a2 a3; col = 2·(lane%4) + (i&1)
        Fragment("mma.m16n8k8 f16 A", dot(0, one, 2), (16, 8), "f16",
                 lambda i, t, w: (t // 4 + (8 if i % 4 >= 2 else 0), t % 4 * 2 + (i & 1))),
        Fragment("mma.m16n8k8 f16 B", dot(1, one, 2), (8, 8), "f16",
                 lambda i, t, w: (t % 4 * 2 + (i & 1), t // 4)),
        # .tf32 m16n8k8: a0 (g, t), a1 (g+8, t), a2 (g, t+4), a3 (g+8, t+4)
        Fragment("mma.m16n8k8 tf32 A", dot(0, one, 1), (16, 8), "f32",
                 lambda i, t, w: (t // 4 + (8 if i & 1 else 0), t % 4 + (4 if i >= 2 else 0))),
        Fragment("mma.m16n8k8 tf32 B", dot(1, one, 1), (8, 8), "f32",
                 lambda i, t, w: (t % 4 + (4 if i else 0), t // 4)),
        # .s8 m16n8k32: row = groupID for a0–a3 and a8–a11; col = 4·(lane%4) + (i&3), + 16 from a8 on
        Fragment("mma.m16n8k32 s8 A", dot(0, one, 4), (16, 32), "i8",
                 lambda i, t, w: (
                     t // 4 + (0 if i < 4 or 8 <= i < 12 else 8), t % 4 * 4 + (i & 3) + (16 if i >= 8 else 0))),
        Fragment("mma.m16n8k32 s8 B", dot(1, one, 4), (32, 8), "i8",
                 lambda i, t, w: (t % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), t // 4)),
    ]  # fmt: skip
    for element in ("f32", "f16", "i32"):
        rows.append(
            Fragment(f"mma.m16n8 {element} C and D", one, (16, 8), element,
                     lambda i, t, w: (t // 4 + (8 if i >= 2 else 0), t % 4 * 2 + (i & 1)))
        )  # fmt: skip
    return rows


def _ptx_wgmma() -> list[Fragment]:
    rows: list[Fragment] = []
    for n in (8, 16, 32, 64, 128, 256):
        # D: row = 16·warp + lane/4 + 8·((i/2)%2), col = 8·(i/4) + 2·(lane%4) + (i%2)
        rows.append(
            Fragment(f"wgmma.m64n{n}k16 D", mma3(n), (64, n), "f32",
                     lambda i, t, w: (16 * w + t // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2), "cuda:90", 4)
        )  # fmt: skip
    rows += [
        Fragment("wgmma.m64k16 f16 A", dot(0, mma3(64), 2), (64, 16), "f16",
                 lambda i, t, w: (16 * w + t // 4 + i // 2 % 2 * 8, i // 4 * 8 + t % 4 * 2 + i % 2), "cuda:90", 4),
        Fragment("wgmma.m64k8 tf32 A", dot(0, mma3(64), 1), (64, 8), "f32",
                 lambda i, t, w: (16 * w + t // 4 + i % 2 * 8, i // 2 * 4 + t % 4), "cuda:90", 4),
        Fragment("wgmma.m64k32 s8 A", dot(0, mma3(64), 4), (64, 32), "i8",
                 lambda i, t, w: (16 * w + t // 4 + i // 4 % 2 * 8, i // 8 * 16 + t % 4 * 4 + i % 4), "cuda:90", 4),
        Fragment("wgmma.m64k32 e4m3 A", dot(0, mma3(64), 4), (64, 32), "f8E4M3FN",
                 lambda i, t, w: (16 * w + t // 4 + i // 4 % 2 * 8, i // 8 * 16 + t % 4 * 4 + i % 4), "cuda:90", 4),
    ]  # fmt: skip
    return rows


def _mfma_operand(tile: int, width: int, index: int) -> Formula:
    # Each lane holds `width` values along k of one row of A (column of B); lanes go along the row first, then along k.
    def formula(i: int, t: int, w: int) -> tuple[int, int]:
        k, other = t // tile * width + i, t % tile
        return (other, k) if index == 0 else (k, other)

    return formula


def _mfma_result(tile: int, transposed: bool) -> Formula:
    # D of 32×32: row = 8·(vgpr/4) + 4·(lane/32) + vgpr%4, column = lane%32; of 16×16: row = 4·(lane/16) + vgpr.
    def formula(i: int, t: int, w: int) -> tuple[int, int]:
        step = tile // 4 if tile == 32 else 4
        row, column = i // 4 * step + t // tile * 4 + i % 4, t % tile
        return (column, row) if transposed else (row, column)

    return formula


def _amd_mfma() -> list[Fragment]:
    rows: list[Fragment] = []
    kinds = [
        # (version, target, tile, k of an instruction, values a lane, element)
        (3, "hip:gfx942", 32, 8, 4, "f16"), (3, "hip:gfx942", 16, 16, 4, "f16"), (3, "hip:gfx942", 32, 8, 4, "bf16"),
        (3, "hip:gfx942", 32, 16, 8, "i8"), (3, "hip:gfx942", 16, 32, 8, "i8"),
        (3, "hip:gfx942", 32, 2, 1, "f32"), (3, "hip:gfx942", 16, 4, 1, "f32"),
        (4, "hip:gfx950", 32, 16, 8, "f16"), (4, "hip:gfx950", 16, 32, 8, "f16"),
    ]  # fmt: skip
    for version, target, tile, k, width, element in kinds:
        name = f"{target[4:]} v_mfma {tile}x{tile}x{k} {element}"
        parent = mfma(version, (tile, tile, k), False, (1, 1))
        for index, shape in ((0, (tile, k)), (1, (k, tile))):
            encoding = dot(index, parent, width)
            rows.append(
                Fragment(f"{name} {'AB'[index]}", encoding, shape, element, _mfma_operand(tile, width, index), target)
            )
        if width > 1:
            for transposed in (False, True):
                encoding = mfma(version, (tile, tile, k), transposed, (1, 1))
                title = f"{name} D{' of the operands swapped' if transposed else ''}"
                rows.append(Fragment(title, encoding, (tile, tile), "f32", _mfma_result(tile, transposed), target))
    return rows


def _amd_wmma() -> list[Fragment]:
    def one(version: int) -> str:
        return wmma(version, False).replace("{warp = [[0, 1], [1, 0]]}", "{warp = []}")

    rdna3, rdna4 = ("hip:gfx1100", 1, (3, 7)), ("hip:gfx1201", 1, (3, 7))
    return [
        # RDNA3: a lane holds the 16 values of a row of A; lanes 16–31 repeat lanes 0–15. D: row = 2·vgpr + lane/16.
        Fragment("RDNA3 v_wmma 16x16x16 A", dot(0, one(1), 16), (16, 16), "f16", lambda i, t, w: (t % 16, i), *rdna3),
        Fragment("RDNA3 v_wmma 16x16x16 B", dot(1, one(1), 16), (16, 16), "f16", lambda i, t, w: (i, t % 16), *rdna3),
        Fragment("RDNA3 v_wmma 16x16x16 D", one(1), (16, 16), "f32", lambda i, t, w: (2 * i + t // 16, t % 16), *rdna3),
        # RDNA4: D: row = 8·(lane/16) + vgpr.
        Fragment("RDNA4 v_wmma 16x16x16 D", one(2), (16, 16), "f32", lambda i, t, w: (t // 16 * 8 + i, t % 16), *rdna4),
    ]  # fmt: skip


FRAGMENTS = [*_ptx_mma(), *_ptx_wgmma(), *_amd_mfma(), *_amd_wmma()]
SWIZZLES = [
    (width, bits, transposed, shape)
    for width in (32, 64, 128)
    for bits in (8, 16, 32)
    for transposed in (False, True)
    for shape in ((128, 128),)
]


def ask(encoding: str, shape: tuple[int, ...], element: str, target: str, num_warps: int) -> LinearLayout:
    from irscope.record.process.annotations import LayoutServer, Module

    global _server
    try:
        server = _server
    except NameError:
        server = _server = LayoutServer()
    module = Module.of(Target.parse(target), num_warps)
    (answer,) = server.wait(server.ask(module, types=[query_type(encoding, shape, element)])).answered_types()
    assert isinstance(answer, LayoutMap), answer
    return answer.layout


@pytest.fixture(scope="module", autouse=True)
def one_server():
    yield
    globals().pop("_server").close()


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=[fragment.name for fragment in FRAGMENTS])
def test_fragment_is_the_documents(fragment: Fragment) -> None:
    if fragment.since > VERSION:
        pytest.skip(f"Triton {triton.__version__} writes this encoding otherwise")
    args = (fragment.encoding, fragment.shape, fragment.element, fragment.target, fragment.num_warps)
    threads = ThreadMap.of(ask(*args))
    for place, element in enumerate(threads.elements):
        owner = threads.owner(place)
        assert threads.layout.unflatten(element) == fragment.formula(owner.register, owner.lane, owner.warp), owner
    # Every lane and element takes part, so the formula was asked about all of it.
    assert threads.lanes == Target.parse(fragment.target).warp_size
    assert sorted(set(threads.elements)) == list(range(threads.size))


@pytest.mark.parametrize(("width", "bits", "transposed", "shape"), SWIZZLES)
def test_swizzle_is_the_documents(width: int, bits: int, transposed: bool, shape: tuple[int, int]) -> None:
    element = {8: "i8", 16: "f16", 32: "f32"}[bits]
    layout = ask(nvmma(width, transposed, bits), shape, element, "cuda:90", 4)
    memory = MemoryMap.of(layout, bits)
    outer, inner = (shape[1], shape[0]) if transposed else shape
    for row in range(outer):
        for column in range(inner):
            # A panel is `width` bytes wide and as high as the tensor; in it, 16-byte chunks are exchanged: address bits
            # 4, 5 and 6 take the exclusive or of bits 7, 8 and 9 (128 bytes), 4 and 5 of 7 and 8 (64), 4 of 7 (32).
            byte = column * bits // 8
            address = byte // width * outer * width + row * width + byte % width
            address ^= (address >> 7 & width // 16 - 1) << 4
            place = (column, row) if transposed else (row, column)
            assert memory.byte(offset_of(memory, *place)) == address, place


def test_there_are_enough_cases() -> None:
    assert len(FRAGMENTS) + len(SWIZZLES) >= 40
