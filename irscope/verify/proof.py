"""Accesses out of bounds for all values of a kernel's integer arguments: a proof by z3, or a counterexample.

An address is an affine or polynomial term over the integer arguments, the program ids, the iterations of loops and the
index of the element. The shapes of the tensors and the grid are terms as well: a dimension whose recorded size is the
value of one argument alone is that argument.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportMissingParameterType=false
# z3 states no types.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any, Literal

from irscope.errors import MissingTool, installing
from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.telling import divisor_of
from irscope.verify.safety import verify_launch
from irscope.verify.terms import DESCRIBED, NamedTerm, Term, Terms, Unread, accesses, ask
from irscope.verify.verdict import Violation

_MOST_ELEMENTS = 1 << 30
"""Of a tensor: beyond, 32-bit addresses wrap in most kernels, which is a note and no counterexample."""
_EFFORT = 4_000_000
"""z3's own count of steps for one question: the same on every machine."""
_MOST_GRIDS = 6
_ANY = "any number"
"""A size of the grid that no argument gives."""
_SMALL = (64, 1 << 10, 1 << 13)
"""Greatest values of arguments, tried in turn, of a counterexample that is executed."""
_MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class ArgumentsVerdict:
    """What is known of a kernel's accesses for all values of its integer arguments."""

    answer: Literal["proved", "counterexample", "not decided"]
    assumed: tuple[str, ...] = ()
    """What the launch was taken to mean: `x_ptr has (n,) elements`, `grid x = cdiv(n, 1024)`."""
    arguments: tuple[tuple[str, int], ...] = ()
    """The values of a counterexample."""
    violations: tuple[Violation, ...] = ()
    """What executing the counterexample shows."""
    undecided: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """What the answer covers."""
        if self.answer == "proved":
            return "no access is out of bounds for any integer arguments"
        if self.answer == "counterexample":
            return ", ".join(f"{name} = {value}" for name, value in self.arguments)
        return self.undecided[0] if self.undecided else ""

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --for-all-arguments --json`."""
        violations = [violation.as_json() for violation in self.violations]
        return asdict(self) | {"arguments": dict(self.arguments), "violations": violations}


def prove_bounds(capture: Capture) -> ArgumentsVerdict:
    """Prove that no access is out of bounds for any integer arguments, or find some; raises MissingTool without z3."""
    try:
        import z3
    except ImportError as error:
        raise MissingTool(f"proofs for all arguments need z3: {installing('verify')}.") from error
    text = capture.texts.get("ttir") or capture.texts.get("source", "")
    record = capture.launch.record
    if not text or record is None or capture.launch.grid is None:
        return ArgumentsVerdict("not decided", undecided=("the capture has no TTIR, or no launch",))
    return _Proof(z3, capture, record, capture.launch.grid, parse_mlir(text), text).verdict()


@dataclass(slots=True)
class _Launch:
    """The symbols of a launch: its integer arguments, shapes and grid."""

    z3: Any
    scalars: dict[str, Term] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    domain: list[Term] = field(default_factory=list)
    extents: dict[str, Term] = field(default_factory=dict)
    """Tensor → one past the greatest element that it has."""
    sizes: dict[str, tuple[tuple[NamedTerm, ...], tuple[NamedTerm, ...]]] = field(default_factory=dict)
    """Tensor → its sizes and strides."""
    fixed: set[str] = field(default_factory=set)
    assumed: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)

    grid: tuple[int, ...] = ()
    bytes: dict[str, int] = field(default_factory=dict)
    """Tensor → the size of an element."""
    views: list[str] = field(default_factory=list)
    """Tensors that are a part of their storage."""
    by_sizes: bool = False
    """Whether the strides of a contiguous tensor follow from its sizes, where no argument is named as its own."""
    borrowed: list[str] = field(default_factory=list)
    """Tensors whose strides are arguments that are not named as theirs, and that may have others."""
    has_rivals: bool = False
    """Whether several arguments may be a stride of such a tensor."""

    @staticmethod
    def of(z3: Any, capture: Capture, record: LaunchRecord, module: MlirModule, *, by_sizes: bool = False) -> _Launch:
        kernel = module.kernel
        parameters = kernel.regions[0].blocks[0].arguments if kernel is not None and kernel.regions else ()
        types = {value.name.lstrip("%"): module.type_of(value) for value in parameters}
        pointed = {name: kind.element for name, kind in types.items() if kind.form == "pointer"}
        grid = capture.launch.grid or ()
        sizes = {name: max(kind.bits // 8, 1) for name, kind in pointed.items() if kind is not None}
        launch = _Launch(z3, grid=grid, bytes=sizes, by_sizes=by_sizes)
        kinds, attributes = dict(capture.launch.signature), dict(capture.launch.attributes)
        for one in record.arguments:
            kind = kinds.get(one.path, "")
            if one.kind != "scalar" or one.dtype != "int" or kind not in ("i32", "i64", "u32", "u64"):
                continue
            if not isinstance(one.value, int) or one.value < 1:
                continue
            launch._free(one.path, one.value)
            if divisor_of(attributes.get(one.path, "")) == 16:
                launch.domain.append(launch.scalars[one.path] % 16 == 0)
        used: set[str] = set()
        for one in record.arguments:
            if one.kind != "scalar":
                launch._shape(one, used)
        # What is no size and no stride keeps its value: nothing says how far it may go.
        launch.fixed = {*launch.scalars} - used
        launch.domain += [launch.scalars[name] == launch.values[name] for name in launch.fixed]
        if launch.fixed:
            named = ", ".join(f"{name} = {launch.values[name]}" for name in sorted(launch.fixed))
            launch.assumed.append(f"{named}, as recorded")
        return launch

    def matching(self, value: int, tensor: str, *, strides: bool) -> list[str]:
        """The arguments of a value; those that are named like a stride, or those that are not."""
        names = [name for name, own in self.values.items() if own == value and ("stride" in name.lower()) == strides]
        near = [name for name in names if strides and _is_named_for(name, tensor)]
        return near or names

    def _shape(self, one: Argument, used: set[str]) -> None:
        z3 = self.z3
        shape, strides = one.shape, one.strides
        contiguous = list(strides) == [prod(shape[place + 1 :]) for place in range(len(shape))]
        found = [self.matching(size, one.path, strides=False) for size in shape]
        whole = self.matching(prod(shape), one.path, strides=False)
        if contiguous and len(whole) == 1 and not any(found):
            shape, strides, found = (prod(shape),), (1,), [whole]
        sizes: list[NamedTerm] = []
        for size, names in zip(shape, found, strict=True):
            if size > 1 and size in self.grid and not names:
                # No argument: a size that the host gives to the grid.
                names.append(self._free(f"size_{size}", size))
            if len(names) > 1 and size > 1:
                self.ambiguous.append(f"{' and '.join(names)} are all {size}: which of them is a size of {one.path}")
            sizes.append(self._one_of(names, size, used))
        steps: list[NamedTerm] = []
        for place, stride in enumerate(strides):
            names = self.matching(stride, one.path, strides=True) if stride > 1 else []
            is_borrowed = bool(names) and not _is_named_for(names[0], one.path)
            if is_borrowed and (contiguous or len(names) > 1):
                self.borrowed.append(one.path)
                self.has_rivals |= len(names) > 1
            if names and not (is_borrowed and contiguous and self.by_sizes):
                steps.append(self._one_of(names[:1], stride, used))
            elif contiguous:
                inner = sizes[place + 1 :]
                term = reduce(lambda left, right: left * right, [size.term for size in inner], z3.IntVal(1))
                steps.append(NamedTerm("*".join(size.text for size in inner) or "1", term))
            else:
                steps.append(NamedTerm(str(stride), z3.IntVal(stride)))
        reach = [(size.term - 1) * step.term for size, step in zip(sizes, steps, strict=True)]
        elements = (one.storage_bytes or 0) // self.bytes.get(one.path, 1)
        exact = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        self.extents[one.path] = sum(reach, z3.IntVal(1))
        if elements != exact and shape and elements == shape[0] * strides[0]:
            # Rows that are cut off from longer ones.
            self.extents[one.path] = sizes[0].term * steps[0].term
            self.domain.append(self.extents[one.path] >= sum(reach, z3.IntVal(1)))
        elif elements != exact or one.storage_offset or any(stride < 0 for stride in strides):
            self.views.append(one.path)
        self.sizes[one.path] = tuple(sizes), tuple(steps)
        self.assumed.append(
            f"{one.path} has ({', '.join(size.text for size in sizes)}) elements, "
            f"strides ({', '.join(step.text for step in steps)})"
        )

    def _free(self, name: str, value: int) -> str:
        self.scalars[name], self.values[name] = self.z3.Int(name), value
        self.domain += [self.scalars[name] >= 1, self.scalars[name] < 1 << 31]
        return name

    def _one_of(self, names: list[str], size: int, used: set[str]) -> NamedTerm:
        if len(names) != 1:
            return NamedTerm(str(size), self.z3.IntVal(size))
        used.add(names[0])
        return NamedTerm(names[0], self.scalars[names[0]])

    def grids(
        self, grid: tuple[int, int, int], constants: Mapping[str, str]
    ) -> list[tuple[NamedTerm, NamedTerm, NamedTerm]]:
        """What the grid may be: each size as an argument, a quotient by a constant, or a product of two of these."""
        z3 = self.z3
        blocks = sorted({int(text) for text in constants.values() if text.isdecimal() and int(text) > 1})
        parts: list[tuple[NamedTerm, int]] = []
        for name in self.scalars:
            if name in self.fixed or "stride" in name.lower():
                continue
            term, value = self.scalars[name], self.values[name]
            parts.append((NamedTerm(name, term), value))
            parts += [
                (NamedTerm(f"cdiv({name}, {block})", (term + (block - 1)) / block), -(-value // block))
                for block in blocks
            ]
        axes: list[list[NamedTerm]] = []
        for axis, size in enumerate(grid):
            names = [part for part, value in parts if value == size]
            if not names:
                names = [
                    NamedTerm(f"{left[0].text} * {right[0].text}", left[0].term * right[0].term)
                    for left, right in combinations_with_replacement(parts, 2)
                    if left[1] * right[1] == size and left[0].text != right[0].text
                ]
            if size == 1 or not names:
                any_number = z3.Int(f"programs {'xyz'[axis]}")
                self.domain += [any_number >= 1, any_number < (1 << 31 if not axis else 1 << 16)]
                names = [NamedTerm(_ANY, any_number)] if size > 1 else [NamedTerm("1", z3.IntVal(1))]
            axes.append(names)
        return [(x, y, z) for x, y, z in product(*axes)][: _MOST_GRIDS + 1]


class _Proof:
    def __init__(
        self, z3: Any, capture: Capture, record: LaunchRecord, grid: tuple[int, int, int], module: MlirModule, text: str
    ) -> None:
        self.z3, self.capture, self.record, self.grid, self.module = z3, capture, record, grid, module
        self._locations = read_mlir(text)
        self.launch = _Launch.of(z3, capture, record, module)
        self.undecided: list[str] = []
        self.notes: list[str] = []

    def verdict(self) -> ArgumentsVerdict:
        """The proof for each grid that the launch may mean, or the first counterexample that holds for all readings."""
        verdict = self._verdict()
        if verdict.answer != "counterexample" or not self.launch.borrowed:
            return verdict
        named = next(one for one in self.launch.assumed if one.startswith(f"{self.launch.borrowed[0]} has "))
        if not self.launch.has_rivals:
            self.launch = _Launch.of(self.z3, self.capture, self.record, self.module, by_sizes=True)
            if self._verdict().answer == "counterexample":
                return verdict
        return self._open(
            f"{verdict.scope} is a counterexample if {named}, which the recorded launch leaves open: record one with "
            "other strides"
        )

    def _verdict(self) -> ArgumentsVerdict:
        launch = self.launch
        free = [name for name in launch.scalars if name not in launch.fixed]
        if launch.ambiguous:
            return self._open(f"{launch.ambiguous[0]} is unknown: record a launch in which they differ")
        if not free:
            return self._open("no integer argument is a size or a stride of a tensor")
        if launch.views:
            return self._open(f"{', '.join(launch.views)} is a view of a part of its memory")
        grids = launch.grids(self.grid, dict(self.capture.launch.constants))
        if len(grids) > _MOST_GRIDS:
            return self._open(f"more than {_MOST_GRIDS} terms give the recorded grid {self.grid}")
        verdicts = [self._for_any(grid) for grid in grids]
        answers = {verdict.answer for verdict in verdicts}
        if answers == {"proved"}:
            named = " or ".join(dict.fromkeys(_grid_text(grid) for grid in grids))
            return ArgumentsVerdict("proved", (*launch.assumed, named), notes=tuple(dict.fromkeys(self.notes)))
        if len(answers) > 1 and "counterexample" in answers:
            # With another reading of the grid it may be none.
            at = next(place for place, verdict in enumerate(verdicts) if verdict.answer == "counterexample")
            return self._open(
                f"{verdicts[at].scope} is a counterexample if {_grid_text(grids[at])}, which the recorded launch "
                "leaves open: record one with other sizes"
            )
        return next(verdict for verdict in verdicts if verdict.answer != "proved")

    def _open(self, reason: str) -> ArgumentsVerdict:
        return ArgumentsVerdict("not decided", tuple(self.launch.assumed), undecided=(reason,))

    def _place(self, operation: Operation) -> str:
        chain = self._locations.chain_at(operation.first_line)
        place = line_text(place_of(chain, self.capture.launch.kernel.file))
        return place.rpartition("/")[2] or f"line {operation.first_line} of the TTIR"

    def _for_any(self, grid: tuple[NamedTerm, NamedTerm, NamedTerm]) -> ArgumentsVerdict:
        """As `_for_grid`; along an axis of which nothing is known, a counterexample counts in its first program."""
        verdict = self._for_grid(grid)
        if verdict.answer != "counterexample" or all(size.text != _ANY for size in grid):
            return verdict
        x, y, z = (NamedTerm(_ANY, self.z3.IntVal(1)) if size.text == _ANY else size for size in grid)
        first = self._for_grid((x, y, z))
        if first.answer == "counterexample":
            return first
        return self._open(
            f"{verdict.scope} is a counterexample for a grid that the recorded launch, whose grid is {self.grid}, "
            "leaves open"
        )

    def _for_grid(self, grid: tuple[NamedTerm, NamedTerm, NamedTerm]) -> ArgumentsVerdict:
        assumed = (*self.launch.assumed, _grid_text(grid))
        kernel = self.module.kernel
        if any(operation.kind == "call" for operation in self.module.walk()):
            return ArgumentsVerdict("not decided", assumed, undecided=("functions that are called are not followed",))
        reasons: list[str] = []
        sizes = [extent <= _MOST_ELEMENTS for extent in self.launch.extents.values()]
        for operation, path in accesses(kernel.regions[0].blocks if kernel is not None else ()):
            where = f"{operation.name} at {self._place(operation)}"
            # Anew for each: that another loop has an iteration is no fact here.
            terms = Terms(self.z3, self.launch.scalars, self.launch.extents, self.module, grid)
            try:
                conditions = [terms.holds(step) for step in path]
                question = self._question(terms, operation)
            except Unread as unread:
                reasons.append(f"{where}: {unread}")
                continue
            if question is None:
                continue
            what, condition = question
            base = [*self.launch.domain, *terms.facts, *conditions]
            answer = self._ask([*base, *sizes, condition])
            if answer is None:
                self._note_wraps(terms, base, sizes)
                continue
            model = answer or self._small(base, condition, sizes)
            confirmed = self._confirmed(base, condition, grid, assumed) if model is not None else None
            if confirmed is not None:
                return confirmed
            reasons.append(f"{where}: {what} " + ("is not ruled out" if answer else "was too hard for the solver"))
        if reasons:
            return ArgumentsVerdict("not decided", assumed, undecided=tuple(dict.fromkeys(reasons)))
        return ArgumentsVerdict("proved", assumed)

    def _question(self, terms: Terms, operation: Operation) -> tuple[str, Term] | None:
        """Whether an access can be outside: (what it is then, the condition); None for what accesses nothing itself."""
        z3 = self.z3
        if operation.opcode == "make_tensor_descriptor":
            made = terms.at(operation.results[0], ())
            last = [(size - 1) * stride for size, stride in zip(made.sizes, made.strides, strict=True)]
            begin, path = made.base.offset, made.base.path
            inside = z3.And(begin >= 0, sum(last, begin) < self.launch.extents[path])
            return f"a tile beyond {path}", z3.Not(inside)
        # What is accessed by a descriptor lies in what that states.
        access = terms.access(operation) if operation.opcode not in DESCRIBED else None
        if access is None:
            return None
        outside = z3.Or(access.offset < 0, access.offset >= self.launch.extents[access.path])
        return f"an access outside of {access.path}", z3.And(access.condition, outside)

    def _ask(self, conditions: list[Term]) -> Any:
        return ask(self.z3, conditions, _EFFORT)

    def _small(self, base: list[Term], condition: Term, sizes: list[Term]) -> Any:
        return next(
            (model for most in _SMALL if (model := self._ask([*base, *sizes, *self._at_most(most), condition]))), None
        )

    def _at_most(self, most: int) -> list[Term]:
        free = [term for name, term in self.launch.scalars.items() if name not in self.launch.fixed]
        return [term <= most for term in free]

    def _confirmed(
        self, base: list[Term], condition: Term, grid: tuple[NamedTerm, ...], assumed: tuple[str, ...]
    ) -> ArgumentsVerdict | None:
        """The launch with a model's arguments, executed: what is then out of bounds is a counterexample."""
        for most in _SMALL:
            model = self._ask([*base, *self._at_most(most), condition])
            if not model:
                continue
            changed = self._launched(model, grid)
            verdict = verify_launch(changed) if changed is not None else None
            outside = [one for one in verdict.violations if one.kind == "out-of-bounds"] if verdict is not None else []
            if outside:
                values = tuple((name, self._value(model, term)) for name, term in self.launch.scalars.items())
                return ArgumentsVerdict("counterexample", assumed, values, tuple(outside))
        return None

    def _value(self, model: Any, term: Term) -> int:
        return int(model.eval(term, model_completion=True).as_long())

    def _launched(self, model: Any, grid: tuple[NamedTerm, ...]) -> Capture | None:
        arguments: list[Argument] = []
        total = 0
        for one in self.record.arguments:
            if one.path in self.launch.scalars:
                arguments.append(replace(one, value=self._value(model, self.launch.scalars[one.path])))
            elif one.path in self.launch.sizes:
                sizes, steps = self.launch.sizes[one.path]
                elements = self._value(model, self.launch.extents[one.path])
                size = self.launch.bytes.get(one.path, 1)
                total += elements * size
                shape = tuple(self._value(model, size.term) for size in sizes)
                strides = tuple(self._value(model, step.term) for step in steps)
                arguments.append(
                    replace(one, shape=shape, strides=strides, storage_bytes=elements * size, data="", result="")
                )
            else:
                arguments.append(one)
        numbers = tuple(self._value(model, size.term) for size in grid)
        if total > _MOST_BYTES or prod(numbers) > 1 << 16:
            return None
        record = LaunchRecord(tuple(arguments))
        return replace(self.capture, launch=replace(self.capture.launch, grid=numbers, record=record))

    def _note_wraps(self, terms: Terms, base: list[Term], sizes: list[Term]) -> None:
        """Say where a 32-bit operation may wrap: the proof holds below."""
        for operation, named, wraps in terms.wraps():
            if self._ask([*base, *sizes, wraps]) is not None:
                self.notes.append(
                    f"{named} at {self._place(operation)} may wrap for large arguments: the answer holds where it does "
                    "not"
                )
                return


def _is_named_for(stride: str, tensor: str) -> bool:
    """Whether an argument is named as a stride of a tensor: `stride_xm` of `x_ptr`."""
    stem = tensor.lower().removesuffix("_ptr").removesuffix("ptr").strip("_")
    return f"_{stem}" in f"_{stride.lower()}" or f"stride_{stem[:1]}" in stride.lower()


def _grid_text(grid: tuple[NamedTerm, ...]) -> str:
    return "grid = (" + ", ".join(size.text for size in grid) + ")"
