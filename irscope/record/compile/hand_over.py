"""Compiles that a script's process leaves to workers, so that the script need not wait for them.

A launch's compile begins in the process of the script: its front end runs the script's own Python, and what it refuses
is raised at the launch. At the first stage that makes code for the target the compile is handed over, as the module
there and the options; the script goes on with a kernel that is waited for where it is read. The script's process is not
forked, and has no children: the workers are irscope's (`irscope.record.process.pool`).

Handed over is only what would be the same elsewhere, and what the script need not wait for. Its compiler must be the
installed one: a program that replaced a part of it, or set a knob, compiles here. And the launch must stand where an
error would end the program: then a compile that fails ends the recording there, as it would have ended the program.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from irscope.model.capture import Launch, Target
from irscope.model.plain import tupled
from irscope.record.compile.handlers import may_be_caught
from irscope.record.compile.launch_arguments import plain
from irscope.record.compile.launches import is_library
from irscope.record.process.events import CompileDropped, HandedOver, RecordingEvent
from irscope.record.process.pool import ENDED, FAILED
from irscope.record.process.requests import CompileJob
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import ERRORS_OF_A_CONFIGURATION, is_rehearsal, is_timing

__all__ = ["Handover", "LeftOut"]

_LONGEST_PAUSE_S = 0.02


class _Compile(Protocol):
    """Of what `WatchedCompile` is."""

    number: int
    target: Target
    launch: Launch
    given: tuple[Any, Any]
    texts: dict[str, str]
    source: str
    source_name: str
    pass_count: int

    def report(self, event: RecordingEvent) -> None: ...


class LeftOut(BaseException):
    """Raised through Triton's `compile` where its result is another's, or stored; no error."""

    def __init__(self, key: str, texts: Mapping[str, str]) -> None:
        super().__init__(key)
        self.key, self.texts = key, texts


class Handover:
    """Decides which compiles of this process are handed over, and hands them over."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the recording. What the compiler is now is what workers have."""
        self._folder = folder
        self._cache = triton_api.cache_folder()
        self._process = os.getpid()
        self._installed = triton_api.compiler_state()
        self._kernels: dict[str, Any] = {}
        """Those that the script has for the compiles that were handed over, by key; None at first."""
        self.has_compiled = False
        """Whether a compile ended in this process: one alone is made here, where nothing is to be set up for it."""

    def takes_launches(self) -> bool:
        """Whether the compile of a launch that is made now may end after the launch."""
        return (
            self.has_compiled
            and os.getpid() == self._process
            and not is_rehearsal()
            and not triton_api.program_watches_compiles()
            and triton_api.compiler_state() == self._installed
            and not may_be_caught(sys._getframe(1))
        )

    def take(self, current: _Compile, stage: str, module: Any, key: str, metadata: dict[str, Any]) -> None:
        """Hand over a compile that is at a stage, and raise LeftOut; returns where it must be made here.

        `key`: its key in Triton's cache. `metadata`: what the stages so far noted.
        """
        src, options = current.given
        if key in self._kernels:
            current.report(CompileDropped(current.number))
            raise LeftOut(key, current.texts)
        parsed = plain(vars(options))
        if tupled(parsed) != vars(options) or tupled(plain(metadata)) != tupled(metadata):
            return
        job = CompileJob(
            number=current.number,
            target=str(current.target),
            name=src.name,
            extension=src.ext,
            language=current.launch.language,
            source_key=src.hash(),
            key=key,
            options=parsed,
            texts={current.source_name: current.source, **current.texts},
            module=triton_api.generic_text(module),
            stage=stage,
            metadata=plain(metadata),
            passes=current.pass_count,
            environment=dict(os.environ),
            survived=ERRORS_OF_A_CONFIGURATION if is_timing() else (),
            cache=self._cache,
        )
        self._kernels[key] = None
        current.report(HandedOver(current.number, job, _frames()))
        raise LeftOut(key, current.texts)

    def launched(self, key: str, kernel: Any) -> None:
        """Remember the kernel that a launch goes on with."""
        if key in self._kernels:
            self._kernels[key] = kernel

    def stop_where_failed(self) -> None:
        """Raise what a launch would have raised whose compile has failed since."""
        try:
            key = (self._folder / FAILED).read_text()
        except OSError:
            return
        if (kernel := self._kernels.get(key)) is not None:
            kernel.settle()

    def wait_for(self, key: str) -> None:
        """Wait until a compile that was handed over has ended, well or not."""
        pause_s = 0.001
        while key in self._kernels and self._folder.is_dir() and not (self._folder / ENDED / key).exists():
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _frames() -> str:
    """The frames of the program's own code, as a traceback has them."""
    rows = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)))
    return "".join(traceback.format_list([row for row in reversed(rows) if not is_library(row.filename)]))
