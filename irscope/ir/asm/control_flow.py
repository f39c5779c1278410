"""Functions of assembly and LLVM IR as basic blocks, the jumps between them, and the loops that these make.

A block ends before a label and after every instruction that may go elsewhere: branches, ends, calls. nvdisasm cuts
SASS the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from irscope.ir.asm.instructions import Branch, Ending, Function, Instruction
from irscope.ir.asm.readers import parse_amdgcn, parse_llvm, parse_ptx
from irscope.ir.asm.sass import parse_sass
from irscope.ir.reach import reached
from irscope.model.capture import StageKind

_LAST = 1 << 62
UNKNOWN = -1
"""The target of a jump that the text does not name: the address stands in a register, or the label elsewhere."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions that run one after the other; of a folded graph, several such blocks."""

    number: int
    labels: tuple[str, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    ending: Ending = ""
    """The instruction that ends the program or the function here, if any."""
    calls: tuple[str, ...] = ()
    """The functions it calls; an empty name where a register holds the address."""
    blocks: int = 1
    is_loop: bool = False
    faded: bool = False
    """Whether it is only a neighbour of the selected blocks."""

    @property
    def name(self) -> str:
        return self.labels[0] if self.labels else f"block {self.number}"


@dataclass(frozen=True, slots=True)
class Jump:
    """The possible successors of a block."""

    source: int
    target: int
    """The number of a block, or `UNKNOWN`."""
    kind: Literal["falls", "jumps", "calls"]
    condition: str = ""
    """`@!P0`, `scc1`, `true`; an empty string if it is always taken or falls through."""
    back: bool = False
    """Whether it goes back to a block that leads here: the next iteration of a loop."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its first block, and all that lead back to it."""

    head: int
    body: frozenset[int]
    """The numbers of its blocks, the first among them."""


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """The graph of one function; in SASS of a kernel with the functions behind it."""

    function: str
    blocks: tuple[BasicBlock, ...] = ()
    jumps: tuple[Jump, ...] = ()
    loops: tuple[Loop, ...] = ()
    """The outer before the inner."""

    @property
    def instructions(self) -> int:
        return sum(len(block.instructions) for block in self.blocks)


def read_functions(text: str, kind: StageKind) -> tuple[Function, ...]:
    """The functions of a text, without the padding behind their code. Never raises: unreadable lines are skipped."""
    if kind == "ptx":
        return parse_ptx(text)
    if kind == "sass":
        return tuple([function.without_padding() for function in parse_sass(text)])
    if kind == "llvm":
        return parse_llvm(text)
    return parse_amdgcn(text) if kind == "amdgcn" else ()


def read_instructions(text: str, kind: StageKind) -> list[Instruction]:
    """All instructions of a text in its order, the padding behind a function of SASS among them."""
    functions = parse_sass(text) if kind == "sass" else read_functions(text, kind)
    return [item for function in functions for item in function.instructions]


def read_control_flow(text: str, kind: StageKind) -> tuple[ControlFlow, ...]:
    """The control flow of each function of a text of PTX, SASS, AMDGCN or LLVM IR with instructions. Never raises."""
    return tuple(control_flow_of(function) for function in read_functions(text, kind) if function.instructions)


def control_flow_of(function: Function) -> ControlFlow:
    code = function.instructions
    branches = {index: branch for index, item in enumerate(code) if (branch := item.branch) is not None}
    labels: dict[int, list[str]] = {}
    for label in function.labels:
        labels.setdefault(label.index, []).append(label.name)
    starts = sorted({0, *labels, *(index + 1 for index in branches)} & set(range(len(code))))
    targets = _Targets(function, starts)
    blocks: list[BasicBlock] = []
    jumps: list[Jump] = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(code)], strict=True)):
        branch = branches.get(end - 1, Branch(falls=True))
        blocks.append(BasicBlock(number, tuple(labels.get(start, ())), code[start:end], branch.ending, branch.calls))
        jumps.extend(_jumps(number, branch, targets, end - 1, number + 1 < len(starts)))
    back = _back_edges(len(blocks), jumps)
    jumps = [replace(one, back=one.kind != "calls" and (one.source, one.target) in back) for one in jumps]
    return ControlFlow(function.name, tuple(blocks), tuple(jumps), _loops(jumps))


class _Targets:
    """The blocks that the labels of a function stand at."""

    def __init__(self, function: Function, starts: list[int]) -> None:
        numbers = {start: number for number, start in enumerate(starts)}
        self._of_all: dict[str, int] = {}
        self._of_scope: dict[str, list[tuple[int, int, int]]] = {}
        """Label → first and last instruction that can name it, and its block, in the order of the text."""
        for label in function.labels:
            number = numbers.get(label.index, UNKNOWN)
            if label.scope is None:
                self._of_all[label.name] = number
            else:
                self._of_scope.setdefault(label.name, []).append((*label.scope, number))

    def block(self, label: str, index: int) -> int:
        """The block that an instruction at an index goes to by a label; `UNKNOWN` if the function has none there."""
        scopes = self._of_scope.get(label, [])
        place = bisect_right(scopes, (index, _LAST, _LAST)) - 1
        if place >= 0 and index < scopes[place][1]:
            return scopes[place][2]
        return self._of_all.get(label, UNKNOWN)


def _jumps(number: int, branch: Branch, targets: _Targets, index: int, has_next: bool) -> Iterable[Jump]:
    for target, condition in branch.targets:
        yield Jump(number, targets.block(target, index), "jumps", condition)
    if branch.is_unknown:
        yield Jump(number, UNKNOWN, "jumps", branch.condition)
    for name in branch.calls:
        if (target := targets.block(name, index)) != UNKNOWN:
            yield Jump(number, target, "calls")
    if branch.falls and has_next:
        yield Jump(number, number + 1, "falls")


def _back_edges(count: int, jumps: Iterable[Jump]) -> set[tuple[int, int]]:
    """The edges to a block that is still being followed, depth first from each block that nothing before it reached."""
    successors: dict[int, list[int]] = {}
    for jump in jumps:
        if jump.kind != "calls" and jump.target != UNKNOWN:
            successors.setdefault(jump.source, []).append(jump.target)
    back: set[tuple[int, int]] = set()
    state = [0] * count  # 1: being followed; 2: done
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        path = [(root, iter(successors.get(root, ())))]
        while path:
            block, following = path[-1]
            target = next(following, None)
            if target is None:
                state[block] = 2
                path.pop()
            elif state[target] == 1:
                back.add((block, target))
            elif not state[target]:
                state[target] = 1
                path.append((target, iter(successors.get(target, ()))))
    return back


def _loops(jumps: Iterable[Jump]) -> tuple[Loop, ...]:
    """The natural loop of each block that an edge goes back to; none if the loop has another entry."""
    jumps = [jump for jump in jumps if jump.kind != "calls" and jump.target != UNKNOWN]
    before: dict[int, list[int]] = {}
    for jump in jumps:
        before.setdefault(jump.target, []).append(jump.source)
    bodies: dict[int, set[int]] = {}
    for jump in jumps:
        if not jump.back:
            continue
        head = jump.target
        body = reached([jump.source], lambda block, head=head: before.get(block, ()) if block != head else ())
        bodies.setdefault(head, {head}).update(body)
    natural = [
        Loop(head, frozenset(body))
        for head, body in bodies.items()
        if not any(source not in body for block in body - {head} for source in before.get(block, ()))
        and (0 not in body or head == 0)
    ]
    return tuple(sorted(natural, key=lambda loop: (-len(loop.body), loop.head)))
