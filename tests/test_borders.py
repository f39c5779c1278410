"""Who may import whom, and that viewing needs neither triton nor torch."""

from __future__ import annotations

import ast
import gc
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import irscope

PACKAGE = Path(irscope.__file__).parent
TESTS = Path(__file__).parent

_BASE = "record.triton record.process record.compile"
_ALL = "errors plan target interruption tools model store device ir layout machine memory timing verify analysis render"
_PARTS = "record.layouts record.virtual"
ROOMS: dict[str, str] = {
    "errors": "",
    "plan": "errors",
    "target": "errors",
    "interruption": "errors",
    "tools": "errors",
    "model": "errors plan target",
    "store": "errors plan target model",
    "device": "errors target model",
    "ir": "errors target model",
    "layout": "errors target model ir",
    "machine": "errors target model device ir layout",
    "memory": "errors target model device ir layout machine",
    "timing": "errors target model device ir layout machine memory",
    "verify": "errors target model device ir layout machine memory",
    "analysis": "errors plan target model device ir layout machine memory timing verify",
    "render": "errors plan target model interruption tools device ir layout machine memory timing verify analysis",
    "record": "errors plan target model interruption tools store device ir layout machine",
    "record.triton": "",
    "record.process": "record.triton",
    "record.compile": "record.triton record.process",
    **dict.fromkeys(_PARTS.split(), _BASE),
    "record.programs": f"{_BASE} {_PARTS}",
    **dict.fromkeys(("record.variants", "record.gpu"), f"{_BASE} {_PARTS} record.programs"),
    "api": f"{_ALL} record {_BASE} {_PARTS} record.programs record.variants record.gpu",
}
"""Each room, and the rooms beside itself that it may import from: those below it in the drawing of the house."""
ANYWHERE = {"", "cli", "testing", "__init__", "__main__"}
"""What may import everything."""


def module_name(path: Path) -> str:
    words = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    words = module.split(".")
    return ".".join(words[:2]) if words[0] == "record" and len(words) > 1 and words[1] != "__main__" else words[0]


@cache
def trees() -> dict[str, ast.Module]:
    """What each module is written of; looking for garbage among it would take longer than reading it."""
    gc.disable()
    try:
        return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """All that a module is written of."""
    return tuple(ast.walk(trees()[module]))


def imports_of(module: str) -> Iterator[str]:
    """The modules of irscope that one imports, wherever it does: lazily, and for its types."""
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("irscope.") in MODULES else node.module for name in names]
        else:
            continue
        for name in names:
            if name == "irscope" or name.startswith("irscope."):
                yield name.removeprefix("irscope").removeprefix(".")


def test_arrows_point_one_way() -> None:
    wrong: list[str] = []
    for module in MODULES.keys() - {"record.__main__"}:
        if (room := room_of(module)) in ANYWHERE:
            continue
        allowed = {"", room, *ROOMS[room].split()}
        if room.startswith("record"):
            allowed |= {*ROOMS["record"].split()}
        wrong += [f"{module} imports {name}" for name in imports_of(module) if room_of(name) not in allowed]
    assert not wrong, "against the arrows:\n" + "\n".join(sorted(wrong))


def test_every_room_is_in_the_drawing() -> None:
    assert {room_of(name) for name in MODULES} - ANYWHERE == set(ROOMS)


def test_no_circles() -> None:
    """Lazy imports and those for types counted; a package's `__init__` holds no code that would close one."""
    graph = {name: {other for other in imports_of(name) if other and other != name} for name in MODULES if name}
    while free := {name for name, imported in graph.items() if not imported & graph.keys()} | (
        graph.keys() - set().union(*graph.values())
    ):
        graph = {name: imported for name, imported in graph.items() if name not in free}
    assert not graph, f"these import one another in circles: {', '.join(sorted(graph))}"


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES.values()}), ids=lambda path: path.name)
def test_rooms_are_small_and_say_what_they_are(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert all(len(path.read_text("utf-8").splitlines()) <= 600 for path in modules)
    first_line = (ast.get_docstring(trees()[module_name(folder / "__init__.py")]) or "").partition("\n")[0]
    assert first_line.endswith(".")


# triton, triton.testing, triton._C.libproton, the beginning of f"triton.backends.{name}": a module, not a message
TRITON_MODULE = re.compile(r"triton(\.\w+)*\.?$")
LOOKED_UP_IN = ("import_module", "find_spec", "__import__", "AfterImport", "sys.modules")


def uses_of_triton(module: str) -> Iterator[str]:
    """Where a module reaches into Triton by itself: by an import, a module's name, or an attribute of the package."""
    for node in nodes_of(module):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call | ast.Subscript):
            key = node.slice if isinstance(node, ast.Subscript) else node.args[0] if node.args else node.func
            named = [str(part.value) for part in ast.walk(key) if isinstance(part, ast.Constant)]
            if any(map(TRITON_MODULE.match, named)):
                looked_in = ast.unparse(node.func if isinstance(node, ast.Call) else node.value).removesuffix(".get")
                names = named if looked_in.endswith(LOOKED_UP_IN) else []
        elif isinstance(node, ast.Attribute) and node.attr in ("_C", "libtriton"):
            names = [ast.unparse(node)]
        yield from (f"line {node.lineno}: {name}" for name in names if TRITON_MODULE.match(name))


def test_triton_is_behind_one_door() -> None:
    """Only `record/triton` imports Triton: lazy imports, look-ups by name and attributes of the package counted."""
    outside = [module for module in MODULES if room_of(module) != "record.triton"]
    assert [f"{module}, {use}" for module in outside for use in uses_of_triton(module)] == []


@pytest.mark.parametrize("module", ["api", "autotuner", "driver", "sample_kernel", "gluon_kernels"])
def test_uses_of_triton_are_found(module: str) -> None:
    assert list(uses_of_triton(f"record.triton.{module}"))


def blocked(names: str, code: str) -> None:
    """Run Python where some modules cannot be imported."""
    block = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names.split()!r}:
            raise ImportError(f"{{name}} must not be imported here")
sys.meta_path.insert(0, Blocked())
"""
    answer = subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_every_viewing_module_imports_without_triton_and_torch() -> None:
    """Those that need POSIX; tests/test_viewing.py imports all others, without that too."""
    names = [f"irscope.{name}" for name in MODULES if name.startswith("cli.mcp.server")]
    assert names
    blocked("triton torch", f"import {', '.join(names)}")


def test_the_recording_parent_imports_neither() -> None:
    blocked("triton torch", "import irscope.record.process.session, irscope.record.process.requests, irscope.api")


def test_the_recording_child_needs_the_standard_library_alone() -> None:
    """Another interpreter records with this one's irscope: click, pygments, rich and graphviz are not in it."""
    blocked(
        "triton torch click pygments rich graphviz numpy msgspec",
        "import irscope.record.programs.worker, irscope.record.compile.recompile\n"
        "import irscope.record.programs.launch_watch, irscope.record.programs.in_process",
    )


def test_the_interface_is_what_all_says() -> None:
    assert [name for name in irscope.__all__ if not hasattr(irscope, name)] == []
    assert dir(irscope) == sorted(irscope.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        irscope.nothing  # noqa: B018


def test_functions_of_the_interface_may_be_called_whatever_is_imported() -> None:
    module = import_module("irscope.record.process.session")
    for name in ("capture", "diff", "load", "record_all", "save"):
        assert inspect.isfunction(getattr(irscope, name)), name
    # A package and a function have this name: it is both.
    assert irscope.record.process.session is module
    assert irscope.record is import_module("irscope.record")
    function = import_module("irscope.api").record
    assert inspect.signature(irscope.record) == inspect.signature(function)
    with pytest.raises(irscope.IrscopeError, match="nothing is given to record"):
        irscope.record()


DIALECT_NAME = re.compile(r"(?<![\w.])(?:tt|ttg|ttng|amdg|amdgpu|triton_gpu|triton_nvidia_gpu)\.[a-z]")
SPELLED = {
    "analysis.checks.assertions": "an example in a message for the user",
    "cli.layout": "an example in a message",
    "model.telling": "an attribute of an argument, as Triton writes it in a signature",
    "record.compile.recompile": "attributes that Triton's bindings are asked for",
    "record.layouts.compiler": "writes the module by which the compiler is asked about layouts",
    "render.report.results": "a sentence that names an operation to the reader",
}
"""Modules outside of `ir` that spell a dialect's operation or attribute, and why."""


def test_only_ir_spells_names_of_dialects() -> None:
    """An operation is asked for its kind, opcode, operands and attributes: the operation table holds their names."""
    found = {
        module
        for module in MODULES
        if room_of(module) != "ir"
        for text in strings_of(module)
        if DIALECT_NAME.search(text)
    }
    assert found == SPELLED.keys()


def strings_of(module: str) -> Iterator[str]:
    """The strings of a module but for docstrings."""
    documented = [ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]
    docstrings = {
        id(statement.value)
        for node in nodes_of(module)
        if type(node) in documented
        for statement in getattr(node, "body", ())
        if isinstance(statement, ast.Expr)
    }
    for node in nodes_of(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


PATTERNS = frozenset({"compile", "match", "search", "fullmatch", "sub", "finditer", "findall", "split"})
MOST_PATTERNS = {
    "analysis": 31, "api": 3, "cli": 10, "device": 1, "ir": 221, "layout": 1, "model": 1, "plan": 1,
    "record": 46, "render": 43, "store": 6, "target": 3,
}  # fmt: skip
"""Regular expressions in each layer, none in all others: fewer, never more. Texts are read in `ir`; the aim is 150."""


def test_regular_expressions_become_fewer() -> None:
    counts = Counter[str]()
    for module in MODULES:
        counts[module.partition(".")[0]] += sum(map(is_pattern, nodes_of(module)))
    assert {layer: count for layer, count in counts.items() if count > MOST_PATTERNS.get(layer, 0)} == {}


def is_pattern(node: ast.AST) -> bool:
    """Whether a node calls a function of the module `re` that reads a text or makes what does."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in PATTERNS and ast.unparse(node.func.value) == "re"


SHARED_NAMES = {
    "Address": "record timing", "Answer": "cli record", "Block": "ir render", "Figure": "render testing",
    "Observed": "timing verify", "Question": "api record", "Timed": "analysis record",
}  # fmt: skip
"""Names that classes of several layers have: fewer, never more. The classes of a layer have different names."""


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in trees()[module].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.partition(".")[0])
    several = {name: " ".join(sorted(layers)) for name, layers in homes.items() if len(layers) > 1}
    assert {name: layers for name, layers in several.items() if SHARED_NAMES.get(name) != layers} == {}


WHOLE = {"cli", "examples", "flows", "gpu", "hostile", "report_browser", ""}
"""Folders of tests that look at more than one module: commands as a user types them, whole recordings, pages, files."""


def test_a_test_bears_the_name_and_place_of_its_module() -> None:
    """`test_stages_forms.py` in `ir/locations` is of `irscope.ir.locations.stages`, as `test_stages.py` is."""
    nameless: list[str] = []
    for path in TESTS.rglob("test_*.py"):
        # Scripts of tests/record run with that folder on their path: a folder `triton` there would be taken for Triton.
        room = ".".join(part.rstrip("_") for part in path.relative_to(TESTS).parts[:-1])
        words = path.stem.removeprefix("test_").split("_")
        names = {".".join((room, "_".join(words[:count]))) for count in range(1, len(words) + 1)}
        if room not in WHOLE and not names & MODULES.keys():
            nameless.append(f"no module of {room} is named {path.stem.removeprefix('test_')}")
    assert nameless == []


def names_of(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines, but for a command of the command line."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        if not any("command" in ast.unparse(decorator) for decorator in statement.decorator_list):
            yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def used_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names, also with their module, that are imported, reached as attributes or written in short strings."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from re.findall(r"\w+", node.value)


def test_what_only_its_own_module_uses_is_underscored() -> None:
    """What is neither imported elsewhere nor reached as an attribute is no part of what a module offers."""
    interface = {"errors", "model", "plan", "target", "api", "__init__", "__main__"}
    used = {name for module in MODULES for name in used_in(nodes_of(module))}
    loose = {
        (module, name)
        for module, path in MODULES.items()
        if room_of(module) not in interface and path.name != "__init__.py"
        for statement in trees()[module].body
        for name in names_of(statement)
        # pytest finds the hooks of a plugin by their names.
        if not name.startswith(("_", "pytest_")) and name != "main" and not {name, f"irscope.{module}.{name}"} & used
    }
    for folder in (TESTS, TESTS.parent / "benchmarks"):
        for path in folder.rglob("*.py"):
            text = path.read_text("utf-8")
            # Reading a text takes a hundred times as long as looking for a word in it.
            if any(name in text for _, name in loose):
                used = {*used_in(ast.walk(ast.parse(text)))}
                loose = {one for one in loose if not {one[1], "irscope.{}.{}".format(*one)} & used}
    names = sorted(".".join(one) for one in loose)
    assert not names, f"only their own modules use {', '.join(names)}"
