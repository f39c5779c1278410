"""The steps of a reduction: each names the places of a program that it may shrink, and shrinks those chosen.

Whether the result is valid, and still interesting, is decided by a compile.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from irscope.analysis.reduce.model import Edit, EditableProgram, ReductionStep
from irscope.ir.mlir.editable import Op, OpBlock
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.tokens import ALIAS, reachable
from irscope.ir.mlir.types import parse_type
from irscope.ir.reach import reached

_StandIn = Literal["argument", "operand", "constant"]
"""What replaces a result: a new argument of the function; an operand of the operation of the same type; a constant. The
latter two fall back to the first where there is none."""


def _constant(program: EditableProgram, kind: str) -> Op | None:
    """A constant 0 of a type of numbers, or of tensors of them; None for another type."""
    parsed = parse_type(kind)
    is_tensor = parsed.form == "tensor"
    element = parsed.element if is_tensor else parsed
    if element is None or element.form not in ("integer", "index", "float"):
        return None
    is_boolean = element.text == "i1"
    zero = "0.000000e+00" if element.form == "float" else "false" if is_boolean else "0"
    value = f"dense<{zero}> : {kind}" if is_tensor else zero if is_boolean else f"{zero} : {kind}"
    return Op(program.new_key(), "arith.constant", [program.new_value(kind)], properties={"value": value})


def _removable(stand_in: _StandIn, program: EditableProgram) -> Sequence[Edit]:
    """The operations, the last first; terminators and what is replaced by its own kind are not among them."""
    found: list[Edit] = []
    for around, _, block in program.blocks():
        for one in block.operations:
            is_end = one is block.operations[-1] and around.name not in ("builtin.module", "gpu.module")
            if not is_end and not _is_pointless(stand_in, one, program):
                found.append(one.key)
    return found[::-1]


def _is_pointless(stand_in: _StandIn, operation: Op, program: EditableProgram) -> bool:
    if stand_in == "constant":
        return operation.name == "arith.constant" or not operation.results
    if stand_in == "operand":
        kinds = {program.types[value] for value in operation.operands}
        return not any(program.types[value] in kinds for value in operation.results)
    return False


def _remove(stand_in: _StandIn, program: EditableProgram, chosen: frozenset[Edit]) -> None:
    """Leave operations out, with all that is nested in them; another value replaces each result that is used."""
    blocks = list(program.blocks())
    gone = [(one, function) for _, function, block in blocks for one in block.operations if one.key in chosen]
    inside = {one.key for top, _ in gone for one in top.walk()}
    used = Counter(value for one in program.walk() if one.key not in inside for value in one.operands)
    table: dict[int, int] = {}
    made: dict[int, list[Op]] = {}
    # Users first: what replaces a value may be a value that goes too.
    for operation, function in reversed(gone):
        constants = made[operation.key] = []
        for result in operation.results:
            if used[result]:
                table[result] = other = _replacement(stand_in, program, result, operation, function, constants)
                used[other] += other in operation.operands
    for _, _, block in blocks:
        block.operations = [new for one in block.operations for new in made.get(one.key, [one])]
    program.replace_uses(table)


def _replacement(
    stand_in: _StandIn, program: EditableProgram, value: int, operation: Op, function: Op | None, constants: list[Op]
) -> int:
    kind = program.types[value]
    if stand_in == "operand":
        same = [one for one in operation.operands if program.types[one] == kind]
        if same:
            return same[0]
    if stand_in == "constant" and (zero := _constant(program, kind)) is not None:
        constants.append(zero)
        return zero.results[0]
    return program.new_argument(function, kind) if function is not None else value


def _functions(program: EditableProgram) -> Sequence[Edit]:
    every = [one.key for one in program.walk() if one.symbol]
    return every if len(every) > 1 else ()


def _remove_functions(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    names = {one.symbol for one in program.walk() if one.key in chosen and one.symbol}
    calls = {one.key for one in program.walk() if one.properties.get("callee", "") in names}
    _remove("argument", program, chosen | calls)


def _optional_operands(program: EditableProgram) -> Sequence[Edit]:
    """(operation, group of operands) of operations that can have more or fewer, such as the mask of a load."""
    found: list[Edit] = []
    for one in program.walk():
        # What a branch passes on is not optional.
        if not one.successors:
            found += [(one.key, group) for group, size in enumerate(one.segments) if size]
    return found[::-1]


def _remove_operands(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    for one in program.walk():
        sizes = one.segments
        for group in reversed(range(len(sizes))):
            if (one.key, group) in chosen:
                start = sum(sizes[:group])
                del one.operands[start : start + sizes[group]]
                sizes[group] = 0
        if sizes:
            one.segments = sizes


def _remove_passes(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    program.pipeline = program.pipeline.without(frozenset(map(str, chosen)))


def _remove_options(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    program.options = tuple(row for row in program.options if row[0] not in chosen)


def _unused_arguments(program: EditableProgram) -> Sequence[Edit]:
    used = {value for one in program.walk() for value in one.operands}
    return [value for one in program.functions for value in one.arguments[::-1] if value not in used]


def _remove_arguments(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    for function in program.functions:
        places = {place for place, value in enumerate(function.arguments) if value in chosen}
        function.arguments[:] = _without(function.arguments, places)
        for one in program.walk() if places else ():
            if one.properties.get("callee") == function.symbol:
                one.operands = _without(one.operands, places)


def _equal_arguments(program: EditableProgram) -> Iterator[tuple[int, int]]:
    """(an argument, the first one of its type in the function) of each but the first."""
    for function in program.functions:
        first: dict[str, int] = {}
        for value in function.arguments:
            other = first.setdefault(program.types[value], value)
            if other != value:
                yield value, other


def _mergeable_arguments(program: EditableProgram) -> Sequence[Edit]:
    return [value for value, _ in _equal_arguments(program)][::-1]


def _merge_arguments(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    table = {value: other for value, other in _equal_arguments(program) if value in chosen}
    _remove_arguments(program, frozenset(table))
    program.replace_uses(table)


def _without(rows: Sequence[int], gone: set[int]) -> list[int]:
    return [one for index, one in enumerate(rows) if index not in gone]


def _regions(program: EditableProgram) -> Sequence[Edit]:
    """(operation, region) of loops and conditions, outer ones first."""
    found: list[Edit] = []
    for one in program.walk():
        if one.name in ("scf.for", "scf.while", "scf.execute_region"):
            found.append((one.key, 0))
        elif one.name == "scf.if":
            found += [(one.key, number) for number, region in enumerate(one.regions) if region]
    return found


def _open_regions(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    table: dict[int, int] = {}
    for _, _, block in program.blocks():
        block.operations = _opened(block.operations, chosen, table)
    program.replace_uses(table)


def _opened(operations: list[Op], chosen: frozenset[Edit], table: dict[int, int]) -> list[Op]:
    rows: list[Op] = []
    for operation in operations:
        number = next((number for number in (0, 1) if (operation.key, number) in chosen), None)
        inner = None if number is None else _inlined(operation, number, table)
        # What is nested in it may be chosen too.
        rows += [operation] if inner is None else _opened(inner, chosen, table)
    return rows


def _inlined(operation: Op, number: int, table: dict[int, int]) -> list[Op] | None:
    """The operations of a region, of a while loop of both, once; None if one has several blocks.

    The table gets what replaces its values.
    """
    is_while = operation.name == "scf.while"
    regions = operation.regions if is_while else [operation.regions[number]]
    if any(len(region) != 1 for region in regions):
        return None
    given = operation.operands
    if operation.name == "scf.for":
        given = [given[0], *given[3:]]
    rows: list[Op] = []
    for index, (block,) in enumerate(regions):
        table.update(zip(block.arguments, given, strict=False))
        *inner, end = block.operations
        rows += inner
        if index == 0:
            # The first operand of scf.condition is the condition.
            given = end.operands[1:] if is_while else end.operands
    table.update(zip(operation.results, given, strict=False))
    return rows


def _loop_bounds(program: EditableProgram) -> Sequence[Edit]:
    numbers = {
        one.results[0]: one.properties.get("value", "").partition(" : ")[0]
        for one in program.walk()
        if one.name == "arith.constant"
    }
    loops = (one for one in program.walk() if one.name == "scf.for")
    return [one.key for one in loops if [numbers.get(value, "") for value in one.operands[:3]] != ["0", "1", "1"]]


def _set_bounds(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    for _, _, block in program.blocks():
        rows: list[Op] = []
        for operation in block.operations:
            if operation.key in chosen:
                kind = program.types[operation.operands[0]]
                zero, one = _constant(program, kind), _constant(program, kind)
                if zero is not None and one is not None:
                    one.properties["value"] = f"1 : {kind}"
                    operation.operands[:3] = [zero.results[0], one.results[0], one.results[0]]
                    rows += [zero, one]
            rows.append(operation)
        block.operations = rows


def _carried_values(program: EditableProgram) -> Sequence[Edit]:
    """(operation, part, index) of what loops carry and of the results of `scf.if`, the last first."""
    found: list[Edit] = []
    for one in program.walk():
        if one.name in ("scf.for", "scf.if", "scf.while"):
            found += [(one.key, "result", index) for index in range(len(one.results))]
        if one.name == "scf.while":
            found += [(one.key, "carried", index) for index in range(len(one.operands))]
    return found[::-1]


def _remove_carried(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    table: dict[int, int] = {}
    around = {one.key: function for _, function, block in program.blocks() for one in block.operations}
    for one in list(program.walk()):
        results = {index for index in range(len(one.results)) if (one.key, "result", index) in chosen}
        carried = {index for index in range(len(one.operands)) if (one.key, "carried", index) in chosen}
        function = around.get(one.key)
        if function is None or not (results or carried):
            continue
        if one.name == "scf.for":
            block = one.regions[0][0]
            for index in results:
                table[block.arguments[1 + index]] = table[one.results[index]] = one.operands[3 + index]
            block.arguments = _without(block.arguments, {1 + index for index in results})
            one.operands = _without(one.operands, {3 + index for index in results})
            _shorten_end(block, results)
        else:
            values = [one.results[index] for index in results]
            if one.name == "scf.if":
                for block in one.blocks:
                    _shorten_end(block, results)
            else:
                (before, *_), (after, *_) = one.regions
                values += [after.arguments[index] for index in results]
                table.update((before.arguments[index], one.operands[index]) for index in carried)
                one.operands, before.arguments = _without(one.operands, carried), _without(before.arguments, carried)
                after.arguments = _without(after.arguments, results)
                _shorten_end(after, carried)
                _shorten_end(before, {index + 1 for index in results})
            table.update((value, program.new_argument(function, program.types[value])) for value in values)
        one.results = _without(one.results, results)
    program.replace_uses(table)


def _shorten_end(block: OpBlock, gone: set[int]) -> None:
    end = block.operations[-1]
    end.operands = _without(end.operands, gone)


_CONDITIONAL = ("cf.cond_br", "llvm.cond_br")


def _blocks(program: EditableProgram) -> Sequence[Edit]:
    """(function, block), where a function has several."""
    several = [one for one in program.functions if len(one.regions[0]) > 1 and _end(one) is not None]
    return [(one.key, block.key) for one in several for block in one.regions[0]]


def _end(function: Op) -> Op | None:
    ends = (block.operations[-1] for block in function.regions[0] if block.operations)
    return next((one for one in ends if one.kind == "return" and not one.operands), None)


def _leave_one_block(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    """Leave the first chosen block of each function; arguments of the function replace what others computed."""
    table: dict[int, int] = {}
    for function in program.functions:
        region, end = function.regions[0], _end(function)
        block = next((one for one in region if (function.key, one.key) in chosen), None)
        if block is None or end is None:
            continue
        if block.operations[-1].successors:
            block.operations[-1] = end.copy()
        region[:] = [OpBlock(region[0].key, region[0].arguments, block.operations)]
        inner = [one for top in block.operations for one in top.walk()]
        known = {*function.arguments, *(value for one in inner for value in one.results)}
        known.update(value for one in inner for part in one.blocks for value in part.arguments)
        for value in (value for one in inner for value in one.operands):
            if value not in known and value not in table:
                table[value] = program.new_argument(function, program.types[value])
    program.replace_uses(table)


def _branches(program: EditableProgram) -> Sequence[Edit]:
    """(branch, side); a function of several blocks, some of which may not be reached."""
    sides: list[Edit] = [(one.key, side) for one in program.walk() if one.name in _CONDITIONAL for side in (0, 1)]
    return [*sides, *(one.key for one in program.functions if len(one.regions[0]) > 1)]


def _take_sides(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    """Have conditional branches always go to one side; leave out what is not reached then."""
    for one in program.walk():
        side = next((side for side in (0, 1) if (one.key, side) in chosen), None)
        if side is None or one.name not in _CONDITIONAL:
            continue
        start = sum(one.segments[: side + 1])
        one.operands = one.operands[start : start + one.segments[side + 1]]
        one.successors = [one.successors[side]]
        one.name = one.name.replace("cond_br", "br")
        one.properties, one.attributes = {}, {}
    for function in program.functions:
        _tidy(program, function.regions[0])


def _tidy(program: EditableProgram, region: list[OpBlock]) -> None:
    """Leave out blocks of a function that are not reached, and join those that follow one another."""
    following = {block.key: block.operations[-1].successors for block in region if block.operations}
    entered = set(reached([region[0].key], lambda key: following.get(key, ())))
    region[:] = [block for block in region if block.key in entered and block.operations]
    table: dict[int, int] = {}
    while (pair := _followed(region)) is not None:
        block, follower = pair
        branch = block.operations.pop()
        table.update(zip(follower.arguments, branch.operands, strict=False))
        block.operations += follower.operations
        region.remove(follower)
    program.replace_uses(table)


def _followed(region: list[OpBlock]) -> tuple[OpBlock, OpBlock] | None:
    """A block that ends in a branch to another one, to which nothing else branches."""
    counts = Counter(key for block in region for key in block.operations[-1].successors)
    by_key = {block.key: block for block in region[1:]}
    for block in region:
        end = block.operations[-1]
        if end.name in ("cf.br", "llvm.br") and counts[end.successors[0]] == 1:
            follower = by_key.get(end.successors[0])
            if follower is not None and follower is not block:
                return block, follower
    return None


def _block_arguments(program: EditableProgram) -> Sequence[Edit]:
    return [value for one in program.functions for block in one.regions[0][1:] for value in block.arguments][::-1]


def _remove_block_arguments(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    """Leave arguments of blocks out, and what branches pass for them; arguments of the function replace them."""
    table: dict[int, int] = {}
    for function in program.functions:
        gone: dict[int, set[int]] = {}
        for block in function.regions[0][1:]:
            gone[block.key] = {place for place, value in enumerate(block.arguments) if value in chosen}
            for place in gone[block.key]:
                value = block.arguments[place]
                table[value] = program.new_argument(function, program.types[value])
            block.arguments = _without(block.arguments, gone[block.key])
        for block in function.regions[0]:
            if block.operations and block.operations[-1].successors:
                _pass_less(block.operations[-1], gone)
    program.replace_uses(table)


def _pass_less(branch: Op, gone: dict[int, set[int]]) -> None:
    is_conditional = branch.name in _CONDITIONAL
    sizes = branch.segments if is_conditional else [0, len(branch.operands)]
    passed = branch.operands[: sizes[0]]
    start = sizes[0]
    for number, key in enumerate(branch.successors, 1):
        given = _without(branch.operands[start : start + sizes[number]], gone.get(key, set()))
        start += sizes[number]
        passed += given
        sizes[number] = len(given)
    branch.operands = passed
    if is_conditional:
        branch.segments = sizes


# tensor<128x64x…   memdesc<1x128x64x…   and ", 3x128x64>" of a memory descriptor's allocation
_SHAPE = re.compile(r"(?P<head>\b(?:tensor|memdesc|tensordesc)<)(?P<sizes>(?:\d+x)+)")
_ALLOCATED = re.compile(r"(?P<head>, )(?P<sizes>\d+(?:x\d+)+)(?=>)")
# f16   bf16   f8E5M2   i64
_ELEMENT = re.compile(r"(?:(?<=x)|(?<![\w.%#@\"=]))(?:b?f\d+\w*|i\d+)(?![\w.])")
# order = [1, 0]   warpsPerCTA = [4, 1]
_ORDER = re.compile(r"(?:order|warpsPerCTA|sizePerThread) = \[([\d, ]*)\]")
_CASTS = (
    "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.bitcast", "arith.index_cast",
    "fp_to_fp", "bitcast", "convert_layout", "broadcast", "reshape", "expand_dims",
)  # fmt: skip
_LARGEST = 1 << 20


def _rewrite_types(program: EditableProgram, rewritten: Callable[[str], str]) -> None:
    """Change the text of all types, wherever it stands, and leave out casts that do nothing then."""
    program.types = {value: rewritten(text) for value, text in program.types.items()}
    program.aliases = {name: rewritten(text) for name, text in program.aliases.items()}
    for one in program.walk():
        one.properties = {name: rewritten(text) for name, text in one.properties.items()}
        one.attributes = {name: rewritten(text) for name, text in one.attributes.items()}
        # tensor<64xi32>: its end follows from its extent.
        if opcode_of(one.name) == "make_range" and (shape := _SHAPE.match(program.types[one.results[0]])) is not None:
            start = int(one.properties.get("start", "0").partition(" ")[0])
            one.properties["end"] = f"{start + int(shape['sizes'].removesuffix('x'))} : i32"
    table: dict[int, int] = {}
    for _, _, block in program.blocks():
        casts = [one for one in block.operations if opcode_of(one.name) in _CASTS]
        idle = {one.key: one for one in casts if _has_one_type(program, one)}
        table.update((one.results[0], one.operands[0]) for one in idle.values())
        block.operations = [one for one in block.operations if one.key not in idle]
    program.replace_uses(table)


def _has_one_type(program: EditableProgram, cast: Op) -> bool:
    given, made = ([program.types[value] for value in values] for values in (cast.operands, cast.results))
    return len(given) == 1 and given == made


def _pairs(chosen: frozenset[Edit]) -> list[tuple[str, str]]:
    pairs = [edit if isinstance(edit, tuple) else (edit, edit) for edit in chosen]
    return sorted((str(one), str(other)) for one, other in pairs)


def _types_in_use(program: EditableProgram) -> list[str]:
    values = [value for one in program.walk() for value in one.results]
    values += [value for _, _, block in program.blocks() for value in block.arguments]
    return [program.types[value] for value in values]


def _extents(program: EditableProgram) -> Sequence[Edit]:
    """(extent, smaller power of two), the greatest extent first and the least in its place."""
    found: set[int] = set()
    for text in _types_in_use(program):
        for match in (*_SHAPE.finditer(text), *_ALLOCATED.finditer(text)):
            found.update(int(size) for size in match["sizes"].split("x") if size)
    small = sorted((extent for extent in found if extent <= _LARGEST), reverse=True)
    return [(extent, 1 << power) for extent in small for power in range((extent - 1).bit_length())]


def _shrink_extents(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    """Give each chosen extent the least size that is chosen for it, wherever it stands."""
    sizes = dict(sorted(_pairs(chosen), key=lambda pair: -int(pair[1])))

    def shorter(match: re.Match[str]) -> str:
        return match["head"] + "x".join(sizes.get(size, size) for size in match["sizes"].split("x"))

    _rewrite_types(program, lambda text: _ALLOCATED.sub(shorter, _SHAPE.sub(shorter, text)))


def _elements(program: EditableProgram) -> Sequence[Edit]:
    found = dict.fromkeys(kind for text in _types_in_use(program) for kind in _ELEMENT.findall(text))
    return [kind for kind in found if kind not in ("f32", "i32", "i1")]


def _replace_elements(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    names = {name: "i32" if name.startswith("i") else "f32" for name, _ in _pairs(chosen)}
    _rewrite_types(program, lambda text: _ELEMENT.sub(lambda match: names.get(match[0], match[0]), text))


def _layouts(program: EditableProgram) -> Sequence[Edit]:
    """(layout, the one that replaces it), by the names of their aliases."""
    named = reachable((name for text in _types_in_use(program) for name in ALIAS.findall(text)), program.aliases)
    ranks = {name: _rank(text) for name, text in program.aliases.items() if name in named and "<" in text}
    return [(one, other) for one in reversed(ranks) for other in ranks if one != other and ranks[one] == ranks[other]]


def _rank(definition: str) -> int:
    order = _ORDER.search(definition)
    return order[1].count(",") + 1 if order is not None else 0


def _replace_layouts(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    table: dict[str, str] = {}
    for one, other in _pairs(chosen):
        if other not in table:
            table.setdefault(one, other)
    _rewrite_types(program, lambda text: ALIAS.sub(lambda match: table.get(match[0], match[0]), text))


_STRUCTURAL = ("sym_name", "function_type", "operandSegmentSizes", "value", "callee")
"""Properties that an operation cannot do without, or that say what it is."""


def _attributes(program: EditableProgram) -> Sequence[Edit]:
    """(operation or argument, attribute) of attributes that are no properties."""
    found: list[Edit] = [(one.key, name) for one in program.walk() for name in one.attributes]
    arguments = [value for one in program.functions for value in one.arguments]
    return found + [(value, name) for value in arguments for name in program.argument_attributes.get(value, {})]


def _remove_attributes(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    rows = [(one.key, one.attributes) for one in program.walk()]
    for key, entries in (*rows, *program.argument_attributes.items()):
        for name in [name for name in entries if (key, name) in chosen]:
            del entries[name]


def _properties(program: EditableProgram) -> Sequence[Edit]:
    """(operation's name, property): those of one name on all operations of one name."""
    rows = [(one.name, name) for one in program.walk() for name in one.properties if name not in _STRUCTURAL]
    return list(dict.fromkeys(rows))


def _remove_properties(program: EditableProgram, chosen: frozenset[Edit]) -> None:
    for one in program.walk():
        one.properties = {name: text for name, text in one.properties.items() if (one.name, name) not in chosen}


_OPERATIONS = ReductionStep("operations", partial(_removable, "argument"), partial(_remove, "argument"))
_ARGUMENTS = ReductionStep("arguments", _unused_arguments, _remove_arguments)
STEPS: tuple[ReductionStep[EditableProgram], ...] = (
    ReductionStep("passes", lambda program: program.pipeline.running[::-1], _remove_passes),
    ReductionStep("options", lambda program: [name for name, _ in program.options], _remove_options),
    ReductionStep("functions", _functions, _remove_functions),
    ReductionStep("blocks", _blocks, _leave_one_block),
    _OPERATIONS,
    ReductionStep("regions", _regions, _open_regions),
    ReductionStep("branches", _branches, _take_sides),
    ReductionStep("operations by operands", partial(_removable, "operand"), partial(_remove, "operand")),
    ReductionStep("operations by constants", partial(_removable, "constant"), partial(_remove, "constant")),
    ReductionStep("carried values", _carried_values, _remove_carried),
    ReductionStep("block arguments", _block_arguments, _remove_block_arguments),
    ReductionStep("optional operands", _optional_operands, _remove_operands),
    _ARGUMENTS,
    ReductionStep("arguments of one type", _mergeable_arguments, _merge_arguments),
    ReductionStep("loop bounds", _loop_bounds, _set_bounds),
    ReductionStep("element types", _elements, _replace_elements),
    ReductionStep("extents", _extents, _shrink_extents),
    ReductionStep("layouts", _layouts, _replace_layouts),
    ReductionStep("attributes", _attributes, _remove_attributes),
    ReductionStep("properties", _properties, _remove_properties),
    _OPERATIONS,
    _ARGUMENTS,
)  # fmt: skip
"""In the order in which they are tried: those that may take most away come first."""
