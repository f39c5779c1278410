"""Which pointers of a kernel it may write through, read from its Triton IR: what it only reads keeps its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

# %a_10 = tt.load %a_9, %a_6 : tensor<32x!tt.ptr<f32>>  |  %1:2 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
_OPERATION = re.compile(r'^\s*(?:(?P<results>%[^=]*?) = )?"?(?P<name>[a-z_]\w*(?:\.\w+)+)"?')
# %acc_50
_VALUE = re.compile(r"%[\w$.-]+")
# tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
_KERNEL = re.compile(r"^\s*tt\.func public @[^(]+\((?P<parameters>.*)\)", re.MULTILINE)
_PARAMETER = re.compile(r"(%[\w$.-]+): ")
# ^bb1(%3: i32):
_BLOCK = re.compile(r"^\s*\^\w+\((?P<parameters>.*)\):")

_READS = frozenset(
    "tt.load tt.descriptor_load tt.descriptor_gather tt.experimental_descriptor_load tt.experimental_descriptor_gather "
    "ttg.async_copy_global_to_local ttng.async_tma_copy_global_to_local ttng.async_tma_gather "
    "ttng.async_tma_prefetch amdg.buffer_load amdg.buffer_load_to_local amdgpu.buffer_load "
    "amdgpu.buffer_load_to_local ttng.prefetch_tensormap ttng.tensormap_fenceproxy_acquire".split()
)
"""Operations that read through the pointers they are given, and whose results are no pointers into the same memory."""
_YIELDS = frozenset({"scf.yield", "scf.condition", "cf.br", "cf.cond_br"})
_QUIET = frozenset({"tt.return", "tt.assert", "tt.print", "tt.reduce.return", "tt.scan.return"})
_PURE_DIALECTS = ("arith.", "math.", "scf.", "ub.")
_PURE = frozenset(
    "tt.addptr tt.advance tt.bitcast tt.broadcast tt.cat tt.clampf tt.expand_dims tt.gather tt.int_to_ptr tt.join "
    "tt.make_tensor_descriptor tt.make_tensor_ptr tt.ptr_to_int tt.reduce tt.reshape tt.scan tt.split tt.splat "
    "tt.trans tt.unsplat ttg.convert_layout tt.dot tt.histogram tt.map_elementwise tt.mulhiui tt.precise_divf "
    "tt.precise_sqrt tt.fp_to_fp tt.func".split()
)


@dataclass(slots=True)
class _Region:
    """An operation with regions: the values that what is yielded within becomes."""

    names: list[str]
    results: list[str] = field(default_factory=list)


@lru_cache(maxsize=256)
def written_parameters(text: str) -> tuple[bool, ...] | None:
    """For each parameter of the kernel in a Triton IR text, whether it may be written through.

    None where it may write to any memory: through an address that it read or made of an integer. Errs on the side of
    writing: a pointer is followed by the names of values alone, and an operation that is not known writes.
    """
    found = _KERNEL.search(text)
    if found is None or "tt.int_to_ptr" in text or "x!tt.ptr<!tt.ptr" in text or "!tt.ptr<!tt.ptr" in text:
        return None
    parameters = _PARAMETER.findall(found["parameters"])
    held: dict[str, set[int]] = {name: {index} for index, name in enumerate(parameters)}
    written: set[int] = set()
    lines = text.splitlines()
    while True:
        before = sum(map(len, held.values()))
        regions: list[_Region] = []
        for line in lines:
            _follow(line, held, regions, written)
        if sum(map(len, held.values())) == before:
            return tuple(index in written for index in range(len(parameters)))


def _follow(line: str, held: dict[str, set[int]], regions: list[_Region], written: set[int]) -> None:
    text = line.partition(" loc(")[0].rstrip()
    if text.lstrip().startswith("}") and regions:
        closed = regions.pop()
        if text.endswith("{"):
            # } else {  |  } do {
            regions.append(closed)
        return
    if (block := _BLOCK.match(text)) is not None:
        if regions:
            regions[-1].names += _VALUE.findall(block["parameters"])
        return
    operation = _OPERATION.match(text)
    if operation is None:
        return
    name = operation["name"]
    results = _VALUE.findall(operation["results"] or "")
    # %5:2 = … is used as %5#1: the name alone matters.
    results = [result.partition(":")[0] for result in results]
    others = _VALUE.findall(text[operation.end() :])
    reached: set[int] = set().union(*(held.get(other, ()) for other in others))
    if name in _YIELDS:
        if regions:
            _give(held, regions[-1].names, reached)
    elif name in _READS or name in _QUIET or name == "tt.func":
        pass
    elif name in _PURE or name.startswith(_PURE_DIALECTS):
        _give(held, results, reached)
        if name in ("scf.for", "scf.while"):
            _give(held, others, reached)
    elif name == "tt.store" and others:
        # What is stored is no place that is stored to.
        written |= held.get(others[0], set())
    else:
        written |= reached
        _give(held, results, reached)
    if text.endswith("{"):
        loops = others if name in ("scf.for", "scf.while") else []
        regions.append(_Region([*results, *loops]))


def _give(held: dict[str, set[int]], names: list[str], reached: set[int]) -> None:
    if reached:
        for name in names:
            held.setdefault(name, set()).update(reached)


def written_arguments(kernel: Any, signature: Mapping[str, Any], arguments: tuple[Any, ...]) -> list[Any] | None:
    """Those of a launch's arguments that the compiled kernel may write through; None: it may write to any memory."""
    texts = [kernel.asm[stage] for stage in ("ttir", "ttgir") if isinstance(kernel.asm.get(stage), str)]
    if not texts:
        return list(arguments)
    written = written_parameters(texts[0])
    if written is None:
        return None
    kinds = list(signature.values())
    passed = [index for index, kind in enumerate(kinds) if kind != "constexpr"]
    if len(kinds) != len(arguments) or len(passed) != len(written):
        # A tuple or a descriptor is several parameters: all that was passed may be written.
        return list(arguments)
    return [arguments[index] for index, writes in zip(passed, written, strict=True) if writes]
