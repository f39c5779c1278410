"""A printed MLIR module: operations, blocks, regions and values, with their types, attributes and effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from irscope.ir.mlir.attributes import (
    DEFAULTS,
    ENUMERATIONS,
    AttributeValue,
    Dense,
    Encoding,
    Word,
    parse_attribute,
    read_encoding,
)
from irscope.ir.mlir.forms import Form, argument_types, read_form
from irscope.ir.mlir.operations import (
    TRITON_DIALECTS,
    Effect,
    OperationInfo,
    OperationKind,
    Space,
    opcode_of,
    operation_info,
)
from irscope.ir.mlir.tokens import AliasTable, parameters_of, trailing_location, types_of
from irscope.ir.mlir.types import Type, parse_type, read_types
from irscope.ir.syntax import Body

_UNKNOWN = Type("opaque", "")


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a result of an operation, or an argument of a block."""

    name: str = field(compare=False)
    """As its uses are written: `%0`, `%acc_69#1`. Sibling regions use one name for different values."""
    number: int
    """Unique in the module, unlike the name; the results of one operation `%0:2` share it."""
    index: int = 0
    """Index of the result within `%0:2`, 0-based."""


@dataclass(eq=False, slots=True)
class Block:
    label: str
    """`^bb0`; empty if the block has none."""
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]
    header: str = ""
    """The line that names its arguments: its label's, or the one that opens the region."""
    line: int = 0
    """1-based line of the header; 0 if it has none."""


@dataclass(eq=False, slots=True)
class Region:
    """The blocks between two braces."""

    blocks: tuple[Block, ...]


class Operation:
    """One operation of any dialect, known to irscope or not; all that is not said here is read where it is asked."""

    __slots__ = (
        "_first", "_last", "_module", "_operands", "_written", "lines", "name", "regions", "results", "successors",
    )  # fmt: skip

    name: str
    """`tt.load`; empty if the text could not be read."""
    results: tuple[Value, ...]
    successors: tuple[str, ...]
    """Labels of the blocks it may branch to."""
    regions: tuple[Region, ...]
    lines: tuple[int, ...]
    """1-based numbers of its own lines: those that open, separate and close its regions, not the lines within them."""

    def __init__(
        self,
        module: MlirModule,
        name: str,
        results: tuple[Value, ...],
        operands: tuple[Value, ...],
        successors: tuple[str, ...],
        regions: tuple[Region, ...],
        lines: list[int],
        written: int,
    ) -> None:
        """`lines`: those of the module's body; the first `written` hold its operands, in the order of the text."""
        self._module = module
        self.name = name
        self.results = results
        self._operands = operands
        self.successors = successors
        self.regions = regions
        self._first, self._last, self._written = lines[0], lines[-1], written
        numbers = module.body.numbers
        self.lines = tuple([numbers[line] for line in lines])

    # ── what it is ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def info(self) -> OperationInfo | None:
        """Its row of the operation table; None for one that the table does not know."""
        return operation_info(self.name)

    @property
    def kind(self) -> OperationKind | None:
        """Its kind: a load, a dot, a barrier, …; None for one that the table does not know."""
        info = operation_info(self.name)
        return info.kind if info is not None else None

    @property
    def loops(self) -> int:
        """The number of loops around it."""
        return self._module.loops_around[self]

    @property
    def is_of_triton(self) -> bool:
        return self.name.partition(".")[0] in TRITON_DIALECTS

    @property
    def opcode(self) -> str:
        """The name, without the dialect for Triton's own dialects, the same in every version: `load`, `arith.addi`."""
        return opcode_of(self.name)

    @property
    def is_unknown(self) -> bool:
        """Whether the operation, or the form it is written in, is not in the table."""
        return operation_info(self.name) is None or not self.form.is_read

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Its accesses to memory, each with the space of the memory that the operand names."""
        info = self.info
        if info is None:
            return ()
        return tuple(
            effect if effect.space != "memory" else Effect(effect.kind, self._space_of(effect.operand), effect.operand)
            for effect in info.effects
        )

    @property
    def written(self) -> tuple[Value, ...]:
        info = self.info
        names = [effect.operand for effect in info.effects if effect.kind == "writes"] if info is not None else []
        return tuple([value for name in names for value in self.operand_group(name)])

    def _space_of(self, name: str) -> Space:
        value = self.operand(name)
        return self._module.space_of(self._module.type_of(value)) if value is not None else "memory"

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def operands(self) -> tuple[Value, ...]:
        """As MLIR's generic form numbers them, those passed to successors included."""
        info = operation_info(self.name)
        if info is None or not info.order:
            return self._operands
        given = self._operands
        order = self.form.order
        return tuple([given[place] for place in order]) if len(order) == len(given) else given

    def operand(self, name: str) -> Value | None:
        """The operand of a name of the operation table (`ptr`, `mask`); None if the operation has none such."""
        group = self.operand_group(name)
        return group[0] if group else None

    def operand_group(self, name: str) -> tuple[Value, ...]:
        """The operands of a name, such as the indices of a descriptor load; none if it has none."""
        given = self._operands
        return tuple([given[place] for place in self.form.groups.get(name, ()) if place < len(given)])

    @property
    def branches(self) -> tuple[tuple[str, tuple[Value, ...]], ...]:
        """(label, values passed to its arguments) of each successor."""
        given = self._operands
        passed = [tuple([given[place] for place in one if place < len(given)]) for one in self.form.branches]
        return tuple(zip(self.successors, passed, strict=False))

    @property
    def result_types(self) -> tuple[Type, ...]:
        """The type of each result; opaque where the text does not state it."""
        resolve = self._module.resolve_type
        types = [resolve(text) for text in self.form.results[: len(self.results)]]
        return (*types, *[_UNKNOWN] * (len(self.results) - len(types)))

    @property
    def operand_types(self) -> tuple[Type, ...]:
        """The type of each operand: that of its definition, or what the operation itself states if there is none."""
        types = [self._module.type_of(value) for value in self.operands]
        inputs = self.form.inputs
        if _UNKNOWN in types and len(inputs) == len(types):
            stated = [self._module.resolve_type(inputs[place]) for place in self.form.order]
            types = [known if known is not _UNKNOWN else own for known, own in zip(types, stated, strict=True)]
        return tuple(types)

    @property
    def carried(self) -> tuple[tuple[Value, Value], ...]:
        """(argument, first value) of each loop-carried value of `scf.for` and `scf.while`."""
        if self.name not in ("scf.for", "scf.while") or not self.regions or not self.regions[0].blocks:
            return ()
        skipped = 1 if self.name == "scf.for" else 0
        first = self.operand_group("initArgs" if skipped else "inits")
        return tuple(zip(self.regions[0].blocks[0].arguments[skipped:], first, strict=False))

    # ── attributes ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def attribute_texts(self) -> Mapping[str, str]:
        """Attribute → its text as written, properties included; that of a unit is empty."""
        return self.form.attributes

    def attribute(self, name: str) -> AttributeValue | None:
        """The value of an attribute: what the text states, or the default of the table; None without either.

        An attribute of an enumeration is a word in every form of the text.
        """
        text = self.form.attributes.get(name)
        if text is None:
            text = DEFAULTS.get(f"{self.name}:{name}", DEFAULTS.get(name))
            if text is None:
                return None
        words = ENUMERATIONS.get(f"{self.name}:{name}") or ENUMERATIONS.get(name)
        if words and text in words:
            # "tf32" is a word here, and a type elsewhere.
            return Word(text)
        value = parse_attribute(self._module.resolve(text))
        if words and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
            return Word(words[value])
        return Word(value) if words and isinstance(value, str) else value

    @property
    def constant(self) -> int | float | bool | None:
        """The number that a constant is everywhere; None for other operations, and for elements that differ."""
        if self.kind != "constant":
            return None
        value = self.attribute("value")
        if isinstance(value, Dense):
            return value.values[0] if value.is_splat else None
        return value if isinstance(value, int | float) else None

    @property
    def symbol(self) -> str:
        """The name of a function or global, or of the function that a call names; empty for other operations."""
        value = self.attribute("callee" if self.kind == "call" else "sym_name")
        return value if isinstance(value, str) else ""

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def form(self) -> Form:
        """What its text states, as the operation table has it written."""
        body = self._module.body
        shapes = body.shapes
        first, last = self._first, self._last
        if self._written == 1:
            head = shapes[first].template
        else:
            head = "\n".join([shapes[line].template for line in range(first, first + self._written)])
        end = shapes[last].template if self.regions and last != first else ""
        return read_form(self.name, head, end, len(self.results))

    @property
    def first_line(self) -> int:
        return self.lines[0]

    @property
    def text(self) -> str:
        """Its first line (all its lines if it has no region), without indentation and location."""
        lines = self._module.body.lines
        first = self._first
        return "\n".join([lines[line].strip() for line in range(first, first + self._written)])

    @property
    def closing(self) -> str:
        """The line that ends its last region: `}) {axis = 1 : i32} : (i32) -> i32`; empty if it has no region."""
        return self._module.body.lines[self._last].strip() if self.regions and self._last != self._first else ""

    @property
    def location(self) -> str:
        """The text within `loc(…)`; empty if there is none."""
        return trailing_location(self._module.raw_lines[self.lines[-1] - 1].strip()) or ""

    @property
    def types(self) -> str:
        """The types of its operands and results, as written behind the last colon; empty if there are none."""
        end = self.closing
        return types_of(end if " : " in end else self.text)

    @property
    def layout_types(self) -> tuple[Type, ...]:
        """Every type with a layout in its first and its closing line, in order."""
        own = f"{self.text} {self.closing}"
        return tuple(read_types(own.partition(" = ")[2] if self.results else own)) if "<" in own else ()

    # ── what stands in it ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def parameters(self) -> tuple[tuple[Value, str, str], ...]:
        """(argument, type, attributes) of each parameter of a function in the custom form."""
        blocks = [block for region in self.regions[:1] for block in region.blocks[:1]]
        written = parameters_of(self.text)
        return tuple((one, *written[one.name]) for block in blocks for one in block.arguments if one.name in written)

    @property
    def partition_warps(self) -> tuple[int | None, ...]:
        """The number of warps of each region of a warp specialisation, as its header states it."""
        headers = [region.blocks[0].header if region.blocks else "" for region in self.regions]
        counts = [header.rpartition("num_warps(")[2].partition(")")[0] for header in headers]
        return tuple([int(count) if count.isdecimal() and len(count) < 5 else None for count in counts])

    @property
    def children(self) -> tuple[Operation, ...]:
        """The operations of its regions, without those nested in them."""
        return tuple([one for region in self.regions for block in region.blocks for one in block.operations])

    def walk(self) -> Iterator[Operation]:
        """This operation and all nested ones, in preorder."""
        # An explicit stack: a hostile text may nest deeper than Python's own stack allows.
        waiting: list[Operation] = [self]
        while waiting:
            operation = waiting.pop()
            yield operation
            if operation.regions:
                waiting.extend(reversed(operation.children))

    def __repr__(self) -> str:
        return f"<{self.name or 'unreadable operation'} at line {self.first_line}>"


class MlirModule:
    operations: tuple[Operation, ...] = ()
    """The top-level ones; usually `module` alone."""
    kernel: Operation | None = None
    """The function that is launched: the public one, else the first; None if there is no function."""

    def __init__(self, text: str, body: Body, aliases: Mapping[str, str]) -> None:
        """`body`: the lines of the text; `aliases`: alias with its sign → its definition."""
        self.body = body
        self.aliases = aliases
        """`#blocked` -> `#ttg.blocked<…>`, `#loc3` -> `loc(…)`."""
        self.raw_lines = text.replace("\r", "").split("\n")
        """With the locations."""
        self.owners: dict[int, Operation | Block] = {}
        """Number of a value → the operation whose result, or the block whose argument, it is."""
        self.parents: dict[int, Operation] = {}
        """Number of an argument → the operation that its block is in."""
        self._table = AliasTable(aliases)
        self._types = {name for name in aliases if name[0] == "!"}
        self._argument_types: dict[int, dict[int, Type]] = {}

    def close(self, operations: tuple[Operation, ...]) -> None:
        """Take the top-level operations: the module is complete."""
        self.operations = operations
        functions = [one for one in self.walk() if one.kind == "function" and one.regions]
        public = (one for one in functions if one.attribute("sym_visibility") == "public")
        self.kernel = next(public, functions[0] if functions else None)

    def walk(self) -> Iterator[Operation]:
        for operation in self.operations:
            yield from operation.walk()

    @cached_property
    def loops_around(self) -> Mapping[Operation, int]:
        found: dict[Operation, int] = {}
        waiting = [(operation, 0) for operation in self.operations]
        while waiting:
            operation, loops = waiting.pop()
            found[operation] = loops
            inner = loops + (operation.kind == "loop")
            waiting += [(one, inner) for one in operation.children]
        return found

    def definition(self, value: Value) -> Operation | None:
        """The operation whose result, or whose block's argument, a value is; None if there is none."""
        owner = self.owners.get(value.number)
        return owner if isinstance(owner, Operation) else self.parents.get(value.number)

    def maker_of(self, value: Value) -> Operation | None:
        """The operation whose result a value is; None for the argument of a block."""
        owner = self.owners.get(value.number)
        return owner if isinstance(owner, Operation) else None

    @cached_property
    def users(self) -> Mapping[Value, Sequence[Operation]]:
        """Value → the operations that read it, in the order of the text."""
        found: dict[Value, list[Operation]] = {}
        for operation in self.walk():
            for value in dict.fromkeys(operation.operands):
                found.setdefault(value, []).append(operation)
        return found

    def type_of(self, value: Value) -> Type:
        """The type of a value; opaque if the text does not state it."""
        owner = self.owners.get(value.number)
        if isinstance(owner, Operation):
            places = [place for place, one in enumerate(owner.results) if one == value]
            return owner.result_types[places[0]] if places else _UNKNOWN
        if owner is None:
            return _UNKNOWN
        known = self._argument_types.get(id(owner))
        if known is None:
            known = self._argument_types[id(owner)] = self._types_of(owner, self.parents.get(value.number))
        return known.get(value.number, _UNKNOWN)

    def _types_of(self, block: Block, parent: Operation | None) -> dict[int, Type]:
        texts = ()
        if parent is not None and not block.label:
            texts = parent.form.arguments
        if len(texts) != len(block.arguments):
            texts = argument_types(block.header, tuple(one.name for one in block.arguments))
        pairs = zip(block.arguments, texts, strict=False)
        return {argument.number: self.resolve_type(text) for argument, text in pairs}

    def option(self, name: str) -> AttributeValue | None:
        """An option of the compile that the module states: `num-warps`, `num-ctas`, `threads-per-warp`, `target`."""
        return self.operations[0].attribute(f"ttg.{name}") if self.operations else None

    def resolve(self, text: str) -> str:
        """The text with its attribute and type aliases replaced by their definitions."""
        return self._table.expand(text)

    def resolve_type(self, text: str) -> Type:
        """Read a type with its type aliases resolved; aliases of encodings stay."""
        if self._types and text in self._types:
            text = self._table.resolve(text)
        return parse_type(text)

    def encoding_of(self, kind: Type) -> Encoding | None:
        """The layout of a tensor or memory descriptor, its aliases resolved; None for a type without one."""
        return _encoding(self.resolve(kind.encoding)) if kind.encoding else None

    def space_of(self, kind: Type) -> Space:
        """The memory that a pointer or memory descriptor points to; `memory` if its type does not tell."""
        if kind.form == "memdesc":
            return "tensor" if "tensor_memory" in self.resolve(kind.space) else "shared"
        element = kind if kind.form == "pointer" else kind.element
        number = element.space if element is not None and element.form == "pointer" else ""
        return _ADDRESS_SPACES.get(number, "memory")

    @property
    def unknown(self) -> Counter[str]:
        """How many operations of each name the table does not know, or writes in another form."""
        return Counter(operation.name for operation in self.walk() if operation.is_unknown)


_ADDRESS_SPACES: dict[str, Space] = {
    "1": "global", "3": "shared", "4": "constant", "5": "local", "6": "tensor", "7": "global", "8": "global",
}  # fmt: skip


@lru_cache(maxsize=1024)
def _encoding(text: str) -> Encoding:
    return read_encoding(" ".join(text.split()))
