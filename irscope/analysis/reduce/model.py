"""A reduction: its subject, the search for the smallest case, its result, and when two failures are alike."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from irscope.ir.mlir.editable import EditableModule, read_editable, write_editable
from irscope.model.capture import Capture, Failure, FailureKind, PassSnapshot, stage_rank
from irscope.plan import PassPlan, PassRule

_FEW = 3
"""Passes that are named rather than those that are off: a pass that the failure keeps from running is not known."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The passes that may run on a text: those of the stages from the one that it is for."""

    every: tuple[str, ...]
    """The labels of all passes of these stages, as far as they are known, in their order."""
    kept: frozenset[str]
    """The labels of those that run."""

    @staticmethod
    def of(passes: Sequence[PassSnapshot], stages: Sequence[str], first: str = "") -> Pipeline:
        """Those that ran in some stages, from the pass `first` on; empty for the first of all."""
        every = [one for one in passes if one.stage in stages]
        labels = [one.label for one in every]
        begin = labels.index(first) if first in labels else 0
        return Pipeline(tuple(labels), frozenset(one.label for one in every[begin:] if one.outcome != "skipped"))

    @property
    def running(self) -> tuple[str, ...]:
        """The labels of the passes that run, in their order."""
        return tuple(label for label in self.every if label in self.kept)

    def without(self, labels: frozenset[str]) -> Pipeline:
        """The same without some passes."""
        return Pipeline(self.every, self.kept - labels)

    def up_to(self, stage: str) -> Pipeline:
        """The same without the passes of later stages, which then run as they do; all for an empty `stage`."""
        if not stage:
            return self
        every = tuple(label for label in self.every if stage_rank(label.partition(":")[0]) <= stage_rank(stage))
        return Pipeline(every, self.kept & {*every})

    @property
    def plan(self) -> PassPlan:
        """The plan under which these passes run, and no others of their stages; the shorter of both ways to say it."""
        disabled: list[PassRule] = []
        only: list[PassRule] = []
        for stage in dict.fromkeys(label.partition(":")[0] for label in self.every):
            of_stage = [label for label in self.every if label.startswith(f"{stage}:")]
            kept = [label for label in of_stage if label in self.kept]
            gone = [label for label in of_stage if label not in self.kept]
            if not kept:
                disabled.append(PassRule("*", stage))
            elif not gone or len(kept) > max(len(gone), _FEW):
                disabled += map(PassRule.parse, gone)
            else:
                only += map(PassRule.parse, kept)
        return PassPlan(tuple(disabled), tuple(only))


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    pipeline: Pipeline
    options: tuple[tuple[str, Any], ...] = ()
    """Those that differ from the target's defaults."""


@dataclass(slots=True)
class EditableProgram(EditableModule):
    """A module with the passes that run on it, and the options of the compile."""

    pipeline: Pipeline = Pipeline((), frozenset())
    options: tuple[tuple[str, Any], ...] = ()

    def case(self) -> Case:
        return Case(write_editable(self), self.pipeline, self.options)


def read_program(text: str) -> EditableProgram:
    """Read a module that MLIR printed in its generic form; raises ParseError for any other form."""
    module = read_editable(text)
    return EditableProgram(
        module.operations, module.types, module.aliases, module.argument_attributes, module.next_number
    )


_Edit = TypeVar("_Edit")
_Case = TypeVar("_Case")
_Self = TypeVar("_Self")
First = Callable[[Iterable[_Case]], "int | None"]
"""The place of the first of some cases that is interesting; None if none is."""
Edit = int | str | tuple[int | str, ...]
"""One place that a step may shrink; it names what is there by numbers, which copies of a program keep."""


class _Shrinkable(Protocol):
    def copy(self: _Self) -> _Self: ...

    def case(self) -> object: ...


_Program = TypeVar("_Program", bound=_Shrinkable)


@dataclass(frozen=True, slots=True)
class ReductionStep(Generic[_Program]):
    """One way to shrink a program."""

    name: str
    """In the plural, as a report counts them: `operations`."""
    edits: Callable[[_Program], Sequence[Edit]]
    """All places, those first that should go first; neighbours are tried together."""
    apply: Callable[[_Program, frozenset[Edit]], None]
    """Shrinks a program in place at the chosen places; one that is gone by then is passed over."""


def halved(
    edits: Sequence[_Edit],
    shrunk: Callable[[frozenset[_Edit]], _Case],
    first: First[_Case],
    taken: Callable[[frozenset[_Edit], _Case], None],
    parts: int | None = None,
) -> None:
    """Make as many edits as can be: all at once, else halves, quarters, and so on down to each alone.

    Args:
        edits: in an order in which neighbours go together.
        shrunk: the case with some more edits than those that were taken.
        first: the place of the first of some cases that is interesting, or None. What is taken is always the first, so
            that the result does not depend on how many are tried at a time.
        taken: called with the edits that were made, and the case with them.
        parts: how many parts the edits are cut into at most; None for down to each alone.
    """
    left = [*edits]
    size = len(left)
    least = 1 if parts is None else -(-size // parts)
    while size >= max(least, 1):
        done = 0
        while done < len(left):
            chunks = [frozenset(left[start : start + size]) for start in range(done, len(left), size)]
            cases: list[_Case] = []

            def lazily(chunks: list[frozenset[_Edit]] = chunks, cases: list[_Case] = cases) -> Iterator[_Case]:
                for chosen in chunks:
                    cases.append(shrunk(chosen))
                    yield cases[-1]

            if (found := first(lazily())) is None:
                break
            taken(chunks[found], cases[found])
            # Those before it were tried; what follows is tried on what is left.
            done += found * size
            left = [one for one in left if one not in chunks[found]]
        size = 0 if size == 1 else (min(size, len(left)) + 1) // 2


_MOST_ROUNDS = 12
_FEW_PARTS = 8
"""What large cuts leave alone is tried only on what they leave: each compile of it takes less."""


@dataclass(slots=True)
class Search(Generic[_Program, _Case]):
    """A reduction under way. `best`, the case of `program`, is interesting at any moment."""

    program: _Program
    best: _Case
    first: First[_Case]
    steps: Sequence[ReductionStep[_Program]]
    told: Callable[[str, _Case], None] = lambda step, case: None
    taken: dict[str, int] = field(default_factory=dict[str, int])
    """How many places each step shrank, in the order in which they first helped."""

    def run(self) -> None:
        for parts in (_FEW_PARTS, None):
            # One step may undo what another does, at no loss.
            seen: set[_Case] = set()
            while self.best not in seen and len(seen) < _MOST_ROUNDS:
                seen.add(self.best)
                for step in self.steps:
                    self._step(step, parts)

    def _step(self, step: ReductionStep[_Program], parts: int | None) -> None:
        programs: dict[frozenset[Edit], _Program] = {}

        def shrunk(chosen: frozenset[Edit]) -> _Case:
            programs[chosen] = program = self.program.copy()
            step.apply(program, chosen)
            return cast("_Case", program.case())

        def taken(chosen: frozenset[Edit], case: _Case) -> None:
            if case != self.best:
                self.program, self.best = programs[chosen], case
                programs.clear()
                self.taken[step.name] = self.taken.get(step.name, 0) + len(chosen)
                self.told(step.name, case)

        halved(step.edits(self.program), shrunk, self.first, taken, parts)


@dataclass(frozen=True, slots=True)
class PythonCase:
    """One candidate: a file, and the types and values of the kernel's parameters."""

    text: str
    parameters: tuple[tuple[str, str, bool], ...]
    """(name, type as in a signature or value of a constant, whether it is a constant), in the kernel's order."""

    @property
    def signature(self) -> str:
        return ", ".join(text for _, text, is_constant in self.parameters if not is_constant)

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """The values, as `--constexpr` takes them."""
        return tuple((name, text) for name, text, is_constant in self.parameters if is_constant)


@dataclass(slots=True)
class PythonProgram:
    """A module with a kernel, as a tree that can be edited."""

    tree: ast.Module
    kernel: str
    parameters: tuple[tuple[str, str, bool], ...]

    @staticmethod
    def of(case: PythonCase, kernel: str) -> PythonProgram:
        """The text of a case, with a kernel of that name."""
        return PythonProgram(ast.parse(case.text), kernel, case.parameters)

    def copy(self) -> PythonProgram:
        return PythonProgram(copy.deepcopy(self.tree), self.kernel, self.parameters)

    def case(self) -> PythonCase:
        return PythonCase(ast.unparse(ast.fix_missing_locations(self.tree)) + "\n", self.parameters)

    @property
    def nodes(self) -> list[ast.AST]:
        """All nodes, outer ones first, which get numbers of their own."""
        nodes = list(ast.walk(self.tree))
        for number, node in enumerate(nodes):
            node.__dict__["number"] = number
        return nodes


def _number(node: ast.AST) -> int:
    return node.__dict__.get("number", -1)


def _change(program: PythonProgram, chosen: frozenset[Edit]) -> None:
    _Changed(chosen).visit(program.tree)


def _parameters(program: PythonProgram) -> Sequence[Edit]:
    used = {node.id for node in program.nodes if isinstance(node, ast.Name)}
    return [name for name, _, _ in program.parameters if name not in used]


def _remove_parameters(program: PythonProgram, chosen: frozenset[Edit]) -> None:
    program.parameters = tuple(row for row in program.parameters if row[0] not in chosen)
    for function in program.tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == program.kernel:
            given = function.args
            first_default = len(given.args) - len(given.defaults)
            kept = [(one, place) for place, one in enumerate(given.args) if one.arg not in chosen]
            given.defaults = [given.defaults[place - first_default] for _, place in kept if place >= first_default]
            given.args = [one for one, _ in kept]


def _statements(program: PythonProgram) -> Sequence[Edit]:
    """Statements to leave out, the last first: users before what they use."""
    return [(_number(node), "gone") for node in program.nodes if isinstance(node, ast.stmt)][::-1]


def _bodies(program: PythonProgram) -> Sequence[Edit]:
    """Statements with blocks, of which a block takes their place; outer ones first."""
    found: list[Edit] = []
    for node in program.nodes:
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
            found.append((_number(node), "body"))
            if getattr(node, "orelse", None):
                found.append((_number(node), "orelse"))
    return found


_OPERANDS: tuple[tuple[type[ast.expr], tuple[str, ...]], ...] = (
    (ast.BinOp, ("left", "right")),
    (ast.IfExp, ("body", "orelse")),
    (ast.UnaryOp, ("operand",)),
)


def _expressions(program: PythonProgram) -> Sequence[Edit]:
    """Expressions of which an operand takes the place; outer ones first."""
    found: list[Edit] = []
    for node in program.nodes:
        names = [name for kind, fields in _OPERANDS if isinstance(node, kind) for name in fields]
        if isinstance(node, ast.Call):
            names += [f"args {place}" for place, _ in enumerate(node.args)]
            names += [f"keyword {place}" for place, _ in enumerate(node.keywords)]
        found += [(_number(node), name) for name in names]
    return found


PYTHON_STEPS: tuple[ReductionStep[PythonProgram], ...] = (
    ReductionStep("statements", _statements, _change),
    ReductionStep("branches", _bodies, _change),
    ReductionStep("expressions", _expressions, _change),
    ReductionStep("statements", _statements, _change),
    ReductionStep("parameters", _parameters, _remove_parameters),
)


class _Changed(ast.NodeTransformer):
    def __init__(self, chosen: frozenset[Edit]) -> None:
        """`chosen`: (number of a node, what is made of it)."""
        self._by_number: dict[object, list[str]] = {}
        for number, what in sorted(edit for edit in chosen if isinstance(edit, tuple)):
            self._by_number.setdefault(number, []).append(str(what))

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """The node as changed; None or a list of statements for one that goes."""
        wanted = self._by_number.get(_number(node), [])
        if "gone" in wanted:
            return None
        made = super().generic_visit(node)
        if isinstance(made, ast.stmt) and getattr(made, "body", None) == []:
            made.__dict__["body"] = [ast.Pass()]
        for what in wanted:
            name, _, place = what.partition(" ")
            if name == "keyword" and isinstance(made, ast.Call):
                made.keywords = [one for number, one in enumerate(made.keywords) if number != int(place)]
            elif name == "args" and isinstance(made, ast.Call):
                return made.args[int(place)]
            elif isinstance(made, ast.stmt):
                return _one_iteration(made) if isinstance(made, ast.For) else getattr(made, name)
            elif hasattr(made, name):
                return getattr(made, name)
        return made


def _one_iteration(loop: ast.For) -> list[ast.stmt]:
    given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    begin: ast.expr = given[0] if len(given) > 1 else ast.Constant(0)
    return [ast.Assign([loop.target], begin), *loop.body]


@dataclass(frozen=True, slots=True)
class CaseSize:
    operations: int
    """The module and its functions included."""
    characters: int
    """Of the text in MLIR's custom form, without locations."""
    passes: int
    """How many may run, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    capture: Capture
    kept: str
    """The preserved property, in words."""
    versions: tuple[tuple[str, str], ...]
    """(program, version) of what compiles it."""
    failure: Failure | None
    """How it fails; None where what is kept is no failure."""
    taken: tuple[tuple[str, int], ...]
    """(step, how many places it shrank), in the order in which they first helped."""
    compiled: int
    """How many candidates were compiled."""
    seconds: float
    signal: int = 0
    """The signal that interrupted it, so that the smallest may not be found yet; 0 for none."""

    @property
    def is_complete(self) -> bool:
        return not self.signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced(_Result):
    """The smallest IR that was found."""

    origin: str
    """The text that it began with: `before ttgir:pipeline#1`, `stage ttir`."""
    into: str
    """The stage whose passes run on the text."""
    before: CaseSize
    after: CaseSize
    case: Case
    text: str
    """The reduced text in MLIR's custom form."""
    passes: tuple[PassSnapshot, ...]
    """Those that run on it, up to the failure."""
    repeated: int
    """How many candidates were known already."""
    goes_on: bool = True
    """Whether what was found out of candidates is kept for the next time."""
    is_steady: bool = True
    """False if what is kept was not so when the result was compiled again, three times."""
    hangs_after_s: float = 0.0
    """The time limit of a candidate, where what is kept is that it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedPython(_Result):
    """The smallest Python text of a kernel that was found."""

    case: PythonCase
    lines_before: int
    """Without comments and blank lines."""
    options: tuple[tuple[str, Any], ...]

    @property
    def lines(self) -> int:
        """Without comments and blank lines."""
        return sum(1 for line in self.case.text.splitlines() if line.strip())


# kernel.py:24:1: error: 'tt.load' op …   |  ptxas kernel.ptx, line 5; error   : Not a name …
_BEFORE = re.compile(r"^.*?\b(?:error|fatal)\s*: ")
# (FMA.cpp:28, Multiplier::multiply)
_PLACE = re.compile(r"\((?P<file>[\w.+-]+):\d+(?P<rest>[^()]*)\)$")
# "/tmp/x.ttgir"   /tmp/tmpab12.ptx
_PATH = re.compile(r"""(?:/[\w.+-]+){2,}""")
# failed to legalize operation 'cf.br' that was explicitly marked illegal: "cf.br"(%0)[^bb1] : (i32) -> ()
_OPERATION = re.compile(r': (?:%[^"=]* = )?"[\w.]+"\(.*$')
# tensor<64x32xf16, #blocked>   !ttg.memdesc<…>   #ttg.blocked<{…}>; the innermost of what is nested
_TYPE = re.compile(r"(?P<name>\b(?:tensor|vector|memref|memdesc|struct)|[!#]\w+(?:\.\w+)*)<(?:[^<>]|->)*>")
# ('i32')   'tensor'   '!tt.ptr': of several types the compiler names one or another
_QUOTED = re.compile(r"'(?:i\d+|b?f\d+\w*|index|tensor|vector|!\w+(?:\.\w+)*)'")
# @triton.language.standard.zeros__Tc32
_SYMBOL = re.compile(r"@[\w.$-]+")
# %acc_12#1  |  #blocked3  |  !type2  |  ^bb4
_NAME = re.compile(r"[%^][\w$.-]+(?:#\d+)?|(?<!\w)[#!][A-Za-z_]\w*\b(?![.<])")
# %r12, %rd3, %p1, %f7 of PTX, and $L__BB0_2; not %clusterid.x, which is one register of the GPU
_VIRTUAL = re.compile(r"%[a-z]{1,3}\d+\b|\$L_\w+")
# 131072, 1.5e-3; not that of sm_90a or gfx942, which is another target
_NUMBER = re.compile(r"(?P<target>\b(?:sm_|compute_|gfx)\w+)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Likeness:
    """The features that equal failures have in common."""

    kind: FailureKind
    where: str
    """The pass without its number, or the stage; empty if that is not known."""
    said: str
    """The first line of the message, without what `plain_message` leaves out."""

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.where or self.kind, self.said]))

    def is_of(self, failure: Failure | None) -> bool:
        return failure is not None and likeness_of(failure) == self


def likeness_of(failure: Failure) -> Likeness:
    """What must be the same of another failure."""
    where = failure.pass_label.partition("#")[0] or failure.stage
    # The names that a program chose: those in an assembler's messages are its virtual registers.
    names = _VIRTUAL if failure.kind == "assembler" else _NAME
    # A time-out says how long it took.
    said = "" if failure.kind == "timeout" else plain_message(failure.headline, names)
    return Likeness(failure.kind, where, said)


def without_place(line: str) -> str:
    """A line of a message without the place in a file that it begins with."""
    return _BEFORE.sub("", line.strip())


def plain_message(line: str, names: re.Pattern[str] = _NAME) -> str:
    """A line of a message without what differs between programs that fail alike: numbers, names, places, and what the
    brackets of types hold."""
    line = _PLACE.sub(lambda match: f"({match['file']}{match['rest']})", without_place(line))
    line = _OPERATION.sub("", line)
    while (shorter := _TYPE.sub(r"\g<name>", line)) != line:
        line = shorter
    for pattern, text in ((_QUOTED, "TYPE"), (_PATH, "PATH"), (_SYMBOL, "@"), (names, "%")):
        line = pattern.sub(text, line)
    line = _NUMBER.sub(lambda match: match["target"] or "N", line)
    return " ".join(line.split())
