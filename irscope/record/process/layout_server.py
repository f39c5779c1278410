"""LayoutServer: the child process that asks the compiler for layouts, its questions, and the messages of both.

The child (`irscope.record.layouts.compiler`) answers type by type. If it dies, the type under way gets a refusal, and a
new child answers the rest. A process that asks the hardware has messages here too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Literal

from irscope.errors import IrscopeError
from irscope.layout.rows import type_of_row
from irscope.model.capture import Target
from irscope.model.layout import UNASKED, LayoutAnswer, LayoutRefusal, LayoutRow
from irscope.record.process.child import Child, child_process
from irscope.record.process.events import Done, Refused
from irscope.record.process.own_folder import own_folder
from irscope.record.process.warm import TRITON

_QUESTION_TIMEOUT_S = 20.0
"""How long the child may be silent."""
_MOST_DEATHS = 6
_LONGEST_END_S = 5.0

# python: …/LinearLayout.cpp:250: void …: Assertion `…' failed.   LLVM ERROR: …   ModuleNotFoundError: …
_ERROR_LINE = re.compile(r"(?i:error\b)|Assertion|\w+Error: ")


@dataclass(frozen=True, slots=True)
class Module:
    """The attributes of the module around a type."""

    target: str
    warp_size: int
    num_warps: int = 4
    num_ctas: int = 1

    @staticmethod
    def of(target: Target, num_warps: int = 4, num_ctas: int = 1) -> Module:
        """A module for a target."""
        return Module(str(target), target.warp_size, num_warps, num_ctas)


@dataclass(frozen=True, slots=True)
class Question:
    """One of: the layouts of a module's text, the layouts of some types, the bank conflicts of pairs of types."""

    module: Module
    text: str | None = None
    """A TTGIR module; its own attributes take precedence over `module`."""
    types: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """(type in registers, type in shared memory)."""
    job: int = 0
    """The number that the messages about it carry."""


@dataclass(frozen=True, slots=True)
class Message:
    """One step of the answer to a question."""

    job: int
    state: Literal["rows", "begin", "answer", "conflicts", "end"]
    """`rows`: the layouts of a text. `begin`: before a type that may end the process. `answer`: of that type.
    `conflicts`: of all pairs. `end`: nothing more follows."""
    index: int = 0
    """Of the row or type."""
    rows: tuple[LayoutRow, ...] = ()
    answer: LayoutAnswer | None = None
    """Of a type; at the end, the refusal for all types without an answer."""
    conflicts: tuple[int | None, ...] = ()


_MESSAGES = (Message, Done, Refused)
"""What the process sends."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Asks the hardware for the map of one layout."""

    target: str
    type: str
    """The type whose layout it is."""
    shape: tuple[int, ...]
    element_bits: int
    in_registers: bool
    """Otherwise in shared memory."""
    num_warps: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What the hardware said."""

    values: tuple[int, ...] = ()
    """The thread of each element, or the element at each offset in shared memory."""
    error: str = ""
    """Why there are none; or an empty string."""


@dataclass(slots=True)
class LayoutJob:
    """One question, and what has been answered so far."""

    question: Question
    rows: tuple[LayoutRow, ...] = ()
    """Of the text that was asked about, once they are known."""
    types: tuple[str, ...] | None = None
    """The types of the question; None until they are known."""
    answers: dict[int, LayoutAnswer] = field(default_factory=dict[int, LayoutAnswer])
    conflicts: tuple[int | None, ...] = ()
    places: Sequence[int] = ()
    """The indices of the types of the current question."""
    under_way: int | None = None
    ended: bool = False
    deaths: int = 0

    def __post_init__(self) -> None:
        if self.question.text is None:
            self._set_types(self.question.types)

    def answered_types(self) -> tuple[LayoutAnswer, ...]:
        """The answer for each type, a refusal if there is none."""
        return tuple(self.answers.get(index, UNASKED) for index in range(len(self.types or ())))

    def answered_rows(self) -> tuple[LayoutRow, ...]:
        """The rows of the text with their answers."""
        return tuple(replace(row, answer=answer) for row, answer in zip(self.rows, self.answered_types(), strict=True))

    def take(self, message: Message) -> None:
        """Take one message of the child."""
        if message.state == "rows":
            self.rows = message.rows
            self._set_types(tuple(map(type_of_row, message.rows)))
        elif message.state == "conflicts":
            self.conflicts = message.conflicts
        elif message.state == "end":
            self._end(message.answer)
        else:
            index = self.places[message.index]
            self.under_way = index if message.state == "begin" else None
            if message.answer is not None:
                self.answers[index] = message.answer

    def child_died(self, how: str) -> None:
        """Blame the type that was under way, and ask for the rest."""
        self.deaths += 1
        if self.types is None or (self.under_way is None and self.deaths > 1) or self.deaths >= _MOST_DEATHS:
            self._end(LayoutRefusal("unasked", f"the compiler could not be asked: the process {how}"))
            return
        if self.under_way is not None:
            self.answers[self.under_way] = LayoutRefusal(
                "crash", f"the compiler does not survive the question: the process {how}"
            )
            self.under_way = None
        self.places = [index for index in range(len(self.types)) if index not in self.answers]
        self.question = replace(self.question, text=None, types=tuple(self.types[index] for index in self.places))
        self.ended = not self.places and not self.question.pairs

    def _set_types(self, types: tuple[str, ...]) -> None:
        self.types, self.places = types, range(len(types))

    def _end(self, refusal: LayoutAnswer | None) -> None:
        self.ended = True
        if refusal is not None:
            for index in range(len(self.types or ())):
                self.answers.setdefault(index, refusal)


class LayoutServer:
    """The child process and its jobs; a context manager that ends the process.

    `ask` returns at once; `poll` takes what was answered; `wait` waits for one job. Nothing here raises for what the
    compiler does.
    """

    def __init__(self, interpreter: str | None = None) -> None:
        """`interpreter`: a Python with another Triton."""
        self._interpreter = interpreter
        self._running = ExitStack()
        self._child: Child[Message | Done | Refused] | None = None
        self._jobs: dict[int, LayoutJob] = {}
        self._number = 0

    def ask(
        self,
        module: Module,
        *,
        text: str | None = None,
        types: Sequence[str] = (),
        pairs: Sequence[tuple[str, str]] = (),
    ) -> LayoutJob:
        """Ask for all layouts of a TTGIR text, for the layouts of some types, or for the bank conflicts of pairs.

        A count of bank conflicts is the number of accesses per wavefront above one.
        """
        self._number += 1
        job = LayoutJob(Question(module, text, tuple(types), tuple(pairs), self._number))
        self._jobs[self._number] = job
        self._send(job)
        return job

    def _send(self, job: LayoutJob) -> None:
        try:
            if self._child is None:
                self._child = self._started()
        except (OSError, IrscopeError) as error:
            self._child_died(f"could not be reached ({error})")
        else:
            self._child.send(job.question)

    def _started(self) -> Child[Message | Done | Refused]:
        folder = self._running.enter_context(own_folder())
        module = "irscope.record.layouts.compiler"
        child = child_process(module, folder, _MESSAGES, interpreter=self._interpreter, ahead=TRITON)
        return self._running.enter_context(child)

    def fileno(self) -> int | None:
        """The descriptor that answers come through, for a selector; None while there is no child."""
        return None if self._child is None or self._child.at_end else self._child.fileno()

    def poll(self, timeout_s: float = 0.0) -> None:
        """Take what the child has answered so far."""
        if self._child is None:
            return
        for message in self._child.read(timeout_s):
            if isinstance(message, Message) and (job := self._jobs.get(message.job)) is not None:
                job.take(message)
                if job.ended:
                    del self._jobs[message.job]
        if self._child.at_end:
            self._child_died(_end_of(self._child))

    def wait(self, job: LayoutJob, timeout_s: float = _QUESTION_TIMEOUT_S) -> LayoutJob:
        """Wait until a job has ended; the child may be silent for `timeout_s`."""
        heard, seen = time.monotonic(), -1
        while not job.ended and self._child is not None:
            self.poll(0.05)
            if (now := len(job.answers)) != seen:
                heard, seen = time.monotonic(), now
            if time.monotonic() - heard > timeout_s:
                self._child_died(f"took more than {timeout_s:g} s")
                heard = time.monotonic()
        return job

    def _child_died(self, how: str) -> None:
        self.close()
        waiting, self._jobs = self._jobs, {}
        for number, job in waiting.items():
            # Only the first was under way; the others were waiting behind it.
            if job.under_way is not None or job.types is None or len(waiting) == 1:
                job.child_died(how)
            if not job.ended:
                self._jobs[number] = job
        for job in list(self._jobs.values()):
            self._send(job)

    def close(self) -> None:
        """End the child; harmless to call again."""
        self._child = None
        self._running.close()

    def __enter__(self) -> LayoutServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_of(child: Child[Message | Done | Refused]) -> str:
    """How the child ended, with the last error that it printed."""
    child.wait(_LONGEST_END_S)
    outcome = child.end()
    errors = [
        line.strip() for line in child.output().decode("utf-8", "replace").splitlines() if _ERROR_LINE.search(line)
    ]
    return f"{outcome}: {errors[-1][-300:]}" if errors and outcome.code else str(outcome)
