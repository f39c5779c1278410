"""The logs in tests/data/dumps, and logs made up of modules, for the tests of dumps."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

from irscope.ir.logs.dump import captures_from_log
from irscope.model.capture import Capture

DATA = Path(__file__).parent.parent / "data" / "dumps"
VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
TARGETS = ("cuda90", "hipgfx942")


@cache
def log(name: str) -> str:
    return lzma.decompress((DATA / f"{name}.xz").read_bytes()).decode()


@cache
def captures(name: str) -> tuple[Capture, ...]:
    return captures_from_log(log(name), f"{name}.log")


def labels(snapshots: object) -> list[str]:
    return [snapshot.label for snapshot in snapshots]  # type: ignore[attr-defined]


def dump(header: str, module: str) -> str:
    return f"// -----// {header}\n{module}\n\n"


def module(kernel: str, attributes: str = "", body: str = "") -> str:
    return f"module{attributes} {{\n  tt.func public @{kernel}(%x: i32) {{\n    {body}tt.return\n  }}\n}}\n"


LAYOUTS = ' attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:80"}'
LLVM = "module {\n  llvm.func @k(%arg0: i32) {\n    llvm.return\n  }\n}\n"
