"""Why a compile gave nothing that can run: its kind, where it happened, and what was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "python", "compile", "parse", "pass", "assembler", "fit", "abort", "timeout", "interrupt", "recorder", "resources"
]
"""`compile`: the Python front end refused the kernel. `parse`: an IR file is none. `fit`: it compiled, and asks for
more than a block can have on the device. `resources`: the machine has no more memory, disk space or descriptors."""

_ASSEMBLERS = {"cubin": "ptxas", "hsaco": "the AMD assembler"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a compile ended early, or what it made cannot run."""

    kind: FailureKind
    message: str
    """What the compiler, the assembler or Python said; the first line says most."""
    stage: str = ""
    """The stage that failed; empty where none had begun. For an IR file that is none, the file's."""
    pass_label: str = ""
    """The pass that failed, as `PassSnapshot.label`."""
    diagnostics: str = ""
    """What MLIR, ptxas or the crashing process printed on stderr."""

    @property
    def where(self) -> str:
        """What failed: `ttgir:coalesce#1`, `ptxas`, `stage llir`, `the front end`."""
        if self.pass_label:
            return self.pass_label
        if self.stage in _ASSEMBLERS:
            return _ASSEMBLERS[self.stage]
        return f"stage {self.stage}" if self.stage else "the front end"

    @property
    def verdict(self) -> str:
        """`failed in ptxas`, or what else came of it."""
        if self.kind == "fit":
            return "failed to fit"
        if self.kind == "resources":
            return "failed as the machine ran out of memory, disk space or descriptors"
        if self.kind == "parse":
            return f"failed in parsing the {self.stage}"
        return f"failed in {self.where}"

    @property
    def headline(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def why_not_run(self) -> str:
        """Why it cannot be run, in a line."""
        if self.kind == "fit":
            return f"it does not fit: {self.headline}"
        return f"it does not compile: {self.where}: {self.headline}".rstrip(": ")
