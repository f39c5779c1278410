"""Python that compiles every variant of a kernel before it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from irscope.analysis.variants.site import Site, Variant
from irscope.model.telling import DIVISIBLE

__all__ = ["warmup_code"]

_DTYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "i1": "bool", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip
_SET_BY_TRITON = frozenset({"debug", "instrumentation_mode", "fpsan_homomorphic_casts", "arch", "backend_name"})

_HEAD = '''"""Compiles what was compiled while this was recorded, before the first launch needs it."""

import torch
import triton
from triton.runtime.jit import MockTensor


class Unaligned(MockTensor):
    """A tensor whose address 16 does not divide."""

    data_ptr = staticmethod(lambda: 1)


def jit_function(kernel):
    """The function below @triton.autotune and @triton.heuristics."""
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    return kernel
'''


def warmup_code(sites: Iterable[Site]) -> str:
    """A module that warms up all variants; what cannot be written as code stands in a comment."""
    parts: list[str] = [_HEAD]
    named: set[tuple[str, str]] = set()
    for site in sites:
        kernel = site.kernel
        module = Path(kernel.file).stem
        if not (module.isidentifier() and kernel.name.isidentifier()):
            parts.append(f"\n# {kernel.name} of {kernel.file}: not a module that can be imported.")
            continue
        lines = ["", f"# {kernel.file}:{kernel.line}, for {site.target}: {len(site.variants)} variants"]
        if (kernel.name, module) not in named:
            lines.append(f"from {module} import {kernel.name}  # noqa: E402")
            named.add((kernel.name, module))
        lines += [_call(kernel.name, one) for one in site.variants]
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"


def _call(name: str, variant: Variant) -> str:
    launch = variant.launch
    constants, attributes = dict(launch.constants), dict(launch.attributes)
    words: list[str] = []
    unknown: list[str] = []
    for parameter, kind in launch.signature:
        text = _argument(variant, parameter, kind, constants.get(parameter), attributes.get(parameter, ""))
        if text is None:
            unknown.append(f"{parameter}: {kind} {constants.get(parameter, '')}".rstrip())
        words.append(text or "...")
    options = dict(launch.set_options or ())
    if launch.set_options is None or launch.autotuning is not None:
        options |= {key: value for key, value in launch.options if key in ("num_warps", "num_stages", "num_ctas")}
    words += [
        f"{key}={value!r}" for key, value in options.items() if key not in _SET_BY_TRITON and key not in constants
    ]
    call = f"jit_function({name}).warmup({', '.join([*words, 'grid=(1,)'])})"
    return f"# {call}  # {'; '.join(unknown)}" if unknown else call


def _argument(variant: Variant, name: str, kind: str, constant: str | None, attributes: str) -> str | None:
    """A value that Triton specialises as it did this one; None if none can be written."""
    if kind == "constexpr":
        return _constant(constant)
    aligned = DIVISIBLE in attributes
    if kind.startswith("*"):
        dtype = _DTYPES.get(kind.removeprefix("*").removeprefix("k"))
        if dtype is None:
            return None
        return f"torch.{dtype}" if aligned else f"Unaligned(torch.{dtype})"
    record = variant.launch.record.argument(name) if variant.launch.record is not None else None
    if record is not None and isinstance(record.value, (bool, int, float)):
        return repr(record.value)
    known: dict[str, Any] = {"i1": True, "u1": True, "fp32": 1.5, "fp64": 1.5}
    if kind in known:
        return repr(known[kind])
    least = {"i32": 16, "i64": 1 << 40, "u64": 1 << 63}.get(kind)
    return None if least is None else str(least if aligned else least + 1)


def _constant(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    # fp16: an element type
    dtype = _DTYPES.get(text.removeprefix("triton.language."))
    return f"triton.language.{dtype}" if dtype else None
