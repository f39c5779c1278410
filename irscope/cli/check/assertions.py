"""The assertions that the options of `irscope check` state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from irscope.cli import options
from irscope.cli.grouped import grouped
from irscope.errors import ParseError, UsageError, did_you_mean

if TYPE_CHECKING:
    from irscope.analysis.checks.subject import Assertion

__all__ = ["Asserted", "file_and_stage", "is_folder", "read_bytes", "read_golden", "with_assertions"]

_assertion = options.in_panel("Assertions")
# 100k   49152   64KiB
_BYTES = re.compile(r"(?P<number>\d{1,9})(?P<unit>k|kb|kib|)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asserted:
    """What must hold of each kernel."""

    max_regs: Annotated[
        int | None, _assertion("--max-regs", metavar="N", min=0, help="At most N registers a thread.")
    ] = None
    no_spills: Annotated[bool, _assertion("--no-spills", help="No register is spilled.")] = False
    max_shared: Annotated[
        str | None,
        _assertion(
            "--max-shared", metavar="BYTES", help="At most so much shared memory a block: 49152, or 100k (KiB)."
        ),
    ] = None
    uses: Annotated[
        list[str] | None,
        _assertion(
            "--uses",
            metavar="NAME[,NAME]",
            help="It has instructions of this family (wgmma, mma, tma.load, cp.async.128), or this operation of the IR "
            "(tt.dot_scaled); repeatable.",
        ),
    ] = None
    min_width: Annotated[
        list[str] | None,
        _assertion(
            "--min-width",
            metavar="OP[@LINE]=BITS",
            help="Each access of tensors in global memory moves so many bits a thread at once: tl.load=128, of line 31 "
            "tl.store@31=64; repeatable.",
        ),
    ] = None
    pipelined: Annotated[
        bool, _assertion("--pipelined", help="Loads that the dots of a loop read are begun in an iteration before.")
    ] = False
    no_finding: Annotated[
        list[str] | None,
        _assertion(
            "--no-finding",
            metavar="CODE[,CODE]|any",
            help="`irscope why` finds nothing of these kinds: IRS101, or narrow-load; repeatable.",
        ),
    ] = None
    filecheck: Annotated[
        list[str] | None,
        _assertion(
            "--filecheck",
            metavar="FILE:STAGE",
            help="FileCheck, of Triton's wheel, accepts the text of a stage by the patterns of FILE; repeatable.",
        ),
    ] = None
    golden: Annotated[
        list[str] | None,
        _assertion(
            "--golden",
            metavar="FILE:STAGE",
            help="The text of a stage is that of FILE, but for names, numbers, locations and the order of independent "
            "operations; of several captures, FOLDER/:STAGE has a file for each variant. Repeatable.",
        ),
    ] = None
    update: Annotated[bool, _assertion("--update", help="Write the files of --golden anew.")] = False

    @property
    def needs_findings(self) -> bool:
        """Whether it asks for findings, which need the layouts and the IR of the passes."""
        return bool(self.no_finding)

    def all(self) -> list[Assertion]:
        """The assertions; raises UsageError for one that cannot be."""
        from irscope.analysis.checks.assertions import (
            MaxRegisters,
            MaxShared,
            MinWidth,
            NoFinding,
            NoSpills,
            Pipelined,
            Uses,
        )
        from irscope.analysis.findings.model import codes_of

        found: list[Assertion] = []
        if self.max_regs is not None:
            found.append(MaxRegisters(self.max_regs))
        if self.no_spills:
            found.append(NoSpills())
        if self.max_shared is not None:
            found.append(MaxShared(read_bytes(self.max_shared)))
        found += [Uses(name) for name in options.split_words(self.uses)]
        found += [MinWidth.parse(text) for text in options.split_words(self.min_width)]
        if self.pipelined:
            found.append(Pipelined())
        if words := options.split_words(self.no_finding):
            found.append(NoFinding(codes_of(words)))
        return [*found, *self._of_texts()]

    def _of_texts(self) -> Iterator[Assertion]:
        from irscope.analysis.checks.assertions import FileChecked, Golden

        if self.update and not self.golden:
            raise UsageError("--update writes the files of --golden: give one.")
        for text in self.filecheck or ():
            from irscope.record.triton.identity import filecheck_program, run_filecheck

            path, stage = file_and_stage(text, "--filecheck")
            filecheck_program()
            _read(path, "--filecheck", "a file of FileCheck's patterns")
            yield FileChecked(path, stage, run_filecheck)
        for text in () if self.update else self.golden or ():
            path, stage = file_and_stage(text, "--golden")
            if not is_folder(path):
                yield Golden(path, stage, read_golden(path))


with_assertions = grouped("asserted", Asserted)
"""The decorator of a command that takes assertions as the parameter `asserted`."""


def file_and_stage(text: str, option: str) -> tuple[str, str]:
    """The parts of `FILE:STAGE`; raises UsageError."""
    from irscope.model.capture import STAGES

    path, _, stage = text.rpartition(":")
    known = [one.name for one in STAGES if not one.is_binary]
    if not path:
        raise UsageError(f"{option} {text!r}: write FILE:STAGE, such as golden/matmul.ttgir:ttgir.")
    if stage not in known:
        raise UsageError(f"{option} {text!r}: {stage!r} is no stage with a text.{did_you_mean(stage, known)}")
    return path, stage


def read_bytes(text: str) -> int:
    """`49152` or `100k`, in bytes; raises UsageError."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--max-shared {text!r}: write bytes, such as 49152, or KiB, such as 100k.")
    return int(match["number"]) * (1024 if match["unit"] else 1)


def is_folder(path: str) -> bool:
    """Whether the path of a `--golden` names a folder."""
    return path.endswith("/") or Path(path).is_dir()


def read_golden(path: str) -> str:
    """The text of a file of golden IR; raises ParseError."""
    return _read(path, "--golden", "IR; --update writes it")


def _read(path: str, option: str, what: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ParseError(f"{option} {path!r} cannot be read: {why}. It should be {what}.") from error
