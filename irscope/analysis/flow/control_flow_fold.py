"""Folds a control flow until it is small enough to read: consecutive blocks first, then loops, then stretches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from irscope.analysis.flow.dataflow import NO_LINES, within
from irscope.errors import UsageError, did_you_mean
from irscope.ir.asm.control_flow import UNKNOWN, BasicBlock, ControlFlow, Jump, Loop
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.readers import llvm_role, operation_name
from irscope.model.capture import StageKind

_LEVELS = (
    "every basic block",
    "blocks that only follow one another are joined",
    "loops within loops are folded",
    "every loop is folded",
    "blocks are folded in the order of the text",
)
HARDEST = len(_LEVELS) - 1

_Group = tuple[str, int]
"""`blocks`, `loop` or `stretch`, and which."""


@dataclass(frozen=True)
class FoldedFlow:
    """Graphs that are small enough together, and how they were folded."""

    flows: tuple[ControlFlow, ...]
    level: int
    blocks: int
    instructions: int
    left_out: int = 0
    """How many jumps were left out, because no folding made them few enough."""

    @property
    def note(self) -> str:
        """One line for the reader: how many instructions and blocks are in how many nodes."""
        drawn = sum(len(flow.blocks) for flow in self.flows)
        text = f"{self.instructions} instructions, {self.blocks} basic blocks in {drawn} nodes: {_LEVELS[self.level]}"
        return f"{text}; {self.left_out} jumps are left out" if self.left_out else text


def fold_flows(flows: tuple[ControlFlow, ...], level: int | None = None, most: int = 120) -> FoldedFlow:
    """Fold as little as leaves at most `most` blocks, and about twice as many jumps: what dot can lay out.

    `level`: 0 to 4, the least to fold; by default nothing.
    """
    blocks, instructions = sum(len(flow.blocks) for flow in flows), sum(flow.instructions for flow in flows)
    level = min(level or 0, HARDEST)
    most_jumps, share = 2 * most + 20, most
    while True:
        folded = tuple(_at_level(flow, level, max(1, share * len(flow.blocks) // max(blocks, 1))) for flow in flows)
        drawn, jumps = sum(len(flow.blocks) for flow in folded), sum(len(flow.jumps) for flow in folded)
        if (drawn <= most and jumps <= most_jumps) or (level == HARDEST and share <= 8):
            break
        level, share = (level + 1, share) if level < HARDEST else (level, share // 2)
    left_out = max(jumps - most_jumps, 0)
    if left_out:
        folded = tuple(replace(flow, jumps=flow.jumps[: most_jumps // len(folded)]) for flow in folded)
    return FoldedFlow(folded, level, blocks, instructions, left_out)


def _at_level(flow: ControlFlow, level: int, most: int) -> ControlFlow:
    if level == 0:
        return flow
    if level in (2, 3):
        outer = [loop for loop in flow.loops if level == 3 or any(loop.body < other.body for other in flow.loops)]
        home: dict[int, _Group] = {}
        for loop in outer:  # the outer loops come first
            for block in loop.body:
                home.setdefault(block, ("loop", loop.head))
        flow = _merged(flow, lambda block: home.get(block.number, ("blocks", block.number)))
    if level < HARDEST:
        return _joined(flow)
    size = -(-len(flow.blocks) // most)
    places = {block.number: place // size for place, block in enumerate(flow.blocks)}
    return _merged(flow, lambda block: ("stretch", places[block.number]))


def _joined(flow: ControlFlow) -> ControlFlow:
    """Blocks with the only block that runs behind them, where nothing else leads there and both are in one loop."""
    after: dict[int, list[Jump]] = {}
    before: dict[int, list[Jump]] = {}
    for jump in flow.jumps:
        after.setdefault(jump.source, []).append(jump)
        before.setdefault(jump.target, []).append(jump)
    inside: dict[int, int] = {block: place for place, loop in enumerate(flow.loops) for block in loop.body}
    folded = {block.number for block in flow.blocks if block.is_loop}
    home = {block.number: block.number for block in flow.blocks}
    for block in flow.blocks:
        only = after.get(block.number, [])
        if len(only) != 1 or only[0].kind != "falls" or only[0].back:
            continue
        target = only[0].target
        if (
            not {block.number, target} & folded
            and len(before[target]) == 1
            and inside.get(target) == inside.get(block.number)
        ):
            home[target] = home[block.number]
    return _merged(flow, lambda block: ("blocks", home[block.number]))


def _merged(flow: ControlFlow, group_of: Callable[[BasicBlock], _Group]) -> ControlFlow:
    """One block for each group, with the number of its first."""
    groups: dict[_Group, list[BasicBlock]] = {}
    for block in flow.blocks:
        groups.setdefault(group_of(block), []).append(block)
    key_of = {block.number: key for key, members in groups.items() for block in members}
    number_of = {block.number: groups[key_of[block.number]][0].number for block in flow.blocks}
    jumps: dict[tuple[int, int, str, bool], Jump] = {}
    for jump in flow.jumps:
        source, target = number_of[jump.source], number_of.get(jump.target, UNKNOWN)
        # Blocks that were joined still go back to themselves; of what is folded that is not shown.
        if source == target and not (jump.back and key_of[jump.source][0] == "blocks"):
            continue
        jumps.setdefault((source, target, jump.kind, jump.back), replace(jump, source=source, target=target))
    loops = dict.fromkeys(
        Loop(number_of[loop.head], frozenset(number_of[block] for block in loop.body))
        for loop in flow.loops
        if key_of[loop.head][0] == "blocks"
    )
    merged = tuple(_one(members, key[0] == "loop") for key, members in groups.items())
    return ControlFlow(flow.function, merged, tuple(jumps.values()), tuple(loops))


def _one(members: list[BasicBlock], is_loop: bool) -> BasicBlock:
    first = members[0]
    if len(members) == 1 and not is_loop:
        return first
    return BasicBlock(
        first.number,
        first.labels,
        tuple(item for block in members for item in block.instructions),
        members[-1].ending,
        tuple(dict.fromkeys(name for block in members for name in block.calls)),
        sum(block.blocks for block in members),
        is_loop,
        all(block.faded for block in members),
    )


def blocks_around(flows: tuple[ControlFlow, ...], place: str, depth: int) -> tuple[ControlFlow, ...]:
    """The blocks within some steps of one, up and down.

    `place`: a label, `block 3`, or a register: then the blocks with instructions that name it.
    Raises UsageError where nothing has that name.
    """
    labelled = has_label(flows, place)

    def is_meant(block: BasicBlock) -> bool:
        return (
            place in _block_names(block) if labelled else any(mentions(one.text, place) for one in block.instructions)
        )

    found = [{block.number for block in flow.blocks if is_meant(block)} for flow in flows]
    if not any(found):
        labels = [label for flow in flows for block in flow.blocks for label in block.labels]
        raise UsageError(
            f"--around {place!r}: no block has that label, and no instruction names it.{did_you_mean(place, labels)}"
        )
    return tuple(_near(flow, numbers, depth) for flow, numbers in zip(flows, found, strict=True) if numbers)


def has_label(flows: tuple[ControlFlow, ...], place: str) -> bool:
    """Whether a block has that label; else it is a register that is meant."""
    return any(place in _block_names(block) for flow in flows for block in flow.blocks)


def _block_names(block: BasicBlock) -> set[str]:
    """The names by which a user may select a block: `.L_x_1`, `L_x_1`; in LLVM IR `12`, `%12`."""
    return {
        *block.labels,
        *(f"%{label}" for label in block.labels),
        *(label.lstrip(".$") for label in block.labels),
        f"block {block.number}",
    }


def mentions(text: str, register: str) -> bool:
    """Whether an instruction's text has a word: `R1` is not in `R12`."""
    start = text.find(register)
    while start >= 0:
        end = start + len(register)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() or before in ("_", "%", "$", ".")) and not (after.isalnum() or after == "_"):
            return True
        start = text.find(register, end)
    return False


def blocks_on_lines(flows: tuple[ControlFlow, ...], text_lines: Collection[int]) -> tuple[ControlFlow, ...]:
    """The blocks with instructions on some lines of the text, and their neighbours, which are faded.

    Raises UsageError where there are none.
    """
    found = [
        {block.number for block in flow.blocks if any(item.line in text_lines for item in block.instructions)}
        for flow in flows
    ]
    if not any(found):
        raise UsageError(NO_LINES)
    return tuple(_near(flow, numbers, 1, faded=True) for flow, numbers in zip(flows, found, strict=True) if numbers)


def _near(flow: ControlFlow, numbers: set[int], depth: int, faded: bool = False) -> ControlFlow:
    jumps = [(jump.source, jump.target) for jump in flow.jumps if jump.target != UNKNOWN]
    kept = within(numbers, jumps, depth)
    blocks = [
        replace(block, faded=faded and block.number not in numbers) for block in flow.blocks if block.number in kept
    ]
    among = [jump for jump in flow.jumps if jump.source in kept and (jump.target in kept or jump.target == UNKNOWN)]
    loops = [Loop(loop.head, loop.body & frozenset(kept)) for loop in flow.loops if loop.head in kept]
    return ControlFlow(flow.function, tuple(blocks), tuple(among), tuple(loops))


Part = Literal["dot", "memory", "shared", "spill", "exchange", "sync"]

PARTS: dict[Part, str] = {
    "dot": "matrix multiplication",
    "memory": "global memory",
    "shared": "shared and tensor memory",
    "exchange": "between threads",
    "sync": "waits, barriers, fences",
    "spill": "local memory: spills",
}
"""Every part, in the order of a block's rows, and what it is."""

_FAMILIES: tuple[tuple[Part, tuple[str, ...]], ...] = (
    (
        "sync",
        ("barrier", "mbarrier", "fence", "wait", "cp.async.wait", "wgmma.control", "tcgen05.control", "tma.control"),
    ),
    ("dot", ("mma", "wgmma", "tcgen05.mma", "mfma", "wmma")),
    ("spill", ("ld.local", "st.local")),
    ("shared", ("ld.shared", "st.shared", "ldmatrix", "stmatrix", "atomic.shared", "tcgen05.")),
    ("memory", ("ld.global", "st.global", "ld.generic", "st.generic", "atomic.global", "cp.async", "tma.")),
    ("exchange", ("shuffle", "warp.", "readlane")),
)
_LLVM: dict[str, Part] = {"dot": "dot", "memory": "memory", "shared": "shared", "reduce": "exchange", "sync": "sync"}


@dataclass(frozen=True, slots=True)
class PartRow:
    """The instructions of one kind in a block."""

    part: Part
    name: str
    """`ld.global.128`; for LLVM IR the name of what is called."""
    count: int


def parts_of(instructions: Iterable[Instruction], kind: StageKind) -> tuple[PartRow, ...]:
    """The kinds of instructions that stand out, by part, the most frequent first."""
    counts: Counter[tuple[Part, str]] = Counter()
    for item in instructions:
        found = _llvm_part(item) if kind == "llvm" else _part(item.family or "")
        if found is not None:
            counts[found] += 1
    order = list(PARTS)
    rows = [PartRow(part, name, count) for (part, name), count in counts.items()]
    return tuple(sorted(rows, key=lambda row: (order.index(row.part), -row.count, row.name)))


def _part(family: str) -> tuple[Part, str] | None:
    for part, names in _FAMILIES:
        if family in names or (part not in ("sync", "dot") and family.startswith(names)):
            return part, family
    return None


def _llvm_part(item: Instruction) -> tuple[Part, str] | None:
    name = operation_name(item.opcode, item.text)
    shared = name in ("load", "store") and "addrspace(3)" in item.text
    part = _LLVM.get(llvm_role(f"{name} addrspace(3)" if shared else name))
    return None if part is None else (part, f"{name} (shared)" if shared else name)
