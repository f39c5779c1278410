"""Reads the types of MLIR operations, and those with a layout: `tensor<128x64xf16, #blocked>`, `!ttg.memdesc<…>`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from irscope.ir.mlir.tokens import closing, marks, split_commas

# ── The types of values, read: `tensor<128x64xf16, #blocked>`, `!ttg.memdesc<…>`, `!llvm.struct<(i32)>` ─────────────

_TypeForm = Literal[
    "integer", "float", "index", "none", "tensor", "memdesc", "descriptor", "pointer", "token", "vector", "array",
    "struct", "tuple", "function", "opaque",
]  # fmt: skip

# i32   si8   f16   bf16   tf32   f8E4M3FN
_NUMBER = re.compile(r"(?:(?P<integer>[su]?i)|b?f|tf)(?P<bits>\d{1,4})(?:[EM]\w*)?$")
# 128x64x   ?x
_SIZES = re.compile(r"(?:(?:\d{1,18}|\?)x)*")
# tensor<   !tt.ptr<   !llvm.struct<
_NAMED = re.compile(r"!?[A-Za-z_][\w.$]*")
# 64x128, the shape of an allocation
_ALLOCATED = re.compile(r"\d{1,18}(?:x\d{1,18}){0,30}$")
_POINTER_BITS = 64
_DEEPEST = 24
_MOST_DIMENSIONS = 32
_FORMS: dict[str, _TypeForm] = {
    "tensor": "tensor", "vector": "vector", "memdesc": "memdesc", "array": "array", "vec": "vector",
    "tensordesc": "descriptor", "tensordesc_im2col": "descriptor", "ptr": "pointer", "struct": "struct",
    "tuple": "tuple", "token": "token",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """A type, as far as it can be read: what a form has not is empty."""

    form: _TypeForm
    text: str
    """As written, aliases included."""
    bits: int = 0
    """Of an integer, a float or a pointer."""
    shape: tuple[int, ...] = ()
    """Of a tensor, vector, array, memory descriptor, or of the tile of a tensor descriptor; -1 for an unknown size."""
    element: Type | None = None
    """Of what has a shape; what a pointer points to, if its type says so."""
    encoding: str = ""
    """The layout of a tensor or memory descriptor, as written: an alias, or the whole encoding."""
    space: str = ""
    """The memory of a descriptor as written (`#smem`), or the address space of a pointer (`3`)."""
    allocated: tuple[int, ...] = ()
    """The shape of the whole allocation if a memory descriptor is a part of one."""
    members: tuple[Type, ...] = ()
    """The types of a structure's members, or of a function's arguments."""
    results: tuple[Type, ...] = ()
    """The types of a function's results."""

    @property
    def element_bits(self) -> int:
        """Bits per element in memory: 64 for a pointer, 8 for an i1; 0 if they are not known."""
        element = self.element if self.shape or self.form in ("tensor", "memdesc") else self
        if element is None:
            return 0
        return max(element.bits, 8) if element.text == "i1" else element.bits

    @property
    def pointee(self) -> str:
        """The type that a tensor of pointers points to; empty for other types."""
        return str(self.element.element or "") if self.element is not None and self.element.form == "pointer" else ""

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=8192)
def parse_type(text: str) -> Type:
    """Read a type; never raises: one that cannot be read is opaque. Aliases are not resolved."""
    return _parse(text.strip(), 0)


def _parse(text: str, depth: int) -> Type:
    if depth > _DEEPEST:
        return Type("opaque", text)
    number = _NUMBER.match(text)
    if number is not None:
        return Type("integer" if number["integer"] else "float", text, int(number["bits"]))
    if text == "index":
        return Type("index", text, 64)
    if text[:1] == "(":
        return _function(text, text, depth)
    name = _NAMED.match(text)
    if name is None:
        return Type("opaque", text)
    rest = text[name.end() :]
    inner = rest[1:-1].strip() if rest[:1] == "<" and rest[-1:] == ">" else ""
    word = name[0].rpartition(".")[2]
    if word in ("func", "function") and inner:
        # !llvm.func<void (i32, ptr<1>)>
        result, opening, arguments = inner.partition(" (")
        return _function(f"({arguments} -> {result}" if opening else inner, text, depth)
    form = _FORMS.get(word, "opaque")
    if word in ("void", "none"):
        return Type("none", text)
    if form == "token" or form == "opaque":
        return Type(form, text)
    if form == "pointer":
        # !tt.ptr<f16, 3>   !tt.ptr<tensor<…>>   !llvm.ptr<3>   ptr<1>
        parts = [part for part in split_commas(inner) if part]
        if parts and not parts[0].isdecimal():
            return Type("pointer", text, _POINTER_BITS, element=_parse(parts[0], depth + 1), space=(*parts[1:], "1")[0])
        return Type("pointer", text, _POINTER_BITS, space=parts[0] if parts else "0")
    if form in ("struct", "tuple"):
        members = inner.removeprefix("packed ").strip()
        if members[:1] == "(" and members[-1:] == ")":
            members = members[1:-1]
        return Type(form, text, members=tuple(_parse(part, depth + 1) for part in split_commas(members) if part))
    return _shaped(form, text, inner, depth)


def _function(signature: str, text: str, depth: int) -> Type:
    arrow = next((position for token, position, level in marks(signature) if token == "->" and not level), -1)
    if arrow < 0:
        return Type("opaque", text)
    sides = (signature[:arrow].strip(), signature[arrow + 2 :].strip())
    inputs, results = (
        _list(side.removeprefix("(").removesuffix(")") if side[:1] == "(" else side, depth) for side in sides
    )
    return Type("function", text, members=inputs, results=tuple(one for one in results if one.form != "none"))


def _list(text: str, depth: int) -> tuple[Type, ...]:
    return tuple(_parse(part, depth + 1) for part in split_commas(text) if part)


def _shaped(form: _TypeForm, text: str, inner: str, depth: int) -> Type:
    # 128x64xf16, #blocked   2x64x64xf16, #shared, #smem, mutable, 4x64x64   4 x i32   tensor<64x64xf16, #shared>
    parts = split_commas(inner)
    if form == "array":
        parts[0] = parts[0].replace(" x ", "x", 1)
    if form == "descriptor" and parts[0].startswith("tensor<"):
        block = _parse(parts[0], depth + 1)
        return Type(form, text, _POINTER_BITS, block.shape, block.element, block.encoding)
    sizes = _SIZES.match(parts[0])
    written = sizes[0] if sizes is not None else ""
    if written.count("x") > _MOST_DIMENSIONS:
        return Type("opaque", text)
    shape = tuple(-1 if size == "?" else int(size) for size in written.split("x") if size)
    element = _parse(parts[0][len(written) :], depth + 1)
    encoding = parts[1] if len(parts) > 1 and parts[1].startswith("#") else ""
    if form != "memdesc":
        return Type(form, text, _POINTER_BITS if form == "descriptor" else 0, shape, element, encoding)
    allocated = tuple(int(size) for size in parts[-1].split("x")) if _ALLOCATED.match(parts[-1]) else ()
    space = parts[2] if len(parts) > 2 else ""
    return Type(form, text, 0, shape, element, encoding, space, allocated)


_MEMORIES = {"shared": "#ttg.shared_memory", "tensor": "#ttng.tensor_memory"}


def written_type(shape: tuple[int, ...], element: str, encoding: str, space: str) -> str:
    """The text of a type with a layout: of a tensor in registers, or of a memory descriptor."""
    sizes = "x".join(map(str, shape))
    memory = _MEMORIES.get(space)
    if memory is None:
        return f"tensor<{sizes}x{element}, {encoding}>"
    return f"!ttg.memdesc<{sizes}x{element}, {encoding}, {memory}, mutable>"


# where a type with a layout may begin: "tensor<", "memdesc<", and the short form "-> <128x64xf16, #shared, …>"
_START = re.compile(r"\b(tensor|memdesc)<(?=[\d!a-z])|(?<![\w>])(<)(?=\d+x)")
# f16   bf16   i32   f8E4M3FN   !tt.ptr<f16>
_WIDTH = re.compile(r"[a-z]+(\d+)")


def element_bits(element: str) -> int:
    """Bits per element in memory: `f16` 16, `bf16` 16, `f8E4M3FN` 8, `i1` 8, a pointer 64; 0 if unknown."""
    if "tt.ptr<" in element:
        return _POINTER_BITS
    match = _WIDTH.match(element)
    if match is None:
        return 0
    bits = int(match[1]) if len(match[1]) < 6 else 0
    return max(bits, 8) if element == "i1" else bits


def read_types(text: str) -> list[Type]:
    """The types with a layout in a text, in their order, each with `128x64xf16` as its text; others are left out."""
    found: list[Type] = []
    position = 0
    while (match := _START.search(text, position)) is not None:
        opening = match.end() - 1
        end = closing(text, opening)
        if end < 0:
            break
        kind = _read(match[1] or "memdesc", text[opening + 1 : end])
        if kind is not None:
            found.append(kind)
        # A tensor may stand in another type, such as !tt.tensordesc<tensor<…>>, never in a tensor.
        position = end
    return found


def _read(form: str, inside: str) -> Type | None:
    kind = parse_type(f"{form}<{inside}>")
    if not kind.encoding or kind.element is None or kind.form not in ("tensor", "memdesc"):
        return None
    return replace(kind, text="x".join([*map(str, kind.shape), kind.element.text]))


# ── The short form of types and layouts, for edges of graphs ────────────────────────────────────────────────────────

# tensor<128x64x!tt.ptr<f16>, #blocked>
_POINTER = re.compile(r"!tt\.ptr<(?P<pointee>[^<>]*?)(?:, \d+)?>")
# !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>    tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>
_SHAPED = re.compile(r"(?:!?(?P<form>[\w.]*))<(?P<shape>(?:\d+x){0,30})(?P<rest>.*)>$", re.DOTALL)


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
