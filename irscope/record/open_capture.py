"""One compile, as far as the recording process told of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from irscope.capture import Artifact, Launch, PassSnapshot, Target
from irscope.failure import Failure

__all__ = ["OpenCapture"]


@dataclass(slots=True)
class OpenCapture:
    """One compile, as far as it was told."""

    target: Target
    launch: Launch
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    snapshots: dict[int, PassSnapshot] = field(default_factory=dict)
    llvm_snapshots: list[PassSnapshot] = field(default_factory=list)
    stage: str = ""
    parsing: bool = False
    """Whether the text it starts from is being read."""
    running: PassSnapshot | None = None
    passing_texts: dict[int, str | None] = field(default_factory=dict)
    """The last text that was told in passing, by the pass it came after, and the passes that left it alone (None)."""
    log_from: int = 0
    """Where what the pass or stage under way prints begins in the log, in bytes."""
    began_s: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    failure: Failure | None = None
    failed_stage: str = ""
    failed_diagnostics: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    hash: str = ""
    ended: bool = False
    layouts: tuple[dict[str, Any], ...] = ()
    notes: list[str] = field(default_factory=list)
    compiler: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of what Triton is for this target: parts, variables and tools, as `Environment` has them."""

    def end(self) -> None:
        """Nothing more of it comes."""
        self.ended, self.took_s = True, time.monotonic() - self.began_s
        self.parsing = False

    def fail(self, failed: PassSnapshot | None) -> None:
        """It failed: in that pass, if it was one, which is told of with the IR before it."""
        for index, text in self.passing_texts.items():
            if (snapshot := self.snapshots.get(index)) is not None and snapshot.text is None:
                self.snapshots[index] = replace(snapshot, text=text, changed=text is not None)
        if failed is not None:
            self.snapshots[failed.index] = replace(failed, outcome="failed", changed=None)
        self.running = None
