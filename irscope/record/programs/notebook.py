"""Runs the code cells of a notebook one after another, in one namespace; no Jupyter is needed.

With IPython installed, its shell runs the cells, magics included. Without it, lines that begin with `%`, `!` or `?` are
left out, and a cell that begins with `%%` as a whole; each is said.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from irscope.errors import RecordingError
from irscope.record.compile.watched_compile import Watch
from irscope.record.process.events import Note
from irscope.record.programs.texts import as_main, compiled, with_text

__all__ = ["Cell", "read_cells", "run_notebook"]

# %matplotlib inline   |   !pip install x   |   ?print
_MAGIC_LINE = re.compile(r"^\s*[%!?]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell."""

    number: int
    """Counted as Jupyter does where all are run from the top: code cells that are not empty, from 1."""
    source: str
    file: str
    """What stands for the file's name in locations: `/x/kernels.ipynb#cell3`."""

    @property
    def name(self) -> str:
        """`kernels.ipynb#cell3`."""
        return os.path.basename(self.file)


def read_cells(path: Path) -> tuple[Cell, ...]:
    """The code cells of a notebook; raises RecordingError for what is none."""
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path.name} is no notebook: {error}.") from error
    if not isinstance(content, dict) or not isinstance(rows := cast("dict[str, Any]", content).get("cells"), list):
        raise RecordingError(
            f"{path.name} is no notebook of format 4, whose JSON has a list of cells: convert it with "
            "jupyter nbconvert --to notebook."
        )
    sources: list[str] = []
    for row in cast("list[Any]", rows):
        if isinstance(row, dict) and cast("dict[str, Any]", row).get("cell_type") == "code":
            text = cast("dict[str, Any]", row).get("source", "")
            source = text if isinstance(text, str) else "".join(map(str, text))
            if source.strip():
                sources.append(source)
    return tuple(Cell(number, source, f"{path}#cell{number}") for number, source in enumerate(sources, 1))


def run_notebook(watch: Watch) -> None:
    """Run the cells of a request's notebook; raises what a cell raises."""
    path = Path(watch.request.path)
    cells = read_cells(path)
    with as_main(str(path)) as main:
        run = _by_shell(main, path) if importlib.util.find_spec("IPython") is not None else None
        for cell in cells:
            watch.origin = (("cell", cell.name),)
            try:
                if run is not None:
                    run(cell)
                else:
                    _run_plain(cell, main, watch)
            finally:
                watch.origin = ()


def _run_plain(cell: Cell, main: ModuleType, watch: Watch) -> None:
    if cell.source.lstrip().startswith("%%"):
        head = cell.source.strip().splitlines()[0]
        watch.report(Note(f"{cell.name} was left out, as IPython is not installed: {head}"))
        return
    lines = cell.source.splitlines(keepends=True)
    for place in _magic_lines(cell.source):
        watch.report(Note(f"A line of {cell.name} was left out, as IPython is not installed: {lines[place].strip()}"))
        # A block that held nothing else still needs a statement.
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place] = f"{indent}pass\n"
    source = "".join(lines)
    with_text(cell.file, source)
    exec(compiled(source, cell.file), vars(main))


def _magic_lines(source: str) -> Iterator[int]:
    """The indices of the lines that are IPython's, unless the cell is Python as it stands."""
    try:
        compile(source, "cell", "exec")
    except SyntaxError:
        yield from (place for place, line in enumerate(source.splitlines()) if _MAGIC_LINE.match(line))


def _by_shell(main: ModuleType, path: Path) -> Any:
    """What runs a cell in a shell of IPython's own, which keeps no history and reads no configuration."""
    from IPython.core.interactiveshell import InteractiveShell  # pyright: ignore[reportMissingImports]
    from traitlets.config import Config  # pyright: ignore[reportMissingImports]

    settings: Any = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "nocolor"
    shell: Any = InteractiveShell.instance(user_module=main, config=settings)
    under_way: list[Cell] = []
    shell.compile.get_code_name = lambda raw, transformed, number: under_way[-1].file

    def run(cell: Cell) -> None:
        under_way[:] = [cell]
        shell.run_cell(cell.source, store_history=True).raise_error()

    return run
