"""Every `irscope` command in the README and the docs runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a page can't show as it stands: other environments, files the reader has, and what needs a GPU.
STANDING_IN = {"triton=other-environment/bin/python": f"triton={sys.executable}"}
ON_A_GPU = ("--verify", "run", "bench", "--gpu")


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


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the examples import torch")
    if not commands(page):
        return
    env = {**os.environ, "PYTHONPATH": str(ROOT), "IRSCOPE_HOME": str(tmp_path / "home")}
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
    coalesced = run("dump", "last", "--after", "coalesce", "--loc")
    (tmp_path / "coalesced.mlir").write_text(coalesced.stdout)
    for command in commands(page):
        words = [STANDING_IN.get(word, word) for word in shlex.split(command)[1:]]
        if any(word in ON_A_GPU for word in words):
            continue
        if "last" in words or "--disable-pass" in words:
            # Each stands for itself: `last` is the matmul, whatever the command before recorded.
            run(*record)
        if "%acc" in words:
            words[words.index("%acc")] = "%accumulator_42"
        answer = run(*words)
        assert answer.returncode == 0, f"{command}\n{answer.stderr}"
