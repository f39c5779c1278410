"""The Python frames that each line of a stage's text comes from, for every stage.

MLIR has locations in `loc(...)`, LLVM IR in metadata, PTX and AMDGCN in `.loc`, SASS in the comments of nvdisasm. All
of them become one value, `TextLocations`. An operation without a location inherits none.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from irscope.ir.locations.amdgcn import read_amdgcn
from irscope.ir.locations.llvm import read_llvm
from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import Chain, ChainTable, Frame, TextLocations
from irscope.ir.locations.ptx import read_ptx
from irscope.ir.locations.sass import read_sass
from irscope.model.capture import Capture, StageKind

__all__ = ["Chain", "Frame", "TextLocations", "capture_locations", "lines_selected", "read_locations"]


def read_locations(text: str, kind: StageKind, *, llir: str | None = None, ptx: str | None = None) -> TextLocations:
    """Read the locations of a stage's text, in time linear in its length.

    Args:
        text: the stage's text; hostile, cut and foreign texts are read as far as possible, nothing is raised.
        kind: the language it is in.
        llir: for PTX, SASS and AMDGCN, the LLVM IR that the assembly was compiled from, to complete its locations
            (see `read_ptx`, `read_sass` and `read_amdgcn`).
        ptx: for SASS, the PTX that it was compiled from, to recognise lines that LLVM made up.

    Returns the chain of every line; a binary has no lines.
    """
    if kind == "mlir":
        return read_mlir(text)
    if kind == "llvm":
        return read_llvm(text)
    if kind == "ptx":
        return read_ptx(text, llir)
    if kind == "sass":
        return read_sass(text, llir, ptx)
    if kind == "amdgcn":
        return read_amdgcn(text, llir)
    return TextLocations()


def capture_locations(capture: Capture, text: str, kind: StageKind) -> TextLocations:
    """The locations of one of a capture's texts.

    Those of assembly are of the operations in the TTGIR where the capture holds these: SASS has no columns, and before
    Triton 3.8 no callers. Otherwise they are completed from the earlier stages.
    """
    stated = read_locations(text, kind, llir=capture.texts.get("llir"), ptx=capture.texts.get("ptx"))
    operations = next((row.by_line for row in capture.operations if row.stage == kind and row.runs), ())
    if not operations:
        return stated
    ttgir = read_mlir(capture.text("ttgir"))
    table = ChainTable()
    numbers = {operation: table.add(ttgir.chain_at(operation)) for operation in dict.fromkeys(operations)}
    own = [*map(table.add, stated.chains), -1]
    lines = zip(stated.by_line, operations, strict=False)
    return table.locations(numbers[operation] if operation else own[index] for index, operation in lines)


def lines_selected(locations: TextLocations, in_file: Callable[[str], bool], lines: Container[int]) -> set[int]:
    """The text lines that come from given lines of a Python file.

    Args:
        locations: what `read_locations` returned.
        in_file: whether a frame's file is that Python file.
        lines: the wanted Python lines, 1-based, such as `range(23, 32)`.

    Returns 1-based text lines: those with a frame, the innermost or a caller, on the given lines.
    """
    wanted = [any(frame.line in lines and in_file(frame.file) for frame in chain) for chain in locations.chains]
    return {number for number, index in enumerate(locations.by_line, 1) if index >= 0 and wanted[index]}
