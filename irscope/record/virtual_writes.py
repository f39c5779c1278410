"""Which pointers of a kernel it may write through, read from its Triton IR: what it only reads keeps its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

# %a_10 = tt.load %a_9, %a_6 : tensor<32x!tt.ptr<f32>>  |  %1:2 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
_OPERATION = re.compile(r'^\s*(?:(?P<results>%[^=]*?) = )?"?(?P<name>[a-z_]\w*(?:\.\w+)+)"?')
# %acc_50
_VALUE = re.compile(r"%[\w$.-]+")
# tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
_KERNEL = re.compile(r"^\s*tt\.func public @[^(]+\((?P<parameters>.*)\)", re.MULTILINE)
_PARAMETER = re.compile(r"(?P<name>%[\w$.-]+): (?P<pointer>!tt\.\w+)?")
# ^bb1(%3: i32):
_BLOCK = re.compile(r"^\s*\^\w+\((?P<parameters>.*)\):")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READS = _names(
    "tt.load tt.descriptor_load tt.descriptor_gather tt.experimental_descriptor_load tt.experimental_descriptor_gather "
    "ttg.async_copy_global_to_local ttng.async_tma_copy_global_to_local ttng.async_tma_gather "
    "ttng.async_tma_prefetch amdg.buffer_load amdg.buffer_load_to_local amdgpu.buffer_load "
    "amdgpu.buffer_load_to_local ttng.prefetch_tensormap ttng.tensormap_fenceproxy_acquire"
)
"""Operations that read through the pointers they are given, and whose results are no pointers into the same memory."""
_LOOPS = frozenset({"scf.for", "scf.while"})
_YIELDS = frozenset({"scf.yield", "scf.condition", "cf.br", "cf.cond_br"})
_QUIET = frozenset({"tt.return", "tt.assert", "tt.print", "tt.reduce.return", "tt.scan.return"})
_PURE_DIALECTS = ("arith.", "math.", "scf.", "ub.")
_PURE = _names(
    "tt.addptr tt.advance tt.bitcast tt.broadcast tt.cat tt.clampf tt.expand_dims tt.gather tt.int_to_ptr tt.join "
    "tt.make_tensor_descriptor tt.make_tensor_ptr tt.ptr_to_int tt.reduce tt.reshape tt.scan tt.split tt.splat "
    "tt.trans tt.unsplat ttg.convert_layout tt.dot tt.histogram tt.map_elementwise tt.mulhiui tt.precise_divf "
    "tt.precise_sqrt tt.fp_to_fp tt.func"
)


@dataclass(slots=True)
class _Region:
    """An operation with regions: what is yielded within, and the values that it becomes."""

    names: set[str] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)


@lru_cache(maxsize=256)
def written_parameters(text: str) -> tuple[bool, ...] | None:
    """For each parameter of the kernel in a Triton IR text, whether it may be written through.

    None where it may write to any memory: through an address that it read or made of an integer. Errs on the side of
    writing: a pointer is followed by the names of values alone, and an operation that is not known writes.
    """
    found = _KERNEL.search(text)
    if found is None or "tt.int_to_ptr" in text or "x!tt.ptr<!tt.ptr" in text or "!tt.ptr<!tt.ptr" in text:
        return None
    parameters = list(_PARAMETER.finditer(found["parameters"]))
    reader = _Reader({one["name"]: {index} for index, one in enumerate(parameters) if one["pointer"]})
    lines = text.splitlines()
    while reader.read(lines):
        pass
    return tuple(index in reader.written for index in range(len(parameters)))


class _Reader:
    """Follows the pointers through a text, again and again until nothing new is found."""

    def __init__(self, held: dict[str, set[int]]) -> None:
        self.held = held
        """By value: the parameters whose memory it may point into."""
        self.written: set[int] = set()
        self._regions: dict[int, _Region] = {}
        """By the line that opens it."""

    def read(self, lines: list[str]) -> bool:
        """Go through the text once; whether anything new was found."""
        before = self._size()
        open_regions: list[_Region] = []
        for number, line in enumerate(lines):
            self._line(number, line.partition(" loc(")[0].rstrip(), open_regions)
        return self._size() != before

    def _size(self) -> int:
        regions = self._regions.values()
        return sum(map(len, self.held.values())) + sum(len(one.reached) + len(one.names) for one in regions)

    def _line(self, number: int, text: str, regions: list[_Region]) -> None:
        if text.lstrip().startswith("}") and regions:
            closed = regions.pop()
            if text.endswith("{"):
                # } else {  |  } do {
                regions.append(closed)
            return
        if (block := _BLOCK.match(text)) is not None:
            if regions:
                regions[-1].names.update(_VALUE.findall(block["parameters"]))
                self._give(regions[-1].names, regions[-1].reached)
            return
        operation = _OPERATION.match(text)
        if operation is None:
            return
        # %5:2 = … is used as %5#1: the name alone matters.
        results = [result.partition(":")[0] for result in _VALUE.findall(operation["results"] or "")]
        others = _VALUE.findall(text[operation.end() :])
        self._operation(operation["name"], results, others, regions)
        if text.endswith("{"):
            region = self._regions.setdefault(number, _Region())
            region.names.update(results, others if operation["name"] in _LOOPS else ())
            regions.append(region)

    def _operation(self, name: str, results: list[str], others: list[str], regions: list[_Region]) -> None:
        reached: set[int] = set().union(*(self.held.get(other, ()) for other in others))
        if name in _YIELDS:
            if regions:
                regions[-1].reached |= reached
                self._give(regions[-1].names, regions[-1].reached)
        elif name in _READS or name in _QUIET or name == "tt.func":
            return
        elif name in _PURE or name.startswith(_PURE_DIALECTS):
            # What a loop begins with is what its block is given.
            self._give([*results, *others] if name in _LOOPS else results, reached)
        elif name == "tt.store" and others:
            # What is stored is no place that is stored to.
            self.written |= self.held.get(others[0], set())
        else:
            self.written |= reached
            self._give(results, reached)

    def _give(self, names: Iterable[str], reached: set[int]) -> None:
        for name in names if reached else ():
            self.held.setdefault(name, set()).update(reached)


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
