"""The `irscope` commands in the README and the docs run, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import irscope
from docs.site.pages import CHECKED, README, blocks, shown
from irscope.__main__ import run as run_irscope
from irscope.model.capture import Artifact
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests import reference
from tests.analysis.roofline.launched import attention
from tests.cli.product import FEW, KERNELS, recorded_product
from tests.recording import without_torch
from tests.test_borders import MODULES

ROOT = Path(__file__).parents[1]
PAGES = [one for one in sorted((ROOT / "docs").glob("*.md")) if one not in CHECKED]
"""Those whose commands run here; tests/test_site.py runs those of the others, and compares what they print."""
RARELY = ("compile-time.md", "findings.md", "guide.md", "movie.md", "poster.md", "roofline.md", "timing.md")
"""Pages that `make exhaustive` runs alone."""
ON_A_GPU = ("bench", "profile", "--gpu")
LAUNCHES = {
    "softmax": "softmax_kernel[(4,)](Buffer(), Buffer(), 781, 781, 1, 781, 1, BLOCK=1024)",
    "vector_add": "add_kernel[(4,)](Buffer(), Buffer(), Buffer(), 4096, 1, 1, BLOCK=1024)",
}
"""What the examples launch, without torch, which takes longer to import than their kernels to compile."""
BUFFER = """
class Buffer:
    dtype = "fp32"
    def data_ptr(self): return 4096
"""


WITH_PATHS = [README, *PAGES, *CHECKED, ROOT / "CONTRIBUTING.md"]
# irscope/ir/asm/register*.py   tests/data   .ci/run
PATH = re.compile(r"(?<![\w/.-])(?:irscope|tests|docs|examples|benchmarks|\.ci)/[\w./*-]*[\w*/]")
# irscope.layout.maps   irscope.record_all
NAME = re.compile(r"(?<![\w/.`~-])`?(irscope(?:\.[A-Za-z_]\w*)+)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# [the capture file](capture-format.md#members)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def commands(page: Path) -> list[str]:
    return [one.command for one in shown(page)]


def test_the_start_page_quotes_the_readme() -> None:
    """Whose output tests/test_site.py compares with that of its commands."""
    quoted = [text for _, text in blocks((ROOT / "docs" / "index.md").read_text("utf-8")) if text.startswith("$ ")]
    assert quoted == [text for language, text in blocks(README.read_text("utf-8")) if language == "console"]


def test_there_are_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 20


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_no_blank_line_cuts_a_table(page: Path) -> None:
    """What follows it would be rows without a head: text with bars."""
    lines = ["", *page.read_text("utf-8").splitlines(), ""]
    heads = [number for number, line in enumerate(lines) if line.startswith("|") and not lines[number - 1]]
    assert [number for number in heads if not re.fullmatch(r"\|[-:| ]+\|", lines[number + 1])] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_the_readme_has_no_links_that_a_package_index_breaks() -> None:
    """There it stands alone: no file of the source lies beside it, but for its picture, which says what it shows."""
    prose = re.sub(r"^```.*?^```$", "", README.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    (picture,) = re.findall(r"!\[.{40,}\]\((.+)\)", prose)
    assert (ROOT / picture).is_file()
    prose = prose.replace(f"]({picture})", "]")
    links = re.findall(r"\]\(([^)]+)\)|(?:href|src)=\"([^\"]+)\"|^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE)
    assert [link for link in map("".join, links) if not re.match(r"https://|#", link)] == []


@pytest.fixture(scope="module")
def recorded(clean_session: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return recorded_product(tmp_path_factory)


@contextmanager
def threads_for(scheduler: str, jobs: int | None) -> Iterator[Any]:
    """A cluster for a sweep whose worker is a thread; tests/cli/test_sweep.py has one of processes."""
    import distributed

    from irscope.api import sweeping as task

    dashboard: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": {"dashboard": False}}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **dashboard) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    task.close_pools()


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.exhaustive if page.name in RARELY else ())
        for page in PAGES
        if commands(page)
    ],
)
def test_every_command_runs(
    page: Path,
    recorded: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, home = recorded
    monkeypatch.setenv("IRSCOPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("irscope.api.sweeping.client_of", threads_for)
    (tmp_path / "examples").mkdir()
    for name, launch in LAUNCHES.items():
        copy = without_torch(ROOT / "examples" / f"{name}.py", tmp_path / "examples")
        copy.write_text(copy.read_text("utf-8").partition("\nif __name__")[0] + BUFFER + launch + "\n", "utf-8")
    shutil.copy(ROOT / "tests" / "data" / "proton" / "matmul.hatchet", tmp_path / "proton.hatchet")
    store = CaptureStore()
    matmul = load(path)
    recorded_here = store.add(matmul)
    assert run_irscope(["show", "last", "--stage", "ttgir", "--loc", "-o", "kernel.ttgir"]) == 0
    launched = tmp_path / "launched.irscope"
    save(attention(), launched)
    specialized = tmp_path / "specialized.irscope"
    ttgir = Artifact("ttgir", (ROOT / "tests" / "data" / "warps" / "ws_matmul.ttgir").read_text("utf-8"))
    save(replace(attention(), artifacts=(ttgir,)), specialized)
    capsys.readouterr()
    assert run_irscope(["dump", "last", "--after", "coalesce", "--loc"]) == 0
    (tmp_path / "coalesced.mlir").write_text(capsys.readouterr().out)
    # What a page can't show as it stands: the names and numbers of a larger matmul, the example that takes a minute,
    # and other environments.
    standing_in = {
        "examples/matmul.py": str(KERNELS.with_name("tuned.py")),
        "triton=other-environment/bin/python": f"triton={sys.executable}",
        "old-environment": sys.executable,
        "new-environment": sys.executable,
        "%acc": re.findall(r"%accumulator_\d+", matmul.text("ttgir"))[-1],
        "31": str(1 + KERNELS.read_text().split("tl.dot")[0].count("\n")),
        "registers=100": f"registers={matmul.resources.registers}",
        "#blocked": "#blocked1",
    }
    for command in commands(page):
        words = [standing_in.get(word, word) for word in shlex.split(command)[1:]]
        if any(word in ON_A_GPU for word in words) or ("layout" in words and "--verify" in words):
            continue
        if words[0] == "run" or (words[0] == "show" and "--values" in words):
            # What is recorded here has no tensors; tests/cli/test_run.py runs launches.
            continue
        if "last" in words or "--disable-pass" in words:
            # Each stands for itself: `last` is the matmul, whatever the command before recorded.
            store.complete([recorded_here])
        if ("roofline" in words[:2] or words[0] == "time") and "last" in words:
            # A signature has no launch, and without one there is nothing to count.
            words[words.index("last")] = str(launched)
        if words[:2] == ["draw", "warps"]:
            words[words.index("last")] = str(specialized)
        if words == ["ablate", "last"]:
            # Its default are the passes of ttgir, each a compile.
            words += ["--pass", "coalesce", "--pass", "ttgir:cse"]
        if words == ["why", str(KERNELS.with_name("tuned.py"))]:
            # tests/cli/test_why.py compiles what it tries.
            words += ["--tries", "1"]
        if "--pairs" in words:
            # One that runs twice and not four times.
            words = [word.replace("remove_layout_conversions", "optimize_dot_operands") for word in words]
        if words[0] == "ablate" and "--check" in words:
            # tests/cli/test_ablate_check.py searches a whole stage, with a check that takes a tenth of the time.
            words += FEW
        assert run_irscope(words) == 0, f"{command}\n{capsys.readouterr().err}"


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
    assert is_name("irscope.layout.maps")
    assert not is_name("irscope.nothing")


def test_the_interface_is_as_the_docstrings_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        reference.API.write_text(reference.api_page(), "utf-8")
    page = reference.API.read_text("utf-8")
    assert page == reference.api_page(), "make docs writes it again"
    headings = re.findall(r"^### (?:class )?`?(\w+)", page, re.MULTILINE)
    # `record` is told of with `record_all`, and `predict` with `time`.
    assert {*irscope.__all__} - {*headings} == {"record", "predict", "__version__"}


def test_the_house_is_as_the_borders_say(request: pytest.FixtureRequest) -> None:
    page = reference.ARCHITECTURE.read_text("utf-8")
    if request.config.getoption("--update-goldens"):
        reference.ARCHITECTURE.write_text(reference.with_house(page), "utf-8")
    assert page == reference.with_house(page), "make docs writes it again"
