"""What the case studies' changes are worth on a GPU, for docs/cases/index.md: `python -m benchmarks cases`.

Each script of docs/cases is checked, and timed before and after in turns. Where IRSCOPE_OTHER_TRITONS names
interpreters with another Triton, separated by colons, the kernels of the upgrade are timed under each too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["main"]

TIMED = Path(__file__).with_name("case_times.py")
NAMES = ("narrow_loads", "conversion_in_loop", "missing_pipeline", "spills", "recompile_storm", "upgrade")
STORMS = 3
"""How often the first call of the recompile storm is timed, each in a process of its own."""


def main() -> None:
    """Print the table in Markdown, each row as soon as it is measured."""
    others = [one for one in os.environ.get("IRSCOPE_OTHER_TRITONS", "").split(":") if one]
    print("| Case | Triton | GPU | Before | After | Before / after, and its range |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        for interpreter in [sys.executable, *(others if name == "upgrade" else ())]:
            found = [_measured(interpreter, name) for _ in range(STORMS if name == "recompile_storm" else 1)]
            pairs = [pair for one in found for pair in one["pairs_ms"]]
            before_ms, after_ms = (statistics.median(times) for times in zip(*pairs, strict=True))
            ratios = [before / after for before, after in pairs]
            print(
                f"| {name} | {found[0]['triton']} | {found[0]['gpu']} | {before_ms:.4g} ms | {after_ms:.4g} ms "
                f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
                flush=True,
            )


def _measured(interpreter: str, name: str) -> dict:
    """The figures of one case, in a process and with a Triton cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        child = subprocess.run(
            [interpreter, TIMED, name],
            env={**os.environ, "TRITON_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            text=True,
        )
    if child.returncode:
        sys.exit(f"{name} failed under {interpreter}: exit code {child.returncode}")
    return json.loads(child.stdout.splitlines()[-1])
