"""Who may import whom, and that viewing needs neither triton nor torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "irscope"

# A part may import those to its left, and itself.
# The one exception: a notebook asks the value itself for its HTML, which is imported when it does.
NOTEBOOK = ("capture", "irscope.render.report_summary")
ORDER = [
    "errors",
    "plan",
    "target",
    "assumption",
    "failure",
    "launch_record",
    "capture",
    "capture_schema",
    "store",
    "recent",
    "ir",
    "layout",
    "analysis",
    "render",
]
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "torch"):
            raise ImportError(f"{name} must not be imported here")
sys.meta_path.insert(0, Blocked())
"""


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "irscope":
                found.update(f"irscope.{alias.name}" for alias in node.names)
    return found


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_one_way(path: Path) -> None:
    part = part_of(path)
    if part not in ORDER:
        return
    allowed = set(ORDER[: ORDER.index(part) + 1])
    for name in imports_of(path):
        words = name.split(".")
        if words[0] == "irscope" and len(words) > 1 and words[1] in {*ORDER, "record", "cli", "api"}:
            assert words[1] in allowed or (part, name) == NOTEBOOK, f"{path.name} imports {name}, against the arrows"


def test_every_viewing_module_imports_without_triton_and_torch() -> None:
    names = [
        "irscope." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for path in modules()
        if part_of(path) in {*ORDER, "cli", "__init__", "api"} and path.name != "__main__.py"
    ]
    names = [name.removesuffix(".__init__") for name in names]
    code = BLOCK + "import importlib\n" + "".join(f"importlib.import_module({name!r})\n" for name in names)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_recording_parent_imports_neither() -> None:
    code = BLOCK + "import irscope.record.session, irscope.record.requests, irscope.api"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_recording_child_needs_the_standard_library_alone() -> None:
    """Another interpreter records with this one's irscope: typer, pygments, rich and graphviz are not in it."""
    code = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "torch", "typer", "pygments", "rich", "graphviz", "numpy"):
            raise ImportError(f"{name} must not be imported here")
sys.meta_path.insert(0, Blocked())
import irscope.record.worker, irscope.record.recompile, irscope.record.device_watch, irscope.record.in_process
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_all_is_true() -> None:
    import irscope

    for name in irscope.__all__:
        assert getattr(irscope, name) is not None
    assert sorted(irscope.__all__) == irscope.__all__ or set(irscope.__all__) == set(dir(irscope))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        irscope.nothing  # noqa: B018
