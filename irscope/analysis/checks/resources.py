"""Assertions about what a kernel takes: registers, spills, shared memory; and that it compiles at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from irscope.analysis.checks.subject import Assertion, Breach, Subject, at_place, of_kernel
from irscope.analysis.findings.kinds.resources import register_peak
from irscope.ir.locations.user import place_of

__all__ = ["Compiles", "MaxRegisters", "MaxShared", "NoSpills", "with_largest_buffer", "with_registers"]


@dataclass(frozen=True, slots=True)
class Compiles:
    """The kernel compiles, and fits on the device: asserted of every capture."""

    rule: ClassVar[str] = "compiles"

    def __str__(self) -> str:
        return "compiles"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """The failure of its compile, if there is one."""
        failure = subject.capture.failure
        if failure is None and subject.capture.status == "ok":
            return ()
        text = failure.why_not_run if failure is not None else "it failed to compile"
        if failure is not None and failure.kind == "fit":
            return (of_kernel(self, subject, text, ["IRS503"]),)
        more = failure.message.strip().splitlines()[1:12] if failure is not None else ()
        return (at_place(self, subject, (), text, more),)


@dataclass(frozen=True, slots=True)
class MaxRegisters:
    """At most so many registers per thread."""

    limit: int
    rule: ClassVar[str] = "max-regs"

    def __str__(self) -> str:
        return f"--max-regs {self.limit}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """The kernel, with what its registers hold where most of them do."""
        resources = subject.capture.resources
        if resources.registers is None:
            return (of_kernel(self, subject, "how many registers it takes is not known"),)
        # On AMD the accumulators have registers of their own, of the same file.
        count = resources.registers + (resources.accumulator_registers or 0)
        if count <= self.limit:
            return ()
        text = f"takes {count} registers a thread, {self.limit} are allowed"
        if (resources.spilled_bytes or 0) > 0:
            return (of_kernel(self, subject, text, ["IRS501"]),)
        return (with_registers(self, subject, text),)


@dataclass(frozen=True, slots=True)
class NoSpills:
    """No register is spilled to local memory."""

    rule: ClassVar[str] = "no-spills"

    def __str__(self) -> str:
        return "--no-spills"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """The kernel, with the line that spills most."""
        resources = subject.capture.resources
        spilled = resources.spilled_bytes
        if spilled is None:
            return (of_kernel(self, subject, "whether it spills registers is not known"),)
        if not spilled and not resources.scalar_spills:
            return ()
        what = f"{spilled} bytes of registers" if spilled else f"{resources.scalar_spills} scalar registers"
        return (of_kernel(self, subject, f"spills {what} a thread", ["IRS501"]),)


@dataclass(frozen=True, slots=True)
class MaxShared:
    """At most so many bytes of shared memory per block."""

    limit: int
    rule: ClassVar[str] = "max-shared"

    def __str__(self) -> str:
        return f"--max-shared {self.limit}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """The kernel, with its largest buffer."""
        size = subject.capture.resources.shared_bytes
        if size is None:
            return (of_kernel(self, subject, "how much shared memory it takes is not known"),)
        if size <= self.limit:
            return ()
        text = f"takes {size} bytes of shared memory a block, {self.limit} are allowed"
        return (with_largest_buffer(self, subject, text),)


def with_registers(assertion: Assertion, subject: Subject, text: str) -> Breach:
    """A breach with the line that made most of what the registers hold at their peak."""
    chain, causes = register_peak(subject.complete)
    place = place_of(chain, subject.capture.launch.kernel.file)
    return at_place(assertion, subject, place, text, (f"{one.text} [{one.evidence}: {one.source}]" for one in causes))


def with_largest_buffer(assertion: Assertion, subject: Subject, text: str) -> Breach:
    """A breach with the line that the largest buffer in shared memory is of."""
    from irscope.memory.allocation import allocations_of

    buffers = [
        (one, memory.unit)
        for memory in allocations_of(subject.complete)
        if memory.space == "shared"
        for one in memory.buffers
    ]
    if not buffers:
        return of_kernel(assertion, subject, text, ["IRS503"])
    buffer, unit = max(buffers, key=lambda row: row[0].size)
    file, _, line = buffer.place.rpartition(":")
    place = ((file, int(line)),) if line.isdecimal() else ()
    cause = f"its largest buffer: {buffer.size} {unit} of {buffer.owner}, {buffer.what} [ir: the allocation]"
    stages = subject.capture.launch.option("num_stages")
    more = [f"num_stages is {stages} [launch: the options of the launch]"] if isinstance(stages, int) else []
    return at_place(assertion, subject, place, text, [cause, *more])
