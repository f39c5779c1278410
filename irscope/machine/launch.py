"""Runs the kernel of a TTIR or TTGIR module for the programs of a launch."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from irscope.errors import LimitExceeded, NotRun, OutOfBounds, UsageError
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.types import Type
from irscope.machine.accesses import ACCESSES
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.control import ElementBudget, Executor, Machine, Observer, may_spin, touches_others
from irscope.machine.elementwise import ELEMENTWISE, array_of
from irscope.machine.flow import CONTROL
from irscope.machine.gpu_operations import GPU_OPERATIONS
from irscope.machine.memory import GlobalMemory, OnAccess
from irscope.machine.partitions import Partitions
from irscope.machine.tensors import TENSORS
from irscope.machine.values import Array, Descriptor, Held, dtype_of

EXECUTORS: Mapping[str, Executor] = {**CONTROL, **ELEMENTWISE, **TENSORS, **ACCESSES, **GPU_OPERATIONS}
_ELEMENTS_AT_ONCE = 1 << 19
"""Of the largest tensor of the kernel, over all programs that run together: several such fit into a core's caches."""
_MOST_ELEMENTS = 1 << 24
"""Of a tensor in a kernel: Triton's own limit is 1 << 20."""


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    storage: NDArray[np.uint8]
    """All its bytes; arguments with one and the same array share memory. The run writes into it."""
    offset_bytes: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class HostDescriptor:
    """A tensor descriptor that the host made."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    fills_nan: bool = False


@dataclass(frozen=True, slots=True)
class RunLimits:
    memory_bytes: int = 4 << 30
    """Of the tensors of a launch: a run takes three times as much."""
    seconds: float | None = None
    """After so long it ends as not run; None for any time. The clock is read between groups of programs."""
    elements: int | None = None
    """Of results of operations, in all: with more a run ends as not run; None for any number. With one thread alone.
    An operation counts as 1024 more."""
    jobs: int = 1
    """Threads. Without atomics groups of programs run side by side; what programs that race leave is then open."""


NO_LIMITS = RunLimits()
"""But that of memory."""
SMALL_WORK = RunLimits(elements=1 << 26)
"""About a second; of what memory there is."""
SMALL_RUN = replace(SMALL_WORK, memory_bytes=256 << 20)
Given = Union[Pointer, HostDescriptor, int, float, bool]  # noqa: UP007 (a type at run time under 3.10)
"""An argument of a launch."""


def _missing_operations(module: MlirModule, executors: Mapping[str, Executor] = EXECUTORS) -> Counter[str]:
    """How many operations of each name the machine does not execute."""
    ends = ("module", "function", "yield", "return", "branch")
    return Counter(
        one.name for one in module.walk() if one.opcode not in executors and one.kind not in ends
    )  # fmt: skip


def run(
    module: MlirModule,
    grid: tuple[int, int, int],
    arguments: Sequence[Given],
    *,
    programs: Sequence[int] | None = None,
    observer: Observer | None = None,
    on_access: OnAccess | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    lands_late: bool = True,
    executors: Mapping[str, Executor] = EXECUTORS,
    arithmetic: Arithmetic | None = None,
    limits: RunLimits = NO_LIMITS,
    elsewhere: Mapping[int, NDArray[np.uint8]] | None = None,
) -> list[str]:
    """Run a module's kernel; what it stores is in the storages of its arguments afterwards. Returns what it printed.

    Args:
        programs: numbers of the programs to run, the first axis of the grid fastest; all by default.
        observer: is called with each operation that was executed.
        on_access: is called with each access to global memory, before its bounds are checked.
        on_progress: is called with the number of programs that ended, and of all.
        lands_late: whether an asynchronous copy takes effect when it is waited for; at once if not.
        executors: opcode → what executes it, where that is not the machine's own.
        limits: one thread runs all programs for an observer, and where they meet in atomics.
        elsewhere: address → the storage there, of what tensors of pointers point to.

    Raises NotRun for what the machine does not execute, WrongProgram for what no kernel may do; the storages are then
    as before.
    """
    arithmetic = arithmetic or Arithmetic()
    executors = {**executors, **arithmetic.executors}
    missing = _missing_operations(module, executors)
    if missing:
        counts = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items()))
        raise NotRun(f"not run: irscope does not execute {counts}.")
    waits = _may_wait(module)
    at_once = 1 if waits else _programs_at_once(module)
    named = elsewhere or {}
    storages = _storages(arguments)
    storages += [one for one in named.values() if not any(one is other for other in storages)]
    check_memory(sum(storage.size for storage in storages), limits)
    memory = arithmetic.memory(storages, on_access)
    for address, storage in named.items():
        memory.name(next(number for number, one in enumerate(storages) if one is storage), address)
    for pointer in reversed(pointers_of(arguments)):
        memory.arguments[next(number for number, one in enumerate(storages) if one is pointer.storage)] = pointer.name
    held = held_arguments(module, arguments, storages, memory, arithmetic)
    chosen = np.arange(prod(grid)) if programs is None else np.asarray(programs, np.int64)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < prod(grid):
        raise UsageError(f"the launch has the programs 0 to {prod(grid) - 1}, not {chosen.min()} to {chosen.max()}.")
    end = time.monotonic() + limits.seconds if limits.seconds is not None else None
    turns = Partitions() if waits and len(chosen) > 1 else None

    def run_part(number: int, part: Array) -> list[str]:
        if end is not None and time.monotonic() > end:
            raise NotRun(f"not run: its programs did not end within {limits.seconds:g} s")
        machine = Machine(module, executors, memory, part, grid, observer, lands_late, arithmetic, budget)
        machine.is_alone = len(chosen) < prod(grid)
        if turns is not None:
            machine.turns = (turns, number)
        try:
            machine.run(held)
        except OutOfBounds as error:
            raise OutOfBounds(f"program {machine.program_of(error.row)}: {error}") from error
        return machine.printed

    budget = None if limits.elements is None else ElementBudget(limits.elements)
    is_watched = observer is not None or on_access is not None or budget is not None
    # Programs that may meet go one after another, and those that enlarge the memory.
    is_ordered = any(touches_others(one) or one.opcode == "global_scratch_alloc" for one in module.walk())
    jobs = 1 if is_watched or is_ordered else limits.jobs
    parts = [chosen[begin : begin + at_once] for begin in range(0, len(chosen), at_once)]
    printed: list[str] = []
    ended = 0
    runs = [partial(run_part, *each) for each in enumerate(parts)]
    with _one_blas_thread():
        results = _done(runs, min(jobs, len(runs))) if turns is None else iter(turns.run(runs))
        for part, lines in zip(parts, results, strict=True):
            printed += lines
            ended += len(part)
            if on_progress is not None:
                on_progress(ended, len(chosen))
    for number, storage in enumerate(storages if arithmetic.writes_back else ()):
        if storage.flags.writeable:
            storage[:] = memory.contents(number)
    return printed


def check_memory(needed_bytes: int, limits: RunLimits) -> None:
    """Raise LimitExceeded if the tensors of a launch need more memory than its limit."""
    if needed_bytes > limits.memory_bytes:
        raise LimitExceeded(
            f"not run: its tensors have {needed_bytes / 2**30:.1f} GiB, and the CPU runs launches with at most "
            f"{limits.memory_bytes / 2**30:g} GiB (--values-memory)"
        )


def _done(runs: Sequence[Callable[[], list[str]]], jobs: int) -> Generator[list[str]]:
    """The results of some calls, in their order; of several errors the first one's is raised."""
    if jobs < 2:
        yield from (run_part() for run_part in runs)
        return
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from (future.result() for future in [pool.submit(run_part) for run_part in runs])
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_blas_thread() -> Generator[None]:
    """Let NumPy's BLAS compute with one thread: the matrices of a program are too small for several."""
    functions = _blas_threads()
    if functions is None:
        yield
        return
    count, set_count = functions
    before = count()
    set_count(1)
    try:
        yield
    finally:
        set_count(before)


@cache
def _blas_threads() -> tuple[Any, Any] | None:
    """The functions that return and set the number of threads of the OpenBLAS that NumPy's wheels bring along."""
    # numpy.libs/libscipy_openblas64_-32a4b2a6.so
    for library in sorted(Path(np.__file__).parents[1].glob("numpy.libs/*openblas*")):
        for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
            try:
                loaded = ctypes.CDLL(str(library))
                return getattr(loaded, name.format("get")), getattr(loaded, name.format("set"))
            except (OSError, AttributeError):
                continue
    return None


def pointers_of(arguments: Sequence[Given]) -> list[Pointer]:
    pointers = [one.base if isinstance(one, HostDescriptor) else one for one in arguments]
    return [one for one in pointers if isinstance(one, Pointer)]


def _storages(arguments: Sequence[Given]) -> list[NDArray[np.uint8]]:
    return list({id(one.storage): one.storage for one in pointers_of(arguments)}.values())


def held_arguments(
    module: MlirModule, arguments: Sequence[Given], storages: Sequence[NDArray[np.uint8]], memory: GlobalMemory,
    arithmetic: Arithmetic | None = None,
) -> list[Held]:  # fmt: skip
    """The values of the kernel's parameters: a descriptor has more than one, its sizes and strides."""
    kernel = module.kernel
    parameters = kernel.regions[0].blocks[0].arguments if kernel is not None and kernel.regions else ()
    types = [module.type_of(value) for value in parameters]
    numbers = {id(storage): number for number, storage in enumerate(storages)}
    # A descriptor may be followed by its sizes and strides, and by as many flags as any other.
    ranks = [len(one.shape) for one in arguments if isinstance(one, HostDescriptor)]
    more = len(types) - len(arguments)
    flags, rest = divmod(more - 2 * sum(ranks), len(ranks)) if ranks and more else (0, more)
    if rest or flags < 0:
        raise UsageError(f"the kernel has {len(types)} parameters, and {len(arguments)} arguments were given.")
    held: list[Held] = []
    for argument in arguments:
        kind = types[len(held)]
        if isinstance(argument, Pointer):
            held.append(_address(argument, numbers, memory))
        elif isinstance(argument, HostDescriptor):
            held.append(_described(argument, kind, _address(argument.base, numbers, memory)))
            follow = 2 * len(argument.shape) + flags if more else 0
            held += _extents(argument, types[len(held) : len(held) + follow])
        else:
            number = array_of([argument], dtype_of(kind))
            held.append(number if arithmetic is None else arithmetic.argument(number))
    return held


def _address(pointer: Pointer, numbers: Mapping[int, int], memory: GlobalMemory) -> Array:
    return np.array([memory.address(numbers[id(pointer.storage)]) + pointer.offset_bytes], np.int64)


def _described(argument: HostDescriptor, kind: Type, base: Array) -> Held:
    if kind.form != "descriptor":
        # A pass made a pointer of it.
        return base
    sizes, strides = (tuple(np.array([one], np.int64) for one in row) for row in (argument.shape, argument.strides))
    return Descriptor(base, sizes, strides, kind.shape, dtype_of(kind), fills_nan=argument.fills_nan)


def _extents(argument: HostDescriptor, types: Sequence[Type]) -> list[Held]:
    """What follows a descriptor among the parameters: sizes and strides, and how it is filled and rounded."""
    numbers = [*argument.shape, *argument.strides]
    held: list[Held] = []
    flags = [argument.fills_nan, False]
    for kind in types:
        row = flags if kind.bits == 1 else numbers
        held.append(array_of([row.pop(0) if row else 0], dtype_of(kind)))
        if row is numbers and not row:
            numbers += [*argument.shape, *argument.strides]
    return held


def _programs_at_once(module: MlirModule) -> int:
    """How many programs run together."""
    largest = 1
    for operation in module.walk():
        largest = max([largest, *(prod(one.shape) for one in operation.result_types if one.form == "tensor")])
        memory = max((prod(one.shape) for one in operation.result_types if one.form == "memdesc"), default=0)
        if max(largest, memory) > _MOST_ELEMENTS:
            raise NotRun(f"not run: too large: line {operation.first_line} has more than {_MOST_ELEMENTS} elements")
    return max(_ELEMENTS_AT_ONCE // largest, 1)


def _may_wait(module: MlirModule) -> bool:
    """Whether programs may wait for one another in a loop, as with a lock."""
    if any(one.kind == "loop" and may_spin(one) for one in module.walk()):
        return True
    kernel = module.kernel
    return kernel is not None and len(kernel.regions[0].blocks) > 1 and any(map(touches_others, kernel.walk()))
