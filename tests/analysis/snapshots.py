"""The samples of tests/data/diff: pass dumps as modules, and texts of later stages."""

from __future__ import annotations

import lzma
import re
from functools import lru_cache
from pathlib import Path

from irscope.model.capture import StageKind

FOLDER = Path(__file__).parents[1] / "data" / "diff"
_HEADER = re.compile(r"^// -----// IR Dump Before (\S+?)(?:Pass)?(?::.*)? //----- //\n", re.MULTILINE)
# The pipeliner prints modules of its own in between.
_INNER = re.compile(r"^// -----// .*", re.MULTILINE)

KINDS: dict[str, StageKind] = {"llir": "llvm", "ptx": "ptx", "sass": "sass", "amdgcn": "amdgcn"}
DUMPS = ("matmul.cuda80", "matmul.cuda90", "softmax.cuda90", "softmax.hipgfx942")
TEXTS = (
    "softmax.cuda90.llir",
    "softmax.cuda90.ptx",
    "softmax.cuda90.sass",
    "softmax.hipgfx942.llir",
    "softmax.hipgfx942.amdgcn",
)


@lru_cache
def snapshots(name: str) -> tuple[tuple[str, str], ...]:
    """(pass that comes next, module before it) of one dump; a module that is like the one before is left out."""
    text = lzma.decompress((FOLDER / f"{name}.4warps.dump.xz").read_bytes()).decode()
    parts = _HEADER.split(text)
    found: list[tuple[str, str]] = []
    for title, module in zip(parts[1::2], parts[2::2], strict=True):
        module = _INNER.split(module)[0]
        found.append((title, module))
    return tuple(found)


def around(name: str, title: str, occurrence: int = 1) -> tuple[str, str]:
    """The module before and after a pass."""
    modules = snapshots(name)
    places = [index for index, (other, _) in enumerate(modules) if other == title]
    index = places[occurrence - 1]
    return modules[index][1], modules[index + 1][1]


@lru_cache
def distinct_modules(longest: int = 200_000) -> tuple[str, ...]:
    """Every different module of all dumps, up to a size in characters."""
    found: dict[str, None] = {}
    for name in DUMPS:
        for _, module in snapshots(name):
            if len(module) <= longest:
                found[module] = None
    return tuple(found)


@lru_cache
def stage_text(name: str, warps: int = 4) -> str:
    """`softmax.cuda90.ptx` as compiled for that many warps."""
    stem, _, stage = name.rpartition(".")
    return lzma.decompress((FOLDER / f"{stem}.{warps}warps.{stage}.xz").read_bytes()).decode()
