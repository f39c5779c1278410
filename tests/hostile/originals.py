"""What is mutated: real captures, logs and texts of `tests/data`: a search needs neither Triton nor a network."""

from __future__ import annotations

import gzip
import lzma
import tarfile
from functools import lru_cache
from pathlib import Path

from irscope.store.file import load
from tests.analysis.snapshots import distinct_modules

DATA = Path(__file__).parents[1] / "data"
_LONGEST = 250_000

LANGUAGES = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn")


@lru_cache
def capture_files() -> tuple[Path, ...]:
    """Compiles with a few stages and many layouts, and a profile; captures as they were recorded, with their passes.

    The smallest comes first: a text is put into the first that has its stage.
    """
    recorded = ("softmax-cuda-90", "matmul-hip-gfx942")
    few = ("counters/transposed.irscope", "layouts/matrix_transpose-cuda-90.irscope")
    return tuple(DATA / name for name in (*few, *(f"hostile/{name}.irscope" for name in recorded)))


@lru_cache
def logs() -> tuple[str, ...]:
    """What MLIR and LLVM printed under four versions of Triton, for two targets, and where a compile failed."""
    return tuple(_unpacked(path) for path in sorted(DATA.glob("dumps/*.xz")))


@lru_cache
def traces() -> tuple[str, ...]:
    """A trace of tritonparse, an event a line."""
    return (gzip.decompress((DATA / "tritonparse" / "softmax.bin.ndjson").read_bytes()).decode(),)


@lru_cache
def inductor_files() -> dict[str, str]:
    """What TorchInductor left on disk of a model, by path."""
    with tarfile.open(DATA / "inductor" / "mlp.tar.xz") as archive:
        rows = ((entry.name, archive.extractfile(entry)) for entry in archive)
        return {name: file.read().decode() for name, file in rows if file is not None}


@lru_cache
def texts(language: str) -> tuple[str, ...]:
    """Real texts of one language, of several kernels and compilers."""
    found = [path.read_text("utf-8") for path in sorted(DATA.glob(f"locations/*/*.{language}"))]
    found += [path.read_text("utf-8") for path in sorted(DATA.glob(f"asm/*.{language}"))]
    found += [_unpacked(path) for path in sorted(DATA.glob(f"diff/*.{language}.xz"))]
    for path in capture_files():
        found += [str(item.data) for item in load(path).artifacts if item.stage == language]
    if language == "ttir":
        found += [text for text in distinct_modules() if "#ttg." not in text and "llvm." not in text][:12]
    if language == "ttgir":
        # With those on their way to the LLVM dialect, which hold operations of both.
        found += [text for text in distinct_modules() if "#ttg." in text]
    return tuple(text for text in dict.fromkeys(found) if len(text) <= _LONGEST)


@lru_cache
def binaries() -> dict[str, bytes]:
    """A cubin and an HSA code object, by stage."""
    return {
        path.suffix[1:]: path.read_bytes() for path in (DATA / "asm/softmax_90.cubin", DATA / "asm/add_gfx942.hsaco")
    }


def _unpacked(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode("utf-8", "replace")
