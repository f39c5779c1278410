"""The plugin of pytest: what it costs a run without it, what its fixture asserts, and what its messages show."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from irscope.errors import UsageError
from irscope.model.capture import Resources
from irscope.testing.recorder import CheckedKernel, Recorder
from tests.analysis.checks.test_assertions import ATTENTION, MATMUL, TILE, capture
from tests.cli.product import KERNELS, SIGNATURE
from tests.conftest import DATA

ROOT = Path(__file__).parents[2]
WITHOUT = """
import sys
def test_without_the_fixture():
    loaded = {name for name in sys.modules if name.partition(".")[0] in ("irscope", "triton", "torch", "numpy")}
    own = {"irscope", "irscope.layout", "irscope.record", "irscope.testing", "irscope.testing.plugin"}
    assert loaded <= own, loaded
"""
WITH = f"""
import pytest
@pytest.fixture
def c(irscope):
    return irscope.load({str(DATA / "layouts" / "matmul-cuda-80.irscope")!r})
def test_holds(c):
    assert c.uses("mma") and c.pipelined and not c.uses("wgmma")
    assert c.loads.all(lambda load: load.width_bits >= 128)
    assert c.loads.width_bits == 128
def test_uses(c):
    assert c.uses("wgmma")
def test_loads(c):
    assert c.loads.all(lambda load: load.width_bits >= 256), "wide loads"
def test_figure(c):
    assert c.loads.width_bits >= 256
def test_another(c):
    c.uses("wgmma")
    assert 1 == 2
"""


def run(folder: Path, *words: str) -> tuple[int, str]:
    # Installed, it is found by its entry point.
    found = {one.name for one in entry_points(group="pytest11")}
    plugin = () if "irscope" in found else ("-p", "irscope.testing.plugin")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "-p",
        "no:pytest-lsp",
        *plugin,
        *words,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=None)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """What pytest prints of both files, and its JUnit XML: the text of the failure of each test."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "test_1_without.py").write_text(WITHOUT)
    (folder / "test_2_with.py").write_text(WITH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        code, text = run(folder, "-W", "error", "--junitxml=junit.xml", "test_1_without.py", "test_2_with.py")
    assert code == 1, text
    cases = ElementTree.parse(folder / "junit.xml").iter("testcase")
    return text, {case.get("name", ""): "".join(one.text or "" for one in case.iter("failure")) for case in cases}


def test_a_run_that_does_not_ask_for_it_imports_nothing(answer: tuple[str, dict[str, str]]) -> None:
    assert answer[1]["test_without_the_fixture"] == ""


def test_what_holds_passes(answer: tuple[str, dict[str, str]]) -> None:
    text, failures = answer
    assert failures["test_holds"] == "", text
    assert "4 failed, 2 passed" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("test_uses", ["has no wgmma in its ptx, it has mma", "matmul.py:", "tt.dot"]),
        ("test_loads", ["wide loads", "ttg.async_copy_global_to_local: 128 bits a thread", "> "]),
        ("test_figure", ["128 >= 256", "at least 256 are asserted", "ttg.async_copy_global_to_local"]),
    ],
)
def test_a_failed_assert_shows_line_cause_and_ir(
    answer: tuple[str, dict[str, str]], name: str, shown: Sequence[str]
) -> None:
    for text in shown:
        assert text in answer[1][name]
        assert text in answer[0]


def test_another_failed_assert_is_left_alone(answer: tuple[str, dict[str, str]]) -> None:
    assert "wgmma in its" not in answer[1]["test_another"]


@cache
def kernel(name: str) -> CheckedKernel:
    return Recorder().checked(capture(name))


def test_verdicts_agree_with_the_command_line() -> None:
    """The same assertions, whose twins `tests/analysis/checks` plants."""
    assert kernel(ATTENTION).uses("wgmma")
    assert not kernel(MATMUL).uses("wgmma")
    assert not kernel(TILE).pipelined, "it has no loop with a dot"
    assert kernel(TILE).no_finding("IRS103")
    assert not kernel("counters/column").no_finding()
    assert [one.code for one in kernel("counters/column").findings] == ["IRS103"]
    assert kernel(TILE).stores.width_bits == min(one.width_bits for one in kernel(TILE).stores)
    assert len(kernel(TILE).loads[:1]) == 1
    assert not kernel(TILE).compiles.breaches


@pytest.mark.parametrize("figure", ["registers", "spilled_bytes", "shared_bytes"])
def test_a_figure_that_is_not_known_is_no_zero(figure: str) -> None:
    with pytest.raises(UsageError, match="not known"):
        getattr(Recorder().checked(capture(MATMUL).with_(resources=Resources())), figure)


def test_accesses_that_are_not_there_are_no_success() -> None:
    none = Recorder().checked(capture(MATMUL).with_(artifacts=()))
    assert len(none.loads) == 0
    assert not none.loads.all(lambda load: True)
    with pytest.raises(UsageError, match="no loads"):
        none.loads.width_bits  # noqa: B018


def test_golden_and_its_update(tmp_path: Path) -> None:
    path = tmp_path / "tile.ttgir"
    with pytest.raises(UsageError, match="--irscope-update"):
        kernel(TILE).golden(path, "ttgir")
    assert Recorder(updates=True).checked(capture(TILE)).golden(path, "ttgir")
    assert kernel(TILE).golden(path, "ttgir")
    path.write_text(path.read_text().replace("arith.addi", "arith.subi", 1))
    assert "arith.subi" in kernel(TILE).golden(path, "ttgir").text


@pytest.mark.newest
@pytest.mark.triton
def test_a_kernel_that_is_recorded_for_it() -> None:
    words: dict[str, Any] = {"kernel": "tile_product", "signature": SIGNATURE[1], "target": "cuda:90"}
    sound = Recorder().record(KERNELS, **words)
    waiting = Recorder().record(KERNELS, **words, options={"num_stages": 1})
    assert sound.pipelined
    assert sound.spilled_bytes == 0
    assert sound.filecheck("CHECK: tt.func public @tile_product\nCHECK: tt.store", "ttgir")
    assert not sound.filecheck("CHECK: tt.func public @other", "ttgir")
    verdict = waiting.pipelined
    assert not verdict
    assert "num_stages is 1" in verdict.text
    assert "thin.py:12: a = tl.load(" in verdict.text
    lines = sound.registers.explained("<=", 8) or []
    assert any("registers are live at once" in line for line in lines)


@pytest.mark.triton
@pytest.mark.newest
def test_the_test_of_the_page() -> None:
    """docs/ci.md."""
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}
    exec(code.replace('"kernels.py"', repr(str(KERNELS))), names)
    names["test_tile_product"](Recorder())


def test_the_arguments_are_those_of_record() -> None:
    import inspect

    import irscope

    made: Callable[..., object] = Recorder().record_all
    assert inspect.signature(made) == inspect.signature(irscope.record_all)
