"""Runs a program as Python would run it: a file, a module, the text of standard input, tests, a notebook."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import linecache
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from irscope.errors import RecordingError
from irscope.record.compile.watched_compile import Watch
from irscope.record.process.events import ScriptEnd
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.scratch import working_folder

__all__ = ["as_main", "compiled", "import_file", "import_module", "run_program", "with_text"]


def run_program(watch: Watch) -> ScriptEnd:
    """Run the program of a request to its end; raises what it raises, and RecordingError if it cannot be run."""
    request = watch.request
    match request.way:
        case "file":
            with _as_python_would(request.path, request.arguments, Path(request.path).resolve().parent):
                runpy.run_path(request.path, run_name="__main__")
        case "module":
            with _as_python_would("-m", request.arguments, working_folder()):
                runpy.run_module(request.path, run_name="__main__", alter_sys=True)
        case "stdin":
            with _as_python_would("-", request.arguments, working_folder()), as_main(request.path) as main:
                with_text(request.path, request.text)
                exec(compiled(request.text, request.path), vars(main))
        case "tests":
            from irscope.record.programs.tests import run_tests

            with _as_python_would("pytest", request.arguments, working_folder()):
                return run_tests(watch)
        case "notebook":
            from irscope.record.programs.notebook import run_notebook

            with _as_python_would(request.path, request.arguments, Path(request.path).parent):
                run_notebook(watch)
        case "command":
            raise RecordingError("a command is run by a process of its own.")
    return ScriptEnd()


def import_program(request: RecordRequest) -> dict[str, Any]:
    """The namespace of the file or module that a request names, without what is under `__name__ == "__main__"`."""
    return import_module(request.path) if request.way == "module" else import_file(Path(request.path))


def import_file(path: Path) -> dict[str, Any]:
    """A file's namespace, without running what is under `if __name__ == "__main__"`.

    A file in a package is imported as the module of it that it is, so that its relative imports work.
    """
    parts, root = _module_of(path)
    with _as_python_would(str(path), (), root):
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
    with _as_python_would("-m", (), working_folder()):
        return vars(importlib.import_module(name))


def _module_of(path: Path) -> tuple[tuple[str, ...], Path]:
    """The name of a file's module, and the folder that it is found from: the one above all with an `__init__.py`."""
    folder = path.resolve().parent
    parts = () if path.stem == "__init__" else (path.stem,)
    if path.suffix != ".py":
        return parts, folder
    while (folder / "__init__.py").is_file() and folder.name.isidentifier() and folder != folder.parent:
        parts, folder = (folder.name, *parts), folder.parent
    return parts, folder


def compiled(source: str, filename: str, flags: int = 0) -> CodeType:
    """A program's code; on the virtual GPU rewritten as that of a file is."""
    from irscope.record.virtual.follow import current_following
    from irscope.record.virtual.rewrite import rewrite

    tree = rewrite(source, filename) if current_following() is not None else ast.parse(source, filename)
    return compile(tree, filename, "exec", flags, dont_inherit=True)


def with_text(filename: str, source: str) -> None:
    """Let `inspect.getsource`, which Triton calls, find the text of what is no file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


@contextmanager
def as_main(filename: str) -> Iterator[ModuleType]:
    """A new module as `__main__`, until the end of the block."""
    before = sys.modules["__main__"]
    main = ModuleType("__main__")
    main.__file__ = filename
    vars(main)["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    try:
        yield main
    finally:
        sys.modules["__main__"] = before


@contextmanager
def _as_python_would(name: str, arguments: tuple[str, ...], folder: Path) -> Iterator[None]:
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
