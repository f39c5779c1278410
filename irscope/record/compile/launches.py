"""A launch as it is recorded: its kernel, signature, arguments, options and attributes; and errors of programs as text.

A launch's arguments and the options that its script set are read just before its compile. The attributes that a backend
derives from the arguments can be derived again from the launch's record of them.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import inspect
import math
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import irscope
from irscope.errors import RecordingError, SignatureError, did_you_mean
from irscope.model.capture import Kernel, Launch
from irscope.model.launch_record import Argument, LaunchRecord, OtherLaunch, without_largest
from irscope.model.plain import tupled
from irscope.model.telling import DIVISIBILITY
from irscope.record.triton import api as triton_api
from irscope.record.triton.api import backend_classes
from irscope.record.triton.autotuner import kernel_functions
from irscope.record.triton.patches import Patches, replaced


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
    kernels = kernel_functions(namespace)
    own = {key: value for key, value in kernels.items() if value.fn.__module__ == namespace.get("__name__")}
    if name in kernels:
        return kernels[name]
    if not kernels:
        raise RecordingError(f"{path.name} has no kernel {name!r}: it defines no @triton.jit function.")
    raise RecordingError(f"{path.name} has no kernel {name!r}.{did_you_mean(name, own or kernels)}")


def parse_signature(function: Any, text: str, constexprs: Mapping[str, str]) -> tuple[dict[str, str], dict, dict]:
    """Read a signature in the syntax of `triton.tools.compile`: `*fp16:16, i32, 64`.

    One entry per parameter that is not in `constexprs`, or for all: a type, with `:16` if 16 divides the value and
    `:1` if it is 1; or a number, which is a constant. Returns (signature, constants, attributes) for `ASTSource`.
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
            attributes[position,] = [[DIVISIBILITY, 16]]
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
    """As `describe_traceback`; of an error of Triton's front end the reason, and a place for each call."""
    described = describe_traceback(error)
    chain = [one for one in causes(error) if _is_front_ends(one)]
    if chain:
        described["message"] = "\n".join([_reason(error), *_places(chain)])
    return described


def _reason(error: BaseException) -> str:
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


_MOST_ALIGNMENT = 512
_MOST_OTHERS = 8
"""Launches of one compiled kernel, beside the first, that are described in its capture."""
_MOST_COMPARED = 256


class PendingLaunches:
    """The launches whose compile is about to begin, by the options that Triton made: it may compile in a thread."""

    def __init__(self, values: Callable[[Any], dict[str, Any]]) -> None:
        self._values = values
        self._described: dict[int, tuple[Any, dict[str, Any]]] = {}

    def stand_in(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """A stand-in for `JITFunction._pack_args`, which Triton calls for a launch that must be compiled."""

        def pack_args(function: Any, backend: Any, keywords: dict[str, Any], bound: dict[str, Any], *rest: Any) -> Any:
            packed = real(function, backend, keywords, bound, *rest)
            options = packed[0]
            described = {
                "set_options": _set_options(keywords, vars(options), backend),
                "record": _within_bounds(LaunchRecord(tuple(_described_arguments(function, bound, self._values)))),
            }
            self._described[id(vars(options))] = (options, described)
            return packed

        return pack_args

    def take(self, src: Any, options: Any) -> dict[str, Any]:
        """The fields `set_options` and `record` of the Launch that `triton.compile` is given, as far as known."""
        _, described = self._described.pop(id(options), (None, None))
        if described is not None:
            return described
        # A call of triton.compile itself: what it is given is what was set.
        return {} if isinstance(src, str) else {"set_options": _pairs(dict(options or {}))}


class RepeatedLaunches:
    """The launches of each compiled kernel, by its hash, that differ from those before them."""

    def __init__(self, values: Callable[[Any], dict[str, Any]]) -> None:
        self._values = values
        self._known: dict[str, list[OtherLaunch]] = {}
        self._seen: Counter[str] = Counter()

    def new(
        self, kernel: str, grid: tuple[int, int, int], source: Any, arguments: tuple[Any, ...]
    ) -> OtherLaunch | None:
        """A launch that differs from each one before; None for the first, and behind the first few."""
        known = self._known.setdefault(kernel, [])
        function = getattr(source, "fn", None)
        self._seen[kernel] += 1
        if self._seen[kernel] > _MOST_COMPARED or len(known) > _MOST_OTHERS or function is None:
            return None
        names = list(function.arg_names)
        if len(names) != len(arguments):
            return None
        described = _described_arguments(function, dict(zip(names, arguments, strict=True)), self._values)
        launch = OtherLaunch(grid, _within_bounds(LaunchRecord(tuple(described))))
        if launch in known:
            return None
        known.append(launch)
        return launch if len(known) > 1 else None


def _within_bounds(record: LaunchRecord) -> LaunchRecord:
    kept = without_largest({one.path: one.data for one in record.arguments if one.data})
    return record.with_contents((path, data, "") for path, data in kept.items())


def _set_options(keywords: dict[str, Any], known: dict[str, Any], backend: Any) -> tuple[tuple[str, Any], ...]:
    defaults = vars(backend.parse_options({}))

    def by_launcher(name: str) -> bool:
        return name in _OPTIONS_OF_THE_LAUNCHER and keywords[name] == defaults.get(name)

    return _pairs({name: value for name, value in keywords.items() if name in known and not by_launcher(name)})


def _pairs(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tupled(plain(value))) for name, value in sorted(options.items()))


def _described_arguments(
    function: Any, bound: dict[str, Any], values: Callable[[Any], dict[str, Any]]
) -> Iterator[Argument]:
    storages: dict[int, str] = {}
    for param in function.params:
        if param.is_constexpr or param.name not in bound:
            continue
        flags: dict[str, Any] = {}
        # As Triton's binder does: nothing is specialised on a parameter annotated as a float or a bool.
        annotated = str(param.annotation_type)
        if param.do_not_specialize or annotated == "u1" or annotated.startswith(("fp", "bf")):
            flags["specializes"] = False
        if param.do_not_specialize_on_alignment:
            flags["specializes_on_alignment"] = False
        for argument in _described(param.name, bound[param.name], values, storages):
            yield replace(argument, **flags)


def _described(
    path: str, value: Any, values: Callable[[Any], dict[str, Any]], storages: dict[int, str]
) -> Iterator[Argument]:
    """`storages`: the identity of each storage → the first argument that lies in it; completed here."""
    if isinstance(value, (bool, int, float)):
        held = value if isinstance(value, int) or math.isfinite(value) else str(value)
        yield Argument(path, "scalar", _scalar_kind(value), held)
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _described(f"{path}[{index}]", item, values, storages)
    elif hasattr(value, "data_ptr"):
        row = _tensor(value) | _sharing(path, value, storages)
        # It is read beside the launch, which nothing here may fail.
        with contextlib.suppress(Exception):
            row |= values(value)
        yield Argument(path, "tensor", **row)
    elif hasattr(value, "block_shape") and hasattr(value, "base"):
        sizes = {name: tuple(map(int, getattr(value, name))) for name in ("shape", "strides", "block_shape")}
        row = {**_tensor(value.base), **_sharing(path, value.base, storages), **sizes}
        with contextlib.suppress(Exception):
            known = values(value.base)
            row |= {name: known[name] for name in _OF_STORAGE if name in known}
        yield Argument(path, "descriptor", **row)


_OF_STORAGE = ("is_unwritten", "empty_storage", "launches_before")
"""What is known of the memory that a descriptor describes, whatever part of it that is."""


def _scalar_kind(value: Any) -> str:
    return next(kind.__name__ for kind in (bool, int, float) if isinstance(value, kind))


def _tensor(tensor: Any) -> dict[str, Any]:
    # To Triton, anything with an address is a tensor; what an object does not answer stays unknown.
    row: dict[str, Any] = {"dtype": str(getattr(tensor, "dtype", "")).rpartition(".")[2]}
    for name, read in _TENSOR_FIELDS.items():
        with contextlib.suppress(Exception):
            row[name] = read(tensor)
    return row


def _sharing(path: str, tensor: Any, storages: dict[int, str]) -> dict[str, Any]:
    first = path
    with contextlib.suppress(Exception):
        first = storages.setdefault(int(tensor.untyped_storage()._cdata), path)
    return {"shares": first} if first != path else {}


_TENSOR_FIELDS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda tensor: tuple(map(int, tensor.shape)),
    "strides": lambda tensor: tuple(map(int, tensor.stride())),
    "storage_offset": lambda tensor: int(tensor.storage_offset()),
    "storage_bytes": lambda tensor: int(
        tensor.ptr_range() if hasattr(tensor, "ptr_range") else tensor.untyped_storage().nbytes()
    ),
    "alignment_bytes": lambda tensor: _alignment(int(tensor.data_ptr())),
}


def _alignment(address: int) -> int:
    return min(address & -address, _MOST_ALIGNMENT) if address else _MOST_ALIGNMENT


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


_OPTIONS_OF_THE_LAUNCHER = ("debug", "instrumentation_mode", "fpsan_homomorphic_casts")
"""The options that every launch sets, also without the script; 3.6 to 3.8 only the first two."""

_UNKNOWN_BYTES = 1 << 62

Attributes = dict[str, tuple[tuple[str, Any], ...]]
"""Path of an argument → (attribute, value) in the backend's order."""


class _Tensor:
    def __init__(self, argument: Argument) -> None:
        self._argument = argument

    def data_ptr(self) -> int:
        return self._argument.alignment_bytes or 1

    def ptr_range(self) -> int:
        size = self._argument.storage_bytes
        return _UNKNOWN_BYTES if size is None else size


def attributes_of(backend: Any, record: LaunchRecord, signature: dict[str, str]) -> Attributes:
    """The attributes that a backend gives the arguments of a launch, by path; without those that have none."""
    found: Attributes = {}
    with _without_torch(type(backend)):
        for argument in record.arguments:
            is_constant = signature.get(argument.path) == "constexpr"
            rows = () if is_constant or not argument.specializes else _rows(backend, argument)
            if rows:
                found[argument.path] = rows
    return found


def spare_torch(patches: Patches) -> None:
    """Keep AMD's backend from importing torch at the launches of a program that has not: none gets a tensor of it."""
    for kind in backend_classes():
        if hasattr(kind, "is_within_2gb"):
            patches.set(kind, "is_within_2gb", staticmethod(_sparing_torch(kind, kind.is_within_2gb)))


def _sparing_torch(kind: Any, is_within_2gb: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_within(argument: Any) -> bool:
        if "torch" in sys.modules:
            return is_within_2gb(argument)
        with _without_torch(kind):
            return is_within_2gb(argument)

    return is_within


@contextmanager
def _without_torch(kind: Any) -> Iterator[None]:
    """Keep AMD's backend from importing torch for an isinstance check: it takes seconds, and may be missing."""
    if hasattr(kind, "_torch_available"):
        with replaced(kind, "_torch_available", False):
            yield
        return
    # 3.6 and 3.7 have no such switch.
    missing = "torch" not in sys.modules
    stand_in = ModuleType("torch")
    vars(stand_in)["Tensor"] = _Tensor
    sys.modules.setdefault("torch", stand_in)
    try:
        yield
    finally:
        if missing:
            del sys.modules["torch"]


def _rows(backend: Any, argument: Argument) -> tuple[tuple[str, Any], ...]:
    aligned = argument.specializes_on_alignment
    if argument.kind == "tensor":
        return parsed_attributes(backend, backend.get_tensor_specialization(_Tensor(argument), align=aligned))
    if argument.kind == "scalar" and argument.dtype == "int":
        return parsed_attributes(backend, backend.get_int_specialization(argument.value, align=aligned))
    return ()


def parsed_attributes(backend: Any, key: str) -> tuple[tuple[str, Any], ...]:
    """A backend's attributes for the key of a specialization: `D` where a value is known to be divisible by 16."""
    return tuple((name, value) for name, value in backend.parse_attr(key))


def attributes_of_small_tensor(backend: Any) -> tuple[tuple[str, Any], ...]:
    argument = Argument("x", "tensor", storage_bytes=0, alignment_bytes=512)
    return attributes_of(backend, LaunchRecord((argument,)), {}).get("x", ())
