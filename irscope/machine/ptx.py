"""Executes the PTX of one CTA, by thread, as far as it decides which shared memory is accessed, and who waits for whom.

Threads that go different ways are groups, which meet again at the first instruction that both come to. An asynchronous
copy is done at once, and one that an mbarrier counts where a thread waits for it; who may rely on it is a question to
the listener, which is told of each access and of whatever orders accesses. What is computed of floats and of elements
that the capture does not hold is unknown; where it decides an address, a branch or a wait, the run ends with NotRun.
Source: "PTX ISA", chapters 8 and 9.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotComputed, NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import parse_operand
from irscope.ir.asm.readers import PtxFunction
from irscope.machine.ptx_arithmetic import ATOMICS, computed, cut
from irscope.machine.ptx_matrices import matrix_accesses
from irscope.machine.ptx_registers import (
    CtaGroup,
    CtaListener,
    CtaMemory,
    DivergentBarrier,
    PtxStep,
    StuckThreads,
    effect_of,
    meeting,
    prepared,
)
from irscope.machine.ptx_tiles import CtaTiles, TensorMap
from irscope.machine.shared import Mbarrier

_WARP = 32
_Integers = NDArray[np.int64]
_MOST_SHARED_BYTES = 1 << 18
PRINTING = frozenset(("vprintf", "__assertfail", "printf"))
"""Functions that change nothing that is followed."""


class PtxCta(CtaTiles):
    """One CTA of a kernel, ready to be run once."""

    def __init__(
        self,
        function: PtxFunction,
        threads: int,
        parameters: Mapping[str, int],
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        listener: CtaListener,
        memory: CtaMemory,
        descriptors: Mapping[str, TensorMap],
    ) -> None:
        """`parameters`: the name of each of the kernel's → its bits; `program`, `grid`: which CTA of how many.

        `descriptors`: of tensors, by the names of the parameters that hold them.
        """
        self._memory, self._parameters = memory, parameters
        super().__init__(threads, program, grid, listener, descriptors)
        self._bytes = np.zeros(_MOST_SHARED_BYTES, np.uint8)
        self._is_known = np.zeros(_MOST_SHARED_BYTES, np.bool_)
        self._waiting: dict[int, list[tuple[CtaGroup, PtxStep]]] = {}
        """Barrier of the CTA → who waits at it."""
        self._arrived: dict[int, list[_Integers]] = {}
        self._counts: dict[int, int | None] = {}
        """Threads that each of them waits for; None for all."""
        self._groups: list[CtaGroup] = []
        self._columns = 0
        self._alive = threads
        self.executed = 0
        self.last: Instruction | None = None
        """The instruction that is executed, or was executed last."""
        self._where: dict[int, tuple[PtxStep, CtaGroup]] = {}
        self._asked: dict[int, tuple[int, int]] = {}
        """Instruction that waits → the address of its mbarrier, and the parity."""
        self._meetings: dict[tuple[int, int], tuple[int, list[PtxStep]] | None] = {}
        """Of both ways of a branch that was not known, where they meet, and what is computed until then."""
        self._steps = prepared(function, self, self.effect_of)

    def effect_of(self, item: Instruction) -> str:
        """The name of the method that executes an instruction; empty for one that only computes."""
        return effect_of(item)

    def computed(self, step: PtxStep, operands: Sequence[_Integers]) -> _Integers | None:
        """What an instruction makes of its operands; None for what is not computed."""
        return computed(step.name, step.suffixes, operands)

    # ── control ───────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, most: int) -> None:
        """Run all threads to their ends.

        Raises NotRun for more than `most` instructions, and for what is not executed or not known; StuckThreads where
        all threads wait.
        """
        self._groups = [CtaGroup(0, self._everyone)]
        while self._groups:
            group = self._next()
            bound = min((one.at for one in self._groups if one is not group and one.blocked is None), default=1 << 60)
            while group.blocked is None and group in self._groups and group.at < bound:
                self.executed += 1
                if self.executed > most:
                    raise NotRun(f"it executes more than {most} instructions")
                if self._step(group):
                    break

    def _next(self) -> CtaGroup:
        for group in self._groups:
            if group.blocked is not None and not group.blocked():
                group.blocked = None
        ready = [group for group in self._groups if group.blocked is None]
        if not ready:
            self._stuck()
        first = min(ready, key=lambda group: group.at)
        for other in ready:
            if other is not first and other.at == first.at:
                first.threads = np.union1d(first.threads, other.threads)
                self._groups.remove(other)
        return first

    def _stuck(self) -> None:
        waiting = [(step, group) for rows in self._waiting.values() for group, step in rows]
        places = waiting or list(self._where.values())
        items = [(step.item, int(group.threads[0])) for step, group in places]
        if waiting and any(not self._is_whole(group.threads) for _, group in waiting):
            raise DivergentBarrier("only some threads of a warp reach a barrier of the whole warp", items)
        texts = ["threads wait forever"] if waiting else []
        for item, _ in () if waiting else items:
            address, parity = self._asked[id(item)]
            texts.append(self._mbarriers[address].wait_text(f"the mbarrier at shared memory + {address} bytes", parity))
        raise StuckThreads(" and ".join(dict.fromkeys(texts)), items)

    def _is_whole(self, threads: _Integers) -> bool:
        return len(threads) == len(np.unique(threads // _WARP)) * min(_WARP, self.threads)

    def _step(self, group: CtaGroup) -> bool:
        """Execute an instruction; returns whether the groups are others now."""
        if group.at >= len(self._steps):
            self._end(group, group.threads)
            return True
        step = self._steps[group.at]
        self.last = step.item
        group.at += 1
        if step.in_flight:
            self._listener.registers(step.item, group.threads)
            if not step.is_needed:
                return False
        is_open = step.target >= 0 and self._is_unknown(step.item.predicate.lstrip("@!"), group.threads)
        if is_open and self._skip(step, group):
            return False
        on = self._on(step, group)
        if step.target >= 0:
            return self._branch(step, group, on)
        if step.run is not None:
            count = len(self._groups)
            if len(on):
                step.run(step, group, on)
            return group.blocked is not None or len(self._groups) != count
        if step.name in ("ret", "exit", "trap"):
            if step.name != "trap":
                self._listener.end(step.item, on)
            self._end(group, on)
            return True
        if len(on):
            self._compute(step, group, on)
        return False

    def _on(self, step: PtxStep, group: CtaGroup) -> _Integers:
        text = step.item.predicate
        if not text:
            return group.threads
        name = text.lstrip("@!")
        if self._is_unknown(name, group.threads):
            if step.name in ("atom", "red"):
                self._memory.store(-1, 0, None)
            computes = step.run is None and step.target < 0 and step.name not in ("ret", "exit", "trap")
            if computes or step.name in ("atom", "red"):
                # A computation: what it writes is unknown.
                self._forget(step.operands[:1], group.threads)
                return group.threads[:0]
            raise NotComputed(f"line {step.item.line} of the PTX has a predicate that is not computed")
        holds = self._value(parse_operand(name))[group.threads] != 0
        return group.threads[~holds if text.startswith("@!") else holds]

    def _skip(self, step: PtxStep, group: CtaGroup) -> bool:
        """Go on where both ways of a branch that is not known meet, if they only compute until then."""
        ways = group.at, step.target
        if ways not in self._meetings:
            self._meetings[ways] = meeting(self._steps, ways)
        place = self._meetings[ways]
        if place is None:
            return False
        group.at, passed = place
        for inner in passed:
            self._forget(inner.operands[:1] if inner.target < 0 and inner.is_needed else (), group.threads)
        return True

    def _branch(self, step: PtxStep, group: CtaGroup, on: _Integers) -> bool:
        if len(on) == len(group.threads):
            group.at = step.target
        elif len(on):
            self._groups.append(CtaGroup(step.target, on))
            group.threads = np.setdiff1d(group.threads, on)
        return True

    def do_switch(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """brx.idx: each thread goes where a table says."""
        chosen = self._known(step.operands[0], on, step)
        first, *others = np.unique(chosen).tolist()
        for number in others:
            self._groups.append(CtaGroup(step.targets[number], on[chosen == number]))
        group.threads, group.at = on[chosen == first], step.targets[first]

    def _parted(self, group: CtaGroup, on: _Integers) -> CtaGroup:
        """The group of the threads that wait; the others go on."""
        if len(on) == len(group.threads):
            return group
        group.threads = np.setdiff1d(group.threads, on)
        waiting = CtaGroup(group.at, on)
        self._groups.append(waiting)
        return waiting

    def _end(self, group: CtaGroup, on: _Integers) -> None:
        self._alive -= len(on)
        group.threads = np.setdiff1d(group.threads, on)
        if not len(group.threads):
            self._groups.remove(group)
        for number in list(self._waiting):
            self._release(number)

    # ── values ────────────────────────────────────────────────────────────────────────────────

    def _compute(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        target, *sources = step.operands
        if step.name == "ld" or step.name == "elect":
            self._loaded(step, group, on)
            return
        if step.name == "mov" and (target.kind == "vector" or (sources and sources[0].kind == "vector")):
            self._repacked(step, on)
            return
        names = [name for operand in sources for name in operand.names]
        unknown: NDArray[np.bool_] | None = None
        for name in names:
            if self._is_unknown(name, on):
                mask = self._unknown.get(name)
                mask = np.ones(self.threads, np.bool_) if mask is None else mask
                unknown = mask if unknown is None else unknown | mask
        values = None
        if target.kind == "name" and sources and all(one.kind in ("name", "number") for one in sources):
            operands = [self._value(one) for one in sources]
            negated = [one.is_negated and one.name.startswith("%p") for one in sources]
            operands = [(one == 0).astype(np.int64) if flip else one
                        for one, flip in zip(operands, negated, strict=True)]  # fmt: skip
            values = self.computed(step, operands)
        if values is None:
            self._forget((target,), on)
        else:
            self._assign(target.name, values, unknown, on)

    def _loaded(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        target, *sources = step.operands
        if step.name == "elect":
            # elect.sync %r1|%p1, -1: the first thread of each warp.
            first = np.zeros(self.threads, np.int64)
            _, places = np.unique(on // _WARP, return_index=True)
            first[on[places]] = 1
            self._assign(target.parts[-1].name, first, None, on)
            self._assign(target.parts[0].name, np.zeros(self.threads, np.int64), None, on)
            return
        opcode = ptx_opcode(step.item.opcode)
        if opcode.space == "param" and sources[0].name in self._parameters:
            value = np.full(self.threads, self._parameters[sources[0].name], np.int64)
            self._assign(target.name, cut(value, opcode.types[-1], wide=False), None, on)
            return
        parts = target.parts or (target,)
        size = opcode.bits // 8 // opcode.vector
        if opcode.space not in ("global", "shared") or self._is_unknown(sources[0].name, on):
            self._forget((target,), on)
            return
        for place, part in enumerate(parts):
            addresses = self._value(sources[0]) + sources[0].value + place * size
            values, unknown = np.zeros(self.threads, np.int64), np.zeros(self.threads, np.bool_)
            if opcode.space == "shared":
                index = addresses[on][:, None] + np.arange(size)
                inside = np.clip(index, 0, _MOST_SHARED_BYTES - 1)
                raw = (self._bytes[inside].astype(np.int64) << np.arange(size) * 8).sum(axis=1)
                unknown[on] = ~self._is_known[inside].all(axis=1)
            else:
                raw, known = self._memory.load(addresses[on], size)
                unknown[on] = ~known
            values[on] = raw
            self._assign(part.name, cut(values, opcode.types[-1], wide=False), unknown, on)

    # ── shared memory ─────────────────────────────────────────────────────────────────────────────────────────

    def _address(self, step: PtxStep, on: _Integers, place: int = -1) -> _Integers:
        operands = [one for one in step.operands if one.kind == "address"]
        return self._known(operands[place if place >= 0 else 0], on, step)

    def do_access(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """ld, st, atom and red of shared memory, ldmatrix and stmatrix."""
        opcode = ptx_opcode(step.item.opcode)
        addresses = self._address(step, on)
        size, writes = opcode.bits // 8, step.name not in ("ld", "ldmatrix")
        if step.name in ("ldmatrix", "stmatrix"):
            count = next((int(part[1:]) for part in opcode.modifiers if part in ("x1", "x2", "x4")), 1)
            gives = on % _WARP < 8 * count
            on, addresses, size = on[gives], addresses[gives], 16
        if not (writes and opcode.name in ("atom", "red")):
            self._listener.access(step.item, on, addresses, size, writes, "shared")
        if step.name == "ld":
            self._loaded(step, group, on)
        elif step.name in ("atom",):
            self._forget(step.operands[:1], on)
        if writes:
            self._put(step, on, addresses, size)

    def _put(self, step: PtxStep, on: _Integers, addresses: _Integers, size: int) -> None:
        """Note what stands in shared memory now, where that is known."""
        inside = np.clip(addresses[:, None] + np.arange(size), 0, _MOST_SHARED_BYTES - 1)
        self._is_known[inside] = False
        self._overwrite(addresses, size)
        parts = step.operands[-1].parts or step.operands[-1:]
        if step.name != "st":
            return
        each = size // len(parts)
        for place, part in enumerate(parts):
            if part.name and self._is_unknown(part.name, on):
                continue
            where = inside[:, place * each : (place + 1) * each]
            self._bytes[where] = (self._value(part)[on][:, None] >> np.arange(each) * 8) & 255
            self._is_known[where] = True

    def do_atomic(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """atom and red of global memory, one thread after another."""
        opcode = ptx_opcode(step.item.opcode)
        size, operands = opcode.bits // 8, [one for one in step.operands if one.kind in ("name", "number", "vector")]
        given = operands[1:] if step.name == "atom" else operands
        update = next((ATOMICS[part] for part in opcode.modifiers if part in ATOMICS), None)
        names = [name for one in step.operands[1 if step.name == "atom" else 0 :] for name in one.names]
        is_float = opcode.types[-1].startswith(("f", "bf")) if opcode.types else True
        if update is None or opcode.vector > 1 or is_float or any(self._is_unknown(name, on) for name in names):
            self._memory.store(-1, 0, None)
            self._forget(step.operands[:1] if step.name == "atom" else (), on)
            return
        addresses, values = self._address(step, on), [self._value(one.parts[0] if one.parts else one) for one in given]
        old, unknown = np.zeros(self.threads, np.int64), np.zeros(self.threads, np.bool_)
        for thread, address in zip(on.tolist(), addresses.tolist(), strict=True):
            (before,), (known,) = self._memory.load(np.array([address]), size)
            old[thread], unknown[thread] = before, not known
            after = update(int(before), *[int(one[thread]) for one in values]) if known else None
            self._memory.store(address, size, after)
        if step.name == "atom":
            target = step.operands[0].parts[0] if step.operands[0].parts else step.operands[0]
            self._assign(target.name, cut(old, opcode.types[-1], wide=False), unknown, on)

    def do_copy(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """cp.async of 4, 8 or 16 bytes."""
        addresses, size = self._address(step, on), step.operands[2].value
        if size not in (4, 8, 16):
            raise NotRun(f"line {step.item.line} of the PTX copies {size} bytes")
        self._is_known[np.clip(addresses[:, None] + np.arange(size), 0, _MOST_SHARED_BYTES - 1)] = False
        self._listener.copy(step.item, on, addresses, size)

    def do_copy_group(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """cp.async.commit_group, wait_group, wait_all, mbarrier.arrive."""
        if "mbarrier" in step.suffixes:
            self._arrive(step, on, "copy", counts="noinc" in step.suffixes)
            return
        if "commit_group" in step.suffixes or "wait_all" in step.suffixes:
            self._listener.commit("copy", on)
        if "commit_group" not in step.suffixes:
            self._listener.wait("copy", on, step.operands[0].value if step.operands else 0)

    # ── matrix units ──────────────────────────────────────────────────────────────────────────────────────────

    def do_matrix(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """wgmma and tcgen05.mma, for each warp group, or for each thread that is on."""
        is_tensor = step.name == "tcgen05"
        starts = on if is_tensor else np.unique(on // 128) * 128
        for start in starts:
            threads = np.array([start]) if is_tensor else on[on // 128 == start // 128]
            numbers = [
                0 if one.kind == "vector" else int(self._known(one, threads[:1], step)[0]) for one in step.operands
            ]
            reads, tensor = matrix_accesses(step.item, numbers)
            queue = "tensor matrix" if is_tensor else "matrix"
            self._listener.queue(step.item, queue, threads, reads, (), tensor)

    def do_matrix_group(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """wgmma.commit_group, wait_group and fence."""
        if "commit_group" in step.suffixes:
            self._listener.commit("matrix", on)
        elif "wait_group" in step.suffixes:
            self._listener.wait("matrix", on, step.operands[0].value)

    def do_tensor(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """tcgen05: allocation, loads and stores of tensor memory, commits."""
        what = step.suffixes[0]
        if what == "alloc":
            address = int(self._address(step, on[:1])[0])
            self._bytes[address : address + 4] = np.frombuffer(np.int32(self._columns).tobytes(), np.uint8)
            self._is_known[address : address + 4] = True
            self._columns += self._uniform(step.operands[1], on, step)
            self._listener.access(step.item, on[:1], np.array([address]), 4, True, "shared")
        elif what == "commit":
            self._arrive(step, on, "tensor matrix")
        elif what.startswith("wait"):
            self._listener.wait_tensor(on, "st" in what)
        elif what in ("ld", "st"):
            columns = next((int(part[1:]) for part in step.suffixes if part[:1] == "x" and part[1:].isdecimal()), 1)
            lane, column = self._cell(step, on)
            self._listener.access(step.item, on, lane * 512 + column, columns, what == "st", "tensor")
            if what == "ld":
                self._forget(step.operands[:1], on)
        elif what in ("cp", "shift"):
            raise NotRun(f"line {step.item.line} of the PTX: {step.item.opcode} is not followed")

    def _cell(self, step: PtxStep, on: _Integers) -> tuple[_Integers, _Integers]:
        """(lane, first column) of tensor memory of each thread of a tcgen05.ld or st."""
        base, lanes = self._address(step, on), on % _WARP
        if "16x32bx2" in step.suffixes:
            half = next((one.value for one in step.operands if one.kind == "number"), 0)
            base, lanes = base + np.where(lanes >= 16, half, 0), lanes % 16
        elif "32x32b" not in step.suffixes:
            raise NotRun(f"line {step.item.line} of the PTX: {step.item.opcode} is not followed")
        return (base >> 16) + lanes, base & 0xFFFF

    # ── mbarriers and barriers ────────────────────────────────────────────────────────────────────────────────

    def _arrive(self, step: PtxStep, on: _Integers, queue: str = "", counts: bool = True) -> None:
        addresses = self._address(step, on)
        numbers = [one for one in step.operands[1:] if one.kind in ("number", "name")]
        expects = "expect_tx" in step.suffixes
        for address in np.unique(addresses):
            here = on[addresses == address]
            state = self._mbarrier(int(address), step)
            if state.missing <= 0:
                self._complete(int(address))
            for thread in here:
                one = np.array([thread])
                amount = int(self._known(numbers[-1], one, step)[0]) if numbers and not queue else 1
                state.bytes += amount if expects else 0
                arrives = counts and not (expects and "arrive" not in step.suffixes)
                state.missing -= (1 if expects else amount) if arrives else 0
            self._listener.arrive(here, int(address), queue)
            if not self._is_landing(int(address)):
                self._complete(int(address))

    def do_mbarrier(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """mbarrier.init, inval, arrive, expect_tx, try_wait and test_wait."""
        what = step.suffixes[0]
        if what == "init":
            for address in np.unique(self._address(step, on)):
                count = int(self._known(step.operands[1], on[:1], step)[0])
                self._mbarriers[int(address)] = Mbarrier(count, count)
                self._listener.initialise(step.item, int(on[0]), int(address))
        elif what == "inval":
            for address in np.unique(self._address(step, on)):
                self._mbarriers.pop(int(address), None)
                self._listener.invalidate(int(address))
        elif what in ("arrive", "expect_tx"):
            self._arrive(step, on)
        elif what in ("try_wait", "test_wait") and "parity" in step.suffixes:
            self._wait(step, group, on)
        else:
            raise NotRun(f"line {step.item.line} of the PTX: {step.item.opcode} is not followed")

    def _wait(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        place = next(index for index, one in enumerate(step.operands) if one.kind == "address")
        address = self._uniform(step.operands[place], on, step)
        parity = self._uniform(step.operands[place + 1], on, step) & 1
        state = self._mbarrier(address, step)
        group = self._parted(group, on)
        self._asked[id(step.item)] = address, parity
        if state.landing and state.phase & 1 != parity:
            self._listener.passed(step.item, address, parity, state.phase)

        def is_blocked() -> bool:
            if state.phase & 1 == parity:
                self._complete(address)
            if state.phase & 1 == parity:
                return True
            self._where.pop(id(group), None)
            self._listener.waited(on, address)
            self._assign(step.operands[0].name, np.ones(self.threads, np.int64), None, on)
            return False

        if is_blocked():
            group.blocked = is_blocked
            self._where[id(group)] = (step, group)

    def do_barrier(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """bar.sync and its kin; bar.warp.sync."""
        if "warp" in step.suffixes:
            for warp in np.unique(on // _WARP):
                self._listener.barrier(on[on // _WARP == warp])
            return
        operands = [one for one in step.operands if one.kind in ("number", "name")]
        if "red" in step.suffixes:
            self._forget(step.operands[:1], on)
            operands = operands[1:]
        number = self._uniform(operands[0], on, step) if operands else 0
        count = self._uniform(operands[1], on, step) if len(operands) > 1 and "red" not in step.suffixes else None
        if "arrive" in step.suffixes:
            self._arrived.setdefault(number, []).append(on)
        else:
            group = self._parted(group, on)
            self._waiting.setdefault(number, []).append((group, step))
            group.blocked = lambda: any(one is group for one, _ in self._waiting.get(number, ()))
        self._counts[number] = count
        self._release(number)

    def _release(self, number: int) -> None:
        count = self._counts[number]
        waiting = self._waiting.get(number, [])
        arrived = self._arrived.get(number, [])
        total = sum(len(group.threads) for group, _ in waiting) + sum(map(len, arrived))
        if not waiting or total < (self._alive if count is None else count):
            return
        steps = {id(step) for _, step in waiting}
        if len(steps) > 1:
            for group, step in waiting:
                if step.name == "bar" and not self._is_whole(group.threads):
                    items = [(one.item, int(own.threads[0])) for own, one in waiting]
                    raise DivergentBarrier("threads of one warp are at different barriers", items)
        self._listener.barrier(np.concatenate([*(group.threads for group, _ in waiting), *arrived]))
        self._waiting.pop(number)
        self._arrived.pop(number, None)

    def do_fence(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """fence.proxy.async."""
        if "proxy" in step.suffixes and any(part.startswith("async") for part in step.suffixes):
            self._listener.fence(on)

    def do_call(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """A call of another function: of what prints only, nothing is followed."""
        names = " ".join(step.item.operands)
        if not any(known in names for known in PRINTING):
            raise NotRun(f"line {step.item.line} of the PTX calls a function")
