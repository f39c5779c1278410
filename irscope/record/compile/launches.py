"""A kernel or a signature → the launch that it is; errors of programs and of the front end → text."""

from __future__ import annotations

import ast
import gc
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import irscope
from irscope.errors import RecordingError, SignatureError, did_you_mean
from irscope.model.capture import Kernel, Launch
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import kernel_functions


def describe_launch(src: Any) -> Launch:
    """What `triton.compile` was given; options, arguments and grid come later."""
    if isinstance(src, str):
        return Launch(Kernel(Path(src).stem, str(Path(src))))
    function = src.fn
    names = list(function.arg_names)
    return Launch(
        _describe_kernel(function),
        signature=tuple((name, _type_text(kind)) for name, kind in src.signature.items()),
        constants=tuple((_path_text(path, names), _value_text(value)) for path, value in sorted(src.constants.items())),
        attributes=tuple(
            (_path_text(path, names), ", ".join(f"{key}={value}" for key, value in rows))
            for path, rows in sorted((src.attrs or {}).items())
            if rows
        ),
        language="gluon" if function.is_gluon() else "triton",
    )


def _describe_kernel(function: Any) -> Kernel:
    """A `@triton.jit` function."""
    code = function.fn.__code__
    lines, first = list(function.raw_src), int(function.starting_line_number)
    offset = next((number for number, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def "))), 0)
    # No path: the name that a program of standard input has.
    file = code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)
    return Kernel(function.fn.__name__, file, first + offset, "".join(lines), first)


def describe_traceback(error: BaseException) -> dict[str, str]:
    """An error for users: its message with those of its causes, and only the frames of their own code."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library(frame.filename)]
    # Triton's CompilationError has the source line and a caret in its own message, the rest in its causes.
    messages = [f"{type(one).__name__}: {message_of(one).strip()}".removesuffix(": ") for one in causes(error)]
    return {
        "error": type(error).__name__,
        "message": "\n".join(dict.fromkeys(messages)),
        "frames": "".join(traceback.format_list(frames)),
    }


def message_of(error: BaseException) -> str:
    """The text of an error, whatever its class makes of `str`."""
    try:
        return str(error)
    except Exception:
        return "<its message cannot be made>"


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, the one that caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def is_library(filename: str) -> bool:
    """Whether a file is a library's, Python's, or irscope's own."""
    if filename.startswith("<"):
        return True
    parts = Path(filename).parts
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    package = str(Path(irscope.__file__).parent.resolve())
    return filename.startswith((package, os.path.dirname(os.__file__)))


def with_constants(src: Any, values: Mapping[str, str]) -> Any:
    """A source with other values for those of its tl.constexpr parameters; itself if it has none of them."""
    if isinstance(src, str):
        return src
    names = list(src.fn.arg_names)
    changed = {(names.index(name),): literal(value) for name, value in values.items() if name in names}
    changed = {path: value for path, value in changed.items() if path in src.constants}
    if not changed:
        return src
    return type(src)(src.fn, src.signature, {**src.constants, **changed}, src.attrs)


def _type_text(kind: Any) -> str:
    if isinstance(kind, (tuple, list)):
        return f"({', '.join(_type_text(item) for item in kind)})"
    return str(kind)


def _path_text(path: Any, names: list[str]) -> str:
    # (3,) is a parameter; (3, 0) an element of one that is a tuple.
    if isinstance(path, tuple) and path and isinstance(path[0], int):
        return names[path[0]] + "".join(f"[{index}]" for index in path[1:])
    return str(path)


def _value_text(value: Any) -> str:
    if hasattr(value, "cache_key") and hasattr(value, "fn"):
        return f"{value.fn.__module__}.{value.fn.__qualname__}"
    if type(value).__name__ == "constexpr":
        return _value_text(value.value)
    return str(value) if type(value).__name__ == "dtype" else repr(value)


def find_kernel(namespace: Mapping[str, Any], name: str, path: Path) -> Any:
    """The kernel of that name in a file's namespace; raises RecordingError, which names the kernels there."""
    kernels = kernel_functions(namespace)
    own = {key: value for key, value in kernels.items() if value.fn.__module__ == namespace.get("__name__")}
    if name in kernels:
        return kernels[name]
    if not kernels:
        raise RecordingError(f"{path.name} defines no @triton.jit function, so there is no kernel {name!r} in it.")
    raise RecordingError(f"{path.name} has no kernel {name!r}.{did_you_mean(name, own or kernels)}")


def parse_signature(function: Any, text: str, constexprs: Mapping[str, str]) -> tuple[dict[str, str], dict, dict]:
    """Read a signature in the syntax of `triton.tools.compile`: `*fp16:16, i32, 64`.

    One entry per parameter that is not in `constexprs`, in the kernel's order: a type, with `:16` if the value is known
    to be divisible by 16 and `:1` if it is 1; or a number, which is a constant. Entries for all parameters, constants
    included, are accepted too.

    Returns (signature, constants, attributes) for `ASTSource`. Raises SignatureError, which lists the parameters.
    """
    names = list(function.arg_names)
    entries = [entry.strip() for entry in text.split(",")] if text.strip() else []
    for name in constexprs:
        if name not in names:
            raise SignatureError(
                f"{function.fn.__name__} has no parameter {name!r}.{did_you_mean(name, names)}\n{_parameters(function)}"
            )
    open_names = [name for name in names if name not in constexprs]
    declared = {param.name for param in function.params if param.is_constexpr}
    defaults = {
        param.name: param.default
        for param in function.params
        if param.name in declared and param.name in open_names and param.default is not inspect.Parameter.empty
    }
    required = [name for name in open_names if name not in defaults]
    for candidates in (open_names, required, names):
        if len(entries) == len(candidates):
            chosen = dict(zip(candidates, entries, strict=True))
            break
    else:
        missing = [name for name in required if name in declared]
        if missing and len(entries) == len(required) - len(missing):
            raise SignatureError(
                f"{function.fn.__name__} needs a value for the tl.constexpr {', '.join(map(repr, missing))}: "
                f"add {' '.join(f'--constexpr {name}=VALUE' for name in missing)}.\n{_parameters(function)}"
            )
        raise SignatureError(
            f"the signature has {len(entries)} entries, but {function.fn.__name__} takes {len(required)} "
            f"({', '.join(required)}){' beside --constexpr' if constexprs else ''}.\n{_parameters(function)}"
        )
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {name: literal(value) for name, value in constexprs.items()}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for position, name in enumerate(names):
        signature[name] = "constexpr"
        if name in constants:
            continue
        if name not in chosen:
            constants[name] = defaults[name]
            continue
        entry = chosen[name]
        value = _number(entry)
        if value is not None:
            constants[name] = value
            continue
        kind, _, hint = entry.partition(":")
        kind, hint = kind.strip(), hint.strip()
        if name in declared and not _is_type(kind):
            constants[name] = literal(entry)
            continue
        if name in declared:
            raise SignatureError(
                f"parameter {name!r} is a tl.constexpr: give its value, --constexpr {name}=VALUE, "
                f"not the type {entry!r}.\n{_parameters(function)}"
            )
        if not _is_type(kind):
            known = [*_TYPES, *(f"*{name}" for name in _TYPES)]
            bad = f"{kind!r} is not a type of Triton's signatures.{did_you_mean(kind, known)}"
            raise SignatureError(f"parameter {name!r}: {bad}\n{_parameters(function)}")
        if hint not in ("", "1", "16"):
            raise SignatureError(f"parameter {name!r}: the hint {hint!r} in {entry!r} is neither 1 nor 16.")
        if hint == "1":
            constants[name] = 1
            continue
        signature[name] = kind
        if hint == "16":
            attributes[position,] = [["tt.divisibility", 16]]
    return signature, constants, attributes


_SCALARS = ("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64")
_TYPES = (*_SCALARS, "fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16")


def _is_type(kind: str) -> bool:
    if kind.startswith("tensordesc<") and kind.endswith("]>"):
        return True
    return kind.removeprefix("*").removeprefix("k") in _TYPES


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def literal(text: str) -> Any:
    """A constant as written on the command line: tl.float16, or a Python literal: 64, 1.5, True, None, (2, 4)."""
    if (dtype := triton_api.dtype_named(text.removeprefix("tl."))) is not None:
        return dtype
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _parameters(function: Any) -> str:
    rows = [f"The parameters of {function.fn.__name__}:"]
    for param in function.params:
        default = f" = {param.default!r}" if param.default is not inspect.Parameter.empty else ""
        rows.append(f"  {param.name}{': tl.constexpr' if param.is_constexpr else ''}{default}")
    return "\n".join(rows)


# NameError('nowhere is not defined')
_REPR = re.compile(r"^(?P<type>[A-Za-z_]\w*)\((?P<quote>['\"])(?P<message>.*)(?P=quote)\)$", re.DOTALL)


def describe_compile_error(error: BaseException) -> dict[str, str]:
    """As `describe_traceback`, but for an error of Triton's front end, the message is made of the chain of calls.

    Its first line is the reason; a place for each call follows, the kernel's first.
    """
    described = describe_traceback(error)
    chain = [one for one in causes(error) if _is_front_ends(one)]
    if chain:
        described["message"] = "\n".join([_reason(error), *_places(chain)])
    return described


def _reason(error: BaseException) -> str:
    """The innermost error's message, with its type."""
    *_, innermost = causes(error)
    if not _is_front_ends(innermost):
        return f"{type(innermost).__name__}: {message_of(innermost)}".rstrip(": ")
    message = str(getattr(innermost, "error_message", "") or "").strip()
    if (raised := _REPR.match(message)) is not None:
        return f"{raised['type']}: {raised['message']}"
    return f"{type(innermost).__name__}: {message}".rstrip(": ")


def _places(chain: list[BaseException]) -> Iterator[str]:
    functions = _functions()
    seen: set[tuple[str, int, int]] = set()
    for one in chain:
        source, node = str(getattr(one, "src", "") or ""), getattr(one, "node", None)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        lines = source.splitlines()
        if not 0 < line <= len(lines) or (source, line, column) in seen:
            continue
        seen.add((source, line, column))
        if (kernel := functions.get(source)) is not None:
            yield f'  File "{kernel.file}", line {kernel.line + line - 1}, in {kernel.name}'
        text = lines[line - 1]
        indent = len(text) - len(text.lstrip())
        yield f"    {text.strip()}"
        yield f"    {' ' * max(0, column - indent)}^"


def _functions() -> dict[str, Kernel]:
    """Every `@triton.jit` function in memory by its text, the only thing in Triton's error that identifies it."""
    kind = triton_api.jit_function_class()
    # By type: `isinstance` reads `__class__`, for which some objects of torch issue a deprecation warning.
    found = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    return {str(one.src): _describe_kernel(one) for one in found}


def _is_front_ends(error: BaseException) -> bool:
    """Whether an error is a `triton.CompilationError`, which holds the function's text and the wrong node."""
    return all(hasattr(error, name) for name in ("src", "node", "error_message"))


def is_users(path: str) -> bool:
    """Whether a file is neither torch's, nor Python's own, nor irscope's; other packages' are the user's."""
    torch = sys.modules.get("torch")
    own = [os.path.dirname(str(module.__file__)) for module in (torch, irscope) if module is not None]
    standard = path.startswith(os.path.dirname(os.__file__)) and "-packages" not in path
    return not (path.startswith(("<", *(folder + os.sep for folder in own))) or standard)
