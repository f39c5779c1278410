"""Checks maps on an NVIDIA GPU: each element stores the thread that holds it, or its offset in shared memory.

The layouts are checked in a child process. If the compiler dies of one, a new child checks the rest. Written for Triton
3.6 and later.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from irscope.errors import MissingTool
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import ThreadMap
from irscope.layout.rows import query_type
from irscope.record.process.annotations import Measure, Measured, Module
from irscope.record.process.child import Child, child_process
from irscope.record.process.events import Refused
from irscope.record.process.messages import serve_parent
from irscope.record.process.own_folder import own_folder

_MODULE = "irscope.record.layouts.verify"
_TIMEOUT_S = 120.0
_LONGEST_ERROR = 300
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Verified:
    name: str
    shape: tuple[int, ...]
    checked: int
    differences: tuple[tuple[tuple[int, ...], str, str], ...] = ()
    """(element, the place by the map, the place on the hardware)."""
    skipped: str = ""
    failed: str = ""

    @property
    def agrees(self) -> bool:
        return not self.differences and not self.failed

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"agrees": self.agrees}

    def __str__(self) -> str:
        head = f"{self.name} {'×'.join(map(str, self.shape))}: "
        if self.skipped or self.failed:
            return head + (f"not checked: {self.skipped}" if self.skipped else f"failed: {self.failed}")
        if not self.differences:
            return head + f"the hardware agrees on all {self.checked} elements"
        rows = [
            f"  {element}: the map says {ours}, the hardware {theirs}"
            for element, ours, theirs in self.differences[:_SHOWN]
        ]
        more = len(self.differences) - len(rows)
        tail = [f"  … {more} more"] if more > 0 else []
        return "\n".join([head + f"{len(self.differences)} of {self.checked} elements differ", *rows, *tail])


def verify_layouts(layouts: Sequence[DescribedLayout]) -> list[Verified]:
    """Check every layout on the installed GPU; raises MissingTool if there is none that can be used."""
    questions = [(item, why_not(item)) for item in layouts]
    answers = iter(_measured([_question(item) for item, why in questions if not why]))
    return [
        Verified(item.name, item.shape, 0, skipped=why) if why else _compared(item, next(answers))
        for item, why in questions
    ]


def why_not(item: DescribedLayout) -> str:
    if item.layout is None:
        return item.row.reason
    if item.target.backend != "cuda":
        return f"it is for {item.target}, and the check is written for NVIDIA GPUs"
    if item.encoding.space == "tensor":
        return "tensor memory is not read back yet"
    if not 1 <= len(item.shape) <= 3:
        return f"the check is written for rank 1 to 3, not {len(item.shape)}"
    if item.layout.in_size("block") > 1:
        return "it spans several CTAs"
    if item.memory is not None and item.memory.padding:
        return "padded layouts can't be read back as raw memory"
    if item.memory is not None and item.memory.element_bits not in (8, 16, 32):
        return f"elements of {item.memory.element_bits} bits are not checked"
    if item.memory is not None and item.memory.size_bytes < 128:
        return "it is smaller than one line of banks"
    return ""


def _measured(questions: Sequence[Measure]) -> list[Measured]:
    answers: list[Measured] = []
    while len(answers) < len(questions):
        with own_folder() as folder, child_process(_MODULE, folder) as child:
            for question in questions[len(answers) :]:
                answers.append(_answer_of(child, question))
                if child.at_end:
                    break
    return answers


def _answer_of(child: Child, question: Measure) -> Measured:
    child.send(question)
    deadline = time.monotonic() + _TIMEOUT_S
    while not child.at_end and time.monotonic() < deadline:
        for message in child.read():
            if isinstance(message, Refused):
                raise message.as_error()
            if isinstance(message, Measured):
                return message
    how = str(child.end()) if child.at_end else f"took more than {_TIMEOUT_S:g} s"
    child.close()
    last = child.last_lines().splitlines()[-1:]
    return Measured(error=": ".join([f"the process {how}", *last])[:_LONGEST_ERROR])


def _question(item: DescribedLayout) -> Measure:
    bits = item.memory.element_bits if item.memory is not None else 32
    kind = query_type(item.encoding.text, item.shape, f"i{bits}")
    warps = item.threads.warps if item.threads is not None else 4
    return Measure(str(item.target), kind, item.shape, bits, item.encoding.space == "registers", warps)


def _compared(item: DescribedLayout, answer: Measured) -> Verified:
    if answer.error:
        return Verified(item.name, item.shape, 0, failed=answer.error)
    values = answer.values
    differences = (
        _thread_differences(item.threads, values) if item.threads is not None else _offset_differences(item, values)
    )
    return Verified(item.name, item.shape, len(values), tuple(differences))


def _thread_differences(threads: ThreadMap, values: Sequence[int]) -> list[tuple[tuple[int, ...], str, str]]:
    found: list[tuple[tuple[int, ...], str, str]] = []
    for index, thread in enumerate(values):
        # One of several holders stores last: it must be among those of the map.
        holders = {owner.warp * threads.lanes + owner.lane for owner in threads.owners_at(index)}
        if thread not in holders:
            ours = ", ".join(map(str, sorted(holders)[:4]))
            found.append((threads.layout.unflatten(index), f"thread {ours}", f"thread {thread}"))
    return found


def _offset_differences(item: DescribedLayout, values: Sequence[int]) -> list[tuple[tuple[int, ...], str, str]]:
    memory = item.memory
    if memory is None:
        return []
    found: list[tuple[tuple[int, ...], str, str]] = []
    for offset, (ours, theirs) in enumerate(zip(memory.elements, values, strict=True)):
        if ours != theirs:
            at = memory.layout.unflatten(ours)
            found.append((at, f"offset {offset}", f"{memory.layout.unflatten(theirs % len(values))} lies there"))
    return found


def _serve(questions: Iterator[Measure], send: Callable[[Measured], None]) -> None:
    try:
        import torch

        if not torch.cuda.is_available() or torch.version.cuda is None:
            raise RuntimeError("torch finds no CUDA device")
    except (ImportError, RuntimeError) as error:
        raise MissingTool(f"--verify needs an NVIDIA GPU that torch can use: {error}") from error
    for question in questions:
        try:
            answer = Measured(tuple(_measure(question, torch)))
        except Exception as error:
            said = str(error).strip().splitlines()[:1]
            answer = Measured(error=": ".join([type(error).__name__, *said])[:_LONGEST_ERROR])
        send(answer)


def _measure(question: Measure, torch: Any) -> list[int]:
    from irscope.record.layouts.compiler import LayoutCompiler

    kernels: Any = importlib.import_module("irscope.record.triton.gluon_kernels")
    gl = kernels.gl
    compiler = LayoutCompiler()
    compiler.set_module(Module(question.target, 32, question.num_warps))
    layout = compiler.gluon_layout(question.type)
    shape, warps = question.shape, question.num_warps
    size = prod(shape)
    out = torch.full((size,), -1, dtype=torch.int32, device="cuda")
    rank = len(shape)
    plain = gl.BlockedLayout(
        [1] * rank, [1] * (rank - 1) + [32], [1] * (rank - 1) + [warps], list(range(rank - 1, -1, -1))
    )
    if question.in_registers:
        kernels.store_threads[(1,)](out, plain, layout, shape, num_warps=warps)
        return out.tolist()
    bits = question.element_bits
    line = gl.BlockedLayout([1], [32], [warps], [0])
    flat = gl.SwizzledSharedLayout(1, 1, 1, [0])
    kind = {8: gl.int8, 16: gl.int16, 32: gl.int32}[bits]
    total = [0] * size
    for shift in range(0, max(size - 1, 1).bit_length(), bits):
        mask = (1 << min(bits, 31)) - 1
        kernels.store_offsets[(1,)](out, plain, layout, line, flat, shape, size, kind, shift, mask, num_warps=warps)
        total = [value | part << shift for value, part in zip(total, out.tolist(), strict=True)]
    return total


if __name__ == "__main__":
    # At once, without what the compiler prints at exit.
    os._exit(serve_parent(int(sys.argv[1]), _serve))
