"""`irscope source`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from irscope.cli.commands import main_group
from irscope.store.file import save
from tests.analysis.recorded import stored


@pytest.fixture
def chains(tmp_path: Path) -> str:
    path = tmp_path / "chains.irscope"
    save(stored("chains", "cuda:90"), path)
    return str(path)


@pytest.fixture
def product(tmp_path: Path) -> str:
    path = tmp_path / "product.irscope"
    save(stored("product", "cuda:90"), path)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main_group(), ["source", *arguments])


def test_the_table(chains: str) -> None:
    result = run(chains)
    assert result.exit_code == 0, result.output
    assert "def chains(x_ptr" in result.stdout
    assert "def scaled(x, factor)" in result.stdout


def test_a_stage_among_the_lines_of_python(chains: str) -> None:
    result = run(chains, "--stage", "sass", "--lines", "25-26")
    assert result.exit_code == 0
    assert "SHFL.BFLY" in result.stdout
    assert "biggest = tl.max" in result.stdout
    assert "LDG" not in result.stdout


def test_around_finds_lines_by_instruction(product: str) -> None:
    result = run(product, "--match", "wgmma")
    assert "total = tl.dot(a, b, total)" in result.stdout
    assert "tl.load" not in result.stdout
    assert "'wgmma' is in ptx" in result.stdout
    nothing = run(product, "--match", "tcgen05")
    assert nothing.exit_code == 0
    assert "no instruction of any stage matches 'tcgen05'" in nothing.stdout


def test_the_page_opens_at_the_stage_and_the_line(chains: str, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    assert run(chains, "--stage", "ttgir", "--lines", "5-7", "-o", str(path)).exit_code == 0
    assert 'data-opened="tab=stages&amp;panes=py0%2Cttgir&amp;at=py0%3A5"' in path.read_text("utf-8")
    assert "--match does not go with a page" in str(run(chains, "--match", "ld", "-o", str(path)).exception)


def test_json(chains: str, tmp_path: Path) -> None:
    result = run(chains, "--json", "--stage", "ptx", "--match", "shfl", "-o", str(tmp_path / "out.json"))
    assert result.exit_code == 0
    (capture,) = json.loads((tmp_path / "out.json").read_text())
    assert capture["kernel"] == "chains"
    assert {row["line"] for row in capture["lines"]} == {25, 26}
    assert {one["kind"] for one in capture["operations"]} == {"shuffle"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--match", "("], "not a regular expression"),
        (["--lines", "9-3"], "runs backwards"),
        (["--stage", "cubin"], "choose one of source, ttir"),
    ],
)
def test_what_is_off_is_said(chains: str, arguments: list[str], says: str) -> None:
    result = run(chains, *arguments)
    assert result.exit_code != 0
    assert says in str(result.exception)
