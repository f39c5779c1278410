"""Runs the CUDA toolkit's programs on a cubin: nvdisasm for the SASS, cuobjdump for what it takes.

Nothing here imports Triton: the paths of the programs come from the caller. A program that is missing, fails or takes
too long costs its answer and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from irscope.capture import Resources
from irscope.ir.sass import format_sass, with_live_registers
from irscope.ir.sass_reader import parse_sass
from irscope.record.own_folder import parent_of_temporaries
from irscope.record.resources import parse_ptxas_log, read_resources

__all__ = [
    "Disassembly",
    "disassemble",
    "installed_nvdisasm",
    "parse_ptxas_log",
    "parse_resource_usage",
    "read_resources",
    "resource_usage",
    "tool_paths",
]

#   REG:22 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
_USAGE = re.compile(r"\b(?P<name>REG|STACK|SHARED|CONSTANT\[0\]):(?P<value>\d{1,12})")
#  Function softmax_kernel:
_USAGE_FUNCTION = re.compile(r"^\s*Function (?P<name>[^\s:]+):\s*$")


class _Run:
    """One process, and the files that it writes to: a pipe that nobody empties would stop it."""

    def __init__(self, command: list[str], output: Path, errors: Path) -> None:
        self.output, self.errors = output, errors
        with output.open("wb") as out, errors.open("wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def result(self, deadline: float) -> tuple[int, str, str]:
        """Status, stdout and the start of stderr; raises TimeoutExpired where it is not done by then."""
        code = self.process.wait(max(0.0, deadline - time.monotonic()))
        message = self.errors.read_text("utf-8", "replace").strip()
        return code, self.output.read_text("utf-8", "replace"), message[:400]

    def end(self) -> None:
        """Kill it where it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Disassembly:
    """nvdisasm at work on a cubin, beside whatever else there is to do (it takes 50 to 500 ms).

    It prints either locations or live registers, so it runs twice, at once. `result` waits and gives the text of the
    `sass` stage; `close` gives up.
    """

    def __init__(self, cubin: bytes, nvdisasm: str | Path | None, live_registers: bool = True) -> None:
        """Start it.

        Args:
            cubin: the binary.
            nvdisasm: path of the program; None where there is none.
            live_registers: whether to count the live registers of each instruction, at the cost of a second process.
        """
        self.problem = ""
        """Why there is no text, or none of a part of it; empty where all went well."""
        self._folder: Path | None = None
        self._runs: list[_Run] = []
        if nvdisasm is None:
            self.problem = "nvdisasm was not found: the sass stage is left out."
            return
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="irscope-", dir=parent_of_temporaries()))
            binary = self._folder / "kernel.cubin"
            binary.write_bytes(cubin)
            modes = [["-g", "-gi", "-hex"], *([["-lrm", "count"]] if live_registers else [])]
            for number, mode in enumerate(modes):
                command = [str(nvdisasm), "-c", *mode, str(binary)]
                self._runs.append(_Run(command, self._folder / f"{number}.txt", self._folder / f"{number}.err"))
        except OSError as error:
            self.close()
            self.problem = f"nvdisasm could not be started: {error}"

    @classmethod
    def start(cls, cubin: bytes, nvdisasm: str | Path | None, live_registers: bool = True) -> Disassembly:
        """Start nvdisasm and return at once; never raises."""
        return cls(cubin, nvdisasm, live_registers)

    def done(self) -> bool:
        """Whether `result` would answer at once."""
        return all(run.process.poll() is not None for run in self._runs)

    def result(self, timeout: float = 30.0) -> str | None:
        """The text of the `sass` stage, in irscope's normal form; None, and `problem` set, where there is none.

        Waits no longer than `timeout` seconds, then ends the processes and cleans up.
        """
        if not self._runs:
            return None
        deadline = time.monotonic() + timeout
        try:
            texts = [run.result(deadline) for run in self._runs]
        except subprocess.TimeoutExpired:
            self.problem = f"nvdisasm took more than {timeout:g} s: the sass stage is left out."
            return None
        except OSError as error:
            self.problem = f"what nvdisasm wrote could not be read: {error}"
            return None
        finally:
            self.close()
        code, text, message = texts[0]
        functions = parse_sass(text) if code == 0 else ()
        if not functions:
            self.problem = f"nvdisasm ended with status {code} and no code: {message or 'it said nothing.'}"
            return None
        if len(texts) > 1:
            code, text, message = texts[1]
            functions = with_live_registers(functions, parse_sass(text)) if code == 0 else functions
            self.problem = f"nvdisasm counted no live registers: {message}" if code else ""
        return format_sass(function.without_padding() for function in functions)

    def close(self) -> None:
        """End the processes and remove what they wrote; harmless to call again."""
        for run in self._runs:
            run.end()
        self._runs = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Disassembly:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def installed_nvdisasm() -> Path | None:
    """The nvdisasm of the installed Triton's package, found without importing it; None where there is none."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec("triton")
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            path = Path(folder, "backends", "nvidia", "bin", "nvdisasm")
            if os.access(path, os.X_OK):
                return path
    return None


def disassemble(cubin: bytes, nvdisasm: str | Path | None, timeout: float = 30.0) -> str | None:
    """The text of the `sass` stage of a cubin; None where nvdisasm is missing, fails or needs more than `timeout` s."""
    return Disassembly.start(cubin, nvdisasm).result(timeout)


def resource_usage(cubin: bytes, cuobjdump: str | Path | None, timeout: float = 30.0) -> dict[str, Resources] | None:
    """What `cuobjdump -res-usage` says of each kernel of a cubin; None where it is missing, fails or takes too long."""
    if cuobjdump is None:
        return None
    with (
        contextlib.suppress(OSError, subprocess.SubprocessError),
        tempfile.TemporaryDirectory(prefix="irscope-", dir=parent_of_temporaries()) as folder,
    ):
        binary = Path(folder) / "kernel.cubin"
        binary.write_bytes(cubin)
        command = [str(cuobjdump), "-res-usage", str(binary)]
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=True, stdin=subprocess.DEVNULL)
        return parse_resource_usage(done.stdout.decode("utf-8", "replace"))
    return None


def parse_resource_usage(text: str) -> dict[str, Resources]:
    """Read the output of `cuobjdump -res-usage`: kernel to resources. Lines it does not know are passed over.

    SHARED is left out: it is the static part only, and from sm_90 on it counts 1 KiB that the driver keeps.
    """
    found: dict[str, Resources] = {}
    name = ""
    for line in text.splitlines():
        function = _USAGE_FUNCTION.match(line)
        if function is not None:
            name = function["name"]
            continue
        values = {match["name"]: int(match["value"]) for match in _USAGE.finditer(line)}
        if name and values:
            found[name] = Resources(
                registers=values.get("REG"),
                stack_bytes=values.get("STACK"),
                constant_bytes=values.get("CONSTANT[0]"),
            )
    return found


def tool_paths(tools: Mapping[str, Path]) -> tuple[Path | None, Path | None]:
    """nvdisasm and cuobjdump: of the given programs, else of the PATH, else None."""
    found = [tools.get(name) or shutil.which(name) for name in ("nvdisasm", "cuobjdump")]
    nvdisasm, cuobjdump = (Path(path) if path else None for path in found)
    return nvdisasm, cuobjdump
