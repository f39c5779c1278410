"""The signature, constants, attributes, options and arguments of a launch as Python expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from irscope.model.capture import Capture, Launch
from irscope.model.launch_record import Argument, LaunchRecord

__all__ = [
    "NotExpressible",
    "argument_expressions",
    "attributes_dict",
    "constants_dict",
    "expected_rows",
    "functions_among_constants",
    "options_dict",
    "quoted",
    "signature_dict",
]

_FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
_DTYPE = re.compile(r"(?:u?int\d+|fp8\w+|void)$")
_ELEMENT = re.compile(r"\[([0-9]{1,9})\]")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NAMESPACES = {
    "TensorMemoryLayout": "gl.nvidia.blackwell",
    "TensorMemoryScalesLayout": "gl.nvidia.blackwell",
    "AMDMFMALayout": "gl.amd",
    "AMDWMMALayout": "gl.amd",
}

_MOST_TUPLES = 100

# What the backend sets by itself: given to it, they would be given twice.
_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")


class NotExpressible(Exception):
    """A recorded value that no Python expression makes again; its text says which, and why."""


def signature_dict(launch: Launch) -> dict[str, str]:
    """Parameter → expression of its type; raises NotExpressible."""
    for name, text in launch.signature:
        if text.count("(") > _MOST_TUPLES:
            raise NotExpressible(f"the type of {name} has more than {_MOST_TUPLES} tuples")
    return {name: _type(text) for name, text in launch.signature}


def _type(text: str) -> str:
    # (i32, constexpr, (*fp16, i64))
    if not text.startswith("("):
        return quoted(text)
    items = [_type(item) for item in _items(text[1:-1])]
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _items(text: str) -> Iterator[str]:
    """The parts of a text that commas separate, outside brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([<{") - (letter in ")]>}")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def quoted(text: str) -> str:
    """A text as a Python literal, in double quotes where it needs no escape."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def _key(path: str) -> str:
    """`"BLOCK"`, and of an element `("sizes", 0)`."""
    name, bracket, _ = path.partition("[")
    if not bracket:
        return quoted(path)
    return f"({quoted(name)}, {', '.join(str(int(index)) for index in _ELEMENT.findall(path))})"


def constants_dict(launch: Launch, functions: Mapping[str, str]) -> dict[str, str]:
    """Key → expression of a constant; `functions`: the name in the file of each function that is one.

    Raises NotExpressible.
    """
    return {_key(path): _constant(path, text, functions) for path, text in launch.constants}


def functions_among_constants(launch: Launch) -> tuple[str, ...]:
    """The constants that are functions, as `module.name`."""
    return tuple(text for _, text in launch.constants if _is_function(text))


def _is_function(text: str) -> bool:
    words = text.split(".")
    return len(words) > 1 and all(word.isidentifier() for word in words) and not text.startswith("triton.language.")


def _constant(path: str, text: str, functions: Mapping[str, str]) -> str:
    if text in functions:
        return functions[text]
    try:
        tree = ast.parse(text, mode="eval")
        return ast.unparse(_AsWritten().visit(tree).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, NotExpressible) as error:
        raise NotExpressible(f"the constant {path} was {text}, which is no Python expression") from error


_LITERALS = (
    ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Load, ast.UnaryOp, ast.USub, ast.UAdd,
)  # fmt: skip


class _AsWritten(ast.NodeTransformer):
    """A printed value as the expression that makes it: fp16, inf, constexpr[4], BlockedLayout(...)."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _LITERALS):
            raise NotExpressible(ast.unparse(node))
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name in ("inf", "nan"):
            return ast.parse(f'float("{name}")', mode="eval").body
        if name in _FLOATS or _DTYPE.match(name):
            return ast.parse(f"triton.language.{_FLOATS.get(name, name)}", mode="eval").body
        if name == "int1":
            return ast.parse("triton.language.int1", mode="eval").body
        raise NotExpressible(name)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not ast.unparse(node).startswith("triton.language."):
            raise NotExpressible(ast.unparse(node))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) != "constexpr":
            raise NotExpressible(ast.unparse(node))
        return self.visit(node.slice)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or not node.func.id.endswith("Layout"):
            raise NotExpressible(ast.unparse(node))
        namespace = _NAMESPACES.get(node.func.id, "gl")
        node.func = ast.parse(f"{namespace}.{node.func.id}", mode="eval").body
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [ast.keyword(one.arg, self.visit(one.value)) for one in node.keywords]
        return node


def attributes_dict(launch: Launch) -> dict[str, str]:
    """Key → expression of the attributes of an argument, as Triton takes them."""
    found: dict[str, str] = {}
    for path, text in launch.attributes:
        rows: list[str] = []
        for row in text.split(", "):
            name, _, value = row.partition("=")
            rows.append(f"[{quoted(name)}, {int(value) if _INTEGER.fullmatch(value) else quoted(value)}]")
        found[_key(path)] = f"[{', '.join(rows)}]"
    return found


def options_dict(capture: Capture) -> dict[str, str]:
    """Option → expression of its value, all that the backend parses."""
    return {quoted(name): _value(value) for name, value in capture.launch.options if name not in _BACKENDS_OWN}


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        items = [_value(item) for item in cast("tuple[Any, ...]", value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return quoted(value) if isinstance(value, str) else repr(value)


def argument_expressions(launch: Launch, record: LaunchRecord, functions: Mapping[str, str]) -> dict[str, str]:
    """Parameter → expression of an argument like the recorded one; raises NotExpressible."""
    constants = {path: _constant(path, text, functions) for path, text in launch.constants}
    found: dict[str, str] = {}
    for name, kind in launch.signature:
        found[name] = _argument(name, kind, constants, record)
    return found


def expected_rows(launch: Launch, record: LaunchRecord) -> list[str] | None:
    """Rows (argument, its place among the arguments, data) of what the launch left; None without all of its inputs.

    What it left as it was is expected so.
    """
    tensors = [one for one in record.arguments if one.kind != "scalar"]
    if not any(one.result for one in tensors) or not all(one.data for one in tensors):
        return None
    places = {name: place for place, (name, _) in enumerate(launch.signature)}
    return [
        f"({quoted(one.path)}, {(places[one.path.partition('[')[0]], *map(int, _ELEMENT.findall(one.path)))}, "
        f"{quoted(one.result or one.data)})"
        for one in tensors
    ]


def _argument(path: str, kind: str, constants: Mapping[str, str], record: LaunchRecord) -> str:
    if path in constants:
        return constants[path]
    if kind.startswith("("):
        items = [
            _argument(f"{path}[{index}]", item, constants, record) for index, item in enumerate(_items(kind[1:-1]))
        ]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    argument = record.argument(path)
    if argument is None:
        raise NotExpressible(f"nothing was recorded of the argument {path}")
    if argument.kind == "scalar":
        return f"float({quoted(argument.value)})" if isinstance(argument.value, str) else repr(argument.value)
    if argument.kind == "descriptor":
        if "Layout" in kind:
            raise NotExpressible(f"{path} is a descriptor with a layout")
        base = _tensor(argument)
        return f"descriptor({base}, {argument.shape}, {argument.strides}, {list(argument.block_shape)})"
    return _tensor(argument)


def _tensor(argument: Argument) -> str:
    row = [quoted(argument.dtype), repr(argument.shape), repr(argument.strides)]
    if argument.storage_offset:
        row.append(f"offset={argument.storage_offset}")
    if argument.storage_bytes is not None:
        row.append(f"storage_bytes={argument.storage_bytes}")
    if argument.data:
        row.append(f"data={quoted(argument.data)}")
    elif argument.least is not None and argument.greatest is not None:
        row.append(f"least={argument.least}, greatest={argument.greatest}")
    return f"tensor({', '.join(row)})"
