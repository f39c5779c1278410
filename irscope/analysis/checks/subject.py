"""A capture that assertions are about, and what they read of it, each thing once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.kinds.loops import loops_with_dots
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.needs import OF_SASS
from irscope.analysis.findings.silence import is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.analysis.regressions import Value
from irscope.analysis.source.lines import python_line
from irscope.analysis.source.operations import without_location
from irscope.errors import DAMAGE
from irscope.ir.locations.user import Place
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture

__all__ = ["AccessWidth", "Subject"]

_AROUND = 2
"""Lines of the IR before and after an operation."""
_LOGGED = frozenset({"IRS201", "IRS302", "IRS303"})
"""Findings of which some are known from the compiler's log alone."""
_BLOCKS = ("descriptor", "tma")
"""In the names of accesses that one thread asks for, of which no instruction of each thread has a width."""


@dataclass(frozen=True, slots=True)
class AccessWidth:
    """An operation of a kernel that loads or stores tensors, and how wide its instructions are."""

    operation: str
    """As the TTGIR has it: `tt.load`, `ttg.async_copy_global_to_local`."""
    action: str
    """`load` (copies to shared memory are loads), `store` or `atomic`."""
    line: int
    """In the TTGIR, 1-based."""
    place: Place
    """(file, line) of the frames of the user's code, innermost first."""
    width_bits: int
    """Bits per thread of its narrowest instruction; 0 if the assembly shows none."""
    in_loop: bool

    @property
    def python_line(self) -> int:
        """The line of Python, 1-based; 0 if it is not known."""
        return self.place[0][1] if self.place else 0


class Subject:
    """A capture, with what is read of it."""

    def __init__(
        self,
        capture: Capture,
        *,
        completed: Callable[[Capture], Capture] | None = None,
        with_log: Callable[[Capture], Capture] | None = None,
    ) -> None:
        """What explains a breach, where it can be had: `completed` adds SASS, layouts and the IR of passes that the
        recording left out, `with_log` the compiler's log."""
        self.capture = capture
        self._completed = completed
        self._with_log = with_log
        self._facts: dict[str, Value] | None = None

    @cached_property
    def studied(self) -> Studied:
        """What findings read of it: of what every recording holds, so that no answer depends on what was asked before.

        A capture gets its SASS, its log and the operations of its instructions when a command needs them.
        """
        artifacts = tuple(one for one in self.capture.artifacts if one.stage != "sass")
        return Studied(replace(self.capture, log=None, operations=(), artifacts=artifacts))

    @cached_property
    def complete(self) -> Capture:
        """The capture with its SASS, its layouts and the IR of its passes, as far as they can be had."""
        return self._completed(self.capture) if self._completed is not None else self.capture

    @cached_property
    def logged(self) -> Capture:
        """The capture with the compiler's log, if that can be had."""
        return self._with_log(self.capture) if self._with_log is not None else self.capture

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Those that need neither SASS nor a log, and that no comment silences."""
        return tuple(one for one in findings_of(self.studied) if not is_silenced(one, self.capture))

    def findings_among(self, codes: frozenset[str]) -> tuple[Finding, ...]:
        """Those of some codes that no comment silences, with the SASS and the log where these codes need them."""
        if not codes & (_LOGGED | OF_SASS):
            return tuple(one for one in self.findings if one.code in codes)
        full = self.studied.capture
        if codes & OF_SASS:
            full = replace(full, artifacts=self.complete.artifacts)
        if codes & _LOGGED and self.has_loops_with_dots:
            full = replace(full, log=self.logged.log)
        found = self.findings if full == self.studied.capture else findings_of(Studied(full))
        return tuple(one for one in found if one.code in codes and not is_silenced(one, self.capture))

    @cached_property
    def has_loops_with_dots(self) -> bool:
        """Whether there is a loop with a dot, about whose loads the compiler's log says more."""
        return any(True for _ in loops_with_dots(self.studied))

    @cached_property
    def explaining(self) -> tuple[Finding, ...]:
        """The findings that may explain a breach; none if the capture cannot be studied."""
        try:
            log = self.logged.log if self.has_loops_with_dots else None
            return findings_of(Studied(replace(self.complete, log=log, operations=())))
        except DAMAGE:
            return ()

    def facts(self, read: Callable[[Subject], dict[str, Value]]) -> dict[str, Value]:
        """What a baseline holds of it, as `read` finds it, once."""
        if self._facts is None:
            self._facts = read(self)
        return self._facts

    @cached_property
    def accesses(self) -> tuple[AccessWidth, ...]:
        """The accesses of tensors in global memory that its threads make, in the order of the TTGIR."""
        found: list[AccessWidth] = []
        machine = self.studied.machine
        for operation, loops in self.studied.operations.values():
            action = ACCESSES.get(operation.name)
            if action is None or any(word in operation.name for word in _BLOCKS) or "tensor<" not in operation.text:
                continue
            widths = machine.widths_of(operation)
            line = operation.first_line
            found.append(
                AccessWidth(
                    operation.name,
                    "load" if action == "copy" else action,
                    line,
                    self.studied.place_at(line),
                    min(widths, default=0),
                    loops > 0,
                )
            )
        return tuple(found)

    @cached_property
    def kernel_place(self) -> Place:
        """The kernel's `def`."""
        kernel = self.capture.launch.kernel
        return ((kernel.file, kernel.line),) if kernel.file and kernel.line else ()

    def python_at(self, place: Place) -> str:
        """The line of Python of a place, without its indentation; empty if the capture does not hold it."""
        return python_line(self.capture, *place[0]).strip() if place else ""

    def around(self, line: int, stage: str = "ttgir") -> tuple[tuple[int, str], ...]:
        """The lines of a stage around one of them, without locations; none for line 0."""
        lines = self.capture.texts.get(stage, "").split("\n")
        if not 0 < line <= len(lines):
            return ()
        first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
        return tuple((number, without_location(lines[number - 1]).rstrip()) for number in range(first, last + 1))
