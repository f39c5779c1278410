"""`irscope layout --memory`: its forms, and what it says where there is nothing to show."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import irscope
import irscope.cli.layout
from irscope.__main__ import run
from tests.memory.cases import too_large

FLASH = str(Path(__file__).parents[1] / "data" / "layouts" / "flash_attention-cuda-90.irscope")
assert irscope.cli.layout  # registers the command


@pytest.fixture
def subject(tmp_path: Path) -> str:
    irscope.save(too_large(), tmp_path / "x.irscope")
    return str(tmp_path / "x.irscope")


def test_a_kernel_that_does_not_fit(subject: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["layout", subject, "--memory"]) == 1
    text = capsys.readouterr().out
    assert "limit exceeded by 18624" in text
    assert "Nothing was tried: num_stages is 1 already" in text
    assert run(["layout", subject, "--memory", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["tried"] == []
    assert [one["total"] for one in found["memories"]] == [120000]
    for suffix in ("svg", "html"):
        assert run(["layout", subject, "--memory", "-o", str(tmp_path / f"m.{suffix}")]) == 1
    assert ElementTree.parse(tmp_path / "m.svg").getroot().tag.endswith("svg")
    assert 'data-opened="tab=memory"' in (tmp_path / "m.html").read_text("utf-8")


BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>"


def test_what_has_no_such_ir_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", FLASH, "--memory"]) == 2
    assert "does not hold the IR after shared memory was allocated" in capsys.readouterr().err
    assert run(["layout", BLOCKED, "--shape", "16x64", "--memory"]) == 2
