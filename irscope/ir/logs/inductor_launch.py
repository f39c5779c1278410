"""Reads what TorchInductor's code says of a kernel's launch: signature, constants, target, options, grid, arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from irscope.ir.logs.launch_text import UNKNOWN_TARGET, items, target_named
from irscope.model.capture import Kernel, Launch, Target
from irscope.model.launch_record import DTYPES, Argument, LaunchRecord
from irscope.model.plain import literal, python_tree

_MOST_CHARACTERS = 1 << 20
_OPTIONS = ("num_warps", "num_stages", "num_ctas")


@dataclass(frozen=True, slots=True)
class CallTensor:
    """A tensor of the code that calls kernels: sizes and strides in elements, and where it begins in its storage."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class KernelCall:
    """The first call of a kernel: the text of each argument, and the tensors that had names then."""

    arguments: tuple[str, ...] = ()
    tensors: Mapping[str, CallTensor] | None = None


_TENSORS = ("empty_strided", "assert_size_stride(", "reinterpret_tensor(", " = buf", " = primals")


def note_tensor(line: str, tensors: dict[str, CallTensor]) -> None:
    """Take the tensor that a line of code makes, names again or checks; sizes that are not numbers are not known."""
    # buf1 = empty_strided_cuda((8, 1), (1, 8), torch.float32)   |   buf4 = reinterpret_tensor(buf2, (8, 1), (1, 1), 0)
    # assert_size_stride(primals_3, (256, ), (1, ), 'input')     |   buf4 = buf2; del buf2  # reuse
    if not any(word in line for word in _TENSORS):
        return
    statements = _parsed(line)
    first = statements[0] if statements else None
    name = ""
    if isinstance(first, ast.Assign) and isinstance(first.targets[0], ast.Name):
        name = first.targets[0].id
        if isinstance(first.value, ast.Name) and first.value.id in tensors:
            tensors[name] = tensors[first.value.id]
    call = first.value if isinstance(first, (ast.Assign, ast.Expr)) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return
    given = call.args
    if call.func.id in ("assert_size_stride", "reinterpret_tensor") and isinstance(given[0], ast.Name):
        name, given = name or given[0].id, given[1:]
    elif not call.func.id.startswith("empty_strided"):
        return
    shape, strides = (_literal(one, tuple) for one in (*given[:2], None, None)[:2])
    is_known = all(type(size) is int and size >= 0 for size in (*shape, *strides))
    offset = _literal(given[2], int) if call.func.id == "reinterpret_tensor" and len(given) > 2 else 0
    if name and is_known and len(given) > 1:
        tensors[name] = CallTensor(shape, strides, offset)


def _parsed(code: str) -> list[ast.stmt]:
    return python_tree(code).body if len(code) <= _MOST_CHARACTERS else []


def launch_of_code(
    kernel: Kernel, code: str, call: KernelCall | None, config: Mapping[str, Any]
) -> tuple[Launch, Target]:
    """The launch that the text of a kernel's module and its first call state, and the target.

    What the code does not state stays unknown: the grid without the configuration that was chosen, the arguments where
    a size is symbolic.
    """
    meta, kind = _decorator(code)
    signature: dict[Any, Any] = _literal(meta.get("signature"), dict)
    if not signature or not all(isinstance(text, str) for row in signature.items() for text in row):
        return Launch(kernel), UNKNOWN_TARGET
    names = list(signature)
    constants = {
        name: repr(value) for name, value in _literal(meta.get("constants"), dict).items() if name in signature
    }
    constants |= {name: repr(value) for name, value in config.items() if signature.get(name) == "constexpr"}
    options = tuple(sorted((name, config[name]) for name in _OPTIONS if type(config.get(name)) is int))
    attributes: dict[str, str] = {}
    for path, rows in _first_attributes(meta.get("configs")).items():
        at: Any = cast("tuple[Any, ...]", path)[0] if isinstance(path, tuple) and path else None
        if type(at) is int and 0 <= at < len(names):
            attributes[names[at]] = ", ".join(f"{key}={value}" for key, value in rows)
    record = _record(signature, call) if call is not None else None
    launch = Launch(
        kernel,
        signature=tuple(signature.items()),
        constants=tuple(sorted(constants.items(), key=lambda row: names.index(row[0]))),
        attributes=tuple(attributes.items()),
        options=options,
        grid=_grid(kind, record, config),
        record=record,
    )
    return launch, _target(meta.get("device"))


def _decorator(code: str) -> tuple[dict[str, ast.expr], str]:
    """The `triton_meta` of a kernel's decorator, by key, and the kind of its grid; empty where there is none."""
    for function in _parsed(code):
        for one in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
            keywords = {key.arg: key.value for key in one.keywords} if isinstance(one, ast.Call) else {}
            if "triton_meta" in keywords:
                kind = _entries(keywords.get("inductor_meta")).get("grid_type")
                return _entries(keywords["triton_meta"]), str(_literal(kind, str))
    return {}, ""


def _entries(node: ast.expr | None) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        return {}
    rows = zip(node.keys, node.values, strict=True)
    return {key.value: value for key, value in rows if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _literal(node: ast.expr | None, kind: type) -> Any:
    """The value of a literal of a type; an empty one of that type for anything else."""
    value = literal(node) if node is not None else None
    return value if isinstance(value, kind) else kind()


def _first_attributes(node: ast.expr | None) -> dict[Any, list[list[Any]]]:
    rows: list[Any] = _literal(node, list)
    first: Any = rows[0] if rows else None
    if not isinstance(first, dict):
        return {}
    return {path: found for path, found in cast("dict[Any, Any]", first).items() if _are_pairs(found)}


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(len(items(row)) == 2 for row in items(value))


def _target(node: ast.expr | None) -> Target:
    # DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc=90, …, warp_size=32)
    if not isinstance(node, ast.Call):
        return UNKNOWN_TARGET
    fields = {key.arg: key.value.value for key in node.keywords if isinstance(key.value, ast.Constant)}
    size = fields.get("warp_size")
    # gfx942:sramecc+:xnack-
    arch = str(fields.get("cc")).partition(":")[0]
    return target_named(f"{fields.get('type')}:{arch}", size if isinstance(size, int) else 0)


def _record(signature: Mapping[str, str], call: KernelCall) -> LaunchRecord | None:
    """What the call gives each parameter that is no constant; None where that cannot be read of one."""
    names = [name for name, kind in signature.items() if kind != "constexpr"]
    if len(names) != len(call.arguments):
        return None
    tensors = call.tensors or {}
    rows: list[Argument] = []
    for name, text in zip(names, call.arguments, strict=True):
        kind = signature[name]
        if not kind.startswith("*"):
            value = literal(text)
            if not isinstance(value, (bool, int, float)):
                return None
            rows.append(Argument(name, "scalar", type(value).__name__, value))
            continue
        known = tensors.get(text)
        dtype = DTYPES.get(kind.lstrip("*k"))
        if known is None or dtype is None or len(known.shape) != len(known.strides):
            return None
        rows.append(
            Argument(name, "tensor", dtype, shape=known.shape, strides=known.strides, storage_offset=known.offset)
        )
    return LaunchRecord(tuple(rows))


_AXES = {"Grid1D": "x", "Grid2D": "xy", "Grid3D": "xyz", "BatchMatmulGrid3D": "zyx"}
_MOST_Y = 65_535


def _grid(kind: str, record: LaunchRecord | None, config: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """`ceil(xnumel / XBLOCK)` and so on, as `torch/_inductor/runtime/triton_heuristics.py` (2.13) has it."""
    if record is None or kind not in _AXES or not config:
        return None
    sizes: list[int] = []
    for axis in _AXES[kind]:
        elements, block = record.argument(f"{axis}numel"), config.get(f"{axis.upper()}BLOCK", 1)
        if elements is None or type(elements.value) is not int or type(block) is not int or block < 1:
            return None
        sizes.append(-(-elements.value // block))
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z) if max(y, z) <= _MOST_Y else None


def split_arguments(text: str) -> Sequence[str]:
    """The positional arguments of a call's text, `buf4, buf0, 8, 256, stream=…)`."""
    given = text.rpartition(")")[0]
    parts = [part.strip() for part in given.split(", ")]
    return [part for part in parts if part and "=" not in part]
