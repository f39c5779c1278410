"""Assertions about a kernel: its registers, instructions, accesses, loops, findings and texts; and their violations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os.path import basename
from typing import ClassVar

from irscope.analysis.checks.subject import (
    AccessWidth,
    Assertion,
    Breach,
    Subject,
    at_finding,
    at_line,
    at_place,
    of_kernel,
)
from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.findings.loops import LOADS, loads_of_dot, loops_with_dots
from irscope.analysis.findings.model import KINDS, codes_of
from irscope.analysis.findings.resources import register_peak
from irscope.analysis.resources import assembly_of, instruction_families
from irscope.errors import UsageError, did_you_mean
from irscope.ir.asm.opcodes import FAMILIES
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import place_of
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.operations import is_of_dialect, opcode_of
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture, stage_named


@dataclass(frozen=True, slots=True)
class Compiled(Assertion):
    """The kernel compiles, and fits on the device: asserted of every capture."""

    rule: ClassVar[str] = "compiles"

    def __str__(self) -> str:
        return "compiles"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        failure = subject.capture.failure
        if failure is None and subject.capture.status == "ok":
            return ()
        text = failure.why_not_run if failure is not None else "it failed to compile"
        if failure is not None and failure.kind == "fit":
            return (of_kernel(self, subject, text, ["IRS503"]),)
        more = failure.message.strip().splitlines()[1:12] if failure is not None else ()
        return (at_place(self, subject, (), text, more),)


@dataclass(frozen=True, slots=True)
class Safe(Assertion):
    """`irscope verify` finds no error in the launch; an undecided launch breaks the assertion, too."""

    rule: ClassVar[str] = "safe"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        from irscope.verify.launches import verify_launches

        verdict = verify_launches(subject.capture)
        found = [
            at_place(self, subject, one.place, f"{one.code} {one.kind}: {one.detail}", one.evidence)
            for one in verdict.violations
        ]
        if verdict.answer == "not decided":
            reasons = verdict.undecided or (f"{verdict.programs} of {verdict.all_programs} programs were executed",)
            found.append(at_place(self, subject, (), "its safety is undecided", reasons))
        return found


@dataclass(frozen=True, slots=True)
class MaxRegisters(Assertion):
    """At most so many registers per thread."""

    limit: int
    rule: ClassVar[str] = "max-regs"

    def __str__(self) -> str:
        return f"--max-regs {self.limit}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        resources = subject.capture.resources
        if resources.registers is None:
            return (of_kernel(self, subject, "its register count is unknown"),)
        # On AMD the accumulators have registers of their own, of the same file.
        count = resources.registers + (resources.accumulator_registers or 0)
        if count <= self.limit:
            return ()
        text = f"uses {count} registers per thread, {self.limit} are allowed"
        if (resources.spilled_bytes or 0) > 0:
            return (of_kernel(self, subject, text, ["IRS501"]),)
        return (with_registers(self, subject, text),)


# 1.5x   500ms   2s
_TIME = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,3})?)(?P<unit>x|ms|s)")


@dataclass(frozen=True, slots=True)
class MaxCompileTime(Assertion):
    """Compiling takes at most so much processor time, by the shortest of several compiles."""

    number: float
    unit: str
    """`x` times that of the baseline, `ms` or `s`."""
    before_ms: float | None = None
    """That of the baseline; None where it holds none."""
    rule: ClassVar[str] = "max-compile-time"

    @staticmethod
    def parse(text: str) -> MaxCompileTime:
        """`1.5x`, `500ms` or `2s`; raises UsageError."""
        match = _TIME.fullmatch(text.strip())
        if match is None or not float(match["number"]):
            raise UsageError(f"--max-compile-time {text!r}: write 1.5x, with --baseline, or a time: 500ms, 2s.")
        return MaxCompileTime(float(match["number"]), match["unit"])

    def __str__(self) -> str:
        return f"--max-compile-time {self.number:g}{self.unit}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        times = subject.compile_times_ms
        if not times:
            return (of_kernel(self, subject, "the compile time could not be measured on this machine"),)
        if self.unit == "x" and self.before_ms is None:
            text = "the baseline holds no compile time: check --update with --max-compile-time writes it"
            return (of_kernel(self, subject, text),)
        limit_ms = self.number * ({"ms": 1, "s": 1000}.get(self.unit) or self.before_ms or 0)
        if min(times) <= limit_ms:
            return ()
        ratio = (
            f", {min(times) / self.before_ms:.2f} times the baseline's {self.before_ms:.4g} ms"
            if self.before_ms
            else ""
        )
        spread = f"the shortest of {len(times)} compiles, the longest {max(times):.4g} ms"
        text = f"compiling takes {min(times):.4g} ms of processor time ({spread}){ratio}; {limit_ms:.4g} ms are allowed"
        return (of_kernel(self, subject, text),)


@dataclass(frozen=True, slots=True)
class NoSpills(Assertion):
    """No register is spilled to local memory."""

    rule: ClassVar[str] = "no-spills"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        resources = subject.capture.resources
        spilled = resources.spilled_bytes
        if spilled is None:
            return (of_kernel(self, subject, "its register spills are unknown"),)
        if not spilled and not resources.scalar_spills:
            return ()
        what = f"{spilled} bytes of registers" if spilled else f"{resources.scalar_spills} scalar registers"
        return (of_kernel(self, subject, f"spills {what} per thread", ["IRS501"]),)


@dataclass(frozen=True, slots=True)
class MaxShared(Assertion):
    """At most so many bytes of shared memory per CTA."""

    limit: int
    rule: ClassVar[str] = "max-shared"

    def __str__(self) -> str:
        return f"--max-shared {self.limit}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        size = subject.capture.resources.shared_bytes
        if size is None:
            return (of_kernel(self, subject, "its shared memory is unknown"),)
        if size <= self.limit:
            return ()
        text = f"uses {size} bytes of shared memory per CTA, {self.limit} are allowed"
        return (with_largest_buffer(self, subject, text),)


def with_registers(assertion: Assertion, subject: Subject, text: str) -> Breach:
    """A breach with the line that created most of the live registers at their peak."""
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


_CONTROL = ("control", "wait")
"""Families of instructions that only prepare others, or wait for them."""
_COPIES = ("async_copy_global_to_local", "async_tma_copy_global_to_local", "buffer_load_to_local")
_ACCESS_NAMES = {
    "load": "load", "store": "store", "atomic": "atomic",
    "tl.load": "load", "gl.load": "load", "tl.store": "store", "gl.store": "store",
    **{opcode: "load" if action == "copy" else action for opcode, action in ACCESSES.items()},
}  # fmt: skip
# tl.load=128   store@31=64
_WIDTH = re.compile(r"(?P<name>[\w.]{1,80})(?:@(?P<line>\d{1,7}))?=(?P<bits>\d{1,4})")


@dataclass(frozen=True, slots=True)
class Uses(Assertion):
    """It has instructions of a family, such as `wgmma`, or an operation of the IR, such as `tt.dot_scaled`."""

    name: str
    rule: ClassVar[str] = "uses"

    def __post_init__(self) -> None:
        family = re.sub(r"\.\d{1,4}$", "", self.name)
        if not is_of_dialect(self.name) and not any(_is_of(family, one) for one in FAMILIES):
            raise UsageError(
                f"--uses {self.name!r} is neither a family of instructions nor an operation of the IR such as "
                f"tt.dot_scaled.{did_you_mean(self.name, FAMILIES)}"
            )

    def __str__(self) -> str:
        return f"--uses {self.name}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        if is_of_dialect(self.name):
            return self._of_operation(subject)
        families = instruction_families(subject.capture)
        if any(_is_of(self.name, one) for one in families):
            return ()
        matrix = [name for name in families if name in ("wgmma", "mma", "mfma", "wmma", "tcgen05.mma")]
        text = f"has no {self.name} in its {assembly_of(subject.capture) or 'assembly'}"
        is_matrix = any(self.name.startswith(one) for one in ("wgmma", "mma", "mfma", "wmma", "tcgen05"))
        if is_matrix and matrix:
            text += f", it has {' and '.join(matrix)}"
        dots = [one for one in subject.studied.operations.values() if one.kind == "dot"] if is_matrix else []
        if dots:
            return tuple(_at_operation(self, subject, one, text, ["IRS301", "IRS601", "IRS302"]) for one in dots[:1])
        return (of_kernel(self, subject, text),)

    def _of_operation(self, subject: Subject) -> Sequence[Breach]:
        held = [stage for stage in ("ttir", "glir", "ttgir") if stage in subject.capture.stages]
        if any(operation_counts(subject.capture.text(stage), "mlir")[self.name] for stage in held):
            return ()
        return (of_kernel(self, subject, f"has no {self.name} in its {' or '.join(held) or 'IR, which is not there'}"),)


@dataclass(frozen=True, slots=True)
class MinWidth(Assertion):
    """Each access of tensors in global memory of one kind moves at least so many bits per thread at once."""

    name: str
    """`tl.load`, `store`, or an operation of the TTGIR."""
    bits: int
    python_line: int = 0
    """Only those of this line of Python; 0 for all."""
    rule: ClassVar[str] = "min-width"

    @staticmethod
    def parse(text: str) -> MinWidth:
        """`tl.load=128` or, of one line of Python, `tl.load@31=128`; raises UsageError."""
        match = _WIDTH.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"--min-width {text!r}: write OPERATION=BITS, such as tl.load=128 or tl.store@31=64.")
        return MinWidth(match["name"], int(match["bits"]), int(match["line"] or 0))

    def __post_init__(self) -> None:
        if opcode_of(self.name) not in _ACCESS_NAMES:
            raise UsageError(
                f"--min-width {self.name!r} is not an access of global memory.{did_you_mean(self.name, _ACCESS_NAMES)}"
            )

    def __str__(self) -> str:
        line = f"@{self.python_line}" if self.python_line else ""
        return f"--min-width {self.name}{line}={self.bits}"

    def breaches(self, subject: Subject) -> Sequence[Breach] | None:
        found = [
            one
            for one in _widths_named(subject, self.name)
            if not self.python_line or any(line == self.python_line for _, line in one.place)
        ]
        if not found:
            return None
        seen: dict[object, Breach] = {}
        for one in found:
            if one.width_bits < self.bits:
                # Copies in front of a pipelined loop are from the same place as those inside.
                key = (one.place, one.width_bits) if one.place else one.line
                seen.setdefault(key, self._breach(subject, one))
        return tuple(seen.values())

    def _breach(self, subject: Subject, one: AccessWidth) -> Breach:
        verb = {"load": "loads", "store": "stores", "atomic": "accesses"}[one.action]
        text = (
            f"{one.operation} {verb} {one.width_bits} bits a thread at once, at least {self.bits} are asserted"
            if one.width_bits
            else f"no instruction of {one.operation} was found in the assembly: its width is not known"
        )
        return at_line(self, subject, one.line, one.place, text, ["IRS101", "IRS102", "IRS103"])


def _widths_named(subject: Subject, name: str) -> list[AccessWidth]:
    """The accesses that a name means: `tl.load` means those that became asynchronous copies too."""
    opcode = opcode_of(name)
    exact = opcode in ACCESSES and opcode not in ("load", "store")
    accesses = [one for one in subject.accesses if one.action == _ACCESS_NAMES[opcode]]
    return [one for one in accesses if not exact or opcode_of(one.operation) == opcode]


@dataclass(frozen=True, slots=True)
class Pipelined(Assertion):
    """Each load that a dot of a loop reads was begun in an iteration before."""

    rule: ClassVar[str] = "pipelined"

    def breaches(self, subject: Subject) -> Sequence[Breach] | None:
        studied = subject.studied
        loops = list(loops_with_dots(studied))
        if not loops:
            return None
        found: dict[int, Breach] = {}
        for loop in loops:
            inside = list(loop.walk())
            for dot in (one for one in inside if one.kind == "dot"):
                for load in loads_of_dot(studied, dot):
                    text = f"{load.name} is not pipelined: its latency is exposed in each iteration"
                    found[load.first_line] = _at_operation(self, subject, load, text, ["IRS201", "IRS202"])
            lines = {one.first_line for one in inside}
            begun_before = {
                studied.chain_at(line)
                for line, one in studied.operations.items()
                if line not in lines and one.opcode in (*_COPIES, *LOADS)
            }
            for copy in inside:
                if copy.opcode in _COPIES and studied.chain_at(copy.first_line) not in begun_before:
                    text = f"no {copy.name} is issued before the loop: its latency is exposed in each iteration"
                    found[copy.first_line] = _at_operation(self, subject, copy, text, ["IRS201", "IRS202"])
            is_left = not any(one.opcode in (*LOADS, *_COPIES) for one in inside)
            if not found and is_left and any("descriptor" in one.name for one in inside):
                # What became of a block's load is not in the TTGIR: say nothing of it rather than that it is fine.
                found[loop.first_line] = _at_operation(
                    self, subject, loop, "its tile loads are still descriptors, so their pipelining is unknown"
                )
        return tuple(found[line] for line in sorted(found))


@dataclass(frozen=True, slots=True)
class NoFinding(Assertion):
    """`irscope why` finds nothing of some kinds; comments in the kernel silence single lines."""

    codes: frozenset[str]
    rule: ClassVar[str] = "no-finding"

    def __str__(self) -> str:
        return f"--no-finding {'any' if self.codes >= KINDS.keys() else ','.join(sorted(self.codes))}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        return tuple(at_finding(self, subject, one) for one in subject.findings_among(self.codes))


def _at_operation(
    assertion: Assertion, subject: Subject, operation: Operation, text: str, codes: Sequence[str] = ()
) -> Breach:
    line = operation.first_line
    return at_line(assertion, subject, line, subject.studied.place_at(line), text, codes)


def _is_of(name: str, family: str) -> bool:
    """Whether a name selects a family: the family itself, or one with the name as its prefix; no wait for them."""
    if family == name:
        return True
    return family.startswith(f"{name}.") and family.rpartition(".")[2] not in _CONTROL


_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class _OfText(Assertion):
    path: str
    stage: str

    def __str__(self) -> str:
        return f"--{self.rule} {self.path}:{self.stage}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        texts = subject.capture.texts
        if self.stage not in texts:
            return (of_kernel(self, subject, f"it has no text of stage {self.stage}: it holds {', '.join(texts)}"),)
        text, lines = self.difference(subject.capture)
        if not text:
            return ()
        left_out = [f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
        return (replace(of_kernel(self, subject, text), causes=(*lines[:_MOST_LINES], *left_out)),)

    def difference(self, capture: Capture) -> tuple[str, Sequence[str]]:
        """How the text is another than the file asks for, in a sentence and in lines; empty where it is not."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FileChecked(_OfText):
    """The text of a stage matches a file of FileCheck patterns."""

    run: Callable[[str, str], str]
    """(file of patterns, text) → FileCheck's error; empty if it accepts the text."""
    rule: ClassVar[str] = "filecheck"

    def difference(self, capture: Capture) -> tuple[str, Sequence[str]]:
        said = self.run(self.path, capture.text(self.stage))
        return f"FileCheck rejects its {self.stage} by {basename(self.path)}" if said else "", said.splitlines()


@dataclass(frozen=True, slots=True)
class Golden(_OfText):
    """The text of a stage equals a file, but for names, numbers, locations and the order of independent operations."""

    text: str
    rule: ClassVar[str] = "golden"

    def difference(self, capture: Capture) -> tuple[str, Sequence[str]]:
        found = diff_texts(self.text, capture.text(self.stage), stage_named(self.stage).kind)
        if found.is_empty:
            return "", ()
        diff = found.unified(2, basename(self.path), f"{self.stage} of {capture.name}")
        return f"its {self.stage} is not that of {basename(self.path)}: {found.summary}", diff.splitlines()


def assertions_of(
    *,
    max_registers: int | None = None,
    no_spills: bool = False,
    max_shared_bytes: int | None = None,
    max_compile_time: str | None = None,
    uses: Iterable[str] = (),
    min_width: Iterable[str] = (),
    pipelined: bool = False,
    safe: bool = False,
    no_finding: Sequence[str] = (),
) -> list[Assertion]:
    """The assertions, by the options of `irscope check`; raises UsageError."""
    rows: tuple[Assertion | None, ...] = (
        MaxRegisters(max_registers) if max_registers is not None else None,
        NoSpills() if no_spills else None,
        MaxShared(max_shared_bytes) if max_shared_bytes is not None else None,
        MaxCompileTime.parse(max_compile_time) if max_compile_time is not None else None,
        *map(Uses, uses),
        *map(MinWidth.parse, min_width),
        Pipelined() if pipelined else None,
        Safe() if safe else None,
        NoFinding(codes_of(no_finding)) if no_finding else None,
    )
    return [one for one in rows if one is not None]
