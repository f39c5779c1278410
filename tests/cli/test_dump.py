"""`irscope dump`: its summary has the findings of `why`, and a line about whether launches are safe."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from irscope.analysis.findings.model import LEAST_SHARE
from irscope.cli.commands import main_group
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.text.tables import duration_text
from irscope.store.file import save

KERNELS = Path(__file__).parents[1] / "verify" / "launched_kernels.py"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
    (gathers,) = (one for one in record_request(request).captures if one.name == "gathers")
    path = tmp_path_factory.mktemp("captures") / "gathers.irscope"
    save(gathers, path)
    return str(path)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("most", "told"),
    [
        (
            4,
            "verify: wrong: IRS901 access out of bounds at launched_kernels.py:{line}; this is launch 2 of the compile",
        ),
        (1, "verify: safe: "),
    ],
)
def test_the_summary_is_about_all_launches_or_says_of_which(
    stored: str, most: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first launch of two is safe, the second one is not."""
    monkeypatch.setattr("irscope.verify.launches.MOST_BRIEFLY", most)
    result = CliRunner().invoke(main_group(), ["dump", stored])
    assert result.exit_code == 0, result.output
    (line,) = (row for row in result.stdout.split("\n") if row.startswith("verify: "))
    source = KERNELS.read_text("utf-8").split("\n")
    at = next(number for number, text in enumerate(source, 1) if "tl.load(x_ptr + tl.load(" in text)
    assert line.startswith(told.replace("{line}", str(at))), line
    is_first = "of 2 launches of the compile the first; irscope verify checks the others" in line
    assert is_first == (most == 1), line


@pytest.mark.newest
@pytest.mark.triton
def test_the_summary_has_the_findings_of_why_in_their_order(stored: str) -> None:
    """With costs, the worst first, and the predicted time as a column."""
    shown = CliRunner().invoke(main_group(), ["dump", stored])
    (whole,) = json.loads(CliRunner().invoke(main_group(), ["why", stored, "--tries", "0", "--json"]).stdout)
    expected = [one for one in whole["findings"] if one["share"] is None or one["share"] >= LEAST_SHARE][:3]
    assert any(one["share"] is not None for one in expected)
    rows = [row for row in shown.stdout.split("\n") if re.match(r"(\S+ [µnm]?s \d+%  )?IRS\d{3} ", row)]
    assert [re.findall(r"IRS\d{3}", row)[0] for row in rows] == [one["code"] for one in expected]
    for row, one in zip(rows, expected, strict=True):
        cost = f"{duration_text(one['seconds'])} {one['share']:.0%}  " if one["share"] is not None else ""
        assert row.startswith(f"{cost}{one['code']} ")
    header, line = shown.stdout[shown.stdout.index("#  id") :].split("\n")[:2]
    assert header.split()[-1] == "predicted"
    assert line.endswith(duration_text(whole["time"]["predicted_s"]))


@pytest.mark.newest
@pytest.mark.triton
def test_without_numpy_the_summary_has_neither_predictions_nor_a_verdict(
    stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irscope.cli.dump.has_machine", lambda: False)
    for name in ("irscope.api.explain", "irscope.verify.launches"):
        monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(main_group(), ["dump", stored])
    assert result.exit_code == 0, result.output
    assert "gathers" in result.stdout
    assert not {"predicted", "verify:"} & {*result.stdout.split()}
