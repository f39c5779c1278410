"""Writes docs/api.md from docstrings, the rooms in docs/architecture.md, and the notebooks: `make docs`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from docs.site.notebooks import NOTEBOOKS, notebook
from tests.test_borders import MODULES, PACKAGE, ROOMS

ROOT = PACKAGE.parent
API = ROOT / "docs" / "api.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"

_HEAD = """# The Python interface

Made from the docstrings by `make docs`; a test compares. Every other name in the package may change without notice.
`irscope.record` takes the arguments of `record_all` and returns the first capture. Classes list their fields, with
defaults, then their properties and methods.
"""
SECTIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "irscope",
        "Record, load, save, compare, list.",
        "irscope.api",
        (
            "record_all",
            "capture",
            "listen",
            "recording_session",
            "findings",
            "why",
            "safety",
            "safety_for_all_arguments",
            "meaning",
            "same_bits",
            "to_dict",
        ),
    ),
    ("", "", "irscope.api.explain", ("Explanation",)),
    ("", "", "irscope.api.timing", ("time",)),
    ("", "", "irscope.api.better", ("verdict",)),
    ("", "", "irscope.analysis.better", ("BetterVerdict",)),
    ("", "", "irscope.timing.predict", ("Prediction", "Share", "WhatIf", "Model")),
    ("", "", "irscope.timing.simulate", ("Span",)),
    ("", "", "irscope.analysis.findings.costs", ("Timed",)),
    ("", "", "irscope.api.notebook", ()),
    ("", "", "irscope.analysis.checks.results", ("Report", "Checked", "CheckOutcome")),
    ("", "", "irscope.analysis.checks.subject", ("Breach",)),
    ("", "", "irscope.render.reproduction.program", ("Reproduction",)),
    ("", "", "irscope.analysis.resources", ("table",)),
    ("", "", "irscope.store.file", ("load", "save")),
    (
        "",
        "",
        "irscope.analysis.diff.captures",
        ("Comparison", "Change", "StageChange", "LineChange", "PassTime"),
    ),
    ("", "", "irscope.record.programs.in_process", ("Recorded",)),
    ("", "", "irscope.record.programs.listening", ("Listening",)),
    ("irscope.analysis.findings.model", "What is slow, and its fixes.", "irscope.analysis.findings.model", ()),
    ("irscope.verify.verdict", "Whether a launch is right.", "irscope.verify.verdict", ()),
    (
        "irscope.verify.meaning",
        "Whether passes and compiles mean the same.",
        "irscope.verify.meaning",
        ("MeaningVerdict", "PassMeaning", "Difference"),
    ),
    ("", "", "irscope.verify.proof", ("ArgumentsVerdict",)),
    ("", "", "irscope.verify.bits", ("BitsVerdict",)),
    ("", "", "irscope.device.measurement", ("Agreement", "Ratio", "Timing", "Measurement")),
    ("", "", "irscope.ir.locations.model", ("Frame",)),
    (
        "irscope.analysis.diff.texts",
        "How two texts differ.",
        "irscope.analysis.diff.texts",
        ("TextDiff", "DiffEntry"),
    ),
    (
        "irscope.analysis.diff.captures",
        "How two schedules of SASS differ.",
        "irscope.analysis.diff.captures",
        ("ScheduleDiff", "InstructionSchedule"),
    ),
    ("irscope.model.capture", "A capture and its parts.", "irscope.model.capture", ()),
    (
        "irscope.model.evidence",
        "The compiler's log, counters, the operation of each instruction, graphs of TorchInductor.",
        "irscope.model.evidence",
        (),
    ),
    (
        "irscope.model.launch_record",
        "The arguments of a launch, its place in an autotuning, and what the virtual GPU assumed.",
        "irscope.model.launch_record",
        (),
    ),
    ("irscope.model.layout", "The layouts of a capture, with their maps.", "irscope.model.layout", ()),
    ("irscope.plan", "Which passes run.", "irscope.plan", ()),
    ("irscope.target", "What is compiled for.", "irscope.target", ()),
    ("irscope.errors", "All errors are IrscopeErrors.", "irscope.errors", ()),
)
"""(heading, what it is about, module, the names; none for all public ones)."""

Definition = ast.FunctionDef | ast.ClassDef

#         source: a script's path
_ARGUMENT = re.compile(r"^    (?P<name>\w+): (?P<text>.*)$")


def api_page() -> str:
    """docs/api.md."""
    parts = [_HEAD]
    for title, about, module, names in SECTIONS:
        if title:
            parts.append(f"## {title}\n\n{about}\n")
        body = ast.parse(MODULES[module.removeprefix("irscope.")].read_text("utf-8")).body
        public = {node.name: node for node in body if isinstance(node, Definition) and not node.name.startswith("_")}
        for name in names or public:
            parts.append(_entry(public[name]))
    return "\n".join(parts)


def _entry(node: Definition) -> str:
    if isinstance(node, ast.FunctionDef):
        return f"### {node.name}\n\n```python\n{_signature(node, 100)}\n```\n\n{_prose(node)}"
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    lines = [f"### class `{node.name}{f'({bases})' if bases else ''}`", "", _prose(node)]
    lines += [*_fields(node), *_methods(node)]
    return "\n".join(lines).rstrip() + "\n"


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for number, statement in enumerate(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        following = node.body[number + 1] if number + 1 < len(node.body) else None
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        about = f": {_joined(str(following.value.value))}" if is_text else ""  # type: ignore[union-attr]
        default = "" if statement.value is None else f" = {_default(statement.value)}"
        yield f"- `{statement.target.id}: {ast.unparse(statement.annotation)}{default}`{about}"
    if any(isinstance(statement, ast.AnnAssign) for statement in node.body):
        yield ""


def _default(value: ast.expr) -> str:
    text = ast.unparse(value)
    return "…" if "field(" in text else text


def _methods(node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            marks = {ast.unparse(mark) for mark in method.decorator_list}
            shown = f"{method.name}: {_returned(method)}" if "property" in marks else _signature(method)
            about = ast.get_docstring(method)
            yield f"- `{shown}`" + (f": {_joined(about)}" if about else "")


def _signature(node: ast.FunctionDef, width: int = 1000) -> str:
    own = node.args
    positional = [*own.posonlyargs, *own.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(own.defaults)) + [*own.defaults]
    rows = [_argument(one, default) for one, default in zip(positional, defaults, strict=True) if one.arg != "self"]
    rows += [f"*{own.vararg.arg}"] if own.vararg else ["*"] if own.kwonlyargs else []
    rows += [_argument(one, default) for one, default in zip(own.kwonlyargs, own.kw_defaults, strict=True)]
    line = f"{node.name}({', '.join(rows)}) -> {_returned(node)}"
    if len(line) <= width:
        return line
    return "\n".join([f"{node.name}(", *(f"    {row}," for row in rows), f") -> {_returned(node)}"])


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    type_ = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{type_}" + ("" if default is None else f" = {ast.unparse(default)}")


def _returned(node: ast.FunctionDef) -> str:
    text = ast.unparse(node.returns).strip("'") if node.returns else "None"
    is_context = any("contextmanager" in ast.unparse(mark) for mark in node.decorator_list)
    return re.sub(r"^(Iterator|Generator)", "AbstractContextManager", text) if is_context else text


def _prose(node: Definition) -> str:
    """A docstring as Markdown: `Args:` becomes a list."""
    lines = inspect.cleandoc(ast.get_docstring(node) or "").splitlines()
    result: list[str] = []
    in_arguments = False
    for line in lines:
        if line == "Args:":
            in_arguments = True
            result += ["Arguments:", ""]
        elif in_arguments and (match := _ARGUMENT.match(line)):
            result.append(f"- `{match['name']}`: {match['text']}")
        elif in_arguments and line.startswith("        "):
            result[-1] += f" {line.strip()}"
        else:
            in_arguments = in_arguments and not line
            result.append(line)
    return "\n".join(result).rstrip() + "\n"


def _joined(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split())


def house() -> str:
    """The rooms and the arrows of `tests/test_borders.py` as a Mermaid graph, without arrows that others imply."""
    below = {room: {*names.split()} for room, names in ROOMS.items()}
    for room in below:
        if room.startswith("record."):
            below[room] |= {"record"}
    arrows: list[str] = []
    for room, names in below.items():
        implied = {far for near in names for far in _reached(near, below)}
        arrows += [f"  {_node(room)} --> {_node(name)}" for name in sorted(names - implied)]
    rooms = [f'  {_node(room)}["<b>{room}</b><br/>{_about(room)}"]' for room in below]
    return "\n".join(["```mermaid", "graph BT", *rooms, *arrows, "```"])


def _node(room: str) -> str:
    return room.replace(".", "_")


def _reached(room: str, below: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*below[room]]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += below[name]
    return found


def _about(room: str) -> str:
    """The first sentence of a room's docstring."""
    text = ast.get_docstring(ast.parse(MODULES[room].read_text("utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".").replace('"', "'").replace("`", "")


def with_house(page: str) -> str:
    """A page with the drawing between its marks."""
    start, end = "<!-- packages -->\n", "<!-- end of packages -->"
    before, _, rest = page.partition(start)
    return f"{before}{start}{house()}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    API.write_text(api_page(), "utf-8")
    ARCHITECTURE.write_text(with_house(ARCHITECTURE.read_text("utf-8")), "utf-8")
    for path in NOTEBOOKS:
        path.write_text(notebook(path.with_suffix(".md")), "utf-8")
