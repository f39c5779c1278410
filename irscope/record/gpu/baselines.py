"""The empty plan's kernel again, with only the order or the rounding of its arithmetic changed: to measure noise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from irscope.record.compile.recompile import chosen_options
from irscope.record.gpu.kernels import with_binary
from irscope.record.triton import api as triton_api

Compile = Callable[[dict[str, Any]], Any]
"""Compiles the kernel's source under the empty plan with other options; gives a CompiledKernel."""

ROUNDINGS = 8
_MOST_WARPS = 32
_MODES = (".rn", ".rz", ".rm", ".rp")

# add.f32 %r3, %r1, %r2;   @%p1 fma.rn.ftz.f32 %f4, %f1, %f2, 0f3FB8AA3B;   div.rn.f32 %f3, %f1, %f2;
_ROUNDED = re.compile(
    r"(?m)^(?P<head>[ \t]*(?:@!?%p\d+[ \t]+)?)(?P<op>(?:add|sub|mul|fma)(?:\.rn)?|(?:div|sqrt|rcp)\.rn)"
    r"(?P<tail>(?:\.ftz)?(?:\.sat)?\.f(?:32|64)(?:x2)?[ \t])(?P<operands>[^;\n]*);"
)
# 0f4B400000   0d4338000000000000
_LITERAL = re.compile(r"0f([0-9A-Fa-f]{8})\b|0d([0-9A-Fa-f]{16})\b")
# mov.b32 %r7, 0f4B400000;
_MOVED_LITERAL = re.compile(r"(?m)^[ \t]*mov\.[bf](?:32|64)[ \t]+(%\w+), (0[fd][0-9A-Fa-f]+);")
_REGISTER = re.compile(r"%\w+")

# With these another number of warps may compute something else, wait for ever, or not compile.
_TIED_TO_WARPS = ("atomic_cas", "inline_asm", "warp_specialize")


def other_baselines(kernel: Any, options: dict[str, Any], compile_: Compile) -> Iterator[tuple[str, Any]]:
    """(what is other, CompiledKernel) for each way in which a kernel's sums can be reordered or rounded otherwise.

    Half and twice the warps, no fused multiply-add, and on NVIDIA eight random choices of a direction of rounding for
    every addition, multiplication and division of its PTX. What does not compile is left out.
    """
    texts = kernel.asm
    ttir = texts.get("ttir", "")
    if hasattr(kernel.src, "fn") and ttir:
        warps = int(kernel.metadata.num_warps)
        if not any(word in ttir for word in _TIED_TO_WARPS):
            for number in (warps * 2, warps // 2):
                if 1 <= number <= _MOST_WARPS:
                    yield from _compiled(compile_, f"{number} warps", num_warps=number)
        if options.get("enable_fp_fusion"):
            yield from _compiled(compile_, "no fused multiply-add", enable_fp_fusion=False)
    if "ptx" in texts:
        yield from _rounded(kernel, options)


def _compiled(compile_: Compile, label: str, **options: Any) -> Iterator[tuple[str, Any]]:
    try:
        made = compile_(options)
    except Exception:
        # Too little shared memory, a layout that needs its warps: no noise is learned of it.
        return
    yield label, made


def _rounded(kernel: Any, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    ptx = kernel.asm["ptx"]
    texts = [text for text in dict.fromkeys(rounded_otherwise(ptx, seed) for seed in range(ROUNDINGS)) if text != ptx]
    if not texts:
        return
    target = triton_api.target_of(kernel.metadata.target)
    backend = triton_api.make_backend(target)
    stages: dict[str, Any] = {}
    language = "triton" if "ttir" in kernel.asm else "gluon"
    backend.add_stages(stages, backend.parse_options(chosen_options(options)), triton_api.language_of(language))

    def assembled(text: str) -> bytes | None:
        try:
            return stages["cubin"](text, kernel.metadata._asdict())
        except Exception:
            return None

    with triton_api.knob("nvidia", "dump_ptxas_log", False), ThreadPoolExecutor(4) as pool:
        binaries = list(pool.map(assembled, texts))
    for number, binary in enumerate(binaries, 1):
        if binary is not None:
            yield f"rounding {number}", with_binary(kernel, binary, {})


def rounded_otherwise(ptx: str, seed: int) -> str:
    """PTX whose additions, multiplications and divisions each round in a direction drawn at random.

    What adds a number so large that its last place is an integer's stays: that is how a float is made an integer.
    """
    draw = random.Random(seed)
    magic = {name for name, literal in _MOVED_LITERAL.findall(ptx) if _is_magic(literal)}

    def replaced(match: re.Match[str]) -> str:
        operands = match["operands"]
        if magic.intersection(_REGISTER.findall(operands)) or any(
            _is_magic(literal[0]) for literal in _LITERAL.finditer(operands)
        ):
            return match[0]
        name = match["op"].partition(".")[0]
        return f"{match['head']}{name}{draw.choice(_MODES)}{match['tail']}{operands};"

    return _ROUNDED.sub(replaced, ptx)


def _is_magic(literal: str) -> bool:
    """Whether a PTX literal is finite and at least 2**21 (float32) or 2**50 (float64)."""
    bits = int(literal[2:], 16)
    if literal[1] == "f":
        exponent = (bits >> 23 & 0xFF) - 127
        return 21 <= exponent < 128
    exponent = (bits >> 52 & 0x7FF) - 1023
    return 50 <= exponent < 1024
