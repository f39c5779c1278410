"""A kernel's integers, conditions and pointers as terms of z3, over arguments, programs, iterations and elements."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportMissingParameterType=false
# z3 states no types.

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irscope.ir.mlir.model import Block, MlirModule, Operation, Value
from irscope.ir.mlir.types import Type
from irscope.model.launch_record import Argument

Term = Any
"""An expression of z3."""
_SETTLING = 200_000
"""Of the solver, for whether a divisor is always the same number."""


class Unread(Exception):
    """Something of an access is no term; the text says what."""


@dataclass(frozen=True, slots=True)
class _Pointer:
    path: str
    offset: Term


@dataclass(frozen=True, slots=True)
class _Described:
    """A tensor descriptor: accesses outside of its sizes are none."""

    base: _Pointer
    sizes: tuple[Term, ...]
    strides: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class NamedTerm:
    text: str
    term: Term


@dataclass(frozen=True, slots=True)
class AccessTerm:
    """An element that an operation accesses where a condition holds."""

    path: str
    offset: Term
    condition: Term
    index: tuple[Term, ...]
    """Of the element in the operation's tensor."""


class Terms:
    """The values of a kernel's TTIR as terms, each at an index of an element."""

    def __init__(
        self, z3: Any, scalars: Mapping[str, Term], tensors: Container[str], module: MlirModule,
        grid: tuple[NamedTerm, ...], name: str = "", descriptors: Mapping[str, Argument] | None = None,
        wrapping: Container[int] = (),
    ) -> None:  # fmt: skip
        """Begin with nothing known but the arguments and the grid; `name` begins its symbols, of one of two programs.

        `descriptors`: those that the host made, with their sizes and strides; others are no terms. `wrapping`: lines of
        operations whose results may wrap: they are taken as any number.
        """
        self._wrapping = wrapping
        self.z3, self.scalars, self.tensors = z3, scalars, tensors
        self.module, self.grid, self._name, self._descriptors = module, grid, name, descriptors or {}
        # A GPU takes no more programs.
        self.facts: list[Term] = [size.term < 1 << 31 for size in grid]
        """What holds of the symbols that stand for ids, iterations, quotients and remainders."""
        self.narrow: list[tuple[Operation, Term]] = []
        """Results of operations of 32 bits and less that addresses and masks are computed by."""
        self._known: dict[Any, Any] = {}
        self._alive: list[Any] = []
        self._count = 0
        self.programs = [z3.Int(f"{name}program {axis}") for axis in "xyz"]
        for program, size in zip(self.programs, grid, strict=True):
            self.facts += [program >= 0, program < size.term]
        kernel = module.kernel
        self._parameters = {
            value.number: value.name for value in (kernel.regions[0].blocks[0].arguments if kernel is not None else ())
        }

    def fresh(self, kind: Type | None = None) -> Term:
        """A symbol of which nothing is known but the range of its type, where that is a small integer."""
        self._count += 1
        name = f"{self._name}any {self._count}"
        element = element_of(kind) if kind is not None else None
        if element is not None and element.text == "i1":
            return self.z3.Bool(name)
        symbol = self.z3.Int(name)
        if element is not None and element.text in ("i8", "i16"):
            half = 1 << (element.bits - 1)
            self.facts += [symbol >= -half, symbol < half]
        return symbol

    def at(self, value: Value, index: tuple[Term, ...]) -> Any:
        """The element of a value; raises Unread where it is no term."""
        key = (value.number, tuple(place.get_id() for place in index))
        if key not in self._known:
            # An id is another term's as soon as its own is gone.
            self._alive.append(index)
            self._known[key] = self._made(value, index)
        return self._known[key]

    def _made(self, value: Value, index: tuple[Term, ...]) -> Any:
        owner = self.module.owners.get(value.number)
        if isinstance(owner, Operation):
            rule = _RULES.get(owner.opcode)
            if rule is not None:
                return rule(self, owner, index)
            if owner.opcode == "scf.for":
                return self._carried(owner, owner.results.index(value), index, self.trips(owner))
            if owner.opcode == "scf.if":
                return self._chosen(owner, owner.results.index(value), index)
            return self.unknown(value, owner)
        parent = self.module.parents.get(value.number)
        if parent is self.module.kernel and value.number in self._parameters:
            return self._parameter(value)
        if parent is not None and parent.opcode == "scf.for":
            place = parent.regions[0].blocks[0].arguments.index(value)
            iteration = self.iteration(parent)
            if place == 0:
                begin, _, step = (self.at(one, ()) for one in parent.operands[:3])
                return begin + iteration * step
            return self._carried(parent, place - 1, index, iteration)
        return self.unknown(value, parent)

    def unknown(self, value: Value, owner: Operation | None) -> Any:
        """A symbol for what is no term; raises Unread for a pointer."""
        kind = self.module.type_of(value)
        if element_of(kind).form in ("pointer", "descriptor"):
            raise Unread(f"the pointer that {owner.name if owner is not None else 'a block'} gives is not followed")
        return self.fresh(kind)

    def _parameter(self, value: Value) -> Any:
        name = value.name.lstrip("%")
        kind = self.module.type_of(value)
        if kind.form == "pointer":
            if name not in self.tensors:
                raise Unread(f"{name} is not a tensor of the launch")
            return _Pointer(name, self.z3.IntVal(0))
        if kind.form == "descriptor":
            stated = self._descriptors.get(name)
            if stated is None or not stated.strides:
                raise Unread(f"the sizes of the descriptor {name} are not known")
            sizes, strides = (tuple(map(self.z3.IntVal, each)) for each in (stated.shape, stated.strides))
            return _Described(_Pointer(name, self.z3.IntVal(0)), sizes, strides)
        known = self.scalars.get(name)
        return known if known is not None else self.fresh(kind)

    # ── control flow ──────────────────────────────────────────────────────────────────────────────────────────

    def iteration(self, loop: Operation) -> Term:
        """The number of an iteration of a loop that is executed."""
        key = ("iteration", id(loop))
        if key not in self._known:
            self._count += 1
            number = self._known[key] = self.z3.Int(f"{self._name}iteration {self._count}")
            begin, end, step = (self.at(one, ()) for one in loop.operands[:3])
            self.facts += [number >= 0, step >= 1, begin + number * step < end]
        return self._known[key]

    def trips(self, loop: Operation) -> Term:
        key = ("trips", id(loop))
        if key not in self._known:
            self._count += 1
            count = self._known[key] = self.z3.Int(f"{self._name}trips {self._count}")
            begin, end, step = (self.at(one, ()) for one in loop.operands[:3])
            ends = [begin + count * step >= end, begin + (count - 1) * step < end]
            self.facts += [count >= 0, self.z3.If(begin < end, self.z3.And(*ends), count == 0)]
        return self._known[key]

    def _carried(self, loop: Operation, place: int, index: tuple[Term, ...], iteration: Term) -> Any:
        """A carried value after some iterations: where each adds the same to it."""
        body = loop.regions[0].blocks[0]
        own, first = body.arguments[place + 1], loop.operands[3 + place]
        passed = body.operations[-1].operands[place]
        added: list[tuple[Value, int]] = []
        inner = {id(one) for one in loop.walk()}
        while passed != own:
            owner = self.module.definition(passed)
            if owner is None or id(owner) not in inner or owner.opcode not in ("addptr", "arith.addi", "arith.subi"):
                return self.unknown(own, loop)
            left, right = owner.operands
            sign = -1 if owner.opcode == "arith.subi" else 1
            if owner.opcode == "arith.addi" and not self._leads_to(left, own, inner):
                left, right = right, left
            if self._depends(right, inner, {*body.arguments}):
                return self.unknown(own, loop)
            added.append((right, sign))
            passed = left
        start = self.at(first, index)
        if isinstance(start, _Described):
            return start
        change = sum([sign * self.at(step, index) for step, sign in added], self.z3.IntVal(0)) * iteration
        return replace(start, offset=start.offset + change) if isinstance(start, _Pointer) else start + change

    def _leads_to(self, value: Value, own: Value, inner: set[int]) -> bool:
        if value == own:
            return True
        owner = self.module.definition(value)
        return (
            owner is not None
            and id(owner) in inner
            and owner.opcode in ("arith.addi", "arith.subi")
            and any(self._leads_to(one, own, inner) for one in owner.operands)
        )

    def _depends(self, value: Value, inner: set[int], arguments: set[Value]) -> bool:
        if value in arguments:
            return True
        owner = self.module.definition(value)
        if owner is None or id(owner) not in inner:
            return False
        return bool(owner.regions) or any(self._depends(one, inner, arguments) for one in owner.operands)

    def _chosen(self, choice: Operation, place: int, index: tuple[Term, ...]) -> Any:
        sides = [region.blocks[0].operations[-1].operands[place] for region in choice.regions if region.blocks]
        if len(sides) != 2:
            raise Unread("a branch without a value")
        return self.either(self.at(choice.operands[0], ()), *(self.at(side, index) for side in sides))

    def either(self, condition: Term, left: Any, right: Any) -> Any:
        if isinstance(left, _Described) or isinstance(right, _Described):
            raise Unread("one of two descriptors")
        if isinstance(left, _Pointer) or isinstance(right, _Pointer):
            if isinstance(left, _Pointer) and isinstance(right, _Pointer) and left.path == right.path:
                return _Pointer(left.path, self.z3.If(condition, left.offset, right.offset))
            raise Unread("a pointer into one of two tensors")
        return self.z3.If(condition, left, right)

    # ── accesses ──────────────────────────────────────────────────────────────────────────────────────────────

    def holds(self, step: tuple[Operation, int]) -> Term:
        """What is known inside of a region of an operation."""
        operation, region = step
        if operation.opcode == "scf.if":
            condition = self.at(operation.operands[0], ())
            return condition if region == 0 else self.z3.Not(condition)
        if operation.opcode == "scf.for":
            self.iteration(operation)
        return self.z3.BoolVal(True)

    def access(self, operation: Operation) -> AccessTerm | None:
        """The address and the mask of any element of an access by pointers, or by a descriptor that is no gather or
        scatter; of what makes a descriptor any element that this states. None of another; raises Unread.
        """
        z3 = self.z3
        if operation.opcode == "make_tensor_descriptor":
            described = self.at(operation.results[0], ())
            index = self._elements(operation, described.sizes)
            return self._described(described, index, z3.BoolVal(True))
        if operation.opcode in DESCRIBED and (tile := operation.operand("desc")) is not None:
            described, places = self.at(tile, ()), operation.operand_group("indices")
            index = self._elements(operation, self.module.type_of(tile).shape)
            moved = tuple(self.at(place, ()) + own for place, own in zip(places, index, strict=True))
            within = [z3.And(one >= 0, one < size) for one, size in zip(moved, described.sizes, strict=True)]
            return replace(self._described(described, moved, z3.And(*within)), index=index)
        names = [effect.operand for effect in operation.effects if effect.space == "global"]
        values = [value for name in dict.fromkeys(names) for value in operation.operand_group(name)]
        values = [value for value in values if element_of(self.module.type_of(value)).form == "pointer"]
        if not values:
            return None
        index = self._elements(operation, self.module.type_of(values[0]).shape)
        pointer = self.at(values[0], index)
        mask = operation.operand("mask")
        condition = z3.BoolVal(True) if mask is None else self.at(mask, index)
        return AccessTerm(pointer.path, pointer.offset, condition, index)

    def _elements(self, operation: Operation, shape: Sequence[Term | int]) -> tuple[Term, ...]:
        index: list[Term] = []
        for place, size in enumerate(shape):
            symbol = self.z3.Int(f"{self._name}element {place} of {operation.first_line}")
            self.facts += [symbol >= 0, symbol < size]
            index.append(symbol)
        return tuple(index)

    def _described(self, described: _Described, place: tuple[Term, ...], condition: Term) -> AccessTerm:
        steps = [one * stride for one, stride in zip(place, described.strides, strict=True)]
        return AccessTerm(described.base.path, sum(steps, described.base.offset), condition, place)

    # ── arithmetic ────────────────────────────────────────────────────────────────────────────────────────────

    def noted(self, operation: Operation, term: Term) -> Term:
        """The result of an operation that wraps where it is too large."""
        if operation.first_line in self._wrapping:
            return self.fresh()
        if 1 < element_of(operation.result_types[0]).bits <= 32:
            self.narrow.append((operation, term))
        return term

    def wraps(self) -> Iterator[tuple[Operation, str, Term]]:
        """Each such operation, which it is, and when its result is too large."""
        for operation, term in self.narrow:
            bits = element_of(operation.result_types[0]).bits
            half = 1 << (bits - 1)
            yield operation, f"the {bits}-bit {operation.name}", self.z3.Or(term >= half, term < -half)

    def divided(self, left: Term, right: Term) -> tuple[Term, Term]:
        """Quotient and remainder of what is not negative by what is positive; of others nothing is known."""
        z3 = self.z3
        right = self._settled(right)
        if z3.is_int_value(right) and right.as_long() > 0:
            quotient = z3.If(left >= 0, left / right, -((-left) / right))
            return quotient, left - quotient * right
        key = ("divided", left.get_id(), right.get_id())
        if key not in self._known:
            self._alive.append((left, right))
            quotient, rest = self._known[key] = self.fresh(), self.fresh()
            is_plain = z3.And(left >= 0, right > 0)
            parts = [left == quotient * right + rest, rest >= 0, rest < right, quotient >= 0, quotient <= left]
            self.facts.append(z3.Implies(is_plain, z3.And(*parts)))
        return self._known[key]

    def _settled(self, term: Term) -> Term:
        """The number that a term always is, as the last group's size where it divides the grid; else the term."""
        z3 = self.z3
        term = z3.simplify(term)
        if z3.is_int_value(term):
            return term
        key = ("settled", term.get_id())
        if key not in self._known:
            self._alive.append(term)
            model = ask(z3, self.facts, _SETTLING)
            number = model.eval(term, model_completion=True) if model else term
            is_settled = z3.is_int_value(number) and ask(z3, [*self.facts, term != number], _SETTLING) is None
            self._known[key] = number if is_settled else term
        return self._known[key]


def accesses(
    blocks: tuple[Block, ...], path: tuple[tuple[Operation, int], ...] = ()
) -> Iterator[tuple[Operation, tuple[tuple[Operation, int], ...]]]:
    """Each access to global memory, with the regions that it stands in."""
    for block in blocks:
        for operation in block.operations:
            is_access = any(effect.space == "global" for effect in operation.effects)
            if is_access or operation.opcode == "make_tensor_descriptor":
                yield operation, path
            for number, region in enumerate(operation.regions):
                yield from accesses(region.blocks, (*path, (operation, number)))


def ask(z3: Any, conditions: list[Term], effort: int) -> Any:
    """None if the conditions cannot hold together; False if the solver gave up; else a model.

    `effort`: z3's own count of steps, the same on every machine.
    """
    solver = z3.Solver()
    solver.set("rlimit", effort)
    solver.add(*conditions)
    answer = solver.check()
    return None if answer == z3.unsat else solver.model() if answer == z3.sat else False


def element_of(kind: Type) -> Type:
    return kind.element if kind.form == "tensor" and kind.element is not None else kind


DESCRIBED = ("descriptor_load", "descriptor_store", "descriptor_reduce")
"""Accesses to a tile by a descriptor; those to single rows, gathers and scatters, are no terms."""

_Rule = Callable[[Terms, Operation, "tuple[Term, ...]"], Any]


def _pairwise(compute: Callable[[Any, Any], Any]) -> _Rule:
    def rule(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
        left, right = (terms.at(value, index) for value in operation.operands)
        if terms.z3.is_bool(left) or terms.z3.is_bool(right):
            return terms.fresh(operation.result_types[0])
        return terms.noted(operation, compute(left, right))

    return rule


def _divide(which: int, *, up: bool = False) -> _Rule:
    def rule(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
        left, right = (terms.at(value, index) for value in operation.operands)
        found = terms.divided(left + right - 1 if up else left, right)[which]
        return terms.z3.If(left >= 0, found, terms.fresh()) if operation.opcode.endswith("ui") else found

    return rule


def _bits(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    z3 = terms.z3
    left, right = (terms.at(value, index) for value in operation.operands)
    if z3.is_bool(left) and z3.is_bool(right):
        joined = {"arith.andi": z3.And, "arith.ori": z3.Or, "arith.xori": z3.Xor}
        return joined[operation.opcode](left, right)
    number = terms.z3.simplify(right)
    mask = number.as_long() if z3.is_int_value(number) else -1
    if operation.opcode == "arith.andi" and mask >= 0 and mask & (mask + 1) == 0:
        return left % (mask + 1)
    return terms.fresh(operation.result_types[0])


def _shift(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    left, right = (terms.at(value, index) for value in operation.operands)
    number = terms.z3.simplify(right)
    if not terms.z3.is_int_value(number) or not 0 <= number.as_long() < 32:
        return terms.fresh()
    factor = 1 << number.as_long()
    return terms.noted(operation, left * factor) if operation.opcode == "arith.shli" else left / factor


def _compare(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    z3 = terms.z3
    left, right = (terms.at(value, index) for value in operation.operands)
    predicate = str(operation.attribute("predicate"))
    if z3.is_bool(left) or isinstance(left, _Pointer):
        return terms.fresh(operation.result_types[0])
    plain = {"eq": left == right, "ne": left != right, "slt": left < right, "sle": left <= right,
             "sgt": left > right, "sge": left >= right}  # fmt: skip
    if predicate in plain:
        return plain[predicate]
    signed = plain.get(f"s{predicate[1:]}")
    answer = terms.fresh(operation.result_types[0])
    if signed is not None:
        terms.facts.append(z3.Implies(z3.And(left >= 0, right >= 0), answer == signed))
    return answer


def _absolute(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    inner = terms.at(operation.operands[0], index)
    return terms.noted(operation, terms.z3.If(inner >= 0, inner, -inner))


def _select(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    condition, left, right = operation.operands
    place = index if terms.module.type_of(condition).form == "tensor" else ()
    return terms.either(terms.at(condition, place), terms.at(left, index), terms.at(right, index))


def _constant(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    value = operation.constant
    if isinstance(value, bool) or (isinstance(value, int) and element_of(operation.result_types[0]).text == "i1"):
        return terms.z3.BoolVal(bool(value))
    return terms.z3.IntVal(value) if isinstance(value, int) else terms.fresh(operation.result_types[0])


def _program(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    axis = "xyz".index(str(operation.attribute("axis")))
    return terms.programs[axis] if operation.opcode == "get_program_id" else terms.grid[axis].term


def _broadcast(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    shape = operation.operand_types[0].shape
    zero = terms.z3.IntVal(0)
    return terms.at(operation.operands[0], tuple(zero if n == 1 else i for n, i in zip(shape, index, strict=True)))


def _expand(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    axis = operation.attribute("axis")
    if not isinstance(axis, int):
        raise Unread("an axis is not read")
    return terms.at(operation.operands[0], index[:axis] + index[axis + 1 :])


def _transpose(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    order = operation.attribute("order")
    if not isinstance(order, tuple):
        raise Unread("the order of a transposition is not read")
    places = [terms.z3.IntVal(0)] * len(index)
    for own, place in enumerate(order):
        places[int(place)] = index[own]  # pyright: ignore[reportArgumentType]
    return terms.at(operation.operands[0], tuple(places))


def _reshape(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    flat = terms.z3.IntVal(0)
    for size, place in zip(operation.result_types[0].shape, index, strict=True):
        flat = flat * size + place
    places: list[Term] = []
    for size in reversed(operation.operand_types[0].shape):
        places.append(flat % size)
        flat = flat / size
    return terms.at(operation.operands[0], tuple(reversed(places)))


def _range(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    start = operation.attribute("start")
    return index[0] + (start if isinstance(start, int) else 0)


def _describe(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    (base,) = operation.operand_group("base")
    sizes, strides = (
        tuple(terms.at(value, ()) for value in operation.operand_group(name)) for name in ("shape", "strides")
    )
    return _Described(terms.at(base, ()), sizes, strides)


def _add_pointer(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    pointer, offset = (terms.at(value, index) for value in operation.operands)
    return replace(pointer, offset=pointer.offset + offset)


def _same(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    return terms.at(operation.operands[0], index)


def _bitcast(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    kinds = [element_of(kind).element for kind in (*operation.operand_types, *operation.result_types)]
    sizes = {max(kind.bits, 8) for kind in kinds if kind is not None}
    if len(sizes) == 1 and None not in kinds:
        return terms.at(operation.operands[0], index)
    return terms.unknown(operation.results[0], operation)


def _splat(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    return terms.at(operation.operands[0], ())


def _extend(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    inner = terms.at(operation.operands[0], index)
    if terms.z3.is_bool(inner):
        return terms.z3.If(inner, 1 if operation.opcode == "arith.extui" else -1, 0)
    if operation.opcode == "arith.extui":
        bits = element_of(operation.operand_types[0]).bits
        return terms.z3.If(inner >= 0, inner, inner + (1 << bits))
    return inner


def _truncate(terms: Terms, operation: Operation, index: tuple[Term, ...]) -> Any:
    inner = terms.at(operation.operands[0], index)
    bits = element_of(operation.result_types[0]).bits
    if terms.z3.is_bool(inner) or bits < 2:
        return terms.fresh(operation.result_types[0])
    fits = terms.z3.And(inner >= -(1 << (bits - 1)), inner < 1 << (bits - 1))
    return terms.z3.If(fits, inner, terms.fresh(operation.result_types[0]))


_RULES: Mapping[str, _Rule] = {
    "arith.addi": _pairwise(lambda left, right: left + right),
    "arith.subi": _pairwise(lambda left, right: left - right),
    "arith.muli": _pairwise(lambda left, right: left * right),
    "arith.divsi": _divide(0), "arith.divui": _divide(0), "arith.remsi": _divide(1), "arith.remui": _divide(1),
    "arith.ceildivsi": _divide(0, up=True), "arith.ceildivui": _divide(0, up=True),
    "arith.andi": _bits, "arith.ori": _bits, "arith.xori": _bits, "arith.shli": _shift, "arith.shrsi": _shift,
    "arith.minsi": lambda terms, one, at: _least(terms, one, at, least=True),
    "arith.maxsi": lambda terms, one, at: _least(terms, one, at, least=False),
    "math.absi": _absolute,
    "arith.cmpi": _compare, "arith.select": _select, "arith.constant": _constant, "arith.extsi": _extend,
    "arith.extui": _extend, "arith.trunci": _truncate, "arith.index_cast": _same, "make_range": _range,
    "splat": _splat, "broadcast": _broadcast, "expand_dims": _expand, "trans": _transpose, "reshape": _reshape,
    "convert_layout": _same, "addptr": _add_pointer, "get_program_id": _program, "get_num_programs": _program,
    "make_tensor_descriptor": _describe, "bitcast": _bitcast,
}  # fmt: skip


def _least(terms: Terms, operation: Operation, index: tuple[Term, ...], *, least: bool) -> Any:
    left, right = (terms.at(value, index) for value in operation.operands)
    return terms.z3.If(left <= right if least else left >= right, left, right)
