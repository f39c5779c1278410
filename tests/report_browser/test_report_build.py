"""The committed viewer is what its sources build, and the lock file names no other registry."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

REPORT = Path(__file__).parents[2] / "irscope" / "render" / "report"
ASSETS = ("loader.js", "viewer.js", "graphs.js", "viewer.css")


def test_the_lock_file_names_only_the_public_registry() -> None:
    lock = json.loads((REPORT / "frontend" / "package-lock.json").read_text("utf-8"))
    places = [one["resolved"] for one in lock["packages"].values() if "resolved" in one]
    assert all(place.startswith("https://registry.npmjs.org/") for place in places)
    assert all("integrity" in one for name, one in lock["packages"].items() if name)


def test_the_assets_are_there_and_point_nowhere() -> None:
    for name in ASSETS:
        text = (REPORT / "assets" / name).read_text("utf-8")
        assert text
        assert "sourceMappingURL" not in text


@pytest.mark.slow
def test_the_assets_equal_their_build(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path / "frontend"
    shutil.copytree(REPORT / "frontend", folder, ignore=shutil.ignore_patterns("node_modules"))
    installed = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, check=False
    )
    if installed.returncode and "ENOTFOUND" in installed.stderr + installed.stdout:
        pytest.skip("the npm registry cannot be reached")
    assert installed.returncode == 0, installed.stderr
    for script in ("check", "build"):
        made = subprocess.run([npm, "run", script], cwd=folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    for name in ASSETS:
        assert (tmp_path / "assets" / name).read_bytes() == (REPORT / "assets" / name).read_bytes(), (
            f"{name} is not what its sources build: run 'npm ci && npm run build' in {REPORT / 'frontend'}"
        )
