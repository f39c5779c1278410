"""The operation table: its rows, and that nothing outside `irscope/ir` spells an operation of Triton's dialects."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import irscope
from irscope.ir.mlir.forms import read_form
from irscope.ir.mlir.operations import (
    OperationKind,
    Space,
    _table,
    opcode_of,
    operation_info,
)

PACKAGE = Path(irscope.__file__).parent
# "tt.load"   r"ttg\.local_load"   '#ttg.blocked'
NAME = re.compile(r"(?<![\w.])(?:tt|ttg|ttng|amdg|amdgpu|nvws)\\?\.[a-z_]")
LAUNCH = "attributes of a launch's arguments, as Triton's front end writes them"
WRITES = "text of a module that Triton is to compile, or a question to the compiler"
SHOWN = "an example in a message or an option"
EXCEPTIONS: dict[str, str] = {
    "analysis/checks/assertions.py": SHOWN,
    "cli/layout.py": SHOWN,
    "model/telling.py": LAUNCH,
    "record": WRITES,
    "render/report/results.py": SHOWN,
}
"""File or folder -> why it spells names of operations, attributes or types."""


def spelled(path: Path) -> list[str]:
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    documents = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    texts = (one for one in nodes if isinstance(one, ast.Constant) and id(one) not in documents)
    return [one.value for one in texts if isinstance(one.value, str) and NAME.search(one.value)]


def test_operations_are_named_in_the_table_alone() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("ir/") and (texts := spelled(path)):
            found[name] = texts
    excused = {
        name: next((one for one in EXCEPTIONS if name == one or name.startswith(f"{one}/")), "") for name in found
    }
    assert not {name: found[name] for name, exception in excused.items() if not exception}
    assert set(EXCEPTIONS) == set(excused.values()), "an exception that nothing needs"


def test_rows_are_whole() -> None:
    for name in _table():
        check_row(name)


def check_row(name: str) -> None:
    info = operation_info(name)
    assert info is not None, name
    assert info.kind in get_args(OperationKind)
    assert all(effect.space in get_args(Space) for effect in info.effects)
    assert not (info.is_pure and info.effects)
    operands = set(re.findall(r"[$&](\w+)", info.form))
    assert operands.issuperset(info.order)
    assert not info.form or not info.effects or {one.operand for one in info.effects} <= operands | {""}
    # Every form compiles to a pattern; an operation without a text has none.
    assert read_form(name, f"{name} \x01", "", 0) is not None


def test_versions_spell_one_operation() -> None:
    for names in (
        ("amdgpu.buffer_load", "amdg.buffer_load"),
        ("tt.experimental_descriptor_load", "tt.descriptor_load"),
        ("ttg.local_barrier", "ttg.barrier", "gpu.barrier"),
        ("triton_gpu.convert_layout", "ttg.convert_layout"),
    ):
        assert len({opcode_of(name) for name in names}) == 1
        assert len({operation_info(name) for name in names}) == 1
