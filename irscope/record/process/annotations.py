"""What is made of a compile's artifacts next to it: the layouts of its TTGIR, and the disassembly of its cubin.

Nothing here imports Triton: the path of nvdisasm comes from the caller. Where it is missing, fails or exceeds its
limits, there is no SASS, and nothing else is lost. That it exceeded them is stored: each command would wait again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.errors import MissingTool, ToolTooSlow
from irscope.model.capture import Artifact, Capture, Target
from irscope.record.process.events import (
    ArtifactMade,
    Begun,
    CompileBegun,
    EventSink,
    LayoutsKnown,
    RecordingEvent,
    StageLeftOut,
)
from irscope.record.process.layout_server import LayoutJob, LayoutServer, Module
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import short_digest
from irscope.store.disk import default_folder, write_atomically
from irscope.tools import POLL_S, ToolLimits, ToolProcess

_PAUSE_S = 0.01
_PAUSES_OF_A_POLL = round(POLL_S / _PAUSE_S)


class Annotations:
    """A sink that passes events on, and adds those of layouts and disassembly; usable from several threads.

    Nothing of that is made in the process that compiles: a crash of the compiler at a question for layouts does not
    reach it, and it has no children of irscope's.
    """

    def __init__(self, sink: EventSink, request: RecordRequest, server: LayoutServer) -> None:
        """`server`: is asked for layouts."""
        self._sink = sink
        self._request = request
        self._server = server
        self._nvdisasm = ""
        self._targets: dict[int, Target] = {}
        self._layouts: dict[int, LayoutJob] = {}
        self._disassemblies: dict[int, Disassembly] = {}
        self._lock = threading.RLock()

    def is_under_way(self, number: int) -> bool:
        """Whether something of a compile is still being made."""
        return number in self._layouts or number in self._disassemblies

    def __call__(self, event: RecordingEvent) -> None:
        """Pass an event on, begin what it makes possible, and add what is there."""
        with self._lock:
            self._sink(event)
            if isinstance(event, Begun):
                self._nvdisasm = event.nvdisasm
            elif isinstance(event, CompileBegun):
                self._targets[event.n] = event.target
            elif isinstance(event, ArtifactMade):
                self._begin(event)
            self.collect()

    def _begin(self, event: ArtifactMade) -> None:
        if event.stage == "ttgir" and self._request.layouts and isinstance(event.data, str):
            self._layouts[event.n] = self._server.ask(Module.of(self._targets[event.n]), text=event.data)
        elif event.stage == "cubin" and self._request.disassemble and isinstance(event.data, bytes):
            self._disassemblies[event.n] = Disassembly(event.data, self._nvdisasm or None)

    def collect(self) -> None:
        """Add what was made meanwhile."""
        with self._lock:
            if self._layouts:
                self._server.poll()
            for number, job in list(self._layouts.items()):
                if job.ended:
                    del self._layouts[number]
                    self._sink(LayoutsKnown(number, tuple(job.answered_rows())))
            for number, disassembly in list(self._disassemblies.items()):
                if disassembly.done():
                    del self._disassemblies[number]
                    text = disassembly.result().text
                    self._sink(ArtifactMade(number, "sass", text) if text else StageLeftOut(number, "sass"))

    def close(self) -> None:
        """Add nothing more, and forget who took it."""
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
        for job in list(self._layouts.values()):
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


@dataclass(frozen=True, slots=True)
class Listing:
    """What came of a disassembly."""

    text: str | None = None
    """The `sass` stage, in irscope's normal form; None if there is none."""
    reason: str = ""
    """Why there is none, as a sentence."""


class _Run:
    """One process of nvdisasm, and the files that it writes to."""

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
    """nvdisasm at work on a cubin, in the background (it takes 50 to 500 ms).

    It prints either locations or live registers, so it runs twice, at once. `result` waits and returns the text of the
    `sass` stage; `close` stops it.
    """

    def __init__(self, cubin: bytes, nvdisasm: str | Path | None, limits: ToolLimits | None = None) -> None:
        """Start nvdisasm, whose path may be None, and return at once; never raises."""
        self._folder: Path | None = None
        self._runs: list[_Run] = []
        self._reason = "no nvdisasm is here: pip install 'irscope[triton]' brings one."
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
        """Count `POLL_S` seconds, after which `done` may be true because nvdisasm exceeded its limits."""
        for run in self._runs:
            if not run.process.ended:
                run.process.count_poll()

    def result(self) -> Listing:
        """The text of the `sass` stage, or why there is none; ends the processes and cleans up."""
        if not self._runs:
            return Listing(reason=self._reason)
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
            return Listing(reason=reason)
        except OSError as error:
            return Listing(reason=f"what nvdisasm wrote cannot be read: {error}.")
        finally:
            self.close()
        # Its readers take a while to import, and not every recording needs them.
        from irscope.ir.asm.sass import format_sass, parse_sass, with_live_registers

        functions = with_live_registers(parse_sass(text), parse_sass(counts))
        if not functions:
            return Listing(reason=reason or "nvdisasm printed no function.")
        return Listing(format_sass(function.without_padding() for function in functions))

    def close(self) -> None:
        """End the processes and remove what they wrote; harmless to call again."""
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
    listing = Disassembly(cubin, installed_nvdisasm()).result()
    if listing.text is None:
        return capture, listing.reason
    place = capture.stages.index("cubin") + 1
    artifacts = (*capture.artifacts[:place], Artifact("sass", listing.text), *capture.artifacts[place:])
    return replace(capture, artifacts=artifacts), ""


def disassembled(capture: Capture) -> Capture:
    """A capture with the SASS of its cubin; the capture itself where it holds none, or nvdisasm made none."""
    return with_listing(capture)[0]
