"""The memory instructions of the assembly per operation: accesses and their widths, shuffles, barriers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.locations.model import Chain
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

# global_load_dwordx4   buffer_store_short   global_load_d16_b16   buffer_load_b128   global_load_lds_dwordx4
_AMD_DWORDS = re.compile(r"_dword(?:x(\d))?\b|_dword(?:x(\d))?_")
_AMD_BITS = re.compile(r"_[bui](8|16|32|64|96|128)\b")

# arith.addf    tt.load    tt.trans: what never goes through shared memory itself
_WITHOUT_SHARED = re.compile(
    r"(?:arith|math|scf|cf)\.|tt\.(?:load|store|trans|splat|unsplat|expand_dims|broadcast|addptr|make_range|reshape|get_)"
)

_PTX: tuple[tuple[str, Action], ...] = (
    ("ld.global", "global load"), ("st.global", "global store"), ("cp.async.bulk", "bulk copy"),
    ("cp.async.ca", "async copy"), ("cp.async.cg", "async copy"),
    ("ldmatrix", "matrix load"), ("stmatrix", "matrix store"), ("ld.shared", "shared load"),
    ("st.shared", "shared store"),
    ("shfl.sync", "shuffle"), ("bar", "barrier"), ("red.", "atomic"), ("atom.", "atomic"),
)  # fmt: skip
_AMDGCN: tuple[tuple[str, Action], ...] = (
    ("global_load", "global load"), ("buffer_load", "global load"), ("flat_load", "global load"),
    ("global_store", "global store"), ("buffer_store", "global store"), ("flat_store", "global store"),
    ("ds_read", "shared load"), ("ds_load", "shared load"), ("ds_write", "shared store"), ("ds_store", "shared store"),
    ("ds_bpermute", "shuffle"), ("ds_permute", "shuffle"), ("ds_swizzle", "shuffle"), ("v_permlane", "shuffle"),
    ("s_barrier", "barrier"), ("global_atomic", "atomic"), ("buffer_atomic", "atomic"), ("ds_add", "atomic"),
)  # fmt: skip


ACCESSES: dict[str, _AccessAction] = {
    "load": "load",
    "store": "store",
    "atomic_rmw": "atomic",
    "atomic_cas": "atomic",
    "async_copy_global_to_local": "copy",
    "buffer_load": "load",
    "buffer_store": "store",
    "buffer_load_to_local": "copy",
    "buffer_atomic_rmw": "atomic",
    "buffer_atomic_cas": "atomic",
    "descriptor_load": "load",
    "descriptor_gather": "load",
    "descriptor_store": "store",
    "descriptor_scatter": "store",
    "descriptor_reduce": "atomic",
    "async_tma_copy_global_to_local": "load",
    "async_tma_gather": "load",
    "async_tma_copy_local_to_global": "store",
    "async_tma_scatter": "store",
    "async_tma_reduce": "atomic",
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
        result: Counter[int] = Counter()
        for (action, bits), number in self.at(line).items():
            if action in wanted:
                result[bits] += number
        return result

    def widths_of(self, operation: Operation) -> Counter[int]:
        """Bits per lane → number of instructions of an access of the TTGIR. The one use of the join."""
        found = self.widths(operation.first_line, _ACTIONS_OF[ACCESSES[operation.opcode]])
        return Counter({width: number for width, number in found.items() if width})

    def count(self, line: int, *actions: Action) -> int:
        """Number of instructions of some actions of an operation."""
        return sum(self.widths(line, actions).values())


def read_machine(capture: Capture) -> MemoryInstructions:
    """The memory instructions of a capture's PTX or AMDGCN."""
    texts = {item.stage: item.data for item in capture.artifacts if isinstance(item.data, str)}
    stage = next((name for name in ("ptx", "amdgcn") if name in texts), "")
    if not stage:
        return MemoryInstructions()
    own = next((row.by_line for row in capture.operations if row.stage == stage and row.runs), ())
    if own:
        return MemoryInstructions(_by_origin(texts[stage], stage, own), stage, by_operation=True)
    origins, at = places_by_line(texts, stage)
    found = _by_origin(texts[stage], stage, origins)
    return MemoryInstructions({line: found[place] for line, place in at.items() if place in found}, stage)


def users_of_shared(uses: ModuleUses) -> Counter[Chain]:
    """Place in Python → how many operations there may use shared memory."""
    users = (use for use in uses.operations if not _WITHOUT_SHARED.match(use.name))
    return Counter(uses.chain_of(use) for use in users)


def places_by_line(texts: Mapping[str, str], stage: str) -> tuple[list[Places], dict[int, Places]]:
    """(the place in Python of every line of the PTX or AMDGCN, line of the TTGIR, 1-based → its place).

    A place is that of each frame: file, line, column; of a line of assembly without one it is empty.
    """
    locations = read_locations(texts[stage], "ptx" if stage == "ptx" else "amdgcn", llir=texts.get("llir"))
    keys = [_places_of(chain) for chain in locations.chains]
    operations = read_locations(texts.get("ttgir", ""), "mlir")
    places = [_places_of(chain) for chain in operations.chains]
    at = {line: places[index] for line, index in enumerate(operations.by_line, 1) if index >= 0}
    return [keys[index] if index >= 0 else () for index in locations.by_line], at


def _places_of(chain: Chain) -> Places:
    """A chain's places, without the names that only some texts have."""
    return tuple((frame.file, frame.line, frame.column) for frame in chain)


def _by_origin(text: str, stage: str, origins: Sequence[_Origin]) -> dict[_Origin, list[MachineInstruction]]:
    """The instructions of each origin; `origins` has that of every line, and an empty one for none."""
    found: dict[_Origin, list[MachineInstruction]] = {}
    for item in read_instructions(text, "ptx" if stage == "ptx" else "amdgcn"):
        origin = origins[item.line - 1] if item.line <= len(origins) else None
        action = read_action(item) if origin else None
        if origin and action is not None:
            found.setdefault(origin, []).append(MachineInstruction(item.line, *action))
    return found


def count_actions(text: str, stage: str, *actions: Action) -> int:
    """Number of instructions of some actions in all of a PTX or AMDGCN."""
    lines = text.count("\n") + 1
    found = _by_origin(text, stage, [1] * lines).get(1, ())
    return sum(one.action in actions for one in found)


def read_action(item: Instruction) -> tuple[Action, int] | None:
    """(action, bits per lane) of an instruction; None if it is not a memory access, shuffle or barrier."""
    if item.family == "tma.control":  # cp.async.bulk.commit_group copies nothing
        return None
    for beginning, action in _PTX if item.kind == "ptx" else _AMDGCN:
        if item.opcode.startswith(beginning):
            return action, _ptx_bits(item, action) if item.kind == "ptx" else _amd_bits(item.opcode)
    return None


def _ptx_bits(item: Instruction, action: Action) -> int:
    if action == "async copy":
        width = (item.family or "").rpartition(".")[2]
        return int(width) if width.isdecimal() else 0
    opcode = ptx_opcode(item.opcode)
    return opcode.bits if opcode.types else 0


def _amd_bits(opcode: str) -> int:
    if (match := _AMD_DWORDS.search(opcode)) is not None:
        return 32 * int(match[1] or match[2] or 1)
    for word, bits in (("short", 16), ("byte", 8), ("d16", 16)):
        if word in opcode:
            return bits
    match = _AMD_BITS.search(opcode)
    return int(match[1]) if match else 0
