"""Kernels on the device: launches as they are made, and other binaries in the place of a launch's own."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from irscope.ir.mlir.uses import ArithmeticPrecision, PointerUses, read_arithmetic, read_pointer_uses
from irscope.record.compile.recompile import chosen_options
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import replaced

# What the metadata of a launch's own binary says, whatever stands in the place of that.
_OF_THE_LAUNCH = ("target", "triton_version", "hash")


@dataclass(frozen=True, slots=True)
class SeenLaunch:
    kernel: Any
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    """One a parameter, constants included."""

    @property
    def kernel_name(self) -> str:
        return getattr(getattr(self.kernel.src, "fn", None), "__name__", self.kernel.name)

    @property
    def names(self) -> list[str]:
        return list(self.kernel.src.fn.arg_names)

    @property
    def signature(self) -> dict[str, Any]:
        return dict(self.kernel.src.signature)

    @property
    def has_arguments(self) -> bool:
        """Whether its arguments are the parameters of a `@triton.jit` function, one by one."""
        # A kernel of an IR file has no such function, and TorchInductor's own launchers leave constants out.
        return hasattr(self.kernel.src, "fn") and len(self.arguments) == len(self.names)


def pointer_uses_of(kernel: Any) -> PointerUses:
    texts = kernel.asm
    stage = "ttir" if "ttir" in texts else "ttgir"
    return read_pointer_uses(texts[stage]) if stage in texts else PointerUses(elsewhere=True)


def arithmetic_of(kernel: Any) -> ArithmeticPrecision:
    return read_arithmetic(kernel.asm["ttir"]) if "ttir" in kernel.asm else ArithmeticPrecision()


@contextmanager
def watched_launches(on_launch: Callable[[SeenLaunch, Callable[[], Any]], Any]) -> Iterator[None]:
    """Hand every launch of this process to `on_launch(launch, proceed)`, for a while; `proceed()` makes it."""
    kernel_class = triton_api.compiled_kernel_class()
    real = kernel_class.run

    def run(kernel: Any) -> Callable[..., Any]:
        launcher = real.fget(kernel)

        # grid_x, grid_y, grid_z, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook, *arguments:
        # so in Triton 3.6 to 3.9.
        def launch(x: int, y: int, z: int, *rest: Any) -> Any:
            seen = SeenLaunch(kernel, (int(x), int(y), int(z)), rest[6:])
            return on_launch(seen, lambda: launcher(x, y, z, *rest))

        return launch

    with replaced(kernel_class, "run", property(run)):
        yield


def launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...] | list[Any]) -> None:
    """Launch a kernel on the current stream, unwatched, with no hooks."""
    if kernel.module is None:
        kernel._init_handles()
    kernel._run(
        *grid, triton_api.current_stream(), kernel.function, kernel.packed_metadata, None, None, None, *arguments
    )


def with_binary(kernel: Any, binary: bytes, metadata: Mapping[str, Any]) -> Any:
    """A copy of a CompiledKernel with another binary and the metadata that it needs, for a launcher of its own."""
    # As Triton reads it from its cache: lists, not tuples.
    fields = kernel.metadata._asdict() | json.loads(json.dumps(dict(metadata)))
    fields |= {name: getattr(kernel.metadata, name) for name in _OF_THE_LAUNCH if hasattr(kernel.metadata, name)}
    made = copy.copy(kernel)
    made.metadata = namedtuple("KernelMetadata", sorted(fields))(**fields)
    made.packed_metadata = triton_api.make_backend(triton_api.target_of(fields["target"])).pack_metadata(made.metadata)
    made.kernel = binary
    made.name = fields["name"]
    made.hash = hashlib.sha256(binary).hexdigest()
    made.module = made.function = made._run = None
    return made


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

    Half and twice the warps, no fused multiply-add, and on NVIDIA eight random choices of rounding in its PTX.
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

    What makes a float an integer stays: adding a number so large that its last place is an integer's.
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
