"""Host programs that placeholder values decide something of: each is reported, and nothing of the programs' twins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.record.virtual.placeholder_programs import PREAMBLE, PROGRAMS

pytest.importorskip("triton", reason="the virtual GPU compiles with Triton, which is not installed")
pytestmark = [
    pytest.mark.triton,
    pytest.mark.newest,
    pytest.mark.skipif(find_spec("torch") is None, reason="the programs import torch, which is not installed"),
]
RECORD = Path(__file__).parents[1]
SCRIPT = RECORD / "scripts" / "reported.py"
OPERATORS = """
unique unique_consecutive bincount nonzero masked_select argwhere nn.functional.one_hot to_sparse repeat_interleave
tensor_split item equal allclose histc linalg.det nn.functional.ctc_loss index_select where topk sum
"""
"""A sample of torch's table of operators; `placeholder_ops.py` runs all of it."""
Reports = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What a recording reports of each program, by the name of its file, and the error that it ended with."""
    folder = tmp_path_factory.mktemp("placeholders")
    files: list[str] = []
    for index, program in enumerate(PROGRAMS):
        for suffix, code in (("", program.code), ("_twin", program.twin)):
            path = folder / f"p{index}{suffix}.py"
            path.write_text(f"{PREAMBLE}{code}\n")
            files.append(str(path))
    results = folder / "results.json"
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, str(SCRIPT), str(results), *files], check=True, timeout=500, env=environment)
    return json.loads(results.read_text())


def test_what_a_placeholder_value_decides_is_reported(reports: Reports) -> None:
    wrong: list[str] = []
    for index, row in enumerate(PROGRAMS):
        program, twin = reports[f"p{index}.py"], reports[f"p{index}_twin.py"]
        text = "\n".join(program["notes"])  # type: ignore[arg-type]
        missing = [piece for piece in row.reported if piece not in text]
        if program["error"] or missing:
            wrong.append(f"{row.name}: {missing} is not in {text!r}; {program['error']}")
        if twin["error"] or twin["notes"]:
            wrong.append(f"the twin of {row.name}: {twin['notes']} {twin['error']}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.exhaustive
def test_what_operators_read_of_data_is_reported() -> None:
    names = OPERATORS.split()
    command = [sys.executable, str(RECORD / "placeholder_ops.py"), "--samples", "3", *names]
    environment = {**os.environ, "PYTHONPATH": str(RECORD.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"(\d+) operators, \d+ cases, data decide in (\d+), 0 wrong", done.stdout)
    assert counts is not None
    assert int(counts[1]) >= len(names)
    assert int(counts[2]) > 20
