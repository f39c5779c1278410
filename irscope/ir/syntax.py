"""The syntax of a line in each language, its effects, and the columns that a text is read into.

Texts are read into columns once (`irscope.ir.columns`): the comparison reads these, and so does the model of MLIR's
operations (`irscope.ir.mlir.model`), which is a view of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from irscope.ir.mlir.operations import intrinsic_info, operation_info
from irscope.ir.mlir.tokens import ALIAS, STRING, AliasTable, attribute_spans, reachable
from irscope.model.capture import StageKind

if TYPE_CHECKING:
    from irscope.ir.asm.operands import RegisterAccess

Ignored = Literal["locations", "names", "attributes"]
"""The differences that a comparison may ignore."""

VALUE = "\x01"
"""The placeholder of a value (an SSA value, a register) in a template."""
LABEL = "\x02"
"""The placeholder of a block label in a template."""

_STRING = re.compile(STRING)
# '@matmul'   '@"quoted name"'
_SYMBOL = re.compile(r'@(?:"[^"\n]*"|[\w$.-]+)')
# A placeholder of either kind.
HOLE = re.compile("[\x01\x02]")


@dataclass(frozen=True, slots=True)
class Syntax:
    """The syntax of names in one language."""

    value: re.Pattern[str]
    label: re.Pattern[str] | None
    """None if labels are values, as in LLVM IR."""
    name: re.Pattern[str]
    """A value or a label."""
    alias: re.Pattern[str] | None = None
    """A use of a definition elsewhere: `#blocked1` in MLIR, `#3` and `!7` in LLVM IR."""
    definition: re.Pattern[str] | None = None
    """A line that defines an alias; groups `name` and `value`."""
    is_virtual: bool = True
    """Whether names of values are arbitrary; those of physical registers are not."""
    has_versions: bool = False
    """Whether a second definition of a name is another value, as in sibling regions or of a physical register."""
    keeps_unknown: bool = False
    """Whether names without a definition match by name alone."""


def _syntax(
    value: str, label: str | None = None, alias: str | None = None, definition: str | None = None, **rules: bool
) -> Syntax:
    return Syntax(
        re.compile(value, re.MULTILINE),
        re.compile(label) if label else None,
        re.compile(f"{value}|{label}" if label else value, re.MULTILINE),
        re.compile(alias) if alias else None,
        re.compile(definition) if definition else None,
        **rules,
    )


_SYNTAXES: dict[StageKind, Syntax] = {
    "mlir": _syntax(
        # %acc_69   %0   %c-1_i32
        r"%[\w$.-]+",
        # ^bb3
        r"\^[\w$.-]+",
        ALIAS.pattern,
        # #blocked = #ttg.blocked<{sizePerThread = [1, 8]}>, or what stripping left of "#loc1 = loc(unknown)"
        r"^(?P<name>[#!][A-Za-z_$][\w$]*) =(?: (?P<value>.*))?$",
        has_versions=True,
        keeps_unknown=True,
    ),
    "llvm": _syntax(
        # %12   %"a name"   and the label "12:"
        r'%(?:"[^"\n]*"|[\w$.-]+)|^(?:[\w$.-]+|"[^"\n]*")(?=:)',
        None,
        # #0   !12   but neither "#dbg_value" nor "!dbg"
        r"[#!]\d+\b",
        # attributes #0 = { nounwind }   !3 = !{i32 1}
        r"^(?:attributes )?(?P<name>[#!]\d+) = (?P<value>.*)$",
        keeps_unknown=True,
    ),
    # %r12   %rd3   %p1, but neither %tid.x nor %clock64     $L__BB0_2
    "ptx": _syntax(r"%(?!clock|envreg|pm\d|reserved)[a-z]+\d+\b(?!\.)", r"\$L\w+"),
    # R12   UR4   P0   UP1   B0             .L_x_3
    "sass": _syntax(r"\b(?:U?[RP]|B)\d+\b", r"\.L_\w+", is_virtual=False, has_versions=True, keeps_unknown=True),
    # v12   s[4:7]   a3                     .LBB0_2
    "amdgcn": _syntax(
        r"\b[vas](?:\d+\b|\[\d+:\d+\])", r"\.L\w+", is_virtual=False, has_versions=True, keeps_unknown=True
    ),
}


def syntax_of(kind: StageKind) -> Syntax:
    """The syntax of names in a language; a kind without text is read as MLIR."""
    return _SYNTAXES.get(kind, _SYNTAXES["mlir"])


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties that all lines with one template share."""

    template: str
    """The line without indentation, each value and label replaced by a placeholder; aliases stay."""
    name: str
    """The operation or mnemonic; "}" at the end of a region, "^" for a label."""
    holes: int
    defines: tuple[int, ...]
    """Indices of the placeholders that define a value or a label."""
    opens: bool
    closes: bool
    is_function: bool
    """Whether a new scope of value names begins here."""
    access: RegisterAccess | None = None
    """The register accesses of an instruction on physical registers. A placeholder may then be several values."""

    @property
    def spans(self) -> tuple[int, ...]:
        """The number of values per placeholder; values without a placeholder follow them."""
        return self.access.spans if self.access is not None else (1,) * self.holes


@lru_cache(maxsize=4096)
def shape_of(template: str, kind: StageKind) -> Shape:
    """Read one template; most of a text's are those of the text before a pass."""
    bare = _STRING.sub('""', template) if '"' in template else template
    holes = [match.start() for match in HOLE.finditer(template)]
    if kind == "mlir":
        name, defines, is_function = _mlir(template, holes)
    elif kind == "llvm":
        name, defines, is_function = _llvm(template, holes)
    else:
        name, defines, is_function = _assembly(template, holes, kind)
    braces = kind not in _MACHINE_CODE
    access = _registers_of(template, kind) if not braces and name and name[0] not in ".^}" else None
    if access is not None:
        defines = access.defines
    return Shape(
        template,
        name,
        len(holes),
        defines,
        braces and bare.endswith("{"),
        braces and bare.startswith("}"),
        is_function,
        access,
    )


# "\1:2 = scf.for …"   "\1, \1 = tt.split …"
_RESULTS = re.compile("\x01(?::\\d+)?(?:, \x01(?::\\d+)?)* = ")
# 'arith.addi \1, \1'   '"tt.reduce"(\1) …'   '} else {'
_OPERATION = re.compile(r'"(?P<quoted>[^"]*)"|(?P<plain>[A-Za-z_][\w.$-]*)')


def _mlir(template: str, holes: list[int]) -> tuple[str, tuple[int, ...], bool]:
    results = _RESULTS.match(template)
    count = template.count(VALUE, 0, results.end()) if results else 0
    defines = list(range(count))
    for index in range(count, len(holes)):
        after = template[holes[index] + 1 : holes[index] + 4]
        if template[holes[index]] == LABEL:
            if holes[index] == 0:
                defines.append(index)
        elif after.startswith((" = ", ": ")):
            # "scf.for \1 = \1 to \1 iter_args(\1 = \1)", "tt.func @f(\1: i32)", "\2(\1: i32):"
            defines.append(index)
    start = results.end() if results else 0
    if template.startswith("}"):
        return "}", tuple(defines), False
    if template.startswith(LABEL):
        return "^", tuple(defines), False
    match = _OPERATION.match(template, start)
    name = (match["quoted"] or match["plain"] or "") if match else ""
    name = "builtin.module" if name == "module" else name
    return name, tuple(defines), name.endswith("func")


# "\1 = tail call fast float @llvm.exp2.f32(float \1)"
_LLVM_FLAGS = frozenset({"tail", "musttail", "notail"})
_LLVM_WORD = re.compile(r"[A-Za-z_][\w.]*")


def _llvm(template: str, holes: list[int]) -> tuple[str, tuple[int, ...], bool]:
    if template.startswith("}"):
        return "}", (), False
    if template.startswith((VALUE + ":", LABEL + ":")):
        return "^", (0,), False
    if template[:1] in "@!$":
        # "@global_smem = external …", "!llvm.module.flags = …", "$name = comdat any"
        return template[0], (), False
    start = template.startswith(VALUE + " = ")
    words = _LLVM_WORD.findall(template[4 if start else 0 :][:80])
    name = next((word for word in words if word not in _LLVM_FLAGS), "")
    if name == "define":
        return name, tuple(range(len(holes))), True
    return name, (0,) if start else (), False


# "@\1 bra \2;"   "@!\1 mov.b32 \1, \1;"   "@!\1UP BRA \2"
_PREDICATE = re.compile("@!?(?:\x01(?:U?P)?|U?PT) *")
# "softmax:"   "amdhsa.target:   amdgcn-amd-amdhsa"
_NAME_LINE = re.compile(r"[\w.$-]+:(?: |$)")
_MNEMONIC = re.compile(r"[A-Za-z_.][\w.]*")
# "{\1, \1}, [\1];"   "\1|\1, \1"   "\1, \1"   "-\1" is no destination.
_DESTINATION = re.compile(" *(?:\\{[^}]*\\}|\x01(?:\\|\x01)?)")


_MACHINE_CODE = ("sass", "amdgcn")


def _registers_of(template: str, kind: StageKind) -> RegisterAccess | None:
    """The registers that a line of machine code reads and writes; None if it is no instruction."""
    # Imported where they are needed: most texts are none.
    if kind == "sass":
        from irscope.ir.asm.sass_opcodes import sass_access

        return sass_access(template)
    from irscope.ir.asm.amdgcn_opcodes import amdgcn_access

    return amdgcn_access(template)


def _has_result(opcode: str) -> bool:
    # Imported where it is needed: most texts are none.
    from irscope.ir.asm.opcodes import ptx_opcode

    return ptx_opcode(opcode).has_result


def _assembly(template: str, holes: list[int], kind: StageKind) -> tuple[str, tuple[int, ...], bool]:
    if template.startswith("}"):
        return "}", (), False
    if template.startswith(LABEL):
        return "^", (0,) if template[1:2] == ":" else (), False
    if _NAME_LINE.match(template):
        return "^", (), False
    predicate = _PREDICATE.match(template)
    start = predicate.end() if predicate else 0
    mnemonic = _MNEMONIC.match(template, start)
    if mnemonic is None:
        return "", (), False
    name = mnemonic[0]
    if name.startswith("."):
        # ".reg", ".param", ".visible .entry softmax("
        return name, (), ".entry" in template or ".func" in template or name == ".type"
    if kind in _MACHINE_CODE or not _has_result(name):
        return name, (), False
    destination = _DESTINATION.match(template, mnemonic.end())
    if destination is None:
        return name, (), False
    first = sum(1 for hole in holes if hole < destination.start())
    count = sum(1 for hole in holes if destination.start() <= hole < destination.end())
    return name, tuple(range(first, first + count)), False


NONE, READS, ANY = 0, 1, 2

# ── The side effects of an operation that fix its place in a block: none, reads of memory, or anything else ─────────
# An unknown operation keeps its place. Sources: the operation table, for LLVM IR by the names of its dialect; "PTX
# ISA", of which only arithmetic and moves have none.

_STRUCTURED = ("loop", "conditional", "yield")
"""Operations of MLIR that have the effects of what stands in them, and no others."""
_PTX = frozenset((
    "add", "sub", "mul", "mad", "fma", "div", "rem", "abs", "neg", "min", "max", "and", "or", "xor", "not", "shl",
    "shr", "cvt", "cvta", "setp", "selp", "set", "slct", "ex2", "lg2", "rcp", "sqrt",
    "rsqrt", "sin", "cos", "tanh", "prmt", "bfe", "bfi", "bfind", "lop3", "shf", "popc", "clz", "brev", "mul24",
    "mad24", "copysign", "mov",
))  # fmt: skip
_CARRY = "cc"
"""The modifier of an addition that writes the carry flag."""
_LOAD_MODIFIERS = frozenset({"global", "shared", "shared::cta", "param", "const", "local", "nc", "weak"})
_ORDERED = ("volatile", "atomic", "isVolatile = true")
_CLOCKS = ("%clock", "%globaltimer", "%pm", "%reserved")


@lru_cache(maxsize=1 << 14)
def effect_of(shape: Shape, kind: StageKind) -> int:
    """The effect of an operation itself, without its regions; labels and ends of regions keep their places."""
    name = shape.name
    if not name or name in ("^", "}"):
        return ANY
    if shape.is_function:
        return NONE
    if kind == "mlir":
        return _of_mlir(name, shape.template)
    if kind == "llvm":
        return _of_llvm(name, shape.template)
    return _of_ptx(name, shape.template) if kind == "ptx" else ANY


def _of_mlir(name: str, template: str) -> int:
    info = operation_info(name)
    if info is None:
        return ANY
    if info.kind in _STRUCTURED or (info.is_pure and info.kind != "module"):
        return NONE
    if info.kind == "load" and all(effect.kind == "reads" for effect in info.effects):
        return ANY if _is_ordered(template) else READS
    # An immutable copy.
    is_copy = info.kind == "allocation" and info.has_effect("allocates", "shared")
    return NONE if is_copy and "mutable" not in template else ANY


def _of_llvm(name: str, template: str) -> int:
    if name == "load":
        return ANY if _is_ordered(template) else READS
    if name != "call":
        info = operation_info(f"llvm.{name}")
        return NONE if name == "phi" or (info is not None and info.is_pure) else ANY
    if " asm " in template:
        return ANY if "sideeffect" in template else NONE
    info = intrinsic_info(template.partition("@llvm.")[2].partition("(")[0])
    return NONE if info is not None and info.is_pure else ANY


def _of_ptx(name: str, template: str) -> int:
    base, *modifiers = name.split(".")
    if base in _PTX and _CARRY not in modifiers:
        return ANY if any(clock in template for clock in _CLOCKS) else NONE
    is_plain = base == "ld" and all(map(_is_plain_modifier, modifiers))
    return READS if is_plain else ANY


def _is_plain_modifier(word: str) -> bool:
    is_type = word[:1] in ("v", "b", "u", "s", "f") and word[1:].isdecimal()
    return is_type or word in _LOAD_MODIFIERS or word.startswith(("L1::", "L2::"))


def _is_ordered(template: str) -> bool:
    return any(word in template for word in _ORDERED)


# ── Alias definitions of a text (`#blocked = …`, `attributes #0 = …`), and keys of lines with aliases resolved ──────

# ".reg .b32 %r<108>;": the number of declared registers depends on numbering alone.
_REGISTER_COUNT = re.compile(r"<\d+>")


@dataclass(frozen=True, slots=True)
class Definition:
    """A line that defines an alias of an attribute, a type or a location."""

    name: str
    """With its sign: `#blocked1`."""
    value: str
    line: str
    number: int
    """Index of the line, as the reader counts."""


def split_definitions(lines: list[str], syntax: Syntax) -> tuple[list[Definition], list[Definition], list[int]]:
    """The definitions before the first other line, those behind it, and the indices of the other lines."""
    if syntax.definition is None:
        return [], [], list(range(len(lines)))
    head: list[Definition] = []
    tail: list[Definition] = []
    rest: list[int] = []
    for number, line in enumerate(lines):
        match = syntax.definition.match(line) if line[0] in "#!a" else None
        if match is None:
            rest.append(number)
            continue
        definition = Definition(match["name"], match["value"] or "", line, number)
        (tail if rest else head).append(definition)
    return head, tail, rest


class Resolver:
    """Resolves the aliases of a text, and computes the keys of its lines."""

    def __init__(self, kind: StageKind, definitions: Iterable[Definition], ignore: frozenset[Ignored]) -> None:
        self._alias = syntax_of(kind).alias
        self._kind: StageKind = kind
        self._values = {definition.name: definition.value for definition in definitions}
        self._table = None if self._alias is None else AliasTable(self._values, self._alias)
        self._named: set[str] = set()
        self._without_names = "names" in ignore
        self._without_attributes = "attributes" in ignore

    def key(self, shape: Shape) -> int:
        """The key of all lines of one shape: equal if only names differ."""
        template = shape.template
        if self._kind == "ptx" and template.startswith(".reg"):
            template = _REGISTER_COUNT.sub("<>", template)
        if self._without_attributes:
            template = _without_attributes(template, self._kind)
        if self._alias is not None and ("#" in template or "!" in template):
            template = self._alias.sub(self._replace, template)
        if self._without_names and "@" in template:
            template = _SYMBOL.sub("@", template)
        return hash(template)

    def _replace(self, match: re.Match[str]) -> str:
        self._named.add(match[0])
        return self.resolve(match[0])

    def resolve(self, name: str) -> str:
        """The definition of an alias with its own aliases resolved; the name itself if it is not defined."""
        return name if self._table is None else self._table.resolve(name)

    def used(self) -> frozenset[str]:
        """The aliases that the keyed shapes use, directly or through other aliases."""
        return frozenset() if self._alias is None else frozenset(reachable(self._named, self._values, self._alias))


# " #3"   ", !range !7"
_LLVM_ATTRIBUTE = re.compile(r" #\d+\b|, ![\w.]+ !\d+\b")


def _without_attributes(template: str, kind: StageKind) -> str:
    """A line without its attribute dictionaries (MLIR) or attribute groups and metadata (LLVM IR)."""
    if kind == "llvm":
        return _LLVM_ATTRIBUTE.sub("", template)
    if kind != "mlir" or "{" not in template:
        return template
    kept: list[str] = []
    done = 0
    for start, end in attribute_spans(template):
        kept.append(template[done:start].removesuffix(" "))
        done = end
    return "".join(kept) + template[done:]


@dataclass(frozen=True, slots=True)
class Body:
    """One side of a comparison; every list has one item per line, unless its description says otherwise."""

    kind: StageKind
    lines: list[str]
    """As they are shown."""
    numbers: list[int]
    """1-based line numbers in the text."""
    head: list[Definition]
    """The alias definitions before the lines."""
    tail: list[Definition]
    """The alias definitions behind the lines."""
    resolver: Resolver
    shapes: list[Shape] = field(default_factory=list[Shape])
    keys: list[int] = field(default_factory=list[int])
    """Of the line alone: its template, aliases resolved."""
    deep_keys: list[int] = field(default_factory=list[int])
    """Of the line and everything its operands are computed from."""
    values: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """The values in the line's holes, then those of registers it does not name; a value is its index in `names`."""
    uses: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """The values that the line does not define."""
    parents: list[int] = field(default_factory=list[int])
    """The line that opened the region this line stands in; -1 at the top."""
    openers: list[int] = field(default_factory=list[int])
    """For a line that closes a region, the line that opened it; otherwise -1."""
    following: list[list[int]] = field(default_factory=list[list[int]])
    """The lines that may run after it, where its registers are physical ones; otherwise the list is empty."""
    names: list[str] = field(default_factory=list[str])
    """One item per value: how it is written."""
    definers: list[int] = field(default_factory=list[int])
    """One item per value: the first line that defines it; -1 if none does."""

    @property
    def syntax(self) -> Syntax:
        return syntax_of(self.kind)
