"""The memory instructions of the assembly per operation: accesses and their widths, shuffles, barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.locations.model import Chain, columns_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.uses import ModuleUses
from irscope.model.capture import Capture

Places = tuple[tuple[str, int, int], ...]
_Origin = TypeVar("_Origin", int, Places)
Action = Literal[
    "global load", "global store", "async copy", "shared load", "shared store", "matrix load", "matrix store",
    "shuffle", "barrier", "bulk copy", "atomic",
]  # fmt: skip
_AccessAction = Literal["load", "store", "atomic", "copy"]

_ACTIONS: dict[str, Action] = {
    "ld.global": "global load", "st.global": "global store", "cp.async": "async copy",
    "ld.shared": "shared load", "st.shared": "shared store", "ldmatrix": "matrix load", "stmatrix": "matrix store",
    "shuffle": "shuffle", "barrier": "barrier", "atomic.global": "atomic", "atomic.shared": "atomic",
    **dict.fromkeys(("tma.load", "tma.store", "tma.copy", "tma.prefetch"), "bulk copy"),
}  # fmt: skip
"""By the family of an instruction, without its width."""
_AMDGCN: dict[str, Action] = {"ld.generic": "global load", "st.generic": "global store", "cp.async": "global load"}
"""What AMD GPU assembly has in other ways: flat accesses are global ones, and a load to LDS is a load."""
_WITHOUT_SHARED = (
    "load", "store", "trans", "splat", "unsplat", "expand_dims", "broadcast", "addptr", "make_range", "reshape",
    "get_program_id", "get_num_programs",
)  # fmt: skip
"""Opcodes that never go through shared memory themselves, besides those of scalar dialects."""


_OPCODES: dict[_AccessAction, str] = {
    "load": "load buffer_load descriptor_load descriptor_gather async_tma_copy_global_to_local async_tma_gather",
    "store": "store buffer_store descriptor_store descriptor_scatter async_tma_copy_local_to_global async_tma_scatter",
    "atomic": "atomic_rmw atomic_cas buffer_atomic_rmw buffer_atomic_cas descriptor_reduce async_tma_reduce",
    "copy": "async_copy_global_to_local buffer_load_to_local",
}
ACCESSES: dict[str, _AccessAction] = {
    opcode: action for action, opcodes in _OPCODES.items() for opcode in opcodes.split()
}
"""Opcode → what it does. A `copy` writes to shared memory, and leaves out lanes with copies as a store does."""
_ACTIONS_OF: dict[_AccessAction, tuple[Action, ...]] = {
    "load": ("global load", "async copy"),
    "copy": ("async copy", "global load"),
    "store": ("global store",),
    "atomic": ("atomic",),
}
"""The instructions that each kind of access becomes."""


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One memory instruction, shuffle or barrier of the assembly."""

    line: int
    """In the assembly, 1-based."""
    action: Action
    bits: int
    """Per lane; 0 if it has no width."""


@dataclass(frozen=True)
class MemoryInstructions:
    """The memory instructions of an assembly text, by the operation of the TTGIR that they are from."""

    instructions: Mapping[int, Sequence[MachineInstruction]] = field(
        default_factory=dict[int, "Sequence[MachineInstruction]"]
    )
    """By line of the TTGIR."""
    text_stage: str = ""
    """`ptx` or `amdgcn`; or an empty string if the capture has neither."""
    by_operation: bool = False
    """Whether they are the operation's own; otherwise all operations of one chain of Python frames have the same."""

    def at(self, line: int) -> Counter[tuple[Action, int]]:
        """(action, bits per lane) → number of instructions of the operation that begins on a line of the TTGIR."""
        return Counter((one.action, one.bits) for one in self.instructions_at(line))

    def instructions_at(self, line: int) -> Sequence[MachineInstruction]:
        """The instructions of the operation that begins on a line of the TTGIR, 1-based."""
        return self.instructions.get(line, ())

    def widths(self, line: int, actions: Iterable[Action]) -> Counter[int]:
        """Bits per lane → number of instructions, of some actions of an operation."""
        wanted = set(actions)
        return Counter(one.bits for one in self.instructions_at(line) if one.action in wanted)

    def widths_of(self, operation: Operation) -> Counter[int]:
        """Bits per lane → number of instructions of an access of the TTGIR. The one use of the join."""
        found = self.widths(operation.first_line, _ACTIONS_OF[ACCESSES[operation.opcode]])
        return Counter({width: number for width, number in found.items() if width})

    def count(self, line: int, *actions: Action) -> int:
        return sum(self.widths(line, actions).values())


def read_machine(capture: Capture) -> MemoryInstructions:
    """The memory instructions of a capture's PTX or AMDGCN."""
    texts = {item.stage: item.data for item in capture.artifacts if isinstance(item.data, str)}
    stage = next((name for name in ("ptx", "amdgcn") if name in texts), "")
    if not stage:
        return MemoryInstructions()
    own = next((row.by_line for row in capture.operations if row.stage == stage and row.runs), ())
    if own:
        return MemoryInstructions(_of_memory(texts[stage], stage, own), stage, by_operation=True)
    origins, at = places_by_line(texts, stage)
    found = _of_memory(texts[stage], stage, origins)
    return MemoryInstructions({line: found[place] for line, place in at.items() if place in found}, stage)


def users_of_shared(uses: ModuleUses) -> Counter[Chain]:
    """Place in Python → how many operations there may use shared memory."""
    scalar = ("arith.", "math.", "scf.", "cf.")
    return Counter(
        uses.locations.chain_at(use.first_line)
        for use in uses.operations
        if use.opcode not in _WITHOUT_SHARED and not use.name.startswith(scalar)
    )


def places_by_line(texts: Mapping[str, str], stage: str) -> tuple[list[Places], dict[int, Places]]:
    """(the place in Python of every line of the PTX or AMDGCN, line of the TTGIR, 1-based → its place).

    A place is that of each frame: file, line, column; of a line of assembly without one it is empty.
    """
    locations = read_locations(texts[stage], "ptx" if stage == "ptx" else "amdgcn", llir=texts.get("llir"))
    keys = [columns_of(chain) for chain in locations.chains]
    operations = read_locations(texts.get("ttgir", ""), "mlir")
    places = [columns_of(chain) for chain in operations.chains]
    at = {line: places[index] for line, index in enumerate(operations.by_line, 1) if index >= 0}
    return [keys[index] if index >= 0 else () for index in locations.by_line], at


def by_origin(text: str, stage: str, origins: Sequence[_Origin]) -> dict[_Origin, list[Instruction]]:
    """The instructions of each origin; `origins` has that of every line, and an empty one for none."""
    found: dict[_Origin, list[Instruction]] = {}
    for item in read_instructions(text, "ptx" if stage == "ptx" else "amdgcn"):
        if item.line <= len(origins) and origins[item.line - 1]:
            found.setdefault(origins[item.line - 1], []).append(item)
    return found


def _of_memory(text: str, stage: str, origins: Sequence[_Origin]) -> dict[_Origin, list[MachineInstruction]]:
    found: dict[_Origin, list[MachineInstruction]] = {}
    for origin, items in by_origin(text, stage, origins).items():
        for item in items:
            if (action := read_action(item)) is not None:
                found.setdefault(origin, []).append(MachineInstruction(item.line, *action))
    return found


def count_actions(text: str, stage: str, *actions: Action) -> int:
    """Number of instructions of some actions in all of a PTX or AMDGCN."""
    found = map(read_action, read_instructions(text, "ptx" if stage == "ptx" else "amdgcn"))
    return sum(one is not None and one[0] in actions for one in found)


def read_action(item: Instruction) -> tuple[Action, int] | None:
    """(action, bits per lane) of an instruction; None if it is not a memory access, shuffle or barrier."""
    is_ptx, family = item.kind == "ptx", item.family or ""
    name, _, width = family.rpartition(".")
    family = (name if width.isdecimal() else family).removesuffix(".tr")
    action = _ACTIONS.get(family) if is_ptx else _AMDGCN.get(family) or _ACTIONS.get(family)
    if action is None or item.opcode.startswith(("movmatrix", "multimem")) or item.opcode.endswith(_DPP):
        return None
    if is_ptx and action != "async copy":
        opcode = ptx_opcode(item.opcode)
        return action, opcode.bits if opcode.types else 0
    bits = int(width) if width.isdecimal() else 32 if action == "shuffle" else 0
    # Two accesses in one instruction are as wide as either.
    return action, bits // 2 if any(word in item.opcode for word in _OF_TWO) else bits


_OF_TWO = ("ds_read2", "ds_write2", "_2addr")
_DPP = ("_dpp", "_dpp8", "_dpp16")
"""Suffixes of arithmetic that reads other lanes, which is no shuffle of its own."""
