"""What is made of a compile's artifacts next to it: the layouts of its TTGIR, and the disassembly of its cubin.

`LayoutServer` asks the compiler in a child process, which answers type by type: if it dies, the type under way gets a
refusal. Where nvdisasm is missing, fails or exceeds its limits, there is no SASS; that it exceeded them is stored.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from irscope.errors import IrscopeError, MissingTool, ToolTooSlow, installing
from irscope.layout.rows import layout_rows, module_numbers, type_of_row
from irscope.model.capture import Artifact, Capture, Target
from irscope.model.layout import UNASKED, LayoutAnswer, LayoutRefusal, LayoutRow
from irscope.record.process import events
from irscope.record.process.child import TRITON, Child, child_process
from irscope.record.process.events import EventSink, RecordingEvent
from irscope.record.process.own_folder import own_folder, parent_of_temporaries
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import short_digest
from irscope.store.disk import default_folder, write_atomically
from irscope.tools import POLL_S, LimitWatch, ToolLimits, ToolProcess

_PAUSE_S = 0.01
_PAUSES_OF_A_POLL = round(POLL_S / _PAUSE_S)


class Annotations:
    """A sink that passes events on, and adds those of layouts and disassembly; usable from several threads.

    Nothing of that is made in the process that compiles, which a crash at a question for layouts would end.
    """

    def __init__(self, sink: EventSink, request: RecordRequest, server: LayoutServer) -> None:
        self._sink = sink
        self._request = request
        self._server = server
        self._nvdisasm = ""
        self._targets: dict[int, Target] = {}
        self._layouts: dict[int, tuple[tuple[LayoutRow, ...], LayoutJob]] = {}
        self._disassemblies: dict[int, Disassembly] = {}
        self._lock = threading.RLock()

    def is_under_way(self, number: int) -> bool:
        return number in self._layouts or number in self._disassemblies

    def __call__(self, event: RecordingEvent) -> None:
        """Pass an event on, begin what it makes possible, and add what is there."""
        with self._lock:
            self._sink(event)
            if isinstance(event, events.Begun):
                self._nvdisasm = event.nvdisasm
            elif isinstance(event, events.CompileBegun):
                self._targets[event.n] = event.target
            elif isinstance(event, events.ArtifactMade):
                self._begin(event)
            self.collect()

    def _begin(self, event: events.ArtifactMade) -> None:
        if event.stage == "ttgir" and self._request.layouts and isinstance(event.data, str):
            rows = layout_rows(event.data)
            module = Module.of_text(self._targets[event.n], event.data)
            self._layouts[event.n] = rows, self._server.ask(module, types=[type_of_row(row) for row in rows])
        elif event.stage == "cubin" and self._request.disassemble and isinstance(event.data, bytes):
            self._disassemblies[event.n] = Disassembly(event.data, self._nvdisasm or None)

    def collect(self) -> None:
        with self._lock:
            if self._layouts:
                self._server.poll()
            for number, (rows, job) in list(self._layouts.items()):
                if job.ended:
                    del self._layouts[number]
                    answered = zip(rows, job.answered_types(), strict=True)
                    layouts = tuple(replace(row, answer=answer) for row, answer in answered)
                    self._sink(events.LayoutsKnown(number, layouts))
            for number, disassembly in list(self._disassemblies.items()):
                if disassembly.done():
                    del self._disassemblies[number]
                    text, _ = disassembly.result()
                    self._sink(
                        events.ArtifactMade(number, "sass", text) if text else events.StageLeftOut(number, "sass")
                    )

    def close(self) -> None:
        self._sink = lambda event: None

    def finish(self, stops: Callable[[], object] = lambda: False) -> None:
        """Wait for what is under way, and add it; what `stops()` interrupts is left out."""
        pauses = 0
        while self._disassemblies and not stops():
            self.collect()
            time.sleep(_PAUSE_S)
            pauses += 1
            if pauses % _PAUSES_OF_A_POLL == 0:
                for disassembly in self._disassemblies.values():
                    disassembly.count_poll()
        for _, job in list(self._layouts.values()):
            if not stops():
                self._server.wait(job)
            job.ended = True
        for disassembly in self._disassemblies.values():
            disassembly.close()
        self._disassemblies.clear()
        self.collect()


_RETRY_S = 24 * 3600
"""After this time, nvdisasm is tried again on a cubin that was too much for it."""
_LIMIT_VARIABLE = "IRSCOPE_TOOL_SECONDS"


class _Run:
    def __init__(self, command: list[str], folder: Path, name: str, limits: ToolLimits) -> None:
        self._output, self._errors = folder / f"{name}.txt", folder / f"{name}.errors.txt"
        with self._output.open("wb") as out, self._errors.open("wb") as errors:
            self.process = ToolProcess(command, limits, stdout=out, stderr=errors)

    def result(self) -> tuple[str, str]:
        """What it printed, and if that is nothing why; raises ToolTooSlow."""
        code = self.process.wait()
        if code == 0:
            return self._output.read_text("utf-8", "replace"), ""
        said = self._errors.read_text("utf-8", "replace").strip().splitlines()
        return "", f"nvdisasm failed with exit code {code}{f': {said[-1]}' if said else ''}."


class Disassembly:
    """nvdisasm at work on a cubin, in the background (50 to 500 ms): twice, for locations and for live registers."""

    def __init__(self, cubin: bytes, nvdisasm: str | Path | None, limits: ToolLimits | None = None) -> None:
        """Start nvdisasm, whose path may be None, and return at once; never raises."""
        self._folder: Path | None = None
        self._runs: list[_Run] = []
        self._reason = f"nvdisasm is not installed: {installing('triton')} brings it."
        if nvdisasm is None:
            return
        limits = limits or _limits()
        try:
            self._note = _note_of(cubin, Path(nvdisasm), limits)
            if self._note.is_file() and time.time() - self._note.stat().st_mtime < _RETRY_S:
                self._reason = self._note.read_text("utf-8", "replace")
                return
            self._folder = Path(tempfile.mkdtemp(prefix="irscope-", dir=parent_of_temporaries()))
            binary = self._folder / "kernel.cubin"
            binary.write_bytes(cubin)
            for name, mode in (("listing", ["-g", "-gi", "-hex"]), ("live", ["-lrm", "count"])):
                self._runs.append(_Run([str(nvdisasm), "-c", *mode, str(binary)], self._folder, name, limits))
        except OSError as error:
            self._reason = f"nvdisasm cannot be run: {error}."
            self.close()

    def done(self) -> bool:
        """Whether `result` would answer at once."""
        return all(run.process.ended for run in self._runs)

    def count_poll(self) -> None:
        for run in self._runs:
            if not run.process.ended:
                run.process.count_poll()

    def result(self) -> tuple[str, str]:
        """The text of the `sass` stage in irscope's normal form, and where that is empty why, as a sentence.

        Ends the processes and cleans up.
        """
        if not self._runs:
            return "", self._reason
        listing, live = self._runs
        try:
            text, reason = listing.result()
            # Without the counts of live registers the text is whole otherwise.
            counts = ""
            with contextlib.suppress(ToolTooSlow):
                counts, _ = live.result()
        except ToolTooSlow as error:
            reason = (
                f"{error} It is not run on this cubin again for a day; {_LIMIT_VARIABLE}=SECONDS allows it more "
                "processor time."
            )
            with contextlib.suppress(OSError):
                self._note.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._note, reason.encode())
            return "", reason
        except OSError as error:
            return "", f"what nvdisasm wrote cannot be read: {error}."
        finally:
            self.close()
        # Its readers take a while to import, and not every recording needs them.
        from irscope.ir.asm.sass import format_sass, parse_sass, with_live_registers

        functions = with_live_registers(parse_sass(text), parse_sass(counts))
        if not functions:
            return "", reason or "nvdisasm printed no function."
        return format_sass(function.without_padding() for function in functions), ""

    def close(self) -> None:
        for run in self._runs:
            run.process.end()
        self._runs = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _limits() -> ToolLimits:
    try:
        return ToolLimits(processor_s=float(os.environ[_LIMIT_VARIABLE]))
    except (KeyError, ValueError):
        return ToolLimits()


def _note_of(cubin: bytes, nvdisasm: Path, limits: ToolLimits) -> Path:
    """Where it is stored that this program was too slow for this cubin; raises OSError."""
    state = nvdisasm.stat()
    key = repr((short_digest(cubin), str(nvdisasm), state.st_size, state.st_mtime_ns, limits))
    return default_folder() / "too-slow" / short_digest(key.encode())


def installed_nvdisasm() -> Path | None:
    """The nvdisasm of the installed Triton's package, found without importing it; None where there is none."""
    with contextlib.suppress(MissingTool, ValueError):
        return triton_api.nvidia_tools().get("nvdisasm")
    return None


def with_listing(capture: Capture) -> tuple[Capture, str]:
    """A capture with the SASS of its cubin, and an empty text; or the capture itself, and why it has none."""
    cubin = next((artifact.data for artifact in capture.artifacts if artifact.stage == "cubin"), None)
    if not isinstance(cubin, bytes) or "sass" in capture.stages:
        return capture, ""
    text, reason = Disassembly(cubin, installed_nvdisasm()).result()
    if not text:
        return capture, reason
    place = capture.stages.index("cubin") + 1
    artifacts = (*capture.artifacts[:place], Artifact("sass", text), *capture.artifacts[place:])
    return replace(capture, artifacts=artifacts), ""


def disassembled(capture: Capture) -> Capture:
    """A capture with the SASS of its cubin; the capture itself where it holds none, or nvdisasm made none."""
    return with_listing(capture)[0]


_QUESTION_LIMITS = ToolLimits(processor_s=20.0, asleep_s=20.0, clock_s=20.0)
"""Of the child while it is silent. It may wait for a processor longer: a loaded machine gives the same layouts."""
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
        return Module(str(target), target.warp_size, num_warps, num_ctas)

    @staticmethod
    def of_text(target: Target, text: str) -> Module:
        numbers = module_numbers(text)
        lanes = numbers.get("threads-per-warp", target.warp_size)
        return Module(str(target), lanes, numbers.get("num-warps", 4), numbers.get("num-ctas", 1))


@dataclass(frozen=True, slots=True)
class Question:
    """The layouts of some types, or the bank conflicts of pairs of types."""

    module: Module
    types: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """(type in registers, type in shared memory)."""
    job: int = 0
    """The number that the messages about it carry."""


class Message(RecordingEvent):
    job: int
    state: Literal["begin", "answer", "conflicts", "end"]
    """`begin`: before a type that may end the process. `answer`: of that type. `conflicts`: of all pairs. `end`:
    nothing more follows."""
    index: int = 0
    """Of the type."""
    answer: LayoutAnswer | None = None
    """Of a type; at the end, the refusal for all types without an answer."""
    conflicts: tuple[int | None, ...] = ()


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


class Measured(RecordingEvent):
    values: tuple[int, ...] = ()
    """The thread of each element, or the element at each offset in shared memory."""
    error: str = ""
    """Why there are none; or an empty string."""


@dataclass(slots=True)
class LayoutJob:
    question: Question
    types: tuple[str, ...] = ()
    """Those of the first question."""
    answers: dict[int, LayoutAnswer] = field(default_factory=dict[int, LayoutAnswer])
    conflicts: tuple[int | None, ...] = ()
    places: Sequence[int] = ()
    """The indices of the types of the current question."""
    under_way: int | None = None
    ended: bool = False
    deaths: int = 0

    def __post_init__(self) -> None:
        self.types, self.places = self.question.types, range(len(self.question.types))
        self.ended = not self.types and not self.question.pairs

    def answered_types(self) -> tuple[LayoutAnswer, ...]:
        return tuple(self.answers.get(index, UNASKED) for index in range(len(self.types)))

    def take(self, message: Message) -> None:
        if message.state == "conflicts":
            self.conflicts = message.conflicts
        elif message.state == "end":
            self._end(message.answer)
        else:
            index = self.places[message.index]
            self.under_way = index if message.state == "begin" else None
            if message.answer is not None:
                self.answers[index] = message.answer

    def child_died(self, how: str) -> None:
        self.deaths += 1
        if (self.under_way is None and self.deaths > 1) or self.deaths >= _MOST_DEATHS:
            self._end(LayoutRefusal("unasked", f"the compiler did not answer: the process {how}"))
            return
        if self.under_way is not None:
            self.answers[self.under_way] = LayoutRefusal(
                "crash", f"the compiler crashes on this layout: the process {how}"
            )
            self.under_way = None
        self.places = [index for index in range(len(self.types)) if index not in self.answers]
        self.question = replace(self.question, types=tuple(self.types[index] for index in self.places))
        self.ended = not self.places and not self.question.pairs

    def _end(self, refusal: LayoutAnswer | None) -> None:
        self.ended = True
        if refusal is not None:
            for index in range(len(self.types)):
                self.answers.setdefault(index, refusal)


class LayoutServer(ExitStack):
    """The child process, which `close` ends, and its jobs. Nothing raises for what the compiler does."""

    def __init__(self, interpreter: str | None = None) -> None:
        super().__init__()
        self._interpreter = interpreter
        self._child: Child | None = None
        self._jobs: dict[int, LayoutJob] = {}
        self._number = 0

    def ask(self, module: Module, *, types: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = ()) -> LayoutJob:
        """Ask for the layouts of some types, or for the bank conflicts of pairs: accesses per wavefront above one."""
        self._number += 1
        job = LayoutJob(Question(module, tuple(types), tuple(pairs), self._number))
        if not job.ended:
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

    def _started(self) -> Child:
        folder = self.enter_context(own_folder())
        module = "irscope.record.layouts.compiler"
        child = child_process(module, folder, interpreter=self._interpreter, ahead=TRITON)
        started = self.enter_context(child)
        self.callback(setattr, self, "_child", None)
        self._watch = LimitWatch(started.pid, _QUESTION_LIMITS)
        return started

    def fileno(self) -> int | None:
        """The descriptor that answers come through, for a selector; None while there is no child."""
        return None if self._child is None or self._child.at_end else self._child.fileno()

    def poll(self, timeout_s: float = 0.0) -> None:
        if self._child is None:
            return
        for message in self._child.read(timeout_s):
            if isinstance(message, Message) and (job := self._jobs.get(message.job)) is not None:
                job.take(message)
                if job.ended:
                    del self._jobs[message.job]
        if self._child.at_end:
            self._child_died(_end_of(self._child))

    def wait(self, job: LayoutJob) -> LayoutJob:
        """Wait until a job has ended; a child that is silent is ended where it exceeds its limits."""
        answers = -1
        while not job.ended and self._child is not None:
            self.poll(POLL_S)
            if len(job.answers) != answers:
                answers = len(job.answers)
                self._watch.begin_again()
            elif exceeded := self._watch.exceeded(POLL_S):
                self._child_died(exceeded)
        return job

    def _child_died(self, how: str) -> None:
        self.close()
        # One was under way, and the others waited behind it; where none was, it may be any.
        begun = [job for job in self._jobs.values() if job.under_way is not None]
        for job in begun or self._jobs.values():
            job.child_died(how)
        self._jobs = {number: job for number, job in self._jobs.items() if not job.ended}
        for job in list(self._jobs.values()):
            self._send(job)


def _end_of(child: Child) -> str:
    child.wait(_LONGEST_END_S)
    outcome = child.end()
    errors = [
        line.strip() for line in child.output().decode("utf-8", "replace").splitlines() if _ERROR_LINE.search(line)
    ]
    return f"{outcome}: {errors[-1][-300:]}" if errors and outcome.code else str(outcome)
