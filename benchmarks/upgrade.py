"""What `irscope upgrade` costs, in the two compiles of all variants: processor time of all processes.

`python -m benchmarks upgrade` compares this interpreter with those that IRSCOPE_OTHER_TRITONS names, separated by
colons. The captures are those of COLLECTION, if IRSCOPE_COLLECTION names one, else of a few examples' signatures.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.why import ROOT, processor_seconds
from irscope.analysis.upgrade.compare import compiled, upgraded
from irscope.api import record_all
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.pool import Compiler
from irscope.store.collection import Collection

__all__ = ["main"]

EXAMPLES = ("matmul", "softmax", "layer_norm", "flash_attention", "matrix_transpose")


def main() -> None:
    """Measure and print each pair of versions."""
    others = [one for one in os.environ.get("IRSCOPE_OTHER_TRITONS", "").split(":") if one]
    if not others:
        sys.exit("IRSCOPE_OTHER_TRITONS names no interpreter with another Triton")
    captures = _captures()
    for other in others:
        measure(captures, other)


def _captures() -> list[Capture]:
    if folder := os.environ.get("IRSCOPE_COLLECTION"):
        collection = Collection(Path(folder))
        return list(collection.captures(collection.entries()))
    return [
        one
        for name in EXAMPLES
        for one in record_all(ROOT / "examples" / f"{name}.py", target="cuda:90", snapshots="none")
    ]


def measure(captures: list[Capture], other: str) -> None:
    """Print the ratio of one pair, and what came of it."""
    options = RecordingOptions(snapshots="none", disassemble=False, layouts=False)
    started = processor_seconds()
    with Compiler(other, options, 1) as before, Compiler(None, options, 1) as after:
        compiled(captures, before)
        compiled(captures, after)
    two = processor_seconds() - started
    started = processor_seconds()
    with Compiler(other, options, 1) as before, Compiler(None, options, 1) as after:
        found = upgraded(captures, before, after)
    took = processor_seconds() - started
    blamed = [one.blame for one in found.rows if one.blame is not None]
    versions = " → ".join(found.versions)
    sure = sum(one.is_sure for one in blamed)
    print(
        f"{versions}: {len(captures)} variants, {len(blamed)} blamed ({sure} certain), {found.grafts} grafts; "
        f"two compiles {two:.1f} s, upgrade {took:.1f} s: {took / two:.2f} times"
    )
