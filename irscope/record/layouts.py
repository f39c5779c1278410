"""Every layout of a module, with what the installed compiler says of it, asked in a child that may die of the question.

The child is a fork of the recording process, which has Triton loaded, or a process of its own. It answers type by
type; where it dies, the type it was at gets a `reason`, and a new child is asked for the rest.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from irscope.capture import Target
from irscope.errors import MissingTool, UsageError
from irscope.layout.encoding import parse_encoding
from irscope.layout.rows import Row, encoding_rank, query_type
from irscope.record.layout_child import Child, forked_child, spawned_child

QUESTION_TIMEOUT_S = 20.0
"""How long the child may be silent."""
_MOST_DEATHS = 6


@dataclass(slots=True)
class LayoutJob:
    """One module's layouts, as far as they were answered."""

    question: dict[str, Any]
    rows: list[Row] | None = None
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    places: list[int] | None = None
    """Which rows the current question's types are; None for all, in order."""
    under_way: int | None = None
    ended: bool = False
    deaths: int = 0

    def result(self) -> list[Row]:
        """The rows with what was answered; a row with no answer says so."""
        rows = self.rows or []
        return [
            row | self.answers.get(index, {"reason": "the compiler was not asked"}) for index, row in enumerate(rows)
        ]

    def take(self, message: dict[str, Any]) -> None:
        """Take one message of the child."""
        state = message["state"]
        if state == "rows":
            self.rows = message["rows"]
        elif state == "end":
            self.ended = True
            if "reason" in message:
                self.give_up(message["reason"])
        else:
            index = message["index"] if self.places is None else self.places[message["index"]]
            self.under_way = index if state == "begin" else None
            if state == "answer":
                self.answers[index] = message["answer"]

    def child_died(self, how: str) -> None:
        """Blame the type that was under way, and make a question of the rest."""
        self.deaths += 1
        if self.rows is None or (self.under_way is None and self.deaths > 1) or self.deaths >= _MOST_DEATHS:
            self.ended = True
            self.give_up(f"the compiler could not be asked: the process {how}")
            return
        if self.under_way is not None:
            self.answers[self.under_way] = {"reason": f"the compiler does not survive the question: the process {how}"}
            self.under_way = None
        self.places = [index for index in range(len(self.rows)) if index not in self.answers]
        self.question = {name: value for name, value in self.question.items() if name != "text"}
        self.question["types"] = [self.rows[index]["type"] for index in self.places]
        self.ended = not self.places

    def give_up(self, reason: str) -> None:
        """Answer what is left with a reason."""
        for index in range(len(self.rows or [])):
            self.answers.setdefault(index, {"reason": reason})


class LayoutServer:
    """The child, and the jobs it was given; a context manager that ends it.

    `ask` returns at once; `poll` takes what was answered; `wait` waits for one job. Nothing here raises for what the
    compiler does.
    """

    def __init__(self, fork: bool = True, interpreter: str | None = None) -> None:
        self._fork = fork and hasattr(os, "fork")
        self._interpreter = interpreter or sys.executable
        self._child: Child | None = None
        self._jobs: dict[int, LayoutJob] = {}
        self._number = 0

    def ask(self, text: str, target: Target, num_warps: int = 4, num_ctas: int = 1) -> LayoutJob:
        """Ask for every layout of a TTGIR module; its own attributes settle warps and CTAs where it has them."""
        return self._start(_question(target, num_warps, num_ctas) | {"text": text}, None)

    def ask_types(self, rows: list[Row], target: Target, num_warps: int = 4, num_ctas: int = 1) -> LayoutJob:
        """Ask for the `type` of some rows."""
        return self._start(_question(target, num_warps, num_ctas) | {"types": [row["type"] for row in rows]}, rows)

    def ask_conflicts(self, pairs: list[tuple[str, str]], target: Target, num_warps: int = 4) -> LayoutJob:
        """Ask for the compiler's own count of bank conflicts of (type in registers, type in shared memory) pairs.

        The count, `conflicts`, stands in the first row of each pair: accesses of a wavefront above one.
        """
        rows = [{"type": text} for pair in pairs for text in pair]
        question = _question(target, num_warps, 1) | {"types": [row["type"] for row in rows], "pairs": True}
        return self._start(question, rows)

    def _start(self, question: dict[str, Any], rows: list[Row] | None) -> LayoutJob:
        self._number += 1
        job = LayoutJob(question | {"job": self._number}, rows)
        self._jobs[self._number] = job
        self._send(job)
        return job

    def _send(self, job: LayoutJob) -> None:
        try:
            if self._child is None:
                self._child = forked_child() if self._fork else spawned_child(self._interpreter)
            self._child.write(json.dumps(job.question).encode() + b"\n")
        except OSError as error:
            self._child_died(f"could not be reached ({error})")

    def poll(self, timeout_s: float = 0.0) -> None:
        """Take what the child has answered so far."""
        if self._child is None:
            return
        for message in self._child.read(timeout_s):
            job = self._jobs.get(message["job"])
            if job is not None:
                job.take(message)
                if job.ended:
                    del self._jobs[message["job"]]
        if self._child.at_end:
            self._child_died(self._child.close())

    def wait(self, job: LayoutJob, timeout_s: float = QUESTION_TIMEOUT_S) -> list[Row]:
        """The rows of a job, waited for while the child keeps answering; it may be silent for `timeout_s`."""
        heard, seen = time.monotonic(), -1
        while not job.ended and self._child is not None:
            self.poll(0.05)
            if (now := len(job.answers)) != seen:
                heard, seen = time.monotonic(), now
            if time.monotonic() - heard > timeout_s:
                self._child.kill()
                self._child_died(f"took more than {timeout_s:g} s", self._child.close)
                heard = time.monotonic()
        return job.result()

    def _child_died(self, how: str, close: Any = None) -> None:
        if close is not None:
            close()
        self._child = None
        # Where a fork does not live, a process of its own may.
        self._fork = False if not any(job.answers for job in self._jobs.values()) else self._fork
        waiting, self._jobs = self._jobs, {}
        for number, job in waiting.items():
            # Only the first was under way; the others were waiting behind it.
            if job.under_way is not None or job.rows is None or len(waiting) == 1:
                job.child_died(how)
            if not job.ended:
                self._jobs[number] = job
        for job in list(self._jobs.values()):
            self._send(job)

    def close(self) -> None:
        """End the child; harmless to call again."""
        if self._child is not None:
            self._child.kill()
            self._child.close()
            self._child = None

    def __enter__(self) -> LayoutServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def describe_layouts(
    ttgir_text: str, target: Target, num_warps: int = 4, num_ctas: int = 1, *, fork: bool = True
) -> list[Row]:
    """Every distinct layout of a module with the compiler's own linear layout of it, as JSON holds it.

    Args:
        ttgir_text: the module, with its locations.
        target: what it is compiled for.
        num_warps, num_ctas: used where the module's attributes don't say.
        fork: whether the child may be a fork of this process, which must have Triton loaded then.

    Never raises: a layout that can't be had has a `reason` in place of `bases`.
    """
    with LayoutServer(fork=fork) as server:
        return server.wait(server.ask(ttgir_text, target, num_warps, num_ctas))


def ask_layout(
    encoding_text: str,
    shape: tuple[int, ...],
    num_warps: int | None,
    target: Target,
    dtype: str = "f16",
    *,
    num_ctas: int = 1,
    interpreter: str | None = None,
) -> Row:
    """The row of one layout that is given as text, asked of the compiler in a process of its own.

    Args:
        encoding_text: such as `#ttg.blocked<{…}>`.
        shape: the tensor's, powers of two.
        num_warps: of a CTA; None for as many as the encoding says.
        target: what it is for.
        dtype: MLIR's name of the element type, or Triton's (`fp16`).
        num_ctas: of the cluster.
        interpreter: the Python whose Triton is asked; None for this one.

    Raises ParseError where the text is no encoding, UsageError where the compiler does not take it together with the
    shape, MissingTool where there is no Triton.
    """
    encoding = parse_encoding(encoding_text)
    if any(size < 1 or size & (size - 1) for size in shape):
        raise UsageError(
            f"the shape {'×'.join(map(str, shape))} has a size that is no power of two: layouts have only such."
        )
    element = _ELEMENTS.get(dtype, dtype)
    own = shape
    if encoding.space in ("shared", "tensor") and (rank := encoding_rank(encoding)) and len(shape) > rank:
        own = shape[len(shape) - rank :]
    row: Row = {
        "alias": "",
        "encoding": encoding.text,
        "kind": encoding.kind,
        "space": encoding.space,
        "shape": list(own),
        "elements": [element],
        "buffers": 1,
        "type": query_type(encoding.text, own, element, encoding.space),
        "operations": [],
    }
    with LayoutServer(fork=False, interpreter=interpreter) as server:
        (answered,) = server.wait(server.ask_types([row], target, num_warps or 4, num_ctas))
    if "No module named" in answered.get("reason", "") or "Triton is not installed" in answered.get("reason", ""):
        raise MissingTool(
            "Triton is not installed here, and a layout that is given as text is asked of it: "
            "pip install 'triton>=3.6'."
        )
    if answered.get("unread") or "does not survive" in answered.get("reason", ""):
        raise UsageError(
            f"the compiler does not take {encoding.text} for a {'×'.join(map(str, shape))} {element} with "
            f"{num_warps or 4} warps on {target}: {answered['reason'].rstrip('.')}. "
            f"The ranks, the warps and the threads of a warp ({target.warp_size}) must fit."
        )
    _check_threads(answered, num_warps, target)
    return answered


def _check_threads(row: Row, num_warps: int | None, target: Target) -> None:
    """The compiler does not mind warps that don't fit; whoever asks does."""
    bases = row.get("bases", {})
    if "lane" not in bases:
        return
    lanes, warps = 1 << len(bases["lane"]), 1 << len(bases["warp"])
    if lanes != target.warp_size:
        raise UsageError(
            f"{row['encoding']} is for {lanes} threads a warp; {target} has {target.warp_size}. "
            "Choose another --target."
        )
    if num_warps is not None and warps != num_warps:
        raise UsageError(f"{row['encoding']} is for {warps} warps, not for {num_warps}: write --num-warps {warps}.")


_ELEMENTS = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8": "f8E4M3FN", "u8": "i8", "uint8": "i8",
}  # fmt: skip


def _question(target: Target, num_warps: int, num_ctas: int) -> dict[str, Any]:
    return {"target": str(target), "warp_size": target.warp_size, "num_warps": num_warps, "num_ctas": num_ctas}
