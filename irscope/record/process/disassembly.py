"""Runs nvdisasm on a cubin for its SASS.

Nothing here imports Triton: the path of the program comes from the caller. Where it is missing, fails or takes too
long, there is no SASS, and nothing else is lost.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from irscope.errors import MissingTool
from irscope.ir.asm.sass import format_sass, with_live_registers
from irscope.ir.asm.sass_reader import parse_sass
from irscope.model.capture import Artifact, Capture
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton import api as triton_api

__all__ = ["Disassembly", "disassembled", "installed_nvdisasm"]


class _Run:
    """One process, and the file that it writes to: a pipe that nobody reads would stop it."""

    def __init__(self, command: list[str], output: Path) -> None:
        self.output = output
        with output.open("wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)

    def result(self, deadline: float) -> str:
        """Its output, empty if it failed; raises TimeoutExpired if it is not done by then."""
        code = self.process.wait(max(0.0, deadline - time.monotonic()))
        return "" if code else self.output.read_text("utf-8", "replace")

    def end(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Disassembly:
    """nvdisasm at work on a cubin, in the background (it takes 50 to 500 ms).

    It prints either locations or live registers, so it runs twice, at once. `result` waits and gives the text of the
    `sass` stage; `close` stops it.
    """

    def __init__(self, cubin: bytes, nvdisasm: str | Path | None) -> None:
        """Start nvdisasm, whose path may be None, and return at once; never raises."""
        self._folder: Path | None = None
        self._runs: list[_Run] = []
        if nvdisasm is None:
            return
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="irscope-", dir=parent_of_temporaries()))
            binary = self._folder / "kernel.cubin"
            binary.write_bytes(cubin)
            for number, mode in enumerate((["-g", "-gi", "-hex"], ["-lrm", "count"])):
                self._runs.append(_Run([str(nvdisasm), "-c", *mode, str(binary)], self._folder / f"{number}.txt"))
        except OSError:
            self.close()

    def done(self) -> bool:
        """Whether `result` would answer at once."""
        return all(run.process.poll() is not None for run in self._runs)

    def result(self, timeout: float = 30.0) -> str | None:
        """The text of the `sass` stage, in irscope's normal form; None if nvdisasm is missing, fails or is too slow.

        Waits no longer than `timeout` seconds, then ends the processes and cleans up.
        """
        if not self._runs:
            return None
        deadline = time.monotonic() + timeout
        try:
            listing, live = [run.result(deadline) for run in self._runs]
        except (subprocess.TimeoutExpired, OSError):
            return None
        finally:
            self.close()
        functions = with_live_registers(parse_sass(listing), parse_sass(live))
        return format_sass(function.without_padding() for function in functions) if functions else None

    def close(self) -> None:
        """End the processes and remove what they wrote; harmless to call again."""
        for run in self._runs:
            run.end()
        self._runs = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def installed_nvdisasm() -> Path | None:
    """The nvdisasm of the installed Triton's package, found without importing it; None where there is none."""
    with contextlib.suppress(MissingTool, ValueError):
        return triton_api.nvidia_tools().get("nvdisasm")
    return None


def disassembled(capture: Capture) -> Capture:
    """A capture with the SASS of its cubin; the capture itself where it holds none, or nvdisasm is not here."""
    cubin = next((one.data for one in capture.artifacts if one.stage == "cubin"), None)
    if not isinstance(cubin, bytes) or "sass" in capture.stages:
        return capture
    text = Disassembly(cubin, installed_nvdisasm()).result()
    if text is None:
        return capture
    place = capture.stages.index("cubin") + 1
    artifacts = (*capture.artifacts[:place], Artifact("sass", text), *capture.artifacts[place:])
    return replace(capture, artifacts=artifacts)
