"""The cases of the families, each with its clean twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.analysis.findings.cases import ROUNDS_SUMS, TAKES_LAST, Case, Variant
from tests.analysis.findings.families.launches import STRUCTURAL

__all__ = ["FAMILIES"]

_FOLDER = Path(__file__).parent


def _in(file: str, kernel: str, signature: str, options: tuple[tuple[str, int], ...], **constexprs: object) -> Variant:
    return Variant(kernel, signature, tuple(constexprs.items()), options, file=_FOLDER / file)


def _row(kernel: str, signature: str, **constexprs: object) -> Variant:
    return _in("rows.py", kernel, signature, (), **constexprs)


def _product(kernel: str, signature: str, *options: tuple[str, int], **constexprs: object) -> Variant:
    return _in("products.py", kernel, signature, options, **constexprs)


def _layout(kernel: str, signature: str, **constexprs: object) -> Variant:
    return _in("layouts.py", kernel, signature, (), **constexprs)


def _constant(kernel: str, signature: str, **constexprs: object) -> Variant:
    return _in("constants.py", kernel, signature, (), **constexprs)


def _launched(kernel: str, size: str, **constexprs: object) -> Variant:
    """With an argument that 8 divides, and 16 does not."""
    return replace(_constant(kernel, f"{_PAIR}, i32", **constexprs), grid=(8, 1, 1), sizes=((size, 1032),))


def _spread(kind: str, step: int) -> Variant:
    """A product whose right operand has a step between its columns."""
    signature, options = f"{_DOT}, i32:16, i32:16, {kind}", ("num_warps", 8)
    product = _product("spread", signature, options, ROWS=128, DEPTH=64, COLUMNS=256)
    return replace(product, grid=(1, 1, 1), sizes=(("size", 256), ("pitch", 512), ("step", step)))


_CUDA = ("cuda:80", "cuda:90", "cuda:100")
_HOPPER = ("cuda:90",)
_ALL = (*_CUDA, "hip:gfx942")
_H, _F, _B = "*fp16:16", "*fp32:16", "*i8:16"
_PAIR, _TRIPLE = f"{_H}, {_H}", f"{_H}, {_H}, {_H}"
_DOT = f"{_H}, {_H}, {_F}"

_LOADS = (
    Case("IRS101", _row("rms_norm", f"{_TRIPLE}, i32, i32:16, fp32", BLOCK=1024),
         _row("rms_norm", f"{_TRIPLE}, i32:16, i32:16, fp32", BLOCK=1024), "stride", _CUDA,
         helps="stride divisible by 16"),
    Case("IRS101", _row("gate", f"{_H}, *fp16, {_H}", BLOCK=1024), _row("gate", _TRIPLE, BLOCK=1024), "down", _CUDA,
         helps="down divisible by 16"),
    Case("IRS101", _row("embed", f"*i64:16, {_PAIR}, i32", BLOCK=512),
         _row("embed", f"*i64:16, {_PAIR}, i32:16", BLOCK=512), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS101", _row("dequantise", f"{_B}, {_F}, {_F}, i32", BLOCK=2048),
         _row("dequantise", f"{_B}, {_F}, {_F}, i32:16", BLOCK=2048), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS101", _row("window", f"{_PAIR}, i32", BLOCK=1024), _row("window", f"{_PAIR}, i32:16", BLOCK=1024),
         "start", _CUDA, helps="start divisible by 16"),
    Case("IRS101", _row("between", f"{_PAIR}, i32, i32:16", BLOCK=1024),
         _row("between", f"{_PAIR}, i32:16, i32:16", BLOCK=1024), "low", _CUDA, helps="low divisible by 16"),
    Case("IRS101", _row("block_of_matrix", f"{_PAIR}, i32, i32", ROWS=16, COLUMNS=128),
         _row("block_of_matrix", f"{_PAIR}, i32, i32:16", ROWS=16, COLUMNS=128), "columns", _CUDA,
         helps="columns divisible by 16"),
    Case("IRS101", _row("nested", f"{_H}, {_F}, i32, fp32", BLOCK=1024),
         _row("nested", f"{_H}, {_F}, i32:16, fp32", BLOCK=1024), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS101", _row("matrix_of_strides", f"{_PAIR}, i32:16, i32", ROWS=16, COLUMNS=128),
         _row("matrix_of_strides", f"{_PAIR}, i32:16, 1", ROWS=16, COLUMNS=128), "inner", _ALL, helps="inner = 1"),
    Case("IRS101", _row("in_chunks", f"{_H}, {_F}, i32, i32:16", BLOCK=1024),
         _row("in_chunks", f"{_H}, {_F}, i32:16, i32:16", BLOCK=1024), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS101", _row("halves", f"{_PAIR}, i32", HALF=1024), _row("halves", f"{_PAIR}, i32:16", HALF=1024),
         "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS101", _row("histogram_weights", f"{_F}, {_F}, {_F}, i32", BLOCK=1024),
         _row("histogram_weights", f"{_F}, {_F}, {_F}, i32:16", BLOCK=1024), "shift", _CUDA,
         helps="shift divisible by 16"),
    Case("IRS101", _layout("one_at_a_time", _PAIR, WIDTH=1, BLOCK=1024),
         _layout("one_at_a_time", _PAIR, WIDTH=8, BLOCK=1024), "its layout gives each thread", _CUDA),
)  # fmt: skip
_CONSTANTS = (
    Case("IRS101", _constant("fixed_pitch", _PAIR, PITCH=1028, BLOCK=1024),
         _constant("fixed_pitch", _PAIR, PITCH=1032, BLOCK=1024), "PITCH, 1028, multiplies the program id", _CUDA,
         helps="PITCH = 1032"),
    Case("IRS101", _constant("written_pitch", _PAIR, ODD=True, BLOCK=1024),
         _constant("written_pitch", _PAIR, ODD=False, BLOCK=1024), "1001 multiplies the program id", _CUDA,
         helps="1008 in place of 1001"),
    Case("IRS101", _constant("called_pitch", _PAIR, PITCH=1028, BLOCK=1024),
         _constant("called_pitch", _PAIR, PITCH=1032, BLOCK=1024), "PITCH, 1028, multiplies the program id", _CUDA,
         helps="PITCH = 1032"),
    Case("IRS101", _constant("masked_pitch", _PAIR, N=996, BLOCK=1024),
         _constant("masked_pitch", _PAIR, N=1000, BLOCK=1024), "N, 996, multiplies the program id", _CUDA,
         helps="N = 1000"),
    Case("IRS101", _constant("tile_pitch", f"{_F}, {_F}", PITCH=130, TILE=64),
         _constant("tile_pitch", f"{_F}, {_F}", PITCH=132, TILE=64), "PITCH, 130, multiplies", _CUDA,
         helps="PITCH = 132"),
    Case("IRS102", _constant("fixed_pitch_out", _PAIR, PITCH=1028, BLOCK=1024),
         _constant("fixed_pitch_out", _PAIR, PITCH=1032, BLOCK=1024), "PITCH, 1028, multiplies the program id", _CUDA,
         helps="PITCH = 1032"),
    Case("IRS101", _launched("wrapped_around", "n", HINT=False, BLOCK=1024),
         _launched("wrapped_around", "n", HINT=True, BLOCK=1024), "n", _CUDA,
         helps="tl.max_contiguous(tl.multiple_of(… % n, 8), 8)"),
    Case("IRS101", _launched("called_stride", "stride", HINT=False, BLOCK=1024),
         _launched("called_stride", "stride", HINT=True, BLOCK=1024), "stride", _CUDA,
         helps="tl.multiple_of(… * stride, 8)"),
)  # fmt: skip
_STORES = (
    Case("IRS102", _row("narrowed", f"{_F}, {_H}, i32", BLOCK=1024),
         _row("narrowed", f"{_F}, {_H}, i32:16", BLOCK=1024), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS102", _row("put_rows", f"{_H}, *i64:16, {_H}, i32", BLOCK=512),
         _row("put_rows", f"{_H}, *i64:16, {_H}, i32:16", BLOCK=512), "pitch", _CUDA, helps="pitch divisible by 16"),
    Case("IRS102", _row("cut_off", f"{_PAIR}, i32", BLOCK=1024), _row("cut_off", f"{_PAIR}, i32:16", BLOCK=1024),
         "n", _CUDA, helps="n divisible by 16"),
    Case("IRS102", _row("into_view", f"{_PAIR}, *fp16", BLOCK=1024), _row("into_view", _TRIPLE, BLOCK=1024),
         "y", _CUDA, helps="y divisible by 16"),
    Case("IRS102", _layout("one_at_a_time", _PAIR, WIDTH=2, BLOCK=1024),
         _layout("one_at_a_time", _PAIR, WIDTH=8, BLOCK=1024), "its layout gives each thread", _CUDA),
)  # fmt: skip
_SECTORS = (
    Case("IRS103", _row("pairs", _PAIR, HALF=1024), _row("halves_of_row", _PAIR, HALF=1024), "is 4 bytes", _CUDA),
    Case("IRS103", _row("channel", _PAIR, CHANNELS=3, BLOCK=1024), _row("channel", _PAIR, CHANNELS=1, BLOCK=1024),
         "is 6 bytes", _ALL),
    Case("IRS103", _row("column_out", f"{_F}, {_F}", PITCH=512, BLOCK=1024),
         _row("column_out", f"{_F}, {_F}", PITCH=1, BLOCK=1024), "is 2048 bytes", _ALL),
    Case("IRS103", _row("moments", f"{_F}, {_F}", PITCH=8, STEPS=4, BLOCK=256),
         _row("moments", f"{_F}, {_F}", PITCH=1, STEPS=4, BLOCK=256), "is 32 bytes", _ALL),
    Case("IRS103", _layout("down_the_columns", f"{_F}, {_F}", DOWN=True, TILE=64),
         _layout("down_the_columns", f"{_F}, {_F}", DOWN=False, TILE=64), "is 256 bytes", _CUDA),
    Case("IRS103", _spread("i32", 2), _spread("1", 1), "step is 2" if TAKES_LAST else "cannot derive", _ALL,
         also=("step",)),
)  # fmt: skip
_LOOPS = (
    Case("IRS201", _product("scores", f"{_DOT}, i32:16, i32", BLOCK=64, DEPTH=64),
         _product("scores", f"{_DOT}, i32:16, i32:16", BLOCK=64, DEPTH=64), "pitch", _CUDA,
         helps="pitch divisible by 16"),
    Case("IRS201", _product("attention", f"{_TRIPLE}, {_H}, i32:16, fp32", ("num_stages", 1), BLOCK=64, DEPTH=64),
         _product("attention", f"{_TRIPLE}, {_H}, i32:16, fp32", ("num_stages", 3), BLOCK=64, DEPTH=64), "num_stages",
         _CUDA, helps="num_stages=3"),
    Case("IRS201", _product("quantised", f"{_H}, {_B}, {_F}, {_F}, i32:16, i32", TILE=64),
         _product("quantised", f"{_H}, {_B}, {_F}, {_F}, i32:16, i32:16", TILE=64), "pitch", _CUDA,
         helps="pitch divisible by 16"),
    Case("IRS201", _product("expert", f"{_H}, *i32:16, {_H}, {_F}, i32:16, i32", TILE=64),
         _product("expert", f"{_H}, *i32:16, {_H}, {_F}, i32:16, i32:16", TILE=64), "pitch", _CUDA,
         helps="pitch divisible by 16"),
    Case("IRS201", _product("until_done", f"{_DOT}, *i32:16", TILE=64),
         _product("in_loop", f"{_DOT}, i32:16", HOW="tf32", TILE=64), "while", _CUDA),
    Case("IRS201", _product("two_products", f"{_TRIPLE}, {_F}, i32:16", ("num_stages", 1), TILE=64),
         _product("two_products", f"{_TRIPLE}, {_F}, i32:16", TILE=64), "num_stages", _CUDA, helps="num_stages=3"),
    Case("IRS201", _product("in_stages", f"{_DOT}, i32:16", STAGES=1, TILE=64),
         _product("in_stages", f"{_DOT}, i32:16", STAGES=3, TILE=64), "num_stages", _CUDA),
)  # fmt: skip
_DOTS = (
    Case("IRS302", _product("rounded_each_time", f"{_DOT}, i32:16", ROUND=True, TILE=64),
         _product("rounded_each_time", f"{_DOT}, i32:16", ROUND=False, TILE=64), "unconditionally used", _HOPPER),
    Case("IRS302", _product("in_stages", f"{_DOT}, i32:16", STAGES=1, TILE=64),
         _product("in_stages", f"{_DOT}, i32:16", STAGES=3, TILE=64), "num_stages", _HOPPER),
    Case("IRS303", _product("checked", f"{_DOT}, i32:16", CHECK=True, TILE=64),
         _product("checked", f"{_DOT}, i32:16", CHECK=False, TILE=64), "C7510", _HOPPER),
    Case("IRS301", _product("scores", f"{_DOT}, i32:16, i32:16", BLOCK=32, DEPTH=32),
         _row("gate", _TRIPLE, BLOCK=1024), "cuda:75", ("cuda:75",)),
    Case("IRS301", _product("gram", f"{_H}, {_F}", HOW="ieee", ROWS=32, COLUMNS=64), _row("gate", _TRIPLE, BLOCK=1024),
         "cuda:75", ("cuda:75",)),
    Case("IRS601", _product("in_loop", f"{_F}, {_F}, {_F}, i32:16", HOW="ieee", TILE=32),
         _product("in_loop", f"{_F}, {_F}, {_F}, i32:16", HOW="tf32", TILE=32), "input_precision", _CUDA),
    Case("IRS603" if ROUNDS_SUMS else "IRS601", _product("summed", f"{_F}, {_F}", TILE=32),
         _product("gram", f"{_F}, {_F}", HOW="tf32x3", ROWS=32, COLUMNS=64), "a sum of products", _CUDA),
    Case("IRS601", _product("gram", f"{_F}, {_F}", HOW="ieee", ROWS=32, COLUMNS=64),
         _product("gram", f"{_F}, {_F}", HOW="tf32x3", ROWS=32, COLUMNS=64), "input_precision", _CUDA),
)  # fmt: skip
_SHARED = (
    Case("IRS401", _layout("turned_tile", _PAIR, TURN=True, TILE=64),
         _layout("turned_tile", _PAIR, TURN=False, TILE=64), "store (line", _ALL),
    Case("IRS401", _layout("summed_turned", f"{_F}, {_F}, i32", TURN=True, TILE=32),
         _layout("summed_turned", f"{_F}, {_F}, i32", TURN=False, TILE=32), "want", _ALL),
    Case("IRS401", _layout("heads_apart", f"{_F}, {_F}", APART=True, ROWS=32, COLUMNS=64),
         _layout("heads_apart", f"{_F}, {_F}", APART=False, ROWS=32, COLUMNS=64), "store (line", _ALL),
    Case("IRS401", _layout("added_turned", f"{_F}, {_F}, {_F}", TURN=True, TILE=64),
         _layout("added_turned", f"{_F}, {_F}, {_F}", TURN=False, TILE=64), "want", _ALL),
    Case("IRS401", _layout("converted", f"{_F}, {_F}", TURN=True, TILE=64),
         _layout("converted", f"{_F}, {_F}", TURN=False, TILE=64), "store (line", _CUDA),
    Case("IRS401", _constant("unpadded", f"{_F}, {_F}, i32", BLOCK=1024),
         _constant("unpadded", f"{_F}, {_F}, i32:16", BLOCK=1024), "store (line", _CUDA,
         helps="sizePerThread [4] → [1]"),
    Case("IRS401", _constant("weighted_rows", f"{_F}, {_F}, {_F}, i32, i32", BLOCK=1024),
         _constant("weighted_rows", f"{_F}, {_F}, {_F}, i32, i32:16", BLOCK=1024), "store (line", _CUDA,
         helps="sizePerThread [4] → [1]"),
    Case("IRS402", _layout("written_down", f"{_F}, {_F}", PHASES=1, TILE=32),
         _layout("written_down", f"{_F}, {_F}", PHASES=32, TILE=32), "wavefronts", _CUDA),
    Case("IRS402", _layout("read_of_halves", _PAIR, PHASES=1, TILE=64),
         _layout("read_of_halves", _PAIR, PHASES=32, TILE=64), "wavefronts", _CUDA),
)  # fmt: skip
_RESOURCES = (
    Case("IRS501", _product("row_sums", f"{_F}, {_F}, i32", ("num_warps", 1), ROWS=16, COLUMNS=1024),
         _product("row_sums", f"{_F}, {_F}, i32", ("num_warps", 8), ROWS=4, COLUMNS=1024), "stored", _CUDA,
         is_of_kernel=True),
    Case("IRS501", _product("polynomial", f"{_F}, {_F}", ("num_warps", 1), BLOCK=4096),
         _product("polynomial", f"{_F}, {_F}", ("num_warps", 8), BLOCK=1024), "stored", _CUDA, is_of_kernel=True,
         helps="num_warps=2"),
    Case("IRS501", _product("polynomial", f"{_F}, {_F}", ("maxnreg", 24), BLOCK=2048),
         _product("polynomial", f"{_F}, {_F}", BLOCK=512), "maxnreg", _CUDA, is_of_kernel=True,
         helps="maxnreg=255"),
    Case("IRS503", _product("two_products", f"{_TRIPLE}, {_F}, i32:16", ("num_stages", 6), TILE=128),
         _product("two_products", f"{_TRIPLE}, {_F}, i32:16", ("num_stages", 2), ("num_warps", 8), TILE=128),
         "num_stages", ("cuda:80", "cuda:90"), is_of_kernel=True, helps="num_stages=2"),
    Case("IRS503", _product("in_loop", f"{_F}, {_F}, {_F}, i32:16", ("num_stages", 6), HOW="tf32", TILE=128),
         _product("in_loop", f"{_F}, {_F}, {_F}, i32:16", ("num_stages", 1), ("num_warps", 8), HOW="tf32", TILE=128),
         "num_stages", ("cuda:80", "cuda:90"), is_of_kernel=True),
)  # fmt: skip
FAMILIES = (*_LOADS, *_CONSTANTS, *_STORES, *_SECTORS, *_LOOPS, *_DOTS, *_SHARED, *_RESOURCES, *STRUCTURAL)
