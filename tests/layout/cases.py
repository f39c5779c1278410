"""The table of layouts that the oracle tests go through."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from irscope.layout.maps import MemoryMap


def offset_of(memory: MemoryMap, *coordinates: int) -> int:
    """The offset of an element in its CTA, without padding."""
    place = memory.places[memory.layout.flatten(coordinates)]
    assert place >= 0, coordinates
    return place % memory.offsets


@dataclass(frozen=True, slots=True)
class Case:
    """One encoding spread over one shape."""

    encoding: str
    shape: tuple[int, ...]
    element: str = "f16"
    num_warps: int = 4
    target: str = "cuda:90"
    num_ctas: int = 1
    since: tuple[int, int] = (3, 6)
    """The first Triton whose parser takes the text."""

    @property
    def label(self) -> str:
        """A name for the test's output."""
        return f"{self.encoding} {'x'.join(map(str, self.shape))}x{self.element} {self.num_warps}w {self.target}"


def _list(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


def blocked(
    size: tuple[int, ...], threads: tuple[int, ...], warps: tuple[int, ...], order: tuple[int, ...], cga: str = ""
) -> str:
    """A blocked encoding."""
    tail = f", CGALayout = {cga}" if cga else ""
    return (
        f"#ttg.blocked<{{sizePerThread = {_list(size)}, threadsPerWarp = {_list(threads)}, "
        f"warpsPerCTA = {_list(warps)}, order = {_list(order)}{tail}}}>"
    )


def mma2(warps: tuple[int, ...] = (2, 2), shape: tuple[int, ...] = (16, 8)) -> str:
    """An mma of Ampere's instructions."""
    return (
        f"#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = {_list(warps)}, "
        f"instrShape = {_list(shape)}}}>"
    )


def mma3(n: int, warps: tuple[int, ...] = (4, 1)) -> str:
    """An mma of Hopper's warp groups."""
    return (
        f"#ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = {_list(warps)}, "
        f"instrShape = [16, {n}, 16]}}>"
    )


def dot(index: int, parent: str, k_width: int | None) -> str:
    """An operand of a dot."""
    width = "" if k_width is None else f", kWidth = {k_width}"
    return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}{width}}}>"


def sliced(dim: int, parent: str) -> str:
    """A slice along a dimension."""
    return f"#ttg.slice<{{dim = {dim}, parent = {parent}}}>"


def mfma(version: int, shape: tuple[int, int, int], transposed: bool, warps: tuple[int, ...] = (2, 2)) -> str:
    """An mfma of CDNA."""
    flag = str(transposed).lower()
    return (
        f"#ttg.amd_mfma<{{version = {version}, warpsPerCTA = {_list(warps)}, "
        f"instrShape = {_list(shape)}, isTransposed = {flag}}}>"
    )


def wmma(version: int, transposed: bool) -> str:
    """A wmma of RDNA, as 3.7 and later write it."""
    return (
        f"#ttg.amd_wmma<{{version = {version}, isTranspose = {str(transposed).lower()}, "
        "ctaLayout = {warp = [[0, 1], [1, 0]]}}>"
    )


def swizzled(vec: int, per_phase: int, max_phase: int, order: tuple[int, ...]) -> str:
    """A swizzled shared encoding."""
    return (
        f"#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = {_list(order)}}}>"
    )


def nvmma(width: int, transposed: bool = False, bits: int = 16, fp4: bool = False) -> str:
    """A shared encoding of Hopper's and Blackwell's units."""
    tail = ", fp4Padded = true" if fp4 else ""
    return (
        f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = {str(transposed).lower()}, "
        f"elementBitWidth = {bits}{tail}}}>"
    )


def rotating(vec: int, per_phase: int, max_phase: int, order: tuple[int, ...]) -> str:
    """AMD's rotating shared encoding."""
    return swizzled(vec, per_phase, max_phase, order).replace("swizzled_shared", "amd_rotating_shared")


def _blocked_cases() -> list[Case]:
    rows = [
        Case(blocked((1,), (32,), (4,), (0,)), (128,)),
        Case(blocked((4,), (32,), (4,), (0,)), (64,)),
        Case(blocked((2,), (32,), (4,), (0,)), (1024,)),
        Case(blocked((1,), (64,), (4,), (0,)), (256,), target="hip:gfx942"),
        Case(blocked((1, 1, 4), (2, 4, 4), (1, 2, 2), (2, 1, 0)), (4, 8, 32)),
        Case(blocked((2, 1, 2), (4, 2, 4), (2, 1, 2), (0, 2, 1)), (8, 4, 16)),
        Case(blocked((1, 1, 1, 2), (2, 2, 2, 4), (1, 2, 2, 1), (3, 2, 1, 0)), (2, 4, 4, 8)),
        Case(blocked((1, 1, 1, 2, 2), (1, 2, 2, 2, 4), (1, 1, 2, 2, 1), (4, 3, 2, 1, 0)), (2, 2, 4, 4, 8)),
        Case(blocked((1, 2), (8, 4), (2, 2), (1, 0), "[[0, 1]]"), (32, 32), num_ctas=2),
        Case(blocked((1, 2), (8, 4), (2, 2), (1, 0), "[[1, 0]]"), (64, 32), num_ctas=2),
        Case(blocked((1, 2), (8, 4), (2, 2), (1, 0), "[[0, 0]]"), (16, 16), num_ctas=2),
        Case(blocked((1, 2), (8, 4), (2, 2), (1, 0), "[[1, 0], [0, 1]]"), (64, 64), num_ctas=4),
    ]
    for size, order, shape in product(((1, 1), (1, 8), (2, 4), (4, 1)), ((1, 0), (0, 1)), ((64, 32), (8, 8), (128, 1))):
        rows.append(Case(blocked(size, (8, 4), (2, 2), order), shape))
        rows.append(Case(blocked(size, (8, 8), (1, 4), order), shape, target="hip:gfx942"))
    return rows


def _register_cases() -> list[Case]:
    parents = [blocked((1, 4), (8, 4), (2, 2), (1, 0)), blocked((2, 2), (4, 8), (4, 1), (0, 1)), mma2(), mma3(64)]
    rows = [Case(sliced(dim, parent), (size,)) for parent in parents for dim in (0, 1) for size in (64, 128)]
    cube = blocked((1, 2, 4), (2, 4, 4), (2, 2, 1), (2, 1, 0))
    rows += [Case(sliced(dim, cube), (16, 32)) for dim in (0, 1, 2)]
    rows += [Case(sliced(0, sliced(1, cube)), (32,)), Case(sliced(1, sliced(2, cube)), (32,))]
    for warps, shape in product(((4, 1), (2, 2), (1, 4)), ((64, 32), (16, 8), (128, 64), (64, 1))):
        rows.append(Case(mma2(warps), shape, target="cuda:80"))
    for index, width in product((0, 1), (1, 2, 4, 8)):
        element = {1: "f32", 2: "f16", 4: "i8", 8: "f16"}[width]
        rows.append(Case(dot(index, mma2(), width), (64, 64), element, target="cuda:80"))
        rows.append(Case(dot(index, mma2((4, 1)), width), (32, 32), element, target="cuda:80"))
    for n, shape in product((8, 16, 64, 128), ((64, 64), (128, 128), (64, 16))):
        rows.append(Case(mma3(n), shape, "f32"))
    rows += [Case(mma3(32, (8, 1)), (128, 64), "f32", 8), Case(mma3(64, (4, 2)), (64, 128), "f32", 8)]
    rows += [Case(dot(0, mma3(64), width), (64, 64), {1: "f32", 2: "f16", 4: "i8"}[width]) for width in (1, 2, 4)]
    rows += [Case(dot(index, blocked((2, 2), (8, 4), (2, 2), (1, 0)), None), (32, 16), "f32") for index in (0, 1)]
    linear = (
        "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
        "warp = [[16, 0], [0, 8]], block = []}>"
    )
    rows += [Case(linear, (32, 16)), Case(linear.replace("[16, 0], [0, 8]", "[0, 0], [16, 0]"), (32, 8))]
    rows += [Case(sliced(1, linear), (32,)), Case(sliced(0, linear), (16,))]
    rows.append(Case(linear.replace("ttg.linear", "ttg.generic_linear"), (32, 16), since=(3, 8)))
    return rows


def _amd_cases() -> list[Case]:
    rows: list[Case] = []
    for shape, transposed in product(((32, 32, 8), (16, 16, 16)), (False, True)):
        encoding = mfma(3, shape, transposed)
        rows += [Case(encoding, size, "f32", target="hip:gfx942") for size in ((64, 64), (128, 64), (32, 32), (16, 16))]
        for index, width in product((0, 1), (4, 8)):
            rows.append(Case(dot(index, encoding, width), (64, 64), "f16", target="hip:gfx942"))
        rows += [Case(sliced(dim, encoding), (64,), "f32", target="hip:gfx942") for dim in (0, 1)]
    for shape in ((32, 32, 16), (16, 16, 32)):
        rows.append(Case(mfma(4, shape, True), (64, 64), "f32", target="hip:gfx950"))
        rows += [Case(dot(index, mfma(4, shape, True), 8), (64, 64), target="hip:gfx950") for index in (0, 1)]
    for version, target in ((1, "hip:gfx1100"), (2, "hip:gfx1201")):
        for transposed in (False, True):
            rows.append(Case(wmma(version, transposed), (64, 32), "f32", target=target, since=(3, 7)))
        for index in (0, 1):
            width = 16 if version == 1 else 8
            rows.append(Case(dot(index, wmma(version, True), width), (32, 32), target=target, since=(3, 7)))
    return rows


def _shared_cases() -> list[Case]:
    rows: list[Case] = []
    for (vec, per, most), order, shape in product(
        ((1, 1, 1), (8, 1, 8), (4, 2, 4), (8, 2, 4), (2, 4, 8)), ((1, 0), (0, 1)), ((64, 64), (16, 32), (8, 128))
    ):
        rows.append(Case(swizzled(vec, per, most, order), shape))
    rows += [Case(swizzled(1, 1, 1, (0,)), (64,)), Case(swizzled(4, 1, 4, (2, 1, 0)), (2, 16, 32))]
    for (width, bits), transposed in product(
        ((128, 16), (64, 16), (32, 16), (128, 8), (128, 32), (0, 16)), (False, True)
    ):
        rows.append(
            Case(
                nvmma(width, transposed, bits),
                (128, 128) if bits == 8 else (64, 64),
                {8: "i8", 16: "f16", 32: "f32"}[bits],
            )
        )
    rows.append(Case(nvmma(128), (128, 128)))
    rows.append(Case(nvmma(64), (8, 32)))
    shared_linear = "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 2], [4, 4]]}, alignment = 16>"
    rows.append(Case(shared_linear, (8, 8)))
    for order, shape in product(((1, 0), (0, 1)), ((64, 64), (32, 128))):
        rows.append(Case(rotating(4, 1, 16, order), shape, target="hip:gfx942"))
    return rows


CASES: tuple[Case, ...] = (*_blocked_cases(), *_register_cases(), *_amd_cases(), *_shared_cases())
