"""Structured control flow, calls, program numbers, prints and assertions."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from irscope.errors import NeverEnds, WrongProgram
from irscope.machine.control import Bindings, Executor, Machine, Step, may_spin
from irscope.machine.values import Array, Held, dtype_of, full, merge, take


class _Remaining:
    """The programs that are still in a loop, and what the others left it with."""

    def __init__(self, frame: Bindings) -> None:
        self.whole = self.frame = frame
        self._index = np.arange(frame.count)
        self._left: list[tuple[Sequence[Held], Array]] = []

    def keep(self, stays: Array, carried: Sequence[Held]) -> Sequence[Held]:
        """Let the others leave with what they carry; returns what is carried on. `stays`: of one program or of each."""
        if stays.all():
            return carried
        leave, stay = np.flatnonzero(~stays), np.flatnonzero(stays)
        self._left.append(([take(value, leave) for value in carried], self._index[leave]))
        self._index = self._index[stay]
        self.frame = self.whole.part(self._index)
        return [take(value, stay) for value in carried]

    def results(self, carried: Sequence[Held]) -> Sequence[Held]:
        """What each program left with; `carried`: those that are still in it."""
        if len(self._index):
            self._left.append((carried, self._index))
        places = range(len(carried))
        return [merge([(values[place], index) for values, index in self._left], self.whole.count) for place in places]


def _for(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    start, stop, stride = (frame.array(value) for value in step.operands[:3])
    if not (stride > 0).all():
        raise step.not_run("the step of the loop is not positive")
    # 64 bits: the bounds of the text may be far apart.
    iterations = np.maximum(-((start.astype(np.int64) - stop) // stride), 0)
    body = step.operation.regions[0]
    remaining = _Remaining(frame)
    carried: Sequence[Held] = [frame.held(value) for value in step.operands[3:]]
    begins = start
    for iteration in range(int(iterations.max(initial=0))):
        stays = iterations > iteration
        if not stays.all():
            carried = remaining.keep(stays, carried)
            index = np.flatnonzero(stays)
            iterations, begins, stride = (
                iterations[index],
                cast(Array, take(begins, index)),
                cast(Array, take(stride, index)),
            )
        induction = (begins + iteration * stride).astype(start.dtype)
        carried = machine.region(body, remaining.frame, (induction, *carried))
    return remaining.results(carried)


def _while(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    before, after = step.operation.regions[:2]
    remaining = _Remaining(frame)
    carried: Sequence[Held] = [frame.held(value) for value in step.operands]
    spins = may_spin(step.operation)
    for _ in range(machine.arithmetic.most_iterations):
        if spins:
            machine.spin(step, carried)
        condition, *passed = machine.region(before, remaining.frame, carried)
        goes_on = cast(Array, condition)
        if not goes_on.any():
            return remaining.results(passed)
        carried = remaining.keep(goes_on, passed)
        carried = machine.region(after, remaining.frame, carried)
    raise NeverEnds(
        f"{step.operation.name}, line {step.operation.first_line}: no end in {machine.arithmetic.most_iterations} "
        "iterations"
    )


def _if(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    condition = frame.array(step.operands[0])
    return machine.choose(frame, zip((condition, ~condition), step.operation.regions, strict=False))


def _index_switch(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """The region of the case that a number is, or the first, the default, for any other."""
    index = np.broadcast_to(frame.array(step.operands[0]), frame.count)
    default, *others = step.operation.regions
    cases = step.numbers("cases")
    sides = [*zip([index == case for case in cases], others, strict=True), (~np.isin(index, cases), default)]
    return machine.choose(frame, sides)


def _execute_region(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return machine.region(step.operation.regions[0], frame, ())


def _call(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    arguments = [frame.held(value) for value in step.operands]
    return machine.call(machine.function(step.operation.symbol), arguments, frame.rows)


def _program_id(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    numbers = machine.program_ids["xyz".index(str(step.attribute("axis")))][frame.rows].astype(np.int32)
    return (numbers[:1] if (numbers == numbers[0]).all() else numbers,)


def _program_count(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    return (np.array([machine.grid["xyz".index(str(step.attribute("axis")))]], np.int32),)


def _nothing(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """No value depends on it."""
    return [np.zeros(1, dtype_of(kind)) for kind in step.types]


def _thread_id(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """The number of a thread, of which no value may depend: the machine has no threads, and barriers order nothing."""
    by_thread = set(step.results)
    for operation in machine.module.walk():
        if not by_thread.intersection(operation.operands) or operation.opcode == "cond_barrier":
            continue
        if not operation.opcode.startswith("arith."):
            raise step.not_run(f"{operation.name}, line {operation.first_line}, depends on the thread index")
        by_thread.update(operation.results)
    return _nothing(machine, step, frame)


def _print(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    values = [full(frame.array(value), (), frame.count) for value in step.operands]
    for place in range(frame.count):
        program = machine.program_at(frame, place)
        shown = " ".join(np.array2string(one[place], threshold=64) for one in values)
        machine.printed.append(f"pid {program}{step.attribute('prefix')}{shown}")
    return ()


def _assert(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    condition = frame.array(step.operands[0])
    if not condition.all():
        place = int(np.flatnonzero(~condition.reshape(condition.shape[0], -1).all(1))[0])
        program = machine.program_at(frame, place)
        message = step.attribute("message") or step.attribute("msg")
        raise WrongProgram(f"program {program}: assertion failed: {message}")
    return ()


CONTROL: Mapping[str, Executor] = {
    "scf.for": _for, "scf.while": _while, "scf.if": _if, "scf.execute_region": _execute_region, "call": _call,
    "get_program_id": _program_id, "get_num_programs": _program_count, "print": _print,
    "assert": _assert, "cf.assert": _assert,
    "scf.index_switch": _index_switch,
    **dict.fromkeys(("rocdl.workitem.id.x", "warp_id", "to_linear_thread_id"), _thread_id),
    **dict.fromkeys(
        (
            "barrier", "fence", "fence_async_shared", "fence_mbarrier_init_release_cluster", "instruction_sched_hint",
            "cond_barrier", "memory_counter_wait", "warp_pipeline.border", "tensormap_fenceproxy_acquire",
            "prefetch_tensormap", "rocdl.sched.barrier", "rocdl.s.setprio", "rocdl.iglp.opt",
            "rocdl.sched.group.barrier", "rocdl.s.barrier", "rocdl.barrier", "tmem_wait", "llvm.intr.assume",
            "grid_dependency_wait", "grid_dependency_launch_dependents",
            "cluster_barrier", "cluster_arrive", "cluster_barrier_arrive", "cluster_barrier_wait",
            "cluster_wait", "descriptor_prefetch", "async_tma_prefetch", "tdm_prefetch",
        ),
        _nothing,
    ),
}  # fmt: skip
