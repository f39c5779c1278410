"""The first files of the long search of `make fuzz`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.product import ROOT
from tests.hostile.originals import LANGUAGES

COUNTS = ("captures", "1", "logs", "1", *(word for kind in LANGUAGES for word in (kind, "1")))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_what_is_mutated_meets_nothing_but_errors_of_its_own() -> None:
    # A process of its own: its workers are forked, and it has no other threads.
    command = [sys.executable, "-m", "tests.hostile", *COUNTS, "--jobs", "1"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 with a fault" in done.stdout


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("while True: pass", "processor time"),
        ("bytearray(2 << 30)", "MemoryError"),
        ("{}['a name']", "KeyError: 'a name'"),
        ("raise IrscopeError('so be it')", ""),
        ("__import__('os')._exit(3)", "ended with 3"),
    ],
)
def test_the_search_sees_each_kind_of_fault(body: str, fault: str) -> None:
    script = f"""
from irscope.errors import IrscopeError
from tests.hostile import worker
def body():
    {body}
worker.LONGEST_S = 0.2
((_, faults),) = worker.search([worker.Case(0, "any")], lambda case, folder: [worker.Step("step", body)], 1, 60)
print(faults)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert fault in done.stdout if fault else done.stdout == "[]\n"
