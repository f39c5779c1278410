"""What assertions are about and what they are: a Subject, an Assertion, and each Breach with its line and cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from irscope.analysis.findings.costs import OF_TIME, priced, timed
from irscope.analysis.findings.find import OF_SASS, findings_of
from irscope.analysis.findings.loops import loops_with_dots
from irscope.analysis.findings.model import Finding, is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.analysis.regressions import Value
from irscope.analysis.source.map import python_line, without_location
from irscope.errors import DAMAGE
from irscope.ir.locations.model import Place
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture

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
    """A capture with the data that assertions read of it."""

    def __init__(
        self,
        capture: Capture,
        *,
        completed: Callable[[Capture], Capture] | None = None,
        with_log: Callable[[Capture], Capture] | None = None,
        compile_times: Callable[[Capture], Sequence[int]] | None = None,
    ) -> None:
        """What explains a breach, where it can be had: `completed` adds SASS, layouts and the IR of passes that the
        recording left out, `with_log` the compiler's log. `compile_times` compiles it again, several times, for the
        microseconds of processor time."""
        self.capture = capture
        self._completed = completed
        self._with_log = with_log
        self._compile_times = compile_times
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
    def compile_times_ms(self) -> tuple[float, ...]:
        """The processor time of several compiles of it; none where it cannot be compiled here."""
        return tuple(one / 1000 for one in self._compile_times(self.capture)) if self._compile_times else ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Those that need neither SASS nor a log, and that no comment silences."""
        return tuple(one for one in findings_of(self.studied) if not is_silenced(one, self.capture))

    def findings_among(self, codes: frozenset[str]) -> tuple[Finding, ...]:
        """Those of some codes that no comment silences, in the order and with the costs of `irscope why`.

        SASS, log and prediction are made where these codes need them, and the prediction where there is one to order.
        """
        full = self.studied.capture
        if codes & OF_SASS:
            full = replace(full, artifacts=self.complete.artifacts)
        if codes & _LOGGED and self.has_loops_with_dots:
            full = replace(full, log=self.logged.log)
        studied = self.studied if full == self.studied.capture else Studied(full)
        found = self.findings if studied is self.studied else findings_of(studied)
        if codes & OF_TIME or any(one.code in codes for one in found):
            found = priced(studied, found, timed(self.complete))
        return tuple(one for one in found if one.code in codes and not is_silenced(one, self.capture))

    @cached_property
    def has_loops_with_dots(self) -> bool:
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
        """The baseline's entry for it, by `read`, once."""
        if self._facts is None:
            self._facts = read(self)
        return self._facts

    @cached_property
    def accesses(self) -> tuple[AccessWidth, ...]:
        """The accesses of tensors in global memory that its threads make, in the order of the TTGIR."""
        found: list[AccessWidth] = []
        machine = self.studied.machine
        for operation in self.studied.operations.values():
            action = ACCESSES.get(operation.opcode)
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
                    operation.loops > 0,
                )
            )
        return tuple(found)

    @cached_property
    def kernel_place(self) -> Place:
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


@dataclass(frozen=True, slots=True)
class Breach:
    """One way in which a capture breaks an assertion."""

    rule: str
    """The kind of the assertion: `max-regs`."""
    assertion: str
    """The assertion as the command line states it: `--max-regs 128`."""
    text: str
    """The actual state, with its figures."""
    place: Place = ()
    """(file, line) of the frames of the user's code, innermost first; the kernel's own if it is about all of it."""
    python: str = ""
    """The line of Python there."""
    causes: tuple[str, ...] = ()
    """The causes, each with its evidence."""
    finding: Finding | None = None
    stage: str = ""
    """The stage that the excerpt is of."""
    excerpt: tuple[tuple[int, str], ...] = ()
    """(1-based line, its text without the location) around the operation."""
    line: int = 0
    """The operation's, of the stage; 0 if it is about the whole kernel."""


class Assertion:
    """A condition on a capture."""

    __slots__ = ()
    rule: ClassVar[str]
    """The kind of assertion: `max-regs`."""

    def __str__(self) -> str:
        """As the command line states it: `--max-regs 128`."""
        return f"--{self.rule}"

    def breaches(self, subject: Subject) -> Sequence[Breach] | None:
        """Where a capture breaks it; none where it holds; None if it does not apply to the kernel."""
        raise NotImplementedError


def at_place(
    assertion: Assertion,
    subject: Subject,
    place: Place,
    text: str,
    causes: Iterable[str] = (),
    *,
    finding: Finding | None = None,
    line: int = 0,
) -> Breach:
    """A breach at a line of Python, and at one of the TTGIR; of the whole kernel without a place."""
    place = place or subject.kernel_place
    breach = Breach(assertion.rule, str(assertion), text, place, subject.python_at(place), tuple(causes), finding)
    rows = subject.around(line)
    return replace(breach, stage="ttgir", excerpt=rows, line=line) if rows else breach


def of_kernel(assertion: Assertion, subject: Subject, text: str, codes: Sequence[str] = ()) -> Breach:
    """A breach by the whole kernel; the first finding of some codes explains it, and gives the line."""
    found = next((one for code in codes for one in subject.explaining if one.code == code), None)
    if found is not None:
        return at_finding(assertion, subject, found, text)
    return at_place(assertion, subject, (), text)


def at_finding(assertion: Assertion, subject: Subject, finding: Finding, text: str = "") -> Breach:
    """A breach where a finding is, with its causes; `text`: in place of the finding's own."""
    own, *causes = explanation = _explanation(finding)
    causes = explanation if text else causes
    return at_place(assertion, subject, finding.place, text or own, causes, finding=finding, line=finding.line)


def at_line(
    assertion: Assertion, subject: Subject, line: int, place: Place, text: str, codes: Sequence[str] = ()
) -> Breach:
    """A breach by an operation of the TTGIR; the findings of some codes that are about the same line of it explain it.

    The findings of the same operation come first, then those of its line of Python.
    """
    own = [one for one in subject.explaining if one.code in codes and one.place[:1] == place[:1]]
    found = min(own, key=lambda one: one.line != line, default=None)
    causes = _explanation(found) if found is not None else ()
    return at_place(assertion, subject, place, text, causes, finding=found, line=line)


def _explanation(finding: Finding) -> list[str]:
    causes = (f"{one.text} [{one.evidence}: {one.source}]" for one in finding.causes)
    return [f"{finding.code} {finding.kind.name}: {finding.text}", *causes]
