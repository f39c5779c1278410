"""Verifies shared and tensor memory of single CTAs of a launch, by thread, in the PTX or LLVM IR that was compiled."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from os.path import basename

import numpy as np

from irscope.errors import DAMAGE, NotComputed, NotRun
from irscope.ir.asm.control_flow import control_flow_of
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.llvm_threads import llvm_threads
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.readers import PtxFunction, parse_ptx
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.locations.stages import capture_locations
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.reach import reached
from irscope.machine.captured import Inputs
from irscope.machine.launch import held_arguments, pointers_of
from irscope.machine.memory import GlobalMemory
from irscope.machine.ptx import PRINTING, PtxCta
from irscope.machine.ptx_calls import with_calls
from irscope.machine.ptx_registers import CtaGroup, CtaListener, CtaMemory, DivergentBarrier, PtxStep, StuckThreads
from irscope.machine.ptx_tensor import PtxTensor
from irscope.machine.ptx_tiles import TensorMap
from irscope.machine.ptx_values import CtaGlobal
from irscope.machine.values import Array, Descriptor
from irscope.memory.addresses.parts import program_at
from irscope.model.capture import Capture, StageKind
from irscope.verify.shared import RaceKind, SharedOrder, SharedRace
from irscope.verify.verdict import KERNEL, AccessWitness, Violation, ViolationKind

DEFAULT_INSTRUCTIONS = 40_000
"""Executed of each CTA unless all programs are asked for: some seconds."""
_MOST_SHARED_BYTES = 232_448
_LOWERING = "the lowering to LLVM IR"
_DETAILS: Mapping[RaceKind, str] = {
    "no barrier": "no barrier and no mbarrier wait lies between them",
    "copy not awaited": "the asynchronous copy was not waited for",
    "matrix instruction not awaited": "no wait for the asynchronous matrix instruction",
    "tensor access not awaited": "the thread did not execute tcgen05.wait for the first",
    "store not awaited": "the thread did not wait for its copies (tma.store_wait)",
    "no proxy fence": "the second uses the asynchronous proxy, and no fence.proxy.async lies between them",
}
_WAITS: Mapping[RaceKind, tuple[str, ...]] = {
    "copy not awaited": ("async_wait", "wait_barrier"),
    "matrix instruction not awaited": ("warp_group_dot_wait", "wait_barrier"),
    "store not awaited": ("async_tma_store_wait",),
}
"""What a kind of race lacks → the operations that wait for it."""
_IN_LLVM = {
    "ld": "load", "st": "store", "bra": "br", "bar": "llvm.amdgcn.s.barrier", "atom": "atomicrmw",
    "cp": "load.async.lds",
}  # fmt: skip
"""An instruction as it is executed → as the LLVM IR of AMD GPUs writes it."""


def code_of_threads(capture: Capture) -> tuple[str, StageKind] | None:
    """The text that says what each thread does: the PTX, of AMD GPUs the LLVM IR; None if there is none."""
    stages: Mapping[str, StageKind] = {"ptx": "ptx"} if capture.target.backend == "cuda" else {"llir": "llvm"}
    return next(((text, kind) for stage, kind in stages.items() if (text := capture.texts.get(stage))), None)


def uses_shared(capture: Capture) -> bool:
    """Whether the code accesses shared memory, or waits for threads, at all."""
    code = code_of_threads(capture)
    return code is not None and any(word in code[0] for word in (".shared", "bar.", "barrier.", "addrspace(3)"))


@dataclass(eq=False)
class CtaVerifier:
    """Runs CTAs of a capture's PTX."""

    capture: Capture
    grid: tuple[int, int, int]
    inputs: Inputs
    paths: list[str]
    """The name of each of `inputs.given`."""
    written: frozenset[str]
    """Names of the tensors that the kernel stores to, other than by atomic operations."""
    module: MlirModule
    code: tuple[str, StageKind]
    """As `code_of_threads` gives it."""

    @cached_property
    def _function(self) -> PtxFunction:
        text, kind = self.code
        if kind == "ptx":
            functions = parse_ptx(text)
            function = next((one for one in functions if one.name == self.capture.name), None)
            function = function and with_calls(function, functions)
        else:
            warps = int(self.capture.launch.option("num_warps", 4) or 4)
            try:
                function = llvm_threads(text, self.capture.name, warps * self.capture.target.warp_size)
            except (*DAMAGE, StopIteration) as error:
                raise NotRun(f"the LLVM IR is not followed ({error})") from error
        if function is None:
            raise NotRun("the code has no kernel of the capture's name")
        return function

    @cached_property
    def _places(self) -> dict[int, str]:
        text, kind = self.code
        locations = capture_locations(self.capture, text, kind)
        file = self.capture.launch.kernel.file
        chains = ((line, locations.chain_at(line)) for line in range(1, text.count("\n") + 2))
        return {line: line_text(place_of(chain, file)) for line, chain in chains if chain}

    def violations(self, program: int, most: int) -> Iterator[Violation]:
        """What one CTA does wrong; raises NotRun where its accesses cannot be followed."""
        function = self._function
        threads = function.threads or 0
        if not threads:
            raise NotRun("the PTX does not state how many threads a CTA has")
        if int(self.capture.launch.option("num_ctas", 1) or 1) > 1:
            raise NotRun("shared memory of clusters of CTAs is not followed")
        opcodes = [
            ptx_opcode(one.opcode)
            for one in function.instructions
            if one.opcode.startswith(("ld.", "st.", "atom.", "red."))
        ]
        granule = min(
            [16, *(one.bits // 8 // one.vector for one in opcodes if one.space == "shared" and one.bits >= 8)]
        )
        used = self.capture.resources.shared_bytes
        # "AMD Instinct MI300 ISA": the LDS instructions of a wave are executed in order.
        in_order = self.capture.target.warp_size if self.code[1] == "llvm" else 1
        size = max(used or 0, _MOST_SHARED_BYTES // 4 if used else _MOST_SHARED_BYTES)
        order = SharedOrder(threads, size, granule, in_order, used or None)
        place = program_at(program, self.grid)
        parameters, descriptors = self._parameters(function)
        contents = _Contents(self._memory, self._known_ranges())
        cta = PtxCta(function, threads, parameters, place, self.grid, order, contents, descriptors)
        try:
            cta.run(most)
        except StuckThreads as stuck:
            kind: ViolationKind = "divergent-barrier" if isinstance(stuck, DivergentBarrier) else "never-ends"
            witnesses = tuple(self._witness(item, thread, place) for item, thread in stuck.items[:4])
            yield Violation(kind, str(stuck).rstrip("."), witnesses, made_by=self._author)
        except NotRun as error:
            text = self._of_code(error)
            if isinstance(error, NotComputed) and cta.last is not None:
                last = self._witness(cta.last, None, place)
                text = f"{text.rstrip('.')} ({' at '.join(filter(None, (last.operation, basename(last.place))))})"
            raise type(error)(text) from error
        for one in order.beyond.values():
            word = "writes" if one.writes else "reads"
            detail = f"one thread {word} byte {one.place} of shared memory, of which the launch has {used} bytes"
            yield Violation(
                "out-of-bounds", detail, (self._witness(one.item, one.thread, place),), made_by=self._author
            )
        # A loop that is unrolled has each access several times: of each pair of lines one is shown.
        pairs = {
            (race.kind, *(self._places.get(one.line, one.line) for one in (race.first, race.second))): race
            for race in reversed(order.found.values())
        }
        for race in reversed(pairs.values()):
            yield self._violation(race, place)

    def global_races(self, program: int, addresses: Array, granule: int, most: int) -> set[frozenset[str]]:
        """The lines of each two accesses of one CTA's threads that race at these places of global memory.

        Raises NotRun where the accesses cannot be followed.
        """
        order = None
        if self.code[1] == "ptx":
            # Where values are not computed, addresses may be.
            with suppress(NotRun):
                order = self._global_order(_GlobalValues, program, addresses, granule, most)
        if order is None:
            try:
                order = self._global_order(_GlobalAccesses, program, addresses, granule, most)
            except NotRun as error:
                raise NotRun(self._of_code(error)) from error
        races = [race for race in order.found.values() if race.space == "global"]
        return {frozenset(self._places.get(one.line, "") for one in (race.first, race.second)) for race in races}

    def _of_code(self, error: NotRun) -> str:
        return str(error).replace("of the PTX", "of the LLVM IR" if self.code[1] == "llvm" else "of the PTX")

    def _global_order(
        self, makes: type[_GlobalAccesses], program: int, addresses: Array, granule: int, most: int
    ) -> SharedOrder:
        function = self._function
        threads = function.threads or 0
        if not threads or int(self.capture.launch.option("num_ctas", 1) or 1) > 1:
            raise NotRun("global memory of clusters of CTAs is not followed by thread")
        order = SharedOrder(threads, _MOST_SHARED_BYTES, 16)
        order.follow_global(addresses, granule)
        if makes is _GlobalValues:
            memory = CtaGlobal(self._memory, len(self._storages))
        else:
            memory = _Contents(self._memory, self._known_ranges())
        place = program_at(program, self.grid)
        parameters, descriptors = self._parameters(function)
        makes(function, threads, parameters, place, self.grid, order, memory, descriptors).run(most)
        return order

    def execute(self, program: int, most: int, stores_late: bool = True) -> None:
        """Run one CTA with all its values, which the storages of `inputs` hold then; raises NotRun.

        `stores_late`: whether copies of tiles to global memory read where they are waited for, not at once.
        """
        function = self._function
        if int(self.capture.launch.option("num_ctas", 1) or 1) > 1:
            raise NotRun("the values of clusters of CTAs are not computed")
        memory = CtaGlobal(self._memory, len(self._storages))
        parameters, descriptors = self._parameters(function)
        PtxTensor(
            function, function.threads or 0, parameters, program_at(program, self.grid), self.grid, CtaListener(),
            memory, descriptors, stores_late=stores_late,
        ).run(most)  # fmt: skip
        for number, storage in enumerate(self._storages):
            storage[...] = self._memory.contents(number)

    @property
    def _author(self) -> str:
        """Who chose barriers and waits: the author of a Gluon kernel, or the compiler."""
        first = parse_mlir(self.capture.texts.get("source", ""))
        return KERNEL if first.option("num-warps") is not None else _LOWERING

    def _violation(self, race: SharedRace, program: tuple[int, int, int]) -> Violation:
        kind: ViolationKind = "proxy-fence" if race.kind == "no proxy fence" else "shared-race"
        words = [("writes" if writes else "reads") for writes in (race.first_writes, race.second_writes)]
        is_unit = race.first_thread is None or "not awaited" in race.kind
        who = "an asynchronous unit" if is_unit else "one thread"
        later = "written" if race.second_writes else "read"
        what = "a register" if race.space == "registers" else "an address"
        detail = f"{who} {words[0]} {what} that is later {later}: {_DETAILS[race.kind]}"
        if race.kind == "store not awaited":
            detail = f"{who} may read shared memory after the program's end: {_DETAILS[race.kind]}"
        witnesses = (
            self._witness(race.first, race.first_thread, program),
            self._witness(race.second, race.second_thread, program),
        )
        if race.passed is not None:
            wait, parity, phase = race.passed
            copied = f"the copy is of phase {phase & 1}"
            detail += f" (the wait for phase {parity} of its mbarrier is over at once: {copied})"
            witnesses += (self._witness(wait, None, program),)
        address = f"shared memory + {race.place} bytes"
        if isinstance(race.place, str):
            address = f"register {race.place}"
        elif race.space == "tensor":
            address = f"tensor memory, lane {race.place // 512}, column {race.place % 512}"
        return Violation(kind, detail, witnesses, address, made_by=self._made_by(race))

    def _made_by(self, race: SharedRace) -> str:
        off = [one.label for one in self.capture.passes() if one.outcome == "skipped"]
        if off:
            return f"{', '.join(off[:3])}, switched off"
        if race.kind == "no barrier" and not self._parts(race):
            return _LOWERING
        if self._author == KERNEL:
            return KERNEL
        waits = _WAITS.get(race.kind, ())
        for snapshot in self.capture.passes() if waits else ():
            text = self.capture.text_after(snapshot) if snapshot.stage == "ttgir" and snapshot.changed else None
            if text and any(f".{name}" in text for name in waits):
                return snapshot.label
        return _LOWERING

    def _parts(self, race: SharedRace) -> bool:
        """Whether the threads of a race are in different partitions of warps: the lowering puts no barrier between."""
        warps, width = self.module.option("num-warps"), max(self.capture.target.warp_size, 1)
        if not isinstance(warps, int) or race.first_thread is None:
            return False
        # Triton numbers the warps of larger partitions first.
        sizes = [
            sorted(filter(None, one.partition_warps[1:]), reverse=True)
            for one in self.module.walk() if one.opcode == "warp_specialize"
        ]  # fmt: skip
        ends = {width * (warps + total) for each in sizes for total in accumulate([0, *each])}
        low, high = sorted((race.first_thread, race.second_thread))
        return any(low < end <= high for end in ends)

    def _witness(self, item: Instruction, thread: int | None, program: tuple[int, int, int]) -> AccessWitness:
        lanes = max(self.capture.target.warp_size, 1)
        warp, lane = (None, None) if thread is None else divmod(thread, lanes)
        written = _IN_LLVM.get(item.opcode.partition(".")[0], item.opcode) if self.code[1] == "llvm" else item.opcode
        return AccessWitness(written, self._places.get(item.line, ""), item.line, program, (), warp, lane)

    def _parameters(self, function: PtxFunction) -> tuple[dict[str, int], dict[str, TensorMap]]:
        """The numbers, and the descriptors, by the names of the parameters."""
        held = held_arguments(self.module, self.inputs.given, list(self._storages), self._memory)
        descriptors: dict[str, TensorMap] = {}
        kernel = self.module.kernel
        kinds = [self.module.type_of(one) for one in kernel.regions[0].blocks[0].arguments] if kernel else []
        for (name, _), one, kind in zip(function.parameters, held, kinds, strict=False):
            if isinstance(one, Descriptor):
                # name_param_0[128]
                descriptors[name.partition("[")[0]] = TensorMap.of_host(one, self.module.encoding_of(kind))
        numbers = [
            one.view(f"i{one.itemsize}") if isinstance(one, np.ndarray) and one.dtype != np.bool_ else one
            for one in held
        ]
        values = [int(one.reshape(-1)[0]) if isinstance(one, np.ndarray) else 0 for one in numbers]
        names = [name for name, _ in function.parameters]
        if len(names) < len(values):
            raise NotRun("the PTX has fewer parameters than the TTGIR")
        return dict(zip(names, [*values, *[0] * (len(names) - len(values))], strict=True)), descriptors

    @cached_property
    def _storages(self) -> tuple[Array, ...]:
        return tuple({id(one.storage): one.storage for one in pointers_of(self.inputs.given)}.values())

    @cached_property
    def _memory(self) -> GlobalMemory:
        return GlobalMemory(self._storages)

    def _known_ranges(self) -> list[tuple[int, int]]:
        """The addresses of tensors whose elements the capture holds, and that the kernel stores nothing to."""
        numbers = {id(one): number for number, one in enumerate(self._storages)}
        dirty: set[int] = set()
        ranges: dict[int, tuple[int, int]] = {}
        for path, given in zip(self.paths, self.inputs.given, strict=True):
            for pointer in pointers_of([given]):
                number = numbers[id(pointer.storage)]
                begin = self._memory.address(number)
                ranges[number] = (begin, begin + pointer.storage.size)
                is_held = path not in self.inputs.made_up and pointer.storage.flags.writeable
                if not is_held or (path in self.written and not self._reads_first):
                    dirty.add(number)
        return [row for number, row in ranges.items() if number not in dirty]

    @cached_property
    def _reads_first(self) -> bool:
        """Whether all that the launch reads stood there before it: of its only program, no read follows a store."""
        flow = control_flow_of(self._function)
        parted = any(operation.opcode == "warp_specialize" for operation in self.module.walk())
        called = {name for block in flow.blocks for name in block.calls}
        if prod(self.grid) > 1 or parted or called - PRINTING:
            return False
        blocks = {block.number: block.instructions for block in flow.blocks}
        after = {number: [jump.target for jump in flow.jumps if jump.source == number] for number in blocks}
        starts: list[int] = []
        for number, instructions in blocks.items():
            is_stored = False
            for item in instructions:
                if is_stored and _touches(item, item.effect.reads):
                    return False
                is_stored = is_stored or _touches(item, item.effect.writes)
            starts += after[number] if is_stored else ()
        behind = reached(starts, lambda number: after.get(number, ()))
        return not any(_touches(item, item.effect.reads) for number in behind for item in blocks.get(number, ()))


class _GlobalAccesses(PtxCta):
    """One CTA whose listener is told of what threads load from global memory, and store to it."""

    def effect_of(self, item: Instruction) -> str:
        opcode = ptx_opcode(item.opcode)
        is_plain = opcode.space == "global" and not {"volatile", "relaxed", "acquire", "release"} & {*opcode.modifiers}
        return {"ld": "do_load", "st": "do_store"}.get(opcode.name if is_plain else "") or super().effect_of(item)

    def do_load(self, step: PtxStep, group: CtaGroup, on: Array) -> None:
        """ld.global."""
        self._told(step, on, ptx_opcode(step.item.opcode).bits // 8)
        self._loaded(step, group, on)

    def do_store(self, step: PtxStep, group: CtaGroup, on: Array) -> None:
        """st.global."""
        self._told(step, on, ptx_opcode(step.item.opcode).bits // 8)

    def do_copy(self, step: PtxStep, group: CtaGroup, on: Array) -> None:
        """cp.async, of as many bytes as its last operand says."""
        super().do_copy(step, group, on)
        sizes = self._known(step.operands[-1], on, step)
        for size in np.unique(sizes[sizes > 0]).tolist():
            self._told(step, on[sizes == size], size, 1)

    def _told(self, step: PtxStep, on: Array, size: int, place: int = 0) -> None:
        self._listener.access(step.item, on, self._address(step, on, place), size, step.name == "st", "global")


class _GlobalValues(_GlobalAccesses, PtxTensor):
    """The same with all values."""

    def do_store(self, step: PtxStep, group: CtaGroup, on: Array) -> None:
        super().do_store(step, group, on)
        PtxTensor.do_store(self, step, group, on)


class _Contents(CtaMemory):
    """The elements that the capture holds, as the atomic operations of one CTA change them."""

    def __init__(self, memory: GlobalMemory, known: list[tuple[int, int]]) -> None:
        """`known`: the addresses that are known, and that no plain store changes."""
        self._memory, self._known = memory, known
        self._changed: dict[int, int | None] = {}
        self._is_lost = False
        """Whether an atomic operation changed an unknown place."""

    def load(self, addresses: Array, size: int) -> tuple[Array, Array]:
        known = np.zeros(len(addresses), np.bool_)
        for begin, end in () if self._is_lost else self._known:
            known |= (addresses >= begin) & (addresses + size <= end)
        values = np.zeros(len(addresses), np.int64)
        for at in np.flatnonzero(known).tolist():
            address = int(addresses[at])
            stored = int.from_bytes(self._memory.peek(address, size), "little")
            value = self._changed.get(address, stored)
            known[at], values[at] = value is not None, np.uint64(value or 0).astype(np.int64)
        return values, known

    def store(self, address: int, size: int, value: int | None) -> None:
        if address < 0:
            self._is_lost = True
        else:
            self._changed[address] = None if value is None else value & ((1 << 8 * size) - 1)


def _touches(item: Instruction, spaces: Sequence[str]) -> bool:
    """Whether an instruction may access global memory: `spaces` are those that it reads, or writes."""
    return item.effect.is_unknown or "global" in spaces or "generic" in spaces
