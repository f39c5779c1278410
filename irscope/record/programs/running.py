"""Runs the program of a request: a file, a module, the text of standard input, tests, a notebook; or a dry run of it.

In a dry run what it writes by a relative path lands in a copy, which is removed; by an absolute path into the real
folder, Python refuses it. Without IPython, its lines in a notebook are left out, and each is said. Tests run in one
process, and without pytest's rewriting of assertions: the virtual GPU rewrites them itself.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import json
import linecache
import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from irscope.errors import MissingTool, RecordingError
from irscope.record.compile.watched_compile import Watch
from irscope.record.process.events import Note, ScriptEnd
from irscope.record.process.own_folder import DRY_VARIABLE
from irscope.record.process.requests import RecordRequest

_MOST_BYTES = 1 << 29
_MOST_FILES = 20_000
_LEFT_OUT = (".git", "__pycache__")

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.rename": (0, 1),
}
"""Python's audit events of what changes a file, with the places of the paths among their arguments."""


def _working_folder() -> Path:
    """The folder that a recording was started in, also where a program runs in a copy of it."""
    return Path(os.environ.get(DRY_VARIABLE) or os.getcwd())


def move_to_scratch_copy(folder: Path) -> None:
    """Change to a copy of the working folder, for good; raises RecordingError if it is too large."""
    real = Path.cwd()
    if folder.resolve().is_relative_to(real.resolve()):
        raise RecordingError(
            f"--dry cannot copy {str(real)!r}, which holds the temporary folder: change to another one."
        )
    _check_size(real)
    copy = folder / "dry" / real.name
    shutil.copytree(real, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), copy_function=_copy)
    os.environ.update({DRY_VARIABLE: str(real), "PYTHONDONTWRITEBYTECODE": "1"})
    os.chdir(copy)
    refuse_writes(real)


def refuse_writes(real: Path) -> None:
    """Have Python refuse to change what is in a folder, until the end of this process."""
    sys.dont_write_bytecode = True
    below = os.path.realpath(real)

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            paths = (path,) if isinstance(flags, int) and flags & _WRITES else ()
            descriptor = -1
        elif event in _CHANGES:
            paths = tuple(arguments[place] for place in _CHANGES[event])
            descriptor = next((one for one in reversed(arguments) if isinstance(one, int)), -1)
        else:
            return
        for one in paths:
            if _is_below(one, below, descriptor):
                raise PermissionError(
                    f"--dry: {os.fsdecode(one)!r} is in the working folder itself, and stays as it is."
                )

    sys.addaudithook(check)


def _is_below(path: Any, folder: str, descriptor: int) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    if not os.path.isabs(text) and descriptor > 2 and os.path.exists(f"/proc/self/fd/{descriptor}/."):
        # shutil.rmtree names what it removes from an open folder.
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{descriptor}"), text)
    real = os.path.join(os.path.realpath(os.path.dirname(text) or os.curdir), os.path.basename(text))
    return any(one == folder or one.startswith(folder + os.sep) for one in (real, os.path.realpath(text)))


def _check_size(folder: Path) -> None:
    files, total = 0, 0
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            files, total = files + 1, total + os.lstat(os.path.join(parent, name)).st_size
        if files > _MOST_FILES or total > _MOST_BYTES:
            raise RecordingError(
                f"--dry copies the working folder, and {str(folder)!r} holds more than {_MOST_FILES:,} files or "
                f"{_MOST_BYTES >> 20} MiB: change to a smaller one."
            )


def _copy(source: str, target: str) -> str:
    # A pipe or a socket has no content to copy, and would block.
    if os.path.isfile(source) or os.path.islink(source):
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def run_file(path: Path, arguments: tuple[str, ...]) -> None:
    """Run a file as Python itself would run it: as `__main__`, its folder first on the path, its own arguments."""
    _set_up(str(path), arguments, path.resolve().parent)
    loader = SourceFileLoader("__main__", str(path))
    main = _new_main(str(path))
    main.__loader__ = loader
    exec(compiled(loader.get_data(str(path)), str(path)), vars(main))


def run_module(name: str, arguments: tuple[str, ...]) -> None:
    """Run a module as `python -m` would; raises ImportError if there is none."""
    _set_up("-m", arguments, _working_folder())
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    get_code = getattr(spec and spec.loader, "get_code", None)
    if spec is None or get_code is None:
        raise ImportError(f"No module named {name!r} that can be run", name=name)
    sys.argv[0] = str(spec.origin)
    main = _new_main(str(spec.origin))
    main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
    exec(get_code(spec.name), vars(main))


def import_file(path: Path) -> dict[str, Any]:
    """A file's namespace, without running what is under `if __name__ == "__main__"`; as the module of a package."""
    parts, root = _module_of(path)
    _set_up(str(path), (), root)
    if len(parts) > 1:
        module = importlib.import_module(".".join(parts))
        if os.path.realpath(module.__file__ or "") == os.path.realpath(path):
            return vars(module)
        raise RecordingError(
            f"{str(path)!r} is the module {module.__name__} by its place, but that is {module.__file__!r} here: "
            "another package of that name comes first in sys.path."
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
    _set_up("-m", (), _working_folder())
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


def _set_up(name: str, arguments: tuple[str, ...], folder: Path) -> None:
    """Set the arguments and the path for good; raises RecordingError if kernels would run in Triton's interpreter."""
    if os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "on", "yes", "y"):
        raise RecordingError(
            f"TRITON_INTERPRET={os.environ['TRITON_INTERPRET']} is set: kernels run in Triton's interpreter, and "
            "nothing is compiled. Record without it: env -u TRITON_INTERPRET irscope …"
        )
    sys.argv = [name, *arguments]
    sys.path.insert(0, str(folder))


def compiled(source: str | bytes, filename: str, flags: int = 0) -> CodeType:
    """A program's code; on the virtual GPU rewritten as that of a file is."""
    from irscope.record.virtual.placeholders import current_following
    from irscope.record.virtual.rewrite import rewrite

    tree = rewrite(source, filename) if current_following().is_on else ast.parse(source, filename)
    return compile(tree, filename, "exec", flags, dont_inherit=True)


def _with_text(filename: str, source: str) -> None:
    """Let `inspect.getsource`, which Triton calls, find the text of what is no file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def _new_main(filename: str) -> ModuleType:
    main = ModuleType("__main__")
    main.__file__ = filename
    vars(main).update(__builtins__=builtins, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    return main


# %matplotlib inline   |   !pip install x   |   ?print
_MAGIC_LINE = re.compile(r"^\s*[%!?]")


@dataclass(frozen=True, slots=True)
class _NotebookCell:
    number: int
    """Counted as Jupyter does where all are run from the top: code cells that are not empty, from 1."""
    source: str
    file: str
    """What stands for the file's name in locations: `/x/kernels.ipynb#cell3`."""

    @property
    def name(self) -> str:
        """`kernels.ipynb#cell3`."""
        return os.path.basename(self.file)


def _read_cells(path: Path) -> tuple[_NotebookCell, ...]:
    try:
        content: Any = json.loads(path.read_text("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path.name} is not a notebook: {error}.") from error
    if not isinstance(content, dict) or not isinstance(rows := cast("dict[str, Any]", content).get("cells"), list):
        raise RecordingError(
            f"{path.name} is not a notebook of format 4, whose JSON has a list of cells: convert it with "
            "jupyter nbconvert --to notebook."
        )
    sources: list[str] = []
    for row in cast("list[Any]", rows):
        if isinstance(row, dict) and cast("dict[str, Any]", row).get("cell_type") == "code":
            text = cast("dict[str, Any]", row).get("source", "")
            source = text if isinstance(text, str) else "".join(map(str, text))
            if source.strip():
                sources.append(source)
    return tuple(_NotebookCell(number, source, f"{path}#cell{number}") for number, source in enumerate(sources, 1))


def _run_notebook(watch: Watch) -> None:
    path = Path(watch.request.path)
    cells = _read_cells(path)
    main = _new_main(str(path))
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


def _run_plain(cell: _NotebookCell, main: ModuleType, watch: Watch) -> None:
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
    _with_text(cell.file, source)
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
    under_way: list[_NotebookCell] = []
    shell.compile.get_code_name = lambda raw, transformed, number: under_way[-1].file

    def run(cell: _NotebookCell) -> None:
        under_way[:] = [cell]
        shell.run_cell(cell.source, store_history=True).raise_error()

    return run


_NONE_COLLECTED = 5
_TESTS_FAILED = 1
_MOST_SHOWN = 20
_ONE_PROCESS = {"numprocesses": None, "dist": "no", "tx": [], "forked": False, "workers": None, "boxed": False}
"""Options of pytest-xdist, pytest-forked and pytest-parallel, and their values for one process."""

_ENDINGS = {2: "pytest was interrupted", 3: "pytest had an internal error", 4: "pytest refused its arguments"}


@dataclass(slots=True, eq=False)
class _Watcher:
    """The plugin of pytest that tells which test is under way, and collects what failed."""

    watch: Watch
    tests: set[str] = field(default_factory=set[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    switched_off: list[str] = field(default_factory=list[str])

    def pytest_cmdline_main(self, config: Any) -> None:
        for name, value in _ONE_PROCESS.items():
            # xdist itself derives --dist and --tx from --numprocesses.
            if not self.switched_off and getattr(config.option, name, value) not in (value, None, 0):
                self.switched_off.append(f"--{name}")
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    def pytest_runtest_protocol(self, item: Any) -> Generator[None]:
        self.tests.add(item.nodeid)
        self.watch.origin = (("test", item.nodeid),)
        yield
        self.watch.origin = ()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.setdefault(report.nodeid, _first_line(report))

    pytest_collectreport = pytest_runtest_logreport


def _run_tests(watch: Watch) -> ScriptEnd:
    if importlib.util.find_spec("pytest") is None:
        raise MissingTool("--pytest needs pytest in the Python that records: pip install pytest.")
    import pytest

    request = watch.request
    watcher = _Watcher(watch)
    # Which of the hooks go around, or before, those of other plugins.
    pytest.hookimpl(hookwrapper=True, tryfirst=True)(_Watcher.pytest_runtest_protocol)
    pytest.hookimpl(tryfirst=True)(_Watcher.pytest_cmdline_main)
    # What the compiler prints goes to the standard error of the process, from which each compile's is read.
    words = ["--assert=plain", "--capture=sys", "-p", "no:cacheprovider"]
    if importlib.util.find_spec("pytest_cov") is not None:
        words.append("--no-cov")
    words += ["-k", request.test_filter] if request.test_filter is not None else []
    # Not those of a copy that the tests run in.
    tests = [str(_working_folder() / test) if request.dry else test for test in request.tests]
    code = int(pytest.main([*words, *request.arguments, *tests], plugins=[watcher]))
    for name in watcher.switched_off:
        watch.report(Note(f"{name} was switched off: tests that are recorded run one after another in one process."))
    if code == _NONE_COLLECTED:
        chosen = f" that matches -k {request.test_filter!r}" if request.test_filter is not None else ""
        raise RecordingError(f"pytest found no test{chosen} in {' '.join(request.tests)}.")
    if code in _ENDINGS and not watcher.failed:
        raise RecordingError(f"{_ENDINGS[code]}: --verbose shows what it printed.")
    if not code:
        return ScriptEnd()
    rows = [f"  {name}: {why}" for name, why in watcher.failed.items()]
    if len(rows) > _MOST_SHOWN:
        rows[_MOST_SHOWN:] = [f"  … and {len(rows) - _MOST_SHOWN} more"]
    run = f"{len(watcher.failed)} of {len(watcher.tests)} tests failed" if watcher.tests else "no test was run"
    return ScriptEnd(code, run, "\n".join(rows), complete=code == _TESTS_FAILED)


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr)
    lines = [line for line in inspect.cleandoc(text).splitlines() if line.strip()]
    return (lines or ["failed"])[0 if crash is not None else -1]


def run_program(watch: Watch) -> ScriptEnd:
    """Run the program of a request to its end; raises what it raises, and RecordingError if it cannot be run."""
    request = watch.request
    match request.way:
        case "file":
            try:
                run_file(Path(request.path), request.arguments)
            except ImportError:
                parts, root = _module_of(Path(request.path))
                if len(parts) > 1:
                    name = ".".join(parts)
                    watch.report(Note(f"The file is a module of a package: in {root}, irscope dump -m {name} runs it."))
                raise
        case "module":
            run_module(request.path, request.arguments)
        case "stdin":
            _set_up("-", request.arguments, _working_folder())
            _with_text(request.path, request.text)
            exec(compiled(request.text, request.path), vars(_new_main(request.path)))
        case "tests":
            _set_up("pytest", request.arguments, _working_folder())
            return _run_tests(watch)
        case "notebook":
            _set_up(request.path, request.arguments, Path(request.path).parent)
            _run_notebook(watch)
        case "command":
            raise RecordingError("a command is run by a process of its own.")
    return ScriptEnd()


def import_program(request: RecordRequest) -> dict[str, Any]:
    return import_module(request.path) if request.way == "module" else import_file(Path(request.path))
