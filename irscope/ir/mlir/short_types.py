"""The short form of types and layouts, for edges of graphs."""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.ir.mlir.tokens import split_commas

# tensor<128x64x!tt.ptr<f16>, #blocked>
_POINTER = re.compile(r"!tt\.ptr<(?P<pointee>[^<>]*?)(?:, \d+)?>")
# !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>    tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>
_SHAPED = re.compile(r"(?:!?(?P<form>[\w.]*))<(?P<shape>(?:\d+x){0,30})(?P<rest>.*)>$", re.DOTALL)
# #mma      #ttg.slice<{dim = 1, parent = #mma}>
_ALIAS = re.compile(r"#[A-Za-z_]\w*(?![\w.<])")


@lru_cache(maxsize=20_000)
def short_type(type_: str) -> str:
    """A type in a few letters, its layout left out: `128x64xf16`, `128x64x*f16`, `smem 2x128x64xf16`, `i32`."""
    text = _POINTER.sub(lambda match: f"*{match['pointee']}", type_)
    if text.startswith("{ "):
        fields = split_commas(text[2:].removesuffix("}").rstrip())
        return f"{{{fields[0]} ×{len(fields)}}}" if len(set(fields)) == 1 else f"{{{len(fields)} fields}}"
    match = _SHAPED.match(text)
    if match is None:
        return text.removeprefix("!ttg.").removeprefix("!tt.")
    element = split_commas(match["rest"])[0] if match["rest"] else ""
    form = match["form"].rpartition(".")[2]
    if not form and "#" not in match["rest"]:
        return text  # <4 x float>
    prefix = {"tensor": "", "memdesc": "smem ", "": "smem "}.get(form, f"{form} ")
    if form in ("memdesc", "") and "tensor_memory" in match["rest"]:
        prefix = "tmem "
    return f"{prefix}{match['shape']}{element}"


@lru_cache(maxsize=20_000)
def layout_of(type_: str) -> str:
    """The layout of a type as it writes it: an alias, or the whole; empty where it has none."""
    match = _SHAPED.match(_POINTER.sub("p", type_))
    if match is None:
        return ""
    parts = split_commas(match["rest"])
    return parts[1] if len(parts) > 1 and parts[1].startswith("#") else ""


def base_layout(layout: str) -> str:
    """The alias that a layout is made from: `#mma` of `#ttg.slice<{dim = 1, parent = #mma}>`; itself for an alias."""
    found = _ALIAS.findall(layout)
    return found[-1] if found else layout


# #ttg.slice<{dim = 1, parent = #mma}>      #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>
_MADE = re.compile(
    r"#ttg\.(?P<form>slice|dot_op)<\{(?:dim|opIdx) = (?P<number>\d+), parent = (?P<parent>.*?)(?:, kWidth = \d+)?\}>$"
)


def short_layout(layout: str) -> str:
    """A layout in a few words: `slice 1 of #mma`, `dot operand 0 of #mma1`; an alias as it is."""
    match = _MADE.match(layout)
    if match is None:
        return layout
    form = "slice" if match["form"] == "slice" else "dot operand"
    return f"{form} {match['number']} of {short_layout(match['parent'])}"
