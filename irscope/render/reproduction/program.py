"""One Python file that compiles a capture again with Triton alone, also from an edited stage."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, cast

from irscope.errors import RecordingError
from irscope.ir.mlir.tokens import split_commas
from irscope.model.capture import Capture, Launch, PassSnapshot
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.render.reproduction.needed import NeededSource, Piece, needed_source

_FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
_DTYPE = re.compile(r"(?:u?int\d+|fp8\w+|void)$")
_ELEMENT = re.compile(r"\[([0-9]{1,9})\]")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NAMESPACES = {
    "TensorMemoryLayout": "gl.nvidia.blackwell",
    "TensorMemoryScalesLayout": "gl.nvidia.blackwell",
    "AMDMFMALayout": "gl.amd",
    "AMDWMMALayout": "gl.amd",
}

_MOST_TUPLES = 100

# What the backend sets by itself: given to it, they would be given twice.
_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")


class NotExpressible(Exception):
    """A recorded value that no Python expression makes again; its text says which, and why."""


def _signature(launch: Launch) -> dict[str, str]:
    """Parameter → expression of its type; raises NotExpressible."""
    for name, text in launch.signature:
        if text.count("(") > _MOST_TUPLES:
            raise NotExpressible(f"the type of {name} has more than {_MOST_TUPLES} tuples")
    return {quoted(name): _type(text) for name, text in launch.signature}


def _type(text: str) -> str:
    # (i32, constexpr, (*fp16, i64))
    if not text.startswith("("):
        return quoted(text)
    return _tuple(_type(item) for item in _items_of(text))


def _items_of(text: str) -> list[str]:
    return [item for item in split_commas(text[1:-1]) if item]


def _tuple(items: Iterable[str]) -> str:
    parts = list(items)
    comma = "," if len(parts) == 1 else ""
    return f"({', '.join(parts)}{comma})"


def quoted(text: str) -> str:
    """A text as a Python literal, in double quotes where it needs no escape."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def _key(path: str) -> str:
    """`"BLOCK"`, and of an element `("sizes", 0)`."""
    name, bracket, _ = path.partition("[")
    if not bracket:
        return quoted(path)
    return f"({quoted(name)}, {', '.join(str(int(index)) for index in _ELEMENT.findall(path))})"


def _functions_among_constants(launch: Launch) -> tuple[str, ...]:
    return tuple(text for _, text in launch.constants if _is_function(text))


def _is_function(text: str) -> bool:
    words = text.split(".")
    return len(words) > 1 and all(word.isidentifier() for word in words) and not text.startswith("triton.language.")


def _constant(path: str, text: str, functions: Mapping[str, str]) -> str:
    if text in functions:
        return functions[text]
    try:
        tree = ast.parse(text, mode="eval")
        return ast.unparse(_AsWritten().visit(tree).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, NotExpressible) as error:
        raise NotExpressible(f"the constant {path} was {text}, which is no Python expression") from error


_LITERALS = (
    ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Load, ast.UnaryOp, ast.USub, ast.UAdd,
)  # fmt: skip


class _AsWritten(ast.NodeTransformer):
    """A printed value as the expression that makes it: fp16, inf, constexpr[4], BlockedLayout(...)."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _LITERALS):
            raise NotExpressible(ast.unparse(node))
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = node.id
        if name in ("inf", "nan"):
            return ast.parse(f'float("{name}")', mode="eval").body
        if name in _FLOATS or _DTYPE.match(name):
            return ast.parse(f"triton.language.{_FLOATS.get(name, name)}", mode="eval").body
        if name == "int1":
            return ast.parse("triton.language.int1", mode="eval").body
        raise NotExpressible(name)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not ast.unparse(node).startswith("triton.language."):
            raise NotExpressible(ast.unparse(node))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node.value) != "constexpr":
            raise NotExpressible(ast.unparse(node))
        return self.visit(node.slice)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or not node.func.id.endswith("Layout"):
            raise NotExpressible(ast.unparse(node))
        namespace = _NAMESPACES.get(node.func.id, "gl")
        node.func = ast.parse(f"{namespace}.{node.func.id}", mode="eval").body
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [
            ast.keyword(keyword_argument.arg, self.visit(keyword_argument.value)) for keyword_argument in node.keywords
        ]
        return node


def _attributes(launch: Launch) -> dict[str, str]:
    """Key → expression of the attributes of an argument, as Triton takes them."""
    rows: dict[str, str] = {}
    for path, text in launch.attributes:
        pairs: list[str] = []
        for attribute in text.split(", "):
            name, _, value = attribute.partition("=")
            pairs.append(f"[{quoted(name)}, {int(value) if _INTEGER.fullmatch(value) else quoted(value)}]")
        rows[_key(path)] = f"[{', '.join(pairs)}]"
    return rows


def _options(capture: Capture) -> dict[str, str]:
    """Option → expression of its value, all that the backend parses."""
    return {quoted(name): _value(value) for name, value in capture.launch.options if name not in _BACKENDS_OWN}


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return _tuple(map(_value, cast("tuple[Any, ...]", value)))
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return quoted(value) if isinstance(value, str) else repr(value)


def _arguments(launch: Launch, record: LaunchRecord, functions: Mapping[str, str]) -> dict[str, str]:
    """Parameter → expression of an argument like the recorded one; raises NotExpressible."""
    constants = {path: _constant(path, text, functions) for path, text in launch.constants}
    return {name: _argument(name, kind, constants, record) for name, kind in launch.signature}


def _expected_rows(launch: Launch, record: LaunchRecord) -> list[str] | None:
    """Rows (argument, its place, data) of what the launch left, also as it was; None without all of its inputs."""
    tensors = [argument for argument in record.arguments if argument.kind != "scalar"]
    if not any(argument.result for argument in tensors) or not all(argument.data for argument in tensors):
        return None
    places = {name: place for place, (name, _) in enumerate(launch.signature)}
    rows: list[str] = []
    for argument in tensors:
        path = argument.path
        place = (places[path.partition("[")[0]], *map(int, _ELEMENT.findall(path)))
        rows.append(f"({quoted(path)}, {place}, {quoted(argument.result or argument.data)})")
    return rows


def _argument(path: str, kind: str, constants: Mapping[str, str], record: LaunchRecord) -> str:
    if path in constants:
        return constants[path]
    if kind.startswith("("):
        items = enumerate(_items_of(kind))
        return _tuple(_argument(f"{path}[{index}]", item, constants, record) for index, item in items)
    argument = record.argument(path)
    if argument is None:
        raise NotExpressible(f"nothing was recorded of the argument {path}")
    if argument.kind == "scalar":
        return f"float({quoted(argument.value)})" if isinstance(argument.value, str) else repr(argument.value)
    if argument.kind == "descriptor":
        if "Layout" in kind:
            raise NotExpressible(f"{path} is a descriptor with a layout")
        base = _tensor(argument)
        return f"descriptor({base}, {argument.shape}, {argument.strides}, {list(argument.block_shape)})"
    return _tensor(argument)


def _tensor(argument: Argument) -> str:
    row = [quoted(argument.dtype), repr(argument.shape), repr(argument.strides)]
    if argument.storage_offset:
        row.append(f"offset={argument.storage_offset}")
    if argument.storage_bytes is not None:
        row.append(f"storage_bytes={argument.storage_bytes}")
    if argument.data:
        row.append(f"data={quoted(argument.data)}")
    elif argument.least is not None and argument.greatest is not None:
        row.append(f"least={argument.least}, greatest={argument.greatest}")
    return f"tensor({', '.join(row)})"


_DRIVER = """
PATH = {path!r}

with open(PATH, encoding="utf-8", errors="surrogateescape") as file:
    exec(compile(file.read(), PATH, "exec", dont_inherit=True))

{tables}

{target}{code}
compile_kernel()
"""


def python_text(capture: Capture) -> str:
    """The kernel with the functions and constants that it uses, as Python; raises RecordingError without them."""
    needed = _needed(capture)
    return f"{_future_import(capture)}{_sorted_imports(needed.imports)}\n\n{pieces_text(needed)}"


def driver_of(capture: Capture, path: Path) -> str:
    """The program that compiles the text at `path` as the capture's own was, with every pass on.

    Functions stay where that file has them, and locations too.
    """
    try:
        tables, imports = _launch_tables(capture, _needed(capture))
    except NotExpressible as reason:
        raise _refusal(capture, str(reason)) from reason
    lines = ["import gc", "import triton", "from triton.backends.compiler import GPUTarget", *imports]
    code = _compiling_code(capture, "{}")
    return _sorted_imports(lines) + _DRIVER.format(
        path=str(path), tables=tables, target=_target_line(capture), code=code
    )


def _needed(capture: Capture) -> NeededSource:
    needed = needed_source(capture, _functions_among_constants(capture.launch))
    if lacks := [*needed.obstacles, *(f"the capture does not hold {name}" for name in needed.missing)]:
        raise _refusal(capture, "; ".join(dict.fromkeys(lacks)))
    return needed


def _refusal(capture: Capture, why: str) -> RecordingError:
    return RecordingError(
        f"the Python text of {capture!r} cannot be compiled by itself: {why}. Edit its IR, as with --at ttir, or the "
        "script, and record that."
    )


_FROM_IR = ("source", "ttir", "ttgir", "glir", "llir", "ptx", "amdgcn")
_COLUMNS = 116
_NOT_REPRODUCED = {
    "interrupt": "its compile was interrupted: record it again",
    "resources": "the machine had no memory, disk space or descriptors left: record again where there are more",
    "recorder": "irscope itself failed in its compile: report that, with the capture",
    "python": "the script failed, and not the compiler: run the script",
}
_SWITCHES = {
    "llvm-opt": '    os.environ["DISABLE_LLVM_OPT"] = "1"\n',
    "ptxas-opt": "    triton.knobs.nvidia.disable_ptxas_opt = True\n",
}
_DIGEST = re.compile(r"[0-9a-f]{12,}$")
# Three quotes end a raw string; Python reads other ends of lines as \\n, and no control characters.
_NOT_IN_RAW = re.compile(r'"""|[\x00-\x08\x0b-\x1f\x7f]')


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The text of a reproduction, and notes on it."""

    text: str
    way: str
    """`python`, or the stage that it resumes from."""
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def render_reproduction(capture: Capture) -> Reproduction:
    """The file for a capture; raises RecordingError where none can be made."""
    failure = capture.failure
    if failure is not None and failure.kind in _NOT_REPRODUCED:
        raise RecordingError(f"{capture!r} cannot be reproduced: {_NOT_REPRODUCED[failure.kind]}.")
    if "edited" in capture.stages:
        raise RecordingError(
            f"{capture!r} was compiled from an edited text within a stage, where Triton alone cannot "
            "begin. Reproduce the capture that was edited."
        )
    # A pass of LLVM's, and a step of ptxas that is not the whole optimiser.
    steps = [one.label for one in capture.snapshots if one.outcome == "skipped" and _is_tools_own(one)]
    if steps:
        raise RecordingError(
            f"{capture!r} was compiled without {steps[0]}: no file with Triton alone leaves that out. Reproduce it "
            "with irscope's plan."
        )
    stage = next((name for name in _FROM_IR if name in capture.stages), "")
    try:
        needed = needed_source(capture, _functions_among_constants(capture.launch))
        if needed.obstacles:
            raise NotExpressible("; ".join(dict.fromkeys(needed.obstacles)))
        if needed.missing and stage:
            raise NotExpressible(f"the capture does not hold {'; '.join(dict.fromkeys(needed.missing))}")
        return _from_python(capture, needed)
    except NotExpressible as reason:
        if not stage:
            raise RecordingError(
                f"{capture!r} cannot be reproduced: {reason}, and it holds no IR. Record the script again, with its "
                "helpers in files that Python can read."
            ) from reason
        return _from_ir(capture, stage, str(reason))


def _from_python(capture: Capture, needed: NeededSource) -> Reproduction:
    body = pieces_text(needed)
    notes = [f"The capture does not hold {missing}." for missing in dict.fromkeys(needed.missing)]
    if "torch" in needed.other_modules:
        notes.append("It needs torch to compile: the kernel's own text uses it.")
    tables, more_imports = _launch_tables(capture, needed)
    imports = [*needed.imports, *more_imports]
    places = {quoted(name): _place(place) for name, place in needed.places.items()}
    launching, why_not = _launching(capture, needed)
    if why_not:
        notes.append(f"It compiles and does not launch: {why_not}.")
    code = _compiling_code(capture, _rows(places)) + launching
    text = _file(capture, notes, ["import gc", *imports], f"{body}\n\n{tables}\n", code)
    return Reproduction(text, "python", tuple(notes))


def _launch_tables(capture: Capture, needed: NeededSource) -> tuple[str, list[str]]:
    """(signature, constants, attributes and options as code, the imports of that); raises NotExpressible."""
    launch = capture.launch
    tables = [
        ("SIGNATURE", _signature(launch)),
        ("CONSTANTS", {_key(path): _constant(path, text, needed.functions) for path, text in launch.constants}),
        ("ATTRIBUTES", _attributes(launch)),
        ("OPTIONS", _options(capture)),
    ]
    text = "\n\n".join(_table(name, rows) for name, rows in tables)
    is_gluon = launch.language == "gluon"
    imports: list[str] = []
    if is_gluon or "gl." in text:
        imports.append("from triton.experimental.gluon import language as gl")
    if is_gluon:
        imports += [
            "from triton.experimental import gluon",
            "from triton.experimental.gluon._runtime import GluonASTSource",
        ]
    else:
        imports.append("from triton.compiler import ASTSource")
    return text, imports


def _part(name: str, /, **values: object) -> str:
    """A part of the file that is the same for every capture but for some values: `parts/` has each as it is written."""
    return Path(__file__).with_name("parts").joinpath(f"{name}.txt").read_text("utf-8").format(**values)


def _compiling_code(capture: Capture, places: str) -> str:
    """The functions that compile the kernel; `places`: where functions stood, as code."""
    is_gluon = capture.launch.language == "gluon"
    if not _is_name(capture.name):
        raise NotExpressible(f"{capture.name!r} is not a function name")
    return _part("place", places=places) + _part(
        "compile_python",
        name=capture.name,
        jit="gluon.jit" if is_gluon else "triton.jit",
        source="GluonASTSource" if is_gluon else "ASTSource",
    )


def _target_line(capture: Capture) -> str:
    target = capture.target
    arch = str(int(target.arch)) if target.arch.isdecimal() else quoted(target.arch)
    return f"TARGET = GPUTarget({quoted(target.backend)}, {arch}, {target.warp_size})\n"


def _from_ir(capture: Capture, stage: str, reason: str) -> Reproduction:
    text = capture.text(stage)
    notes = (
        f"It resumes from the IR of stage {stage}, not from Python: {reason}. Names of loop variables are not "
        "in that text: later stages may differ in names and debug information.",
    )
    tables = f"{_table('OPTIONS', _options(capture))}\n\nIR = {_literal_text(text)}\n"
    imports = [
        "from triton._C import libtriton",
        "from triton.backends.compiler import Language",
        "from triton.compiler.compiler import make_backend",
    ]
    code = _part(
        "compile_ir",
        name=quoted(capture.name if _is_name(capture.name) else "kernel"),
        stage=quoted(stage),
        language="GLUON" if capture.launch.language == "gluon" else "TRITON",
    )
    code += _part("no_launch", why=quoted("not launched: compiled from IR"))
    return Reproduction(_file(capture, list(notes), imports, tables, code), stage, notes)


def _file(capture: Capture, notes: list[str], imports: list[str], body: str, code: str) -> str:
    target = capture.target
    plan, switches = _plan(capture)
    standard = {
        "import argparse",
        "import base64",
        "import os",
        "import shutil",
        "import sys",
        "import tempfile",
        "import zlib",
    }
    standard |= {"import types"} if plan else set()
    lines = [*imports, "import triton", "from triton.backends.compiler import GPUTarget"]
    lines += ["from triton.compiler.compiler import make_backend"] if plan else []
    standard |= {line for line in lines if line in ("import gc", "import types")}
    others = _sorted_imports(line for line in lines if line not in standard)
    parts = [
        _header(capture, notes),
        _future_import(capture),
        "\n".join(sorted(standard)) + "\n\n",
        _variables(capture),
        others + "\n",
        body,
        f"\n{_target_line(capture)}",
        plan,
        code,
        _part(
            "main",
            title=repr(f"{capture.name} for {target}"),
            version=repr(capture.environment.triton_version),
            release=quoted(f"recorded with Triton {capture.environment.triton_version}; this is"),
            switches="".join(f"    {line}" for line in switches),
            compiled=quoted(f"compiled for {target}"),
        ),
    ]
    return "".join(parts)


def _sorted_imports(lines: Iterable[str]) -> str:
    """Lines of imports, each once, by what they import."""
    return "".join(f"{line}\n" for line in sorted(set(lines), key=lambda line: (line.split()[1], line)))


def _future_import(capture: Capture) -> str:
    """The line that the kernel's file began with, if it did."""
    line = "from __future__ import annotations"
    file = capture.launch.kernel.file
    return f"{line}\n\n" if any(line in source.text for source in capture.sources if source.path == file) else ""


def _header(capture: Capture, notes: list[str]) -> str:
    launch, made = capture.launch, capture.environment
    lines = [
        f"{launch.kernel.name} for {capture.target}, as Triton {made.triton_version} compiled it.",
        "",
        f"Made by irscope {made.irscope_version} of the capture {capture.id}; needs Triton, and torch to launch.",
        "Compiles without a GPU; with one of its target, launches the kernel on random tensors and times it.",
    ]
    if capture.plan:
        lines += ["", f"Passes are switched off: {capture.plan}"]
    if (failure := capture.failure) is not None:
        lines += ["", f"This compile {failure.verdict}: {failure.headline}"]
    for note in notes:
        lines += ["", note]
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    shown = "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text)
    return f'"""{shown}\n"""\n\n'


def _variables(capture: Capture) -> str:
    lines: list[str] = []
    for name, value in capture.environment.variables:
        if _DIGEST.match(value):
            lines.append(f"# {_in_comment(name)} named files, which are not in the capture.\n")
        else:
            lines.append(f"os.environ[{quoted(name)}] = {value!r}\n")
    return "".join([*lines, "\n"]) if lines else ""


def pieces_text(needed: NeededSource) -> str:
    """The statements that a kernel needs, in their order, each with the place that it is from."""
    parts: list[str] = []
    previous = ""
    for piece in needed.pieces:
        if isinstance(piece, Piece):
            file = PurePosixPath(piece.file.replace("\\", "/")).name
            place = f"# {_in_comment(file)}:{piece.line}\n"
            short = "\n" not in piece.text
            gap = "\n" if short and previous == "short" else "\n\n"
            parts.append(f"{gap}{'' if gap == chr(10) else place}{piece.text}\n")
            previous = "short" if short else "long"
        else:
            parts.append(f"{piece}\n")
    return "".join(parts).lstrip("\n")


def _table(name: str, rows: Mapping[str, str]) -> str:
    return f"{name} = {_rows(rows)}"


def _rows(rows: Mapping[str, str]) -> str:
    one_line = "{" + ", ".join(f"{key}: {value}" for key, value in rows.items()) + "}"
    if len(one_line) <= _COLUMNS - 14:
        return one_line
    return "{\n" + "".join(f"    {key}: {value},\n" for key, value in rows.items()) + "}"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _in_comment(text: str) -> str:
    """A text on one line: what would end the comment is escaped."""
    return text if text.isprintable() else repr(text)


def _literal_text(text: str) -> str:
    """A text of many lines as a raw string, which is read as it is, where it can be one."""
    raw = text.isascii() and not _NOT_IN_RAW.search(text) and not text.endswith(("\\", '"'))
    return f'r"""{text}"""' if raw else repr(text)


def _place(place: object) -> str:
    return repr(tuple(getattr(place, name) for name in ("file", "line", "module", "indent")))


def _is_tools_own(snapshot: PassSnapshot) -> bool:
    return snapshot.group == "llvm" or (snapshot.name.startswith("ptxas-") and snapshot.name not in _SWITCHES)


def _plan(capture: Capture) -> tuple[str, list[str]]:
    """(code that leaves passes out, lines that switch them)."""
    skipped = [snapshot for snapshot in capture.passes() if snapshot.outcome == "skipped"]
    if not skipped:
        return "", []
    switches = [_SWITCHES[snapshot.name] for snapshot in skipped if snapshot.name in _SWITCHES]
    rows = ""
    for snapshot in skipped:
        if snapshot.name not in _SWITCHES:
            rows += f"    ({quoted(snapshot.stage)}, {quoted(snapshot.name)}, {snapshot.occurrence}),\n"
    if not rows:
        return "", switches
    return _part("plan", off=f"{{\n{rows}}}"), [*switches, "    leave_passes_out()\n"]


def _launching(capture: Capture, needed: NeededSource) -> tuple[str, str]:
    launch = capture.launch
    if capture.failure is not None:
        return _part("no_launch", why=quoted("not launched: the recorded compile made nothing that runs")), ""
    if launch.record is None or launch.grid is None:
        why = "no launch was recorded"
        return _part("no_launch", why=quoted(f"not launched: {why}")), why
    try:
        rows = _arguments(launch, launch.record, needed.functions)
    except NotExpressible as reason:
        return _part("no_launch", why=quoted(f"not launched: {reason}")), str(reason)
    arguments = "\n".join(f"        {text},  # {_in_comment(name)}" for name, text in rows.items())
    rows = _expected_rows(launch, launch.record)
    result = "the recorded one" if capture.environment.gpu else "the one that irscope computed on the CPU"
    check = _part("no_check")
    if rows is not None:
        check = _part("check", rows="\n".join(f"    {row}," for row in rows), result=quoted(result))
    return _part("launch", grid=launch.grid, arguments=arguments) + check, ""
