"""Files and modules as Python runs and imports them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irscope.errors import RecordingError
from irscope.record.programs.scratch import working_folder

__all__ = ["as_python_would", "import_file", "import_module", "module_of", "run_file", "run_module"]


def run_file(path: Path, arguments: tuple[str, ...]) -> None:
    """Run a file as Python itself would run it: as `__main__`, its folder first on the path, its own arguments."""
    with as_python_would(str(path), arguments, path.resolve().parent):
        runpy.run_path(str(path), run_name="__main__")


def run_module(name: str, arguments: tuple[str, ...]) -> None:
    """Run a module as `python -m` would."""
    with as_python_would("-m", arguments, working_folder()):
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def import_file(path: Path) -> dict[str, Any]:
    """A file's namespace, without running what is under `if __name__ == "__main__"`.

    A file in a package is imported as the module of it that it is, so that its relative imports work.
    """
    parts, root = module_of(path)
    with as_python_would(str(path), (), root):
        if len(parts) > 1:
            module = importlib.import_module(".".join(parts))
            if os.path.realpath(module.__file__ or "") == os.path.realpath(path):
                return vars(module)
            raise RecordingError(
                f"{str(path)!r} is the module {module.__name__} by its place, but that is {module.__file__!r} here: "
                "another package of that name is imported first."
            )
        name = path.stem if path.stem.isidentifier() else "kernel_file"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise RecordingError(f"{str(path)!r} cannot be imported as Python: its name must end in .py.")
        made = importlib.util.module_from_spec(spec)
        # inspect.getsource, which Triton calls, looks up the module.
        sys.modules.setdefault(name, made)
        spec.loader.exec_module(made)
        return vars(made)


def import_module(name: str) -> dict[str, Any]:
    """A module's namespace, found from the working folder as `python -m` finds it."""
    with as_python_would("-m", (), working_folder()):
        return vars(importlib.import_module(name))


def module_of(path: Path) -> tuple[tuple[str, ...], Path]:
    """The name of a file's module, and the folder that it is found from: the one above all with an `__init__.py`."""
    folder = path.resolve().parent
    parts = () if path.stem == "__init__" else (path.stem,)
    if path.suffix != ".py":
        return parts, folder
    while (folder / "__init__.py").is_file() and folder.name.isidentifier() and folder != folder.parent:
        parts, folder = (folder.name, *parts), folder.parent
    return parts, folder


@contextmanager
def as_python_would(name: str, arguments: tuple[str, ...], folder: Path) -> Iterator[None]:
    """Set the arguments and the path; raises RecordingError if kernels would run in Triton's interpreter.

    `folder`: where Python looks for modules first.
    """
    if os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y"):
        raise RecordingError(
            f"TRITON_INTERPRET={os.environ['TRITON_INTERPRET']} is set: kernels run in Triton's interpreter, and "
            "nothing is compiled. Record without it: env -u TRITON_INTERPRET irscope …"
        )
    argv, search = sys.argv[:], sys.path[:]
    sys.argv = [name, *arguments]
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search
