"""Every `irscope` command in the README and the docs runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import irscope
from irscope.store.recent import CaptureStore
from tests import reference
from tests.test_borders import MODULES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a page can't show as it stands: other environments, files the reader has, and what needs a GPU.
STANDING_IN = {"triton=other-environment/bin/python": f"triton={sys.executable}"}
ON_A_GPU = ("--verify", "run", "bench", "profile", "--gpu")


WITH_PATHS = [*PAGES, ROOT / "CONTRIBUTING.md"]
# irscope/ir/asm/register*.py   tests/data   .ci/run
PATH = re.compile(r"(?<![\w/.-])(?:irscope|tests|docs|examples|benchmarks|\.ci)/[\w./*-]*[\w*/]")
# irscope.layout.thread_map   irscope.record_all
NAME = re.compile(r"(?<![\w/.`~-])`?(irscope(?:\.[A-Za-z_]\w*)+)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# [the capture file](capture-format.md#members)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def commands(page: Path) -> list[str]:
    found: list[str] = []
    for block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#\s.*$", "", line).strip()
            if line.startswith("irscope "):
                found.append(line)
    return found


def test_there_are_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 20


def test_the_readme_has_no_links_that_a_package_index_breaks() -> None:
    """There it stands alone: no file of the source lies beside it."""
    prose = re.sub(r"^```.*?^```$", "", (ROOT / "README.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)]+)\)|(?:href|src)=\"([^\"]+)\"|^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE)
    assert [link for link in map("".join, links) if not re.match(r"https://|#", link)] == []


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the examples import torch")
    if not commands(page):
        return
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "home"))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    # A check of `bisect` calls irscope by its name.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "irscope", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=env,
            check=False,
        )

    product = f"{ROOT / 'tests' / 'record' / 'kernels' / 'no_torch.py'}::tile_product"
    record = ("dump", product, "--signature", "*fp16:16, *fp16:16, *fp32:16, i32:16, 64")
    assert run(*record, "--stage", "ttgir", "--loc", "-o", str(tmp_path / "kernel.ttgir")).returncode == 0
    store = CaptureStore()
    (recorded,) = store.paths()
    coalesced = run("dump", "last", "--after", "coalesce", "--loc")
    (tmp_path / "coalesced.mlir").write_text(coalesced.stdout)
    for command in commands(page):
        words = [STANDING_IN.get(word, word) for word in shlex.split(command)[1:]]
        if any(word in ON_A_GPU for word in words):
            continue
        if "last" in words or "--disable-pass" in words:
            # Each stands for itself: `last` is the matmul, whatever the command before recorded.
            store.mark_last(recorded)
        if "%acc" in words:
            words[words.index("%acc")] = "%accumulator_42"
        answer = run(*words)
        assert answer.returncode == 0, f"{command}\n{answer.stderr}"


@pytest.mark.parametrize("page", WITH_PATHS, ids=lambda page: page.name)
def test_every_path_and_module_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    paths = {match[0] for match in PATH.finditer(text)}
    missing = [path for path in sorted(paths) if not any(ROOT.glob(path.rstrip("/").replace("NAME", "*")))]
    missing += [name for name in sorted({match[1] for match in NAME.finditer(text)}) if not is_name(name)]
    missing += [
        link
        for link in sorted({match[1] for match in LINK.finditer(CODE.sub("", text))})
        if not (page.parent / link).exists()
    ]
    assert missing == []


def is_name(dotted: str) -> bool:
    """Whether a dotted name is a module, or a public name of irscope."""
    name = dotted.removeprefix("irscope.")
    return name in MODULES or name in irscope.__all__


def test_there_are_paths() -> None:
    found = [match[0] for page in WITH_PATHS for match in PATH.finditer(page.read_text("utf-8"))]
    assert len(set(found)) > 80
    assert is_name("irscope.layout.thread_map")
    assert not is_name("irscope.nothing")


def test_the_interface_is_as_the_docstrings_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        reference.API.write_text(reference.api_page(), "utf-8")
    page = reference.API.read_text("utf-8")
    assert page == reference.api_page(), "make docs writes it again"
    headings = re.findall(r"^### (?:class )?`?(\w+)", page, re.MULTILINE)
    # `record` is told of with `record_all`.
    assert {*irscope.__all__} - {*headings} == {"record", "__version__"}


def test_the_house_is_as_the_borders_say(request: pytest.FixtureRequest) -> None:
    page = reference.ARCHITECTURE.read_text("utf-8")
    if request.config.getoption("--update-goldens"):
        reference.ARCHITECTURE.write_text(reference.with_house(page), "utf-8")
    assert page == reference.with_house(page), "make docs writes it again"
