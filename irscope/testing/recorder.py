"""What the fixture `irscope` gives: it records kernels, and of each states what may be asserted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, ClassVar, ParamSpec, TypeVar, overload

from irscope import api
from irscope.analysis.checks import assertions
from irscope.analysis.checks.subject import AccessWidth, Assertion, Breach, Subject, at_line
from irscope.analysis.findings.model import ANY, Finding, codes_of
from irscope.errors import IrscopeError, UsageError
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, stage_named
from irscope.model.evidence import CompilerLog
from irscope.record.process.annotations import disassembled
from irscope.record.triton.identity import run_filecheck
from irscope.render.checks import breach_lines


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """Whether an assertion holds of a capture; true where it does."""

    assertion: str
    """As the command line states it: `--uses wgmma`."""
    kernel: str
    breaches: tuple[Breach, ...] | None
    """None if it says nothing of such a kernel, which counts as broken."""

    def __bool__(self) -> bool:
        return self.breaches == ()

    @property
    def text(self) -> str:
        """Each breach with its line, causes and IR."""
        if self.breaches is None:
            return f"{self.kernel} has no operation that this checks"
        return "\n".join(
            [self.kernel, *(line for breach in self.breaches for line in breach_lines(breach))]
            if self.breaches
            else [f"{self.kernel}: it holds"]
        )

    def __repr__(self) -> str:
        if self.breaches is None:
            return f"<{self.assertion} does not apply to {self.kernel}>"
        if not self.breaches:
            return f"<{self.assertion} holds of {self.kernel}>"
        first = self.breaches[0]
        where = f" ({first.place[0][0].rpartition('/')[2]}:{first.place[0][1]})" if first.place else ""
        return f"<{self.kernel} {first.text}{where}>"


class Figure(int):
    """A number that a compile gave, which knows where it comes from."""

    subject: Subject
    asserting: Callable[[int], Assertion]

    @staticmethod
    def of(value: int, subject: Subject, asserting: Callable[[int], Assertion]) -> Figure:
        """A figure; `asserting`: the assertion that it keeps within a limit, which explains where it does not."""
        figure = Figure(value)
        figure.subject, figure.asserting = subject, asserting
        return figure

    def explained(self, op: str, right: object) -> list[str] | None:
        """The lines of a message about a comparison that does not hold; None where there is nothing to say."""
        shift = {"<=": 0, ">=": 0, "==": 0, "<": -1, ">": 1}.get(op)
        if shift is None or not isinstance(right, int):
            return None
        broken = self.asserting(right + shift).breaches(self.subject)
        lines = [line for breach in broken or () for line in breach_lines(breach)]
        return [f"{int(self)} {op} {right}", *lines]


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Recorder:
    """Records kernels, as `irscope.record` does, on a machine with a GPU or without one."""

    def __init__(self, *, updates: bool = False) -> None:
        """`updates`: whether `golden` writes its files."""
        self.record = _with_arguments_of(api.record, lambda keywords: self._recorded(keywords)[0])
        """The first kernel that is compiled; the arguments are those of `irscope.record`."""
        self.record_all = _with_arguments_of(api.record_all, self._recorded)
        """Every kernel that is compiled; the arguments are those of `irscope.record_all`."""
        self._updates = updates

    def load(self, path: str | PathLike[str]) -> CheckedKernel:
        """A capture that was made before, of a `.irscope` file."""
        return self.checked(api.load(fspath(path)))

    def checked(self, capture: Capture) -> CheckedKernel:
        """A capture, such as one of `irscope.capture()`, to be asserted of."""
        return CheckedKernel(capture, updates=self._updates)

    def _recorded(self, keywords: Mapping[str, Any]) -> tuple[CheckedKernel, ...]:
        return tuple(self.checked(capture) for capture in api.recorded(keywords, disassemble=False))


class CheckedKernel:
    """One compiled kernel, and what can be asserted of it."""

    def __init__(self, capture: Capture, *, updates: bool = False) -> None:
        self.capture = capture
        self._updates = updates
        self._subject = Subject(capture, completed=disassembled, with_log=_with_log)

    def __repr__(self) -> str:
        return f"<{self._name}>"

    @property
    def _name(self) -> str:
        return f"{self.capture.name} ({self.capture.target})"

    def verdict(self, assertion: Assertion) -> Verdict:
        """Whether an assertion holds."""
        # A kernel that was not compiled has nothing else to be asserted.
        asked = assertion if self.capture.has_compiled else assertions.Compiled()
        broken = asked.breaches(self._subject)
        return Verdict(str(assertion), self._name, None if broken is None else tuple(broken))

    @property
    def compiles(self) -> Verdict:
        """Whether it compiles, and fits on the device."""
        return self.verdict(assertions.Compiled())

    @property
    def registers(self) -> Figure:
        """Registers per thread."""
        resources = self.capture.resources
        count = self._known(resources.registers, "registers")
        return Figure.of(count + (resources.accumulator_registers or 0), self._subject, assertions.MaxRegisters)

    @property
    def shared_bytes(self) -> Figure:
        """Bytes of shared memory per CTA."""
        return Figure.of(
            self._known(self.capture.resources.shared_bytes, "shared memory"), self._subject, assertions.MaxShared
        )

    @property
    def spilled_bytes(self) -> Figure:
        """Bytes of registers that a thread stores to local memory and loads from it."""
        spilled = self._known(self.capture.resources.spilled_bytes, "spills")
        return Figure.of(spilled, self._subject, lambda _: assertions.NoSpills())

    def uses(self, name: str) -> Verdict:
        """Whether it has instructions of a family (`wgmma`, `tma.load`), or an operation (`tt.dot_scaled`)."""
        return self.verdict(assertions.Uses(name))

    @property
    def pipelined(self) -> Verdict:
        """Whether each load that a dot of a loop reads is begun in an iteration before."""
        return self.verdict(assertions.Pipelined())

    @property
    def safe(self) -> Verdict:
        """Whether `irscope verify` finds nothing wrong in its launch, and decides all of it."""
        return self.verdict(assertions.Safe())

    def assert_safe(self) -> None:
        """Raise AssertionError where `safe` does not hold, with each violation and its accesses."""
        verdict = self.safe
        if not verdict:
            raise AssertionError(verdict.text)

    @property
    def loads(self) -> Accesses:
        """The loads of tensors from global memory, asynchronous copies among them."""
        return Accesses(self._subject, "load", self._name)

    @property
    def stores(self) -> Accesses:
        """The stores of tensors to global memory."""
        return Accesses(self._subject, "store", self._name)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What `irscope why` finds, the worst first, without what needs the compiler's log."""
        return self._subject.findings

    def no_finding(self, *kinds: str) -> Verdict:
        """Whether nothing of some kinds is found: `IRS101`, or `narrow-load`; without kinds, or of `any`, nothing."""
        return self.verdict(assertions.NoFinding(codes_of(kinds or (ANY,))))

    def filecheck(self, patterns: str | PathLike[str], stage: str) -> Verdict:
        """Whether FileCheck accepts the text of a stage. `patterns`: a file of them, or a text that has `CHECK`."""

        if not isinstance(patterns, str) or "CHECK" not in patterns:
            return self.verdict(assertions.FileChecked(fspath(patterns), stage, run_filecheck))
        with NamedTemporaryFile("w", suffix=".check", encoding="utf-8") as file:
            file.write(patterns)
            file.flush()
            return self.verdict(assertions.FileChecked(file.name, stage, run_filecheck))

    def golden(self, path: str | PathLike[str], stage: str) -> Verdict:
        """Whether the text of a stage is that of a file, but for names, numbers, locations and independent order.

        `pytest --irscope-update` writes the file. Raises UsageError where it cannot be read.
        """
        file = Path(path)
        if self._updates:
            text = strip_locations(self.capture.text(stage), stage_named(stage).kind)
            file.write_text(text, "utf-8")
        try:
            stored = file.read_text("utf-8")
        except OSError as error:
            raise UsageError(f"golden {str(file)!r} cannot be read: pytest --irscope-update writes it.") from error
        return self.verdict(assertions.Golden(str(file), stage, stored))

    def _known(self, value: int | None, what: str) -> int:
        if value is None:
            why = f": {self.capture.failure.why_not_run}" if self.capture.failure is not None else ""
            raise UsageError(f"{self._name}: its {what} are not known{why}.")
        return value


@dataclass(frozen=True, slots=True)
class _All(Assertion):
    """A predicate holds of each access of some."""

    accesses: Accesses
    predicate: Callable[[AccessWidth], bool]
    rule: ClassVar[str] = "all"

    def __str__(self) -> str:
        return f"{self.accesses.action}s.all(…)"

    def breaches(self, subject: Subject) -> Sequence[Breach] | None:
        """The accesses of which it does not."""
        if not self.accesses:
            return None
        codes = ["IRS101", "IRS102", "IRS103"]
        broken: dict[object, Breach] = {}
        for access in self.accesses:
            # Copies in front of a pipelined loop are from the same place as those inside.
            key = (access.place, access.width_bits) if access.place else access.line
            if key not in broken and not self.predicate(access):
                broken[key] = at_line(self, subject, access.line, access.place, _described(access), codes)
        return tuple(broken.values())


class Accesses(Sequence[AccessWidth]):
    """The loads, or the stores, of a kernel, in the order of the TTGIR."""

    def __init__(self, subject: Subject, action: str, name: str) -> None:
        self.action = action
        self._subject = subject
        self._name = name

    @cached_property
    def _items(self) -> tuple[AccessWidth, ...]:
        return tuple(access for access in self._subject.accesses if access.action == self.action)

    @overload
    def __getitem__(self, index: int) -> AccessWidth: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AccessWidth, ...]: ...
    def __getitem__(self, index: int | slice) -> AccessWidth | tuple[AccessWidth, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[AccessWidth]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"<{len(self)} {self.action}s of {self._name}>"

    def all(self, predicate: Callable[[AccessWidth], bool]) -> Verdict:
        """Whether a predicate holds of each: `c.loads.all(lambda load: load.width_bits >= 128)`; never of none."""
        broken = _All(self, predicate).breaches(self._subject)
        return Verdict(f"{self.action}s.all(…)", self._name, None if broken is None else tuple(broken))

    @property
    def width_bits(self) -> Figure:
        """Bits per thread of the narrowest instruction of all of them; raises UsageError where there is none."""
        if not self:
            raise UsageError(f"{self._name} has no {self.action}s of tensors in global memory.")
        narrowest = min(access.width_bits for access in self)
        return Figure.of(narrowest, self._subject, lambda bits: assertions.MinWidth(self.action, bits))


def _described(access: AccessWidth) -> str:
    width = f"{access.width_bits} bits a thread at once" if access.width_bits else "no width that the assembly shows"
    return f"{access.operation}: {width}{', in a loop' if access.in_loop else ''}"


def _with_arguments_of(
    function: Callable[_Parameters, object], call: Callable[[Mapping[str, Any]], _Result]
) -> Callable[_Parameters, _Result]:
    """A function with the arguments of another, which gets them by name."""

    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        return call(signature.bind(*args, **options).arguments)

    return called  # pyright: ignore[reportUnknownVariableType]


def _with_log(capture: Capture) -> Capture:
    """The capture with the compiler's log, if it can be compiled again here."""
    if capture.log is not None:
        return capture
    try:
        return replace(capture, log=_log_of(capture))
    except IrscopeError:
        return capture


@functools.lru_cache(maxsize=16)
def _log_of(capture: Capture) -> CompilerLog | None:
    """What another compile of a capture logs: made once, also where each test loads the file again."""
    from irscope.record.compile.second import find_log
    from irscope.record.process.session import compiled

    return find_log(capture, compiled)
