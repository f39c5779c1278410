"""LLVM IR as graphs are made of it: its dataflow, and its functions as the readers of assembly give theirs."""

from __future__ import annotations

import re

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Role, Scope
from irscope.ir.asm.instructions import Function, Instruction, Label
from irscope.ir.body.reader import Body, read_body
from irscope.ir.locations.model import text_lines

_SYMBOL = re.compile(r'@(?:"([^"]*)"|([\w.$-]+))\(')
# call void asm sideeffect "@$2 st.global.b32 [ $1 + 0 ], { $0 };", "r,l,b"(
_ASM = re.compile(r'\basm (?:\w+ ){0,4}"(?P<text>[^"]*)"')
# %12 = load <4 x float>, ptr addrspace(1) %11      %9 = add nsw i32 %8, 1      %14 = icmp slt i32 %1, %2
_TYPE = re.compile(
    r"(?P<type><\d[^>]*>|\{ [^}]*\}|ptr addrspace\(\d+\)|ptr\b|[if]\d+\b|bfloat\b|half\b|float\b|double\b)"
)

_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r".*(?:barrier|wait|fence|commit)"), "sync"),
    (re.compile(r".*(?:mma|mfma|\bdot)"), "dot"),
    (re.compile(r".*(?:shared|lds|ldmatrix|stmatrix|ds[._]|addrspace\(3\))"), "shared"),
    (
        re.compile(r".*(?:ld\.global|st\.global|cp\.async|buffer\.(?:load|store)|raw\.ptr|atomic|\bload|\bstore)"),
        "memory",
    ),
    (re.compile(r".*(?:shfl|bpermute|permlane|swizzle)"), "reduce"),
    (re.compile(r"(?:br|ret|switch|unreachable)\b"), "control"),
    (re.compile(r"phi\b"), "argument"),
)

# define ptx_kernel void @kernel(ptr addrspace(1) %0) {
_DEFINE = re.compile(r'define .*?@(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))\(')
# 47:                                               ; preds = %0
_BLOCK_LABEL = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+)):')
#   %9 = add i32 %8, 1, !dbg !14        store i32 0, ptr %2
_INSTRUCTION = re.compile(r'  (?:%(?:"[^"]*"|[\w.$-]+) = )?(?:(?:tail|musttail|notail) )?(?P<opcode>[a-z]\w*)\b')
_OPENS = re.compile(r"  switch\b[^\]]*$")


def read_llvm_dataflow(text: str) -> Dataflow:
    """The definitions and uses of an LLVM module. Never raises."""
    body = read_body(text, "llvm", frozenset({"locations"}))
    reader = _Reader(body)
    for line in range(len(body.lines)):
        reader.line(line)
    return reader.flow()


class _Reader:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.nodes: list[Node] = []
        self.scopes: list[Scope] = [Scope(0, -1, "")]
        self.function = self.block = 0
        self.node_of: dict[int, int] = {}

    def line(self, line: int) -> None:
        """Take in one line."""
        shape = self.body.shapes[line]
        number = self.body.numbers[line]
        if shape.name == "define":
            symbol = _SYMBOL.search(self.body.lines[line])
            self.function = self._scope(0, "llvm.func", (symbol[1] or symbol[2]) if symbol else "", number)
            self.block = self._scope(self.function, "^entry", "entry", number)
            for value in self.body.values[line]:
                self._node(line, "", (value,), "argument", "", self.function)
        elif shape.closes:
            self.function = self.block = 0
        elif not self.function:
            return
        elif shape.name == "^":
            label = self.body.lines[line].strip().partition(" ")[0].rstrip(":")
            self.block = self._scope(self.function, "^block", f"block {label}", number)
        elif shape.name[:1].isalpha():
            self._instruction(line)

    def _instruction(self, line: int) -> None:
        shape, text = self.body.shapes[line], self.body.lines[line].strip()
        values = tuple(self.body.values[line][place] for place in shape.defines)
        name = operation_name(shape.name, text)
        qualified = f"{name} addrspace(3)" if shape.name in ("load", "store") and "addrspace(3)" in text else name
        role = llvm_role(qualified)
        converts = shape.name.endswith(("cast", "ext", "trunc", "tofp"))
        kind = _TYPE.search(text, max(text.find(" to "), 0) if converts else 0)
        self._node(line, name, values, role, kind["type"] if kind and values else "", self.block)

    def _node(self, line: int, name: str, values: tuple[int, ...], role: Role, kind: str, region: int) -> None:
        number = len(self.nodes)
        names = tuple(self.body.names[value] for value in values[:1])
        text = self.body.lines[line].strip()
        self.nodes.append(Node(number, name, names, region, self.body.numbers[line], text, kind, role))
        if name:
            self.node_of[line] = number
        for one in values:
            self.node_of.setdefault(-1 - one, number)

    def _scope(self, parent: int, name: str, title: str, line: int) -> int:
        self.scopes.append(Scope(len(self.scopes), parent, name, title, line))
        return len(self.scopes) - 1

    def flow(self) -> Dataflow:
        """The finished graph."""
        edges: list[Edge] = []
        for line, target in self.node_of.items():
            if line < 0:
                continue
            place = 0
            for value in self.body.uses[line]:
                source = self.node_of.get(-1 - value)
                if source is None:
                    continue  # a label, or a value that nothing defines
                kind = self.nodes[source].type
                carried = self.nodes[target].name == "phi" and source >= target
                edges.append(Edge(source, target, self.body.names[value], place, kind, carried))
                place += 1
        return Dataflow(tuple(self.nodes), tuple(edges), tuple(self.scopes))


def operation_name(opcode: str, text: str) -> str:
    """The name of an instruction in a picture: of a call the function, without `llvm.`, or the inline assembly."""
    if opcode != "call":
        return opcode
    assembly = _ASM.search(text)
    if assembly is not None:
        return f"asm {_mnemonic(assembly['text'])}"
    symbol = _SYMBOL.search(text)
    return (symbol[1] or symbol[2]).removeprefix("llvm.") if symbol is not None else opcode


def llvm_role(name: str) -> Role:
    """The role of an instruction, by the name that `operation_name` gives."""
    for pattern, role in _ROLES:
        if pattern.match(name):
            return role
    return "trivial"


def _mnemonic(assembly: str) -> str:
    """The first instruction of inline assembly that is not a move, without its predicate and operands."""
    found = [
        word
        for word in re.split(r"[\s;]+|\\0A|\\09", assembly)
        if re.match(r"[a-z]\w*(?:[.:]+\w+)+$", word) or re.match(r"[sv]_\w+$", word)
    ]
    # A load is preceded by a move that clears its registers.
    return next((word for word in found if not word.startswith("mov.")), found[0] if found else "inline assembly")


def read_llvm_functions(text: str) -> tuple[Function, ...]:
    """Read the functions of a module. Never raises: a line that cannot be read is left out.

    An instruction's opcode is the name of what it calls, where it calls; its operand is its text.
    """
    functions: list[Function] = []
    name = ""
    instructions: list[Instruction] = []
    labels: list[Label] = []
    for number, line in enumerate(text_lines(text), 1):
        define = _DEFINE.match(line)
        if define is not None:
            name, instructions, labels = define["quoted"] or define["name"], [], []
        elif line[:1] == "}" and name:
            functions.append(Function(name, tuple(instructions), tuple(labels)))
            name = ""
        elif name and line[:2] == "  ":
            _read_instruction(line, number, instructions)
        elif name and (label := _BLOCK_LABEL.match(line)) is not None:
            labels.append(Label(label["quoted"] or label["name"], len(instructions)))
    return tuple(functions)


def _read_instruction(line: str, number: int, instructions: list[Instruction]) -> None:
    last = instructions[-1] if instructions else None
    if last is not None and last.opcode == "switch" and _OPENS.match(last.operands[0]):  # its cases, a line each
        whole = f"{last.operands[0]} {line.strip()}"
        instructions[-1] = Instruction("switch", (whole,), line=last.line)
        return
    match = _INSTRUCTION.match(line)
    if match is not None:
        code = line.partition(", !dbg ")[0]
        instructions.append(Instruction(operation_name(match["opcode"], code), (code,), line=number))
