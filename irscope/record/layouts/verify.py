"""Checks maps on an NVIDIA GPU: each element stores the thread that holds it, or its offset in shared memory.

The layouts are checked in a child process. If the compiler dies of one, a new child checks the rest. Written for Triton
3.6 and later.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from irscope.errors import MissingTool
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import query_type
from irscope.layout.thread_map import ThreadMap
from irscope.record.layouts.messages import Module
from irscope.record.process.child import module_command

_TIMEOUT_S = 300.0
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of checking one layout."""

    name: str
    shape: tuple[int, ...]
    checked: int
    """Number of elements."""
    differences: tuple[tuple[tuple[int, ...], str, str], ...] = ()
    """(element, the place by the map, the place on the hardware)."""
    skipped: str = ""
    """Why it was not checked; or an empty string."""
    failed: str = ""
    """Why the check failed; or an empty string."""

    @property
    def agrees(self) -> bool:
        """Whether the check did not fail and found no difference."""
        return not self.differences and not self.failed

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
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


def verify_layouts(layouts: Sequence[DescribedLayout], *, interpreter: str | None = None) -> list[Verified]:
    """Check every layout on the installed GPU; raises MissingTool if there is none that can be used."""
    questions = [(item, why_not(item)) for item in layouts]
    asked = [item for item, why in questions if not why]
    answers = iter(_ask(asked, interpreter)) if asked else iter(())
    return [
        Verified(item.name, item.shape, 0, skipped=why) if why else _compared(item, next(answers))
        for item, why in questions
    ]


def why_not(item: DescribedLayout) -> str:
    """Why a layout can't be checked on an NVIDIA GPU; or an empty string."""
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


def _ask(items: Sequence[DescribedLayout], interpreter: str | None) -> list[dict[str, Any]]:
    """One answer per layout: `values`, or `error`. A child that dies is started again after the layout it died of."""
    questions = [_question(item) for item in items]
    answers: list[dict[str, Any]] = []
    while len(answers) < len(questions):
        text = "".join(json.dumps(question) + "\n" for question in questions[len(answers) :])
        command = module_command("irscope.record.layouts.verify", interpreter=interpreter)
        try:
            run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_TIMEOUT_S)
            code, output, said = run.returncode, run.stdout, run.stderr
        except subprocess.TimeoutExpired as late:
            output = late.stdout.decode() if isinstance(late.stdout, bytes) else (late.stdout or "")
            code, said = 1, f"it took more than {_TIMEOUT_S:g} s"
        fresh = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if fresh and "no_gpu" in fresh[0]:
            raise MissingTool(f"--verify needs an NVIDIA GPU that torch can use: {fresh[0]['no_gpu']}")
        answers += fresh
        if len(answers) < len(questions):
            last = said.strip().splitlines()[-1:] or [f"status {code}"]
            answers.append({"error": f"the process ended: {last[0][:300]}"})
    return answers


def _question(item: DescribedLayout) -> dict[str, Any]:
    threads, memory = item.threads, item.memory
    bits = memory.element_bits if memory is not None else 32
    element = {8: "i8", 16: "i16", 32: "i32"}[bits]
    return {
        "type": query_type(item.encoding.text, item.shape, element),
        "shape": list(item.shape),
        "bits": bits,
        "space": item.encoding.space,
        "warps": threads.warps if threads is not None else 4,
        "target": str(item.target),
    }


def _compared(item: DescribedLayout, answer: dict[str, Any]) -> Verified:
    if "error" in answer:
        return Verified(item.name, item.shape, 0, failed=answer["error"])
    values: list[int] = answer["values"]
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


def main() -> None:
    """Answer the questions on standard input, one per line; runs in the child."""
    try:
        import torch

        if not torch.cuda.is_available() or torch.version.cuda is None:
            raise RuntimeError("torch finds no CUDA device")
    except (ImportError, RuntimeError) as error:
        print(json.dumps({"no_gpu": str(error)}), flush=True)
        return
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"values": measure(question, torch)}
        except Exception as error:
            answer = {
                "error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error) else ''}"
            }
        print(json.dumps(answer), flush=True)


def measure(question: dict[str, Any], torch: Any) -> list[int]:
    """Run the kernel of one question on the GPU: the thread of each element, or the element at each offset."""
    from irscope.record.layouts.compiler import LayoutCompiler

    kernels: Any = importlib.import_module("irscope.record.triton.gluon_kernels")
    gl = kernels.gl
    compiler = LayoutCompiler()
    compiler.set_module(Module(question["target"], 32, question["warps"]))
    layout = compiler.gluon_layout(question["type"])
    shape, warps = question["shape"], question["warps"]
    size = prod(shape)
    out = torch.full((size,), -1, dtype=torch.int32, device="cuda")
    rank = len(shape)
    plain = gl.BlockedLayout(
        [1] * rank, [1] * (rank - 1) + [32], [1] * (rank - 1) + [warps], list(range(rank - 1, -1, -1))
    )
    if question["space"] == "registers":
        kernels.store_threads[(1,)](out, plain, layout, tuple(shape), num_warps=warps)
        return out.tolist()
    bits = question["bits"]
    line = gl.BlockedLayout([1], [32], [warps], [0])
    flat = gl.SwizzledSharedLayout(1, 1, 1, [0])
    kind = {8: gl.int8, 16: gl.int16, 32: gl.int32}[bits]
    total = [0] * size
    for shift in range(0, max(size - 1, 1).bit_length(), bits):
        mask = (1 << min(bits, 31)) - 1
        kernels.store_offsets[(1,)](
            out, plain, layout, line, flat, tuple(shape), size, kind, shift, mask, num_warps=warps
        )
        total = [value | part << shift for value, part in zip(total, out.tolist(), strict=True)]
    return total


if __name__ == "__main__":
    main()
