"""A small package with relative imports, tests and a notebook, in which every way into a recording finds one kernel."""

from __future__ import annotations

import json
from pathlib import Path

HELPERS = """
import triton
import triton.language as tl

class Buffer:
    def __init__(self, dtype="fp32"):
        self.dtype = dtype

    def data_ptr(self):
        return 4096

@triton.jit
def scaled(x, factor):
    return x * factor
"""
KERNELS = """
import sys

import triton
import triton.language as tl

from ..helpers import Buffer, scaled

@triton.jit
def doubled(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, scaled(tl.load(x_ptr + offsets), 2.0))

def run(dtype="fp32", block=64):
    doubled[(1,)](Buffer(dtype), Buffer(dtype), BLOCK=block)

if __name__ == "__main__":
    print("arguments", sys.argv[1:], __package__)
    run(block=int(sys.argv[1]))
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def block():
    return 64
"""
TESTS = """
import pytest
from sample_package.inner.kernels import run

@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_doubled(dtype, block):
    run(dtype, block)

def test_again(block):
    run("fp32", block)

def test_fails(block):
    run("fp64", block)
    raise ValueError("as planned")

def test_left_out():
    raise KeyError("not chosen")
"""
ALONE = """
import triton
import triton.language as tl

class Buffer:
    dtype = "fp32"

    def data_ptr(self):
        return 4096

@triton.jit
def stored(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""
LAUNCH = "stored[(1,)](Buffer(), BLOCK=64)\n"
WRITES = """
import os, pathlib, shutil, subprocess, sys
here = pathlib.Path(__file__).resolve().parent
pathlib.Path("new").mkdir()
pathlib.Path("new/file.txt").write_text("new")
pathlib.Path("changed.txt").write_text("changed")
os.rename("moved.txt", "elsewhere.txt")
shutil.rmtree("removed")
refused = 0
for change in (
    lambda: (here / "changed.txt").write_text("absolute"),
    lambda: (here / "other.txt").touch(),
    lambda: shutil.rmtree(here / "removed"),
    lambda: os.rename(here / "moved.txt", here / "x.txt"),
    lambda: os.symlink("x", here / "link"),
):
    try:
        change()
    except PermissionError as error:
        refused += "--dry" in str(error)
code = f"open({str(here / 'child.txt')!r}, 'w')"
child = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
print("refused", refused, "--dry" in child.stderr, sorted(os.listdir()))
"""


def write_package(folder: Path) -> Path:
    """The package and its tests in a folder; returns the file of its kernels."""
    for path, text in {
        "sample_package/__init__.py": "",
        "sample_package/helpers.py": HELPERS,
        "sample_package/inner/__init__.py": "",
        "sample_package/inner/kernels.py": KERNELS,
        "checks/conftest.py": CONFTEST,
        "checks/test_sample.py": TESTS,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder / "sample_package" / "inner" / "kernels.py"


def write_notebook(path: Path, *sources: str) -> Path:
    """A notebook of these code cells, after one of text and an empty one."""
    texts = [("markdown", "# Kernels"), ("code", "  \n"), *(("code", source) for source in sources)]
    cells = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for kind, text in texts
    ]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
