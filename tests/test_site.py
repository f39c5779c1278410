"""The site: its pages show what is printed, its notebooks are its pages, and it asks no other machine for anything."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from docs.site.guide import commands_page
from docs.site.notebooks import NOTEBOOKS, notebook
from docs.site.outside import outside_references
from docs.site.pages import CHECKED, DOCS, README, ROOT, block_commands, blocks, differences, pictures_of, shown
from docs.site.pictures import DRAWN, printed_by, with_pictures, workplace
from irscope.cli.commands import COMMANDS
from tests.once import made_once

DATA = ROOT / "tests" / "data"
# Read here, as the tests themselves have none of the user's settings.
OTHER = os.environ.get("IRSCOPE_OTHER_TRITONS", "").partition(":")[0]
"""An interpreter with Triton 3.6.0, named as for `python -m benchmarks upgrade`."""


SAMPLE = [one for one in CHECKED if one.stem in ("tasks", "first-hour", "coming-from", "narrow-loads")]
"""Those whose commands run in CI; `make exhaustive` runs all."""
FOREIGN = {"--jit-monitor-verbose"}
"""Options of other programs that the prose names: vLLM's."""


def run_pages(folder: Path, some: Sequence[Path] = (README, *SAMPLE)) -> None:
    """Run the commands of pages in a folder, and write what differs from what they show."""
    (folder / "dump.log").write_bytes(lzma.decompress((DATA / "dumps" / "3.9.0.cuda90.mlir.xz").read_bytes()))
    shutil.copy(DATA / "tritonparse" / "softmax.bin.ndjson", folder / "trace.ndjson")
    with tarfile.open(DATA / "inductor" / "mlp.tar.xz") as archive:
        archive.extractall(folder, [one for one in archive if one.name.startswith("trace/")], filter="data")
    (folder / "server.log").write_text("Triton kernel JIT compilation during inference: _zero_kv_blocks_kernel.\n")
    found: dict[str, list[str]] = {}
    with workplace(folder):
        for page in some:
            problems = found[page.name] = []
            for one in shown(page):
                if ".venv-3.6" in one.command:
                    continue
                code, printed, said = printed_by(one.command)
                problems += [f"{one.command}: exit code {code}\n{said}"] if code else []
                if one.printed is not None and (difference := differences(one.printed, printed)):
                    problems.append(f"{one.command}: {difference}")
    (folder / "found.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def pages(clean_session: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the scripts of the pages import torch")
    return made_once(tmp_path_factory, "pages", run_pages)


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("page", [README, *SAMPLE], ids=lambda page: page.name)
def test_a_page_shows_what_is_printed(page: Path, pages: Path) -> None:
    assert json.loads((pages / "found.json").read_text())[page.name] == []


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("page", [one for one in CHECKED if one not in SAMPLE], ids=lambda page: page.name)
def test_each_page_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the scripts of the pages import torch")
    run_pages(tmp_path, [page])
    assert json.loads((tmp_path / "found.json").read_text())[page.name] == []
    assert all("<svg" in (tmp_path / name).read_text("utf-8") for name in pictures_of(page))


@pytest.mark.triton
@pytest.mark.newest
def test_the_site_asks_no_other_machine_for_anything(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built as strictly as by `make site`, with the pictures of the pages that ran."""
    pytest.importorskip("material", reason="the site is built with irscope[docs]")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv(DRAWN, str(pages))
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    assert outside_references(tmp_path) == []
    for page in CHECKED:
        built = tmp_path / page.relative_to(DOCS).with_suffix(".html")
        pictures = re.findall(r'<img [^>]*src="([^"]+)"', built.read_text("utf-8"))
        assert [Path(one).name for one in pictures] == (pictures_of(page) if page in SAMPLE else [])
        assert all("<svg" in (built.parent / one).read_text("utf-8") for one in pictures)
    # Nothing is left to Mermaid, whose script would be fetched.
    assert not any('class="mermaid"' in one.read_text("utf-8") for one in tmp_path.rglob("*.html"))


def test_the_readme_is_enough_for_ten_tasks() -> None:
    """In one or two commands each, of which it names every one and every option; they run in the test of their page."""
    readme = README.read_text("utf-8")
    _, *tasks = re.split(r"^## \d+\. ", (DOCS / "tasks.md").read_text("utf-8"), flags=re.MULTILINE)
    assert len(tasks) == 10
    for task in tasks:
        commands = [one.command.split() for _, text in blocks(task) for one in block_commands("console", text)]
        assert f"\n{len(commands) or 2 - ('`diff`' in task)} command" in task, task
        for _, name, *words in commands:
            options = [one for one in words if one.startswith("-")]
            assert all(re.search(rf"irscope {name}\b[^\n]*{one}\b", readme) for one in ["", *options]), (name, options)


def test_what_a_page_would_fetch_is_found(tmp_path: Path) -> None:
    tags = [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://a.example/a.png">',
        "<style>@import url(https://fonts.example/b.css);</style>",
        '<p style="background: url(//a.example/b.png)">',
        '<a href="https://elsewhere.example">a link is followed by the reader alone</a><img src="a.svg">',
    ]
    (tmp_path / "index.html").write_text("\n".join(tags))
    (tmp_path / "a.css").write_text("@font-face { src: url('https://fonts.example/a.woff2') }\na { color: red }")
    assert len(outside_references(tmp_path)) == len(tags) - 1 + 1


def test_what_a_page_shows_is_compared() -> None:
    printed = "id 0a1b2c3d kernel\nregisters 21\nspills 0\n"
    assert differences(("id ffffff00 kernel", "registers 21", "spills 0"), printed) == ""
    assert differences(("…", "spills 0"), printed) == ""
    assert differences(("…", "registers 22", "…"), printed)
    assert differences(("id 0a1b2c3d kernel", "spills 0"), printed)


def test_pictures_stand_below_their_commands() -> None:
    text = "a\n\n```sh\nirscope draw loop last -o a.svg\nirscope show last\n```\n\nb\n"
    assert with_pictures(text, "pictures/", ["a.svg"]).index("](pictures/a.svg)") > text.index("show last")
    assert with_pictures(text, "pictures/", []) == text
    names = [name for page in CHECKED for name in pictures_of(page)]
    # All pages' commands run in one folder.
    assert (
        len({*names})
        == len(names)
        == sum(len(re.findall(r"^irscope .*-o \S+\.svg$", page.read_text("utf-8"), re.MULTILINE)) for page in CHECKED)
    )


def test_the_guide_has_every_command_and_option() -> None:
    guide = commands_page()
    assert re.findall(r"^### (\S+)$", guide, re.MULTILINE) == [*COMMANDS]
    assert "<code>--disable-pass</code>" in guide.partition("### record")[2].partition("### ")[0]
    # Each has an example of a page that runs in a test.
    assert [name for name in COMMANDS if f"\nirscope {name} " not in guide.partition(f"### {name}")[2]] == []


def test_commands_in_the_prose_have_the_options_that_they_show() -> None:
    sections = dict(re.findall(r"^### (\S+)$(.*?)(?=^##|\Z)", commands_page(), re.MULTILINE | re.DOTALL))
    options = {name: {*re.findall(r"<code>(--?[a-z-]+)</code>", text)} | {"--help"} for name, text in sections.items()}
    of_any = {one for names in options.values() for one in names} | FOREIGN
    unknown: list[str] = []
    for page in (*CHECKED, DOCS / "examples.md", DOCS / "index.md"):
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`((?:irscope |--)[^`]+)`", prose):
            known = options.get(code.split()[1], of_any) | options["record"] if code.startswith("irscope ") else of_any
            unknown += [
                f"{code}: {one}" for one in re.findall(r"(?<!\S)--?[a-z][a-z-]*", code) if one not in known | FOREIGN
            ]
    assert unknown == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_its_page(path: Path, request: pytest.FixtureRequest) -> None:
    text = notebook(path.with_suffix(".md"))
    if request.config.getoption("--update-goldens"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text, "make docs writes it again"
    assert len(text) < 40_000


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path, new_processes: None) -> None:
    """In Jupyter's kernel, and with the outputs that it is stored with."""
    pytest.importorskip("torch", reason="the scripts of the pages import torch")
    import nbformat
    from nbclient import NotebookClient

    shutil.copytree(DOCS / "cases", tmp_path / "docs" / "cases")
    stored = nbformat.read(path, as_version=4)
    ran = nbformat.read(path, as_version=4)
    NotebookClient(ran, timeout=300, resources={"metadata": {"path": str(tmp_path / "docs" / "cases")}}).execute()
    for before, after in zip(stored.cells, ran.cells, strict=True):
        if before.cell_type == "code" and before.outputs:
            printed = "".join(one["text"] for one in after.outputs if one.get("name") == "stdout")
            assert differences(tuple(before.outputs[0]["text"].splitlines()), printed) == ""


@pytest.mark.exhaustive
@pytest.mark.triton
def test_the_upgrade_is_as_its_page_says(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the scripts of the pages import torch")
    if not OTHER:
        pytest.skip("IRSCOPE_OTHER_TRITONS names no interpreter with Triton 3.6.0")
    (one,) = [one for one in shown(DOCS / "cases" / "upgrade.md") if ".venv-3.6" in one.command]
    with workplace(tmp_path):
        assert printed_by("irscope record docs/cases/upgrade.py -o kernels/")[0] == 0
        command = one.command.replace(".venv-3.6", OTHER).replace(".venv-3.9", sys.executable)
        code, printed, said = printed_by(command)
    assert (code, differences(one.printed or (), printed)) == (3, ""), said
