"""Reads what TorchInductor leaves on disk: its cache, and the folders of TORCH_COMPILE_DEBUG.

The cache has the code of graphs and of kernels as `xy/cxyz….py`, and Triton's own cache in `triton/DEVICE`; a debug
folder has an `output_code.py` and the FX graph for each graph. The code names the file of each kernel after its
contents, which joins a compiled kernel to its graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.ir.logs.cache import read_cache
from irscope.ir.logs.inductor.graph_text import read_graph_lines
from irscope.ir.logs.inductor.output_code import GeneratedKernel, read_output_code
from irscope.ir.logs.launch_text import UNKNOWN_TARGET
from irscope.ir.logs.regular_file import FileRefused, inside, read_regular
from irscope.model.capture import Capture, Environment, Kernel, Launch, SourceFile
from irscope.model.evidence import GraphNode, GraphOrigin

__all__ = ["InductorFiles", "find_inductor_files", "read_inductor"]

_MAX_CODE_BYTES = 1 << 25
_MAX_FILES = 200_000
_MAX_DEPTH = 8
_OUTPUT = "output_code.py"
_GRAPHS = ("fx_graph_transformed.py", "fx_graph_readable.py")
# cxsyz3x2dzueb4edu6lyxaj2bpbysd4bwnggltrlp3pghknoxnff.py
_CODE = re.compile(r"c[a-z2-7]{20,80}\.py")
_HEAD = "# AOT ID: ["
_CACHED = "Read from TorchInductor's cache: no pass was recorded, and the constants are not there."


@dataclass(frozen=True, slots=True)
class InductorFiles:
    """The files of TorchInductor's in a folder."""

    root: Path
    outputs: tuple[Path, ...]
    """Code of graphs in debug folders."""
    code: tuple[Path, ...]
    """Code of graphs and kernels in a cache."""
    caches: tuple[Path, ...]
    """Folders of Triton's own cache."""

    def __bool__(self) -> bool:
        return bool(self.outputs or self.code)


def find_inductor_files(folder: Path) -> InductorFiles:
    """What a folder holds of TorchInductor's, at most some levels deep; links are not followed."""
    outputs: list[Path] = []
    code: list[Path] = []
    caches: list[Path] = []
    seen = 0
    for at, folders, files in os.walk(folder):
        here = Path(at)
        depth = len(here.relative_to(folder).parts)
        seen += len(files)
        if depth >= _MAX_DEPTH or seen > _MAX_FILES:
            folders.clear()
        if "triton" in folders:
            caches += sorted(path for path in (here / "triton").iterdir() if path.is_dir() and inside(path, folder))
            folders.remove("triton")
        folders.sort()
        outputs += [here / name for name in sorted(files) if name == _OUTPUT]
        code += [here / name for name in sorted(files) if _CODE.fullmatch(name)]
    return InductorFiles(folder, tuple(outputs), tuple(code), tuple(caches))


def read_inductor(folders: Sequence[InductorFiles], skipped: Callable[[str], None]) -> Iterator[Capture]:
    """The captures of folders: those of Triton's caches with their graphs, and of kernels that are in no cache.

    `skipped` is called with a message for each file that cannot be read.
    """
    kernels = tuple(kernel for files in folders for kernel in _generated(files, skipped))
    sources = {name: text for files in folders for name, text in _sources(files, skipped).items()}
    caches = (cache for files in folders for cache in files.caches)
    compiled = [capture for cache in caches for capture in read_cache(cache, skipped=skipped)]
    yield from _joined(compiled, kernels, sources)
    known = {(capture.name, _file_name(capture.launch.kernel.file)) for capture in compiled}
    left: dict[tuple[str, str, str], list[GeneratedKernel]] = {}
    for kernel in kernels:
        if (kernel.name, _file_name(kernel.path)) not in known:
            left.setdefault((kernel.name, kernel.path, kernel.code), []).append(kernel)
    yield from (_uncompiled(rows) for rows in left.values())


def _joined(
    captures: Iterable[Capture], kernels: Sequence[GeneratedKernel], sources: Mapping[str, str]
) -> Iterator[Capture]:
    """Captures with the graphs that their kernels were generated for, and with the text of their files, by name."""
    for capture in captures:
        name = _file_name(capture.launch.kernel.file)
        mine = [kernel for kernel in kernels if (kernel.name, _file_name(kernel.path)) == (capture.name, name)]
        text = sources.get(name, "")
        held = (SourceFile(capture.launch.kernel.file, text),) if text else capture.sources
        notes = (_CACHED, *capture.notes[1:]) if text else capture.notes
        yield replace(capture, graphs=_origins(mine), sources=held, notes=notes)


def _origins(kernels: Iterable[GeneratedKernel]) -> tuple[GraphOrigin, ...]:
    """Each graph once, with lines of Python where one of its texts has them: a cache holds it without."""
    found: dict[tuple[str, str, int], GraphOrigin] = {}
    for kernel in kernels:
        key = kernel.origin.graph, kernel.origin.part, kernel.origin.kernel
        if key not in found or not found[key].lines:
            found[key] = kernel.origin
    return tuple(found.values())


def _uncompiled(kernels: Sequence[GeneratedKernel]) -> Capture:
    """A capture of a kernel's code alone."""
    first = kernels[0]
    start = first.code.find("@triton_heuristics")
    line = first.code.count("\n", 0, max(start, 0)) + 1
    return Capture(
        launch=Launch(Kernel(first.name, first.path, 0, first.code[max(start, 0) :], line)),
        target=UNKNOWN_TARGET,
        environment=Environment(),
        sources=(SourceFile(first.path, first.code),) if first.path else (),
        notes=(
            "Read from TorchInductor's code: no stage of it is here. Its cache (TORCHINDUCTOR_CACHE_DIR, by default "
            "/tmp/torchinductor_USER) has them: give both folders.",
        ),
        graphs=_origins(kernels),
        snapshot_level="none",
    )


def _generated(files: InductorFiles, skipped: Callable[[str], None]) -> Iterator[GeneratedKernel]:
    for path in (*files.outputs, *files.code):
        text = _text(path, files.root, skipped)
        if _HEAD not in text[:4096]:
            continue
        lines: dict[str, GraphNode] = {}
        for name in _GRAPHS if path.name == _OUTPUT else ():
            beside = path.with_name(name)
            if beside.is_file():
                lines = {**read_graph_lines(_text(beside, files.root, skipped)), **lines}
        for kernel in read_output_code(text):
            nodes = tuple(replace(lines.get(node.name, node), operator=node.operator) for node in kernel.origin.nodes)
            yield replace(kernel, origin=replace(kernel.origin, nodes=nodes))


def _sources(files: InductorFiles, skipped: Callable[[str], None]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in files.code:
        text = _text(path, files.root, skipped)
        if "@triton.jit" in text and _HEAD not in text[:4096]:
            found[path.name] = text
    return found


def _text(path: Path, root: Path, skipped: Callable[[str], None]) -> str:
    try:
        return read_regular(path, _MAX_CODE_BYTES, root).decode("utf-8", "replace")
    except FileRefused as error:
        skipped(f"{path.name} was passed over: it {error}.")
        return ""


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
