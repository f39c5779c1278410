"""The committed viewer equals the build of its sources, which name one registry; it and the site pass axe-core."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from docs.site.pages import DOCS
from docs.site.pictures import DRAWN
from tests.report_browser.conftest import SETTLED, Open
from tests.report_browser.views import VIEWS, rich

REPORT = Path(__file__).parents[2] / "irscope" / "render" / "report"
REMEDY = "run 'npm ci && npm run build' in irscope/render/report/frontend"
ASSETS = (
    "loader.js",
    "viewer.js.deflate",
    "graphs.js.deflate",
    "viewer.css",
    "digests.json",
    "THIRD_PARTY.md",
)


def test_the_lock_file_names_only_the_public_registry() -> None:
    lock = json.loads((REPORT / "frontend" / "package-lock.json").read_text("utf-8"))
    places = [one["resolved"] for one in lock["packages"].values() if "resolved" in one]
    assert all(place.startswith("https://registry.npmjs.org/") for place in places)
    assert all("integrity" in one for name, one in lock["packages"].items() if name)


def test_the_assets_are_there_and_point_nowhere() -> None:
    for name in ASSETS:
        data = (REPORT / "assets" / name).read_bytes()
        text = (zlib.decompress(data, -zlib.MAX_WBITS) if name.endswith(".deflate") else data).decode()
        assert text
        assert "sourceMappingURL" not in text


def test_the_licences_of_all_packages_in_the_viewer_are_there() -> None:
    text = (REPORT / "assets" / "THIRD_PARTY.md").read_text("utf-8")
    lock = json.loads((REPORT / "frontend" / "package-lock.json").read_text("utf-8"))
    tools = ("axe-core", "esbuild", "prettier", "typescript", "spdx-license-list")
    for path, one in lock["packages"].items():
        name = path.removeprefix("node_modules/")
        if name and not one.get("optional") and name not in tools:
            assert f"## {name} {one['version']}\n" in text
    assert "THE ACCOMPANYING PROGRAM IS PROVIDED UNDER THE TERMS OF THIS ECLIPSE PUBLIC LICENSE" in text
    assert re.search(r"<https://gitlab.com/graphviz/graphviz/\S+>", text)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the packages that the lock file names."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("report") / "frontend"
    shutil.copytree(REPORT / "frontend", folder, ignore=shutil.ignore_patterns("node_modules", "tested.mjs"))
    command = [npm, "ci", "--no-audit", "--no-fund"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = answer.stdout + answer.stderr
    if answer.returncode and any(word in said for word in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT")):
        pytest.skip("the npm registry cannot be reached")
    assert answer.returncode == 0, said
    return folder


@pytest.mark.slow
@pytest.mark.newest
def test_everybody_can_read_and_use_every_view(installed: Path, open_report: Open) -> None:
    """No violation that axe-core knows, of WCAG or of good practice, in any tab and theme."""
    page = open_report(rich())
    page.evaluate(f"{(installed / 'node_modules' / 'axe-core' / 'axe.min.js').read_text('utf-8')};0")
    seen: list[str] = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for view in VIEWS:
            if view in WITHIN_ANOTHER:
                continue
            page.evaluate(f"location.hash = '#tab={view}'; {SETTLED}")
            # Colours are all that another theme changes.
            found = page.evaluate(AXE % ("[]" if theme == "light" else '["color-contrast"]'))
            seen += [f"{theme} {view}: {one}" for one in found["violations"]]
            assert found["passes"] > (10 if theme == "light" else 0)
    assert seen == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the pictures that commands draw."""
    pytest.importorskip("material", reason="the site is built with irscope[docs]")
    folder = tmp_path_factory.mktemp("site")
    settings = {**os.environ, DRAWN: str(tmp_path_factory.mktemp("pictures")), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=DOCS.parent, env=settings, check=True)
    return folder


PAGES = ("architecture", "cases/index", "first-hour", "index")


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("pages", [PAGES, pytest.param((), id="all", marks=pytest.mark.exhaustive)])
def test_everybody_can_read_the_site(installed: Path, browser: Any, site: Path, pages: tuple[str, ...]) -> None:
    """No violation that axe-core knows on a page of the site, in either theme."""
    # The addresses of 404.html are those of the server's root.
    every = [one.relative_to(site).with_suffix("").as_posix() for one in site.rglob("*.html") if one.stem != "404"]
    axe = (installed / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    seen: list[str] = []
    for theme in ("light", "dark"):
        with browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme) as context:
            page = context.new_page()
            for name in pages or every:
                page.goto((site / f"{name}.html").as_uri())
                page.evaluate(f"{axe};0")
                assert (
                    page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[theme]
                )
                found = page.evaluate(AXE % ("[]" if theme == "light" else '["color-contrast"]'))
                seen += [f"{theme} {name}: {one}" for one in found["violations"]]
                assert found["passes"] > (10 if theme == "light" else 0)
    assert seen == []


WITHIN_ANOTHER = ("passes&pass=17", "compare")
"""Views all of whose elements are in another view of the tab."""

# Of the rules that are named, or of all, those that are broken, each with the first place; and how many hold.
AXE = """axe.run(document, {resultTypes: ["violations"], ...(only => only.length ? {runOnly: only} : {})(%s)})
.then(found => ({
  passes: found.passes.length,
  violations: found.violations.map(one => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`),
}))"""


@pytest.mark.slow
def test_the_assets_equal_their_build(installed: Path) -> None:
    for script in ("check", "build"):
        made = subprocess.run(["npm", "run", script], cwd=installed, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    for name in ASSETS:
        assert (installed.parent / "assets" / name).read_bytes() == (REPORT / "assets" / name).read_bytes(), (
            f"{name} is not what its sources build: {REMEDY}"
        )
    assert (installed / "tested.mjs").read_bytes() == (REPORT / "frontend" / "tested.mjs").read_bytes(), REMEDY
