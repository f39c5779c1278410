"""The syntax of a line in each language: values, labels, aliases, symbols, and the values it defines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from irscope.ir.asm.operands import Access
from irscope.ir.mlir.tokens import ALIAS, STRING
from irscope.model.capture import StageKind

VALUE = "\x01"
"""The placeholder of a value (an SSA value, a register) in a template."""
LABEL = "\x02"
"""The placeholder of a block label in a template."""

_STRING = re.compile(STRING)
# '@matmul'   '@"quoted name"'
SYMBOL = re.compile(r'@(?:"[^"\n]*"|[\w$.-]+)')
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
    access: Access | None = None
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


_PTX_NO_RESULT = frozenset((
    "st", "red", "bra", "brx", "ret", "exit", "trap", "bar", "barrier", "membar", "fence", "cp", "prefetch",
    "prefetchu", "mbarrier", "wgmma", "call", "stmatrix", "setmaxnreg", "griddepcontrol", "nanosleep", "pragma",
))  # fmt: skip
_MACHINE_CODE = ("sass", "amdgcn")


def _registers_of(template: str, kind: StageKind) -> Access | None:
    """The registers that a line of machine code reads and writes; None if it is no instruction."""
    # Imported where they are needed: most texts are none.
    if kind == "sass":
        from irscope.ir.asm.sass_opcodes import sass_access

        return sass_access(template)
    from irscope.ir.asm.amdgcn_opcodes import amdgcn_access

    return amdgcn_access(template)


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
    base = name.partition(".")[0]
    if base in _PTX_NO_RESULT or kind in _MACHINE_CODE:
        return name, (), False
    destination = _DESTINATION.match(template, mnemonic.end())
    if destination is None:
        return name, (), False
    first = sum(1 for hole in holes if hole < destination.start())
    count = sum(1 for hole in holes if destination.start() <= hole < destination.end())
    return name, tuple(range(first, first + count)), False
