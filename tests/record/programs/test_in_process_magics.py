"""`%%irscope` in a real Jupyter kernel, driven by nbclient."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'irscope[test]'")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install 'irscope[test]'")

from tests.record.programs.sample import ALONE, LAUNCH

pytestmark = [pytest.mark.triton, pytest.mark.newest]

# In a process of its own: what the client warns of is none of irscope's.
DRIVER = """
import json, sys
import nbclient, nbformat
sources = json.load(sys.stdin)
book = nbformat.v4.new_notebook()
book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
nbclient.NotebookClient(book, timeout=120, allow_errors=True).execute()
json.dump([cell.outputs for cell in book.cells], open(sys.argv[1], "w"))
"""
STATE = """import os, sys, triton
state = triton.compile.__module__, os.environ.get("PYTHONPATH"), list(sys.path), get_ipython().ast_transformers[:]
"""
CELLS = {
    "load": "%load_ext irscope",
    "kernels": ALONE,
    "before": f"{STATE}first = state",
    "capture": f"%%irscope captures\n{LAUNCH}",
    "look": "one, = captures\nsame = one.sources[0].text.strip() == In[2].strip()\n"
    "print(one.name, one.target, one.environment.origin, same)",
    "other": f"%%irscope others --target hip:gfx942 -d coalesce\n{LAUNCH}",
    "changed": "print(others[0].target, [s.label for s in others[0].passes() if s.outcome == 'skipped'])",
    "failing": f"%%irscope\n{LAUNCH}1 / 0",
    "nothing": "%%irscope\nx = 1",
    "wrong": "%%irscope --nothing\nx = 1",
    "after": f"{STATE}print(state == first)",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each cell showed."""
    folder = tmp_path_factory.mktemp("kernel")
    variables = ("HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IRSCOPE_HOME")
    environment = {**os.environ, **dict.fromkeys(variables, str(folder)), "TRITON_CACHE_DIR": str(folder / "cache")}
    answer = folder / "outputs.json"
    command = [sys.executable, "-c", DRIVER, str(answer)]
    sources = json.dumps([*CELLS.values()])
    subprocess.run(command, input=sources, env=environment, cwd=folder, text=True, capture_output=True, check=True)
    assert not (folder / "cache").exists(), "the user's own cache of Triton was written"
    return dict(zip(CELLS, json.loads(answer.read_text()), strict=True))


def printed(outputs: list[dict[str, Any]]) -> str:
    return "".join(one["text"] for one in outputs if one["output_type"] == "stream" and one["name"] == "stdout")


def summaries(outputs: list[dict[str, Any]]) -> list[str]:
    return [one["data"]["text/html"] for one in outputs if one["output_type"] == "display_data"]


def test_a_cell_shows_its_captures(outputs: dict[str, list[dict[str, Any]]]) -> None:
    (html,) = summaries(outputs["capture"])
    assert "irscope-summary" in html
    assert "stored" in html
    assert "In [4]" in html
    assert printed(outputs["look"]).strip() == "stored cuda:90 (('cell', 'In [4]'),) True"


def test_its_options_are_those_of_the_command_line(outputs: dict[str, list[dict[str, Any]]]) -> None:
    assert len(summaries(outputs["other"])) == 1
    assert printed(outputs["changed"]).strip() == "hip:gfx942 ['ttgir:coalesce#1']"
    (error,) = outputs["wrong"]
    assert (error["output_type"], error["ename"]) == ("error", "UsageError")


def test_an_error_is_shown_once_and_after_the_captures(outputs: dict[str, list[dict[str, Any]]]) -> None:
    shown = [one for one in outputs["failing"] if one["output_type"] != "stream"]
    assert [one["output_type"] for one in shown] == ["display_data", "error"]
    assert shown[1]["ename"] == "ZeroDivisionError"
    assert printed(outputs["nothing"]).strip() == "irscope: the cell launched no kernel."


def test_nothing_of_the_kernel_stays_changed(outputs: dict[str, list[dict[str, Any]]]) -> None:
    assert printed(outputs["after"]).strip() == "True"
