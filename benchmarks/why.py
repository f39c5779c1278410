"""What `irscope why` costs of a stored capture, in compiles of it: processor time, of all processes, medians.

A compile is that of the capture's own source in a process that has imported Triton, with nothing recorded.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.quick import quick_findings
from irscope.api import record_all
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import request_from_capture
from irscope.record.variants.pool import VariantPool, variant_request
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore

ROOT = Path(__file__).parents[1]
ROUNDS = 3
EXAMPLES = ("matmul", "softmax", "layer_norm", "flash_attention")


def processor_seconds() -> float:
    """Of this process, and of all its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(action: Callable[[], object]) -> float:
    """The processor seconds that something takes."""
    started = processor_seconds()
    action()
    return processor_seconds() - started


def compile_in_pool(capture: Capture | None) -> None:
    """Start a warm process, and compile a capture in it if there is one."""
    with VariantPool(jobs=1) as pool:
        _ = pool.compiler
        if capture is not None:
            pool.compile_one(variant_request(capture, PassPlan()))


def log_in_pool(capture: Capture) -> None:
    """The same with the compiler's log."""
    asked = RecordingOptions(snapshots="none", layouts=False, disassemble=False)
    with VariantPool(jobs=1) as pool:
        pool.compile_one(replace(request_from_capture(capture, asked), compiler_log=True))


def measure(capture: Capture, stored: Path) -> None:
    """Measure and print one capture; the store is a fresh one each round."""
    rows: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "IRSCOPE_HOME": home, "PYTHONPATH": str(ROOT)}
            CaptureStore(Path(home, "captures")).add(capture)

            def irscope(*words: str, environment: dict[str, str] = environment) -> Callable[[], object]:
                command = [sys.executable, "-m", "irscope", *words]
                return lambda: subprocess.run(command, check=True, capture_output=True, env=environment)

            idle = timed(lambda: compile_in_pool(None))
            actions = {
                "compile": lambda: compile_in_pool(capture),
                "its log": lambda: log_in_pool(capture),
                "start": irscope("--help"),
                "why --no-try": irscope("why", "last", "--no-try"),
                "why, first": irscope("why", "last"),
                "why, again": irscope("why", "last"),
                "why --no-try, again": irscope("why", "last", "--no-try"),
            }
            for name, action in actions.items():
                rows.setdefault(name, []).append(timed(action) - (idle if name in ("compile", "its log") else 0))
            fresh = load(stored)
            rows.setdefault("dump's findings", []).append(timed(lambda one=fresh: quick_findings(one)))
            rows.setdefault("all findings", []).append(timed(lambda one=fresh: findings_of(one)))
    base = statistics.median(rows["compile"])
    shown = ", ".join(f"{name} {statistics.median(values) / base:.2f}" for name, values in rows.items())
    print(f"  {capture.name} {capture.target}: compile {base:.2f} s; in compiles: {shown}", flush=True)


def main() -> None:
    """Measure and print the costliest launch of each example."""
    for name in EXAMPLES:
        captures = record_all(ROOT / "examples" / f"{name}.py", target="cuda:90")
        capture = max(captures, key=lambda one: one.compile_us or 0)
        with tempfile.TemporaryDirectory() as folder:
            stored = Path(folder, "one.irscope")
            save(capture, stored)
            measure(capture, stored)


if __name__ == "__main__":
    main()
