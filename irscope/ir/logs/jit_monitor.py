"""Reads the lines of a server's log that name Triton kernels compiled after it was ready: vLLM's and SGLang's.

vLLM (`vllm/utils/jit_monitor.py`, `vllm/triton_utils/jit_monitor.py` before July 2026) names the kernel, and with
`--jit-monitor-verbose` or `VLLM_DEBUG_TRITON_RECOMPILE=1` its constants and types; SGLang
(`python/sglang/srt/utils/triton_load_watch.py`) names the kernel, and how long it took to compile.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from irscope.ir.logs.launch_text import UNKNOWN_TARGET, items
from irscope.ir.mlir.tokens import split_commas
from irscope.model.capture import Capture, Environment, Kernel, Launch
from irscope.model.plain import NOT_PYTHON, literal
from irscope.model.telling import DIVISIBLE

_VLLM, _SGLANG = " JIT compilation during inference: ", "Triton kernel '"
_PARTS = ("constexprs", "signature", "extra_compile_info", "key")
_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_MOST_KERNELS = 10_000


@dataclass(slots=True)
class _Seen:
    launch: Launch
    line: int
    count: int = 0
    seconds: float | None = None


def captures_of_jit_log(text: str, name: str) -> tuple[Capture, ...]:
    """A capture, with no stage, of each kernel with the arguments that the log says, in the order of their first lines.

    What vLLM cuts (each value after 120 characters) and what a line does not hold stays unknown.
    """
    seen: dict[Launch, _Seen] = {}
    for number, line in enumerate(text.splitlines(), 1):
        launch, seconds = _of_vllm(line), None
        if launch is None:
            launch, seconds = _of_sglang(line)
        if launch is None:
            continue
        if launch not in seen and len(seen) >= _MOST_KERNELS:
            break
        one = seen.setdefault(launch, _Seen(launch, number))
        one.count += 1
        if seconds is not None:
            one.seconds = max(one.seconds or 0.0, seconds)
    return tuple(_capture(one, name) for one in seen.values())


def _of_vllm(line: str) -> Launch | None:
    # … [jit_monitor.py:103] Triton kernel JIT compilation during inference: _zero_kv_blocks_kernel. This causes a …
    # … Triton kernel JIT compilation during inference: _fwd (constexprs={BLOCK=64}; signature={x='*bf16'}; …). This …
    # … Triton autotune/warmup candidate JIT compilation during inference: _fwd (key=[('*i32', 'D'), …]{…}).
    before, _, after = line.partition(_VLLM)
    name = after.partition(" ")[0].rstrip(".")
    if not before.endswith(("Triton kernel", "Triton autotune/warmup candidate")) or not name.isidentifier():
        return None
    return _launch(name, _details(after[len(name) :]))


def _of_sglang(line: str) -> tuple[Launch | None, float | None]:
    """The kernel, and how many seconds its compile took, if the line says that."""
    # … Triton kernel '_fwd' took 2.31 s to compile after serving started. Serving-time compilation can stall the …
    # … Triton kernel '_fwd' device-loaded after serving started (free device mem: 0.66 GiB). Late loads run inside …
    name, _, rest = line.partition(_SGLANG)[2].partition("' ")
    if not name.isidentifier():
        return None, None
    if rest.startswith("device-loaded after serving started"):
        return Launch(Kernel(name)), None
    number, found, _ = rest.removeprefix("took ").partition(" s to compile after serving started")
    if not found or not number.replace(".", "", 1).isdecimal() or len(number) > 12:
        return None, None
    return Launch(Kernel(name)), float(number)


def _capture(seen: _Seen, name: str) -> Capture:
    lines = "1 line" if seen.count == 1 else f"{seen.count} lines"
    notes = [f"Compiled or loaded while the server ran, by {lines} of {name}, the first of which is line {seen.line}."]
    if not seen.launch.signature:
        notes.append("The log does not hold its arguments: vLLM's does with --jit-monitor-verbose.")
    return Capture(
        launch=seen.launch,
        target=UNKNOWN_TARGET,
        environment=Environment(),
        notes=tuple(notes),
        snapshot_level="none",
        compile_us=None if seen.seconds is None else int(seen.seconds * 1e6),
    )


def _details(rest: str) -> Mapping[str, str]:
    """`constexprs`, `signature` and so on, by name, of ` (constexprs={…}; signature={…}; …). This causes …`."""
    inner = rest.strip().partition(". This causes")[0].removesuffix(".")
    if not inner.startswith("(") or not inner.endswith(")"):
        return {}
    parts: dict[str, str] = {}
    last = ""
    for piece in inner[1:-1].split("; "):
        name, found, value = piece.partition("=")
        if found and name in _PARTS:
            parts[name], last = value, name
        elif last:
            parts[last] += f"; {piece}"
    return parts


def _launch(name: str, details: Mapping[str, str]) -> Launch:
    signature = {key: str(kind) for key, value in _pairs(details.get("signature", "")) if (kind := literal(value))}
    if not signature:
        return _launch_of_key(name, details.get("key", ""))
    constants = dict(_pairs(details.get("constexprs", "")))
    # What stands before an option may be cut, and its brackets open.
    others = (part.partition("=") for part in details.get("extra_compile_info", "").strip("{}").split(", "))
    options = [(key, value) for key, _, value in others if key in _OPTIONS and value.isdecimal() and len(value) < 5]
    return Launch(
        Kernel(name),
        signature=tuple(signature.items()),
        constants=tuple(row for row in constants.items() if row[0].partition("[")[0] in signature),
        options=tuple(sorted((key, int(value)) for key, value in options)),
    )


def _launch_of_key(name: str, key: str) -> Launch:
    """Of `[('i32', None), ('*i32', 'D'), ('constexpr', 1)]{…}`: types and constants in order, without names."""
    given = items(literal(key.partition("]{")[0] + "]" if "]{" in key else key))
    if not all(isinstance(row, tuple) and len(cast("tuple[Any, ...]", row)) == 2 for row in given):
        return Launch(Kernel(name))
    signature: dict[str, str] = {}
    constants: dict[str, str] = {}
    attributes: dict[str, str] = {}
    for number, (kind, said) in enumerate(given):
        parameter = f"arg{number}"
        signature[parameter] = str(kind)
        if kind == "constexpr":
            constants[parameter] = repr(said)
        elif isinstance(said, str) and "D" in said:
            attributes[parameter] = DIVISIBLE
    return Launch(
        Kernel(name),
        signature=tuple(signature.items()),
        constants=tuple(constants.items()),
        attributes=tuple(attributes.items()),
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    """(name, value's text) of `{A=1, B='x'}`; what is cut in the middle is left out."""
    if not text.startswith("{") or not text.endswith("}"):
        return []
    try:
        call = ast.parse(f"f({text[1:-1]})", mode="eval").body
    except NOT_PYTHON:
        # A path such as `sizes[0]`, an object that has no form in Python.
        rows = (part.strip().partition("=") for part in split_commas(text[1:-1]))
        return [(name, value) for name, equals, value in rows if equals and not value.endswith("...")]
    if not isinstance(call, ast.Call):
        return []
    return [(one.arg, ast.unparse(one.value)) for one in call.keywords if one.arg is not None]
