"""Restorable copies of one launch's arguments, which variants of its kernel run on."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from irscope.device.measurement import Agreement
from irscope.errors import RecordingError
from irscope.ir.mlir.uses import ArithmeticPrecision, PointerUses
from irscope.record.gpu.noise import (
    TF32_UNIT,
    MemoryDifference,
    Noise,
    agreement_of,
    bits_of,
    compare_memory,
    dtype_of_type,
    element_bytes,
    float_format,
    move_one_ulp,
    poisons_of,
)

_GUARD_BYTES = 4096
"""Before and after each copy, so that what is written beside it is seen, and spoils nothing."""
_GUARD = 0xC5

_FEWEST_RUNS = 4
"""Of each variant that is checked: two with each poison."""
_MOST_RUNS = 20
_ENOUGH_S = 0.3
"""A race does not show in every run: there are more of them where they are quick."""

_MOVED_RUNS = 12
"""Of the empty plan's kernel, on inputs perturbed by one unit in the last place."""
_FEWEST_MOVED_RUNS = 4
_NOISE_S = 5.0
_SUM_EPSILON = 2.0**-22
"""What one addition of a sum in float32 may lose, relative to it: matrix units cut off before they round."""
_SUM_FACTOR = 4.0
"""Times the typical error of a sum: each element stays below that."""
_TF32_EPSILON = 2.0**-10
_STEADY_RUNS = 6
"""Of a kernel whose own runs differ: how far they do is noise too."""

Run = Callable[[], None]


@dataclass(slots=True)
class _Storage:
    pristine: torch.Tensor
    buffer: torch.Tensor
    """The copy that variants run on, between two guards."""
    dtype: torch.dtype
    names: list[str] = field(default_factory=list)
    writers: list[str] = field(default_factory=list)
    """The names of the arguments that the kernel writes by."""
    read: bool = False
    reference: torch.Tensor | None = None
    """Its bits after the empty plan's launch; None where they are as before."""
    unwritten: torch.Tensor | None = None
    """Where the empty plan leaves the poison; None where it was not poisoned, or everything was written."""
    shape: tuple[int, int] | None = None
    """Rows and columns of the one contiguous tensor that fills it; None if there is none such."""
    extents: list[tuple[int, int, int]] = field(default_factory=list)
    noise: Noise | None = None
    """What rounding does to the reference; None until it was measured, and where the launch changes nothing."""
    mixed: bool = False

    @property
    def name(self) -> str:
        return ", ".join(self.writers or self.names)

    @property
    def body(self) -> torch.Tensor:
        return self.buffer[_GUARD_BYTES : _GUARD_BYTES + self.pristine.numel()]

    @property
    def is_output(self) -> bool:
        """Whether it is written and never read: what it held before means nothing, so it is poisoned."""
        return bool(self.writers) and not self.read

    @property
    def bits(self) -> torch.Tensor:
        return bits_of(self.body, self.dtype)

    @property
    def is_movable(self) -> bool:
        """Whether it is read, as floats of one format: moving each by one unit is then a rounding of the input."""
        return self.read and not self.mixed and float_format(self.dtype) is not None

    @property
    def touched_bytes(self) -> int:
        covered, end = 0, -1
        for first, last, _ in sorted(self.extents):
            covered += max(0, last - max(first, end))
            end = max(end, last)
        return min(covered, sum({extent: extent[2] for extent in self.extents}.values()))

    def fill(self, poison: int) -> None:
        """Put the copy as it was at the launch; an output is poisoned with the first or the second pattern."""
        if self.is_output:
            self.bits.fill_(poisons_of(self.dtype)[poison])
        else:
            self.body.copy_(self.pristine)

    def guards_are_whole(self) -> bool:
        """Whether nothing was written next to it; restores what was."""
        edges = (self.buffer[:_GUARD_BYTES], self.buffer[-_GUARD_BYTES:])
        whole = all(bool((edge == _GUARD).all()) for edge in edges)
        if not whole:
            for edge in edges:
                edge.fill_(_GUARD)
        return whole


class KeptArguments:
    def __init__(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        signature: dict[str, Any],
        uses: PointerUses,
        arithmetic: ArithmeticPrecision | None = None,
    ) -> None:
        self.uses = uses
        self.arithmetic = arithmetic or ArithmeticPrecision()
        self._longest = 1
        self._storages: dict[int, _Storage] = {}
        self._leaves: list[tuple[str, torch.dtype, _Storage]] = []
        self.arguments = [
            self._copied(name, value, signature.get(name)) for name, value in zip(names, values, strict=True)
        ]
        self._note_uses()
        self.noise = ""
        self.noise_of = ""
        self._run: Run = lambda: None
        self._others: Callable[[], Iterable[tuple[str, Run]]] = lambda: ()

    @property
    def storages(self) -> list[_Storage]:
        return list(self._storages.values())

    def _copied(self, name: str, value: Any, kind: Any) -> Any:
        """The same argument on copied memory: views, offsets, strides and what several share stay as they are."""
        if isinstance(value, torch.Tensor):
            return self._copied_tensor(name, value, kind)
        if isinstance(value, tuple):
            kinds = kind if isinstance(kind, (tuple, list)) and len(kind) == len(value) else [None] * len(value)
            items = [self._copied(f"{name}[{index}]", item, kinds[index]) for index, item in enumerate(value)]
            # A named tuple is made of its fields, a plain one of a row of them.
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(getattr(value, "base", None), torch.Tensor):
            # A tensor descriptor, or a tensor that is read as another type.
            fresh = copy.copy(value)
            fresh.base = self._copied_tensor(name, value.base, kind)
            if hasattr(value, "data_ptr") and hasattr(value, "data"):
                fresh.data = fresh.base.data
            return fresh
        if hasattr(value, "data_ptr"):
            raise RecordingError(
                f"the argument {name!r} is a {type(value).__name__}: only the memory of torch tensors can be saved."
            )
        return value

    def _copied_tensor(self, name: str, tensor: torch.Tensor, kind: Any) -> torch.Tensor:
        tensor = tensor.detach()
        memory = tensor.untyped_storage()
        if memory.data_ptr() % 16 and tensor.is_cuda:
            raise RecordingError(
                f"the memory of {name!r} begins at an address that is not a multiple of 16, unlike its copies."
            )
        # Empty ones have no address that identifies them.
        key = memory.data_ptr() or -1 - len(self._leaves)
        if key not in self._storages:
            self._storages[key] = _keep(tensor, memory)
        storage = self._storages[key]
        storage.names.append(name)
        storage.extents.append(_extent(tensor))
        self._longest = max([self._longest, *map(int, tensor.shape)])
        fills = tensor.is_contiguous() and tensor.numel() * tensor.element_size() == memory.nbytes()
        storage.shape = (tensor[..., 0].numel(), int(tensor.shape[-1])) if fills and tensor.dim() > 1 else None
        self._leaves.append((name, dtype_of_type(kind, tensor.dtype), storage))
        view = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        offset = _GUARD_BYTES // tensor.element_size() + tensor.storage_offset()
        return view.set_(storage.buffer.untyped_storage(), offset, tensor.size(), tensor.stride())

    def _note_uses(self) -> None:
        for storage in self.storages:
            storage.mixed = len({dtype for _, dtype, other in self._leaves if other is storage}) > 1
        self.uses_known = len(self.uses.parameters) == len(self._leaves) and not self.uses.elsewhere
        for index, (name, dtype, storage) in enumerate(self._leaves):
            use = self.uses.parameters[index] if self.uses_known else None
            whole = storage.pristine.numel() % element_bytes(dtype) == 0
            # What is not known counts as both: it is compared, and never poisoned.
            storage.read = storage.read or use is None or use.read
            writes = use is None or use.written
            if whole and (name == storage.names[0] or (writes and not storage.writers)):
                storage.dtype = dtype
            if writes:
                storage.writers.append(name)

    @property
    def compulsory_bytes(self) -> int | None:
        """Bytes of each tensor that is read, and of each that is written, once; None where the uses are not known."""
        if not self.uses_known:
            return None
        return sum(
            storage.touched_bytes * (int(storage.read) + int(bool(storage.writers))) for storage in self.storages
        )

    def fill(self, poison: int = 0) -> None:
        for storage in self.storages:
            storage.fill(poison)

    def refill_changed(self) -> None:
        """Put back what the launch both reads and changes; quick, where it changes outputs alone."""
        for storage in self.storages:
            if storage.reference is not None and not storage.is_output:
                storage.body.copy_(storage.pristine)

    def take_reference(self, run: Run, others: Callable[[], Iterable[tuple[str, Run]]] = lambda: ()) -> None:
        """Run the empty plan's launch, twice, and keep what it leaves.

        `others`: makes launches that differ in the order or the rounding of their arithmetic alone, each with its name.
        """
        self._run, self._others = run, others
        self.fill(0)
        run()
        for storage in self.storages:
            changed = storage.is_output or not torch.equal(storage.body, storage.pristine)
            storage.reference = storage.bits.clone() if changed else None
        self.fill(1)
        run()
        unsteady: list[MemoryDifference] = []
        for storage in self.storages:
            if storage.is_output and storage.reference is not None:
                first, second = poisons_of(storage.dtype)
                left = (storage.reference == first) & (storage.bits == second)
                storage.unwritten = left if bool(left.any()) else None
            unsteady.append(self._compared(storage, 1))
        shaky = [difference for difference in unsteady if difference.differing]
        if shaky:
            most = max(shaky, key=lambda difference: difference.differing)
            error = "" if most.max_abs_error is None else f", by up to {most.max_abs_error:.3g}"
            self.noise = f"the empty plan's own runs differ in {most.differing} elements of {most.name}{error}"
        if beyond := [difference.name for difference in unsteady if difference.outside]:
            self.noise = f"under the empty plan too, something is written outside of the memory of {', '.join(beyond)}"

    def check(self, run: Run, alive: Callable[[], None] = lambda: None, most: int = _MOST_RUNS) -> Agreement:
        """Run a variant up to `most` times, its outputs poisoned, and compare what it leaves with the reference."""
        runs: list[list[MemoryDifference]] = []
        began = time.monotonic()
        for number in range(most):
            if number >= _FEWEST_RUNS and time.monotonic() - began > _ENOUGH_S:
                break
            differences = self._run_compared(run, number % 2)
            if not self.noise_of and any(difference.differing for difference in differences):
                differences = self._judged_again(differences, number % 2, alive)
                began = time.monotonic()
            runs.append(differences)
            alive()
        return agreement_of(runs, self.noise, self.noise_of)

    def measure_noise(self, alive: Callable[[], None] = lambda: None) -> None:
        changed = [(storage, storage.reference) for storage in self.storages if storage.reference is not None]
        coarse = [
            self._epsilon(storage) for storage in self.storages if storage.is_movable and self._is_coarse(storage)
        ]
        reach = None
        if coarse and not self.arithmetic.rounds_between and not self.noise:
            # A sum of n rounded terms is off by the root of n as much as each of them, and so is one of moved terms.
            reach = min(_SUM_FACTOR * math.sqrt(self._longest) * _SUM_EPSILON / min(coarse), 1.0)
        for storage, reference in changed:
            storage.noise = Noise(storage.dtype, reference, bool(coarse), reach, storage.shape)
        try:
            labels = [*self._run_moved(alive), *self._run_others(alive)]
        except torch.OutOfMemoryError:
            for storage, reference in changed:
                storage.noise = Noise(storage.dtype, reference)
            self.noise_of = "nothing: there is too little memory to measure it"
            return
        for storage, _ in changed:
            if storage.noise is not None:
                storage.noise.finish()
        self.noise_of = ", ".join(labels) or "nothing: no other order, and no float to perturb"

    def _is_coarse(self, storage: _Storage) -> bool:
        return element_bytes(storage.dtype) <= 2 or self._is_tf32(storage)

    def _is_tf32(self, storage: _Storage) -> bool:
        """Whether a dot may read it as TF32, of which a unit in the last place of float32 is nothing."""
        return self.arithmetic.reads_tf32 and storage.dtype == torch.float32

    def _epsilon(self, storage: _Storage) -> float:
        format_ = float_format(storage.dtype)
        return _TF32_EPSILON if self._is_tf32(storage) or format_ is None else torch.finfo(format_).eps

    def _run_moved(self, alive: Callable[[], None]) -> list[str]:
        generators: dict[torch.device, torch.Generator] = {}
        moved = (
            f"runs on inputs perturbed by one unit in the last place{' of TF32' if self.arithmetic.reads_tf32 else ''}"
        )
        began = time.monotonic()
        for number in range(_MOVED_RUNS if any(storage.is_movable for storage in self.storages) else 0):
            self.fill()
            starts: dict[int, torch.Tensor] = {}
            for storage in self.storages:
                if not storage.is_movable:
                    continue
                device = storage.buffer.device
                if device not in generators:
                    generators[device] = torch.Generator(device).manual_seed(0)
                move_one_ulp(
                    storage.bits, storage.dtype, generators[device], TF32_UNIT if self._is_tf32(storage) else 1
                )
                if storage.noise is not None:
                    starts[id(storage)] = storage.bits.clone()
            self._run()
            for storage in self.storages:
                if storage.noise is not None:
                    untouched = None
                    if (start := starts.get(id(storage))) is not None:
                        left = bits_of(storage.pristine, storage.dtype) == storage.reference
                        untouched = (storage.bits == start) & left
                    storage.noise.add_moved(storage.bits, untouched)
            alive()
            if number + 1 >= _FEWEST_MOVED_RUNS and time.monotonic() - began > _NOISE_S:
                return [f"{number + 1} {moved}"]
        return [f"{_MOVED_RUNS} {moved}"] if generators else []

    def _run_others(self, alive: Callable[[], None]) -> list[str]:
        labels: list[str] = []
        if self.noise:
            for _ in range(_STEADY_RUNS):
                self._add_other(self._run)
            labels.append(f"{_STEADY_RUNS} of the same")
        roundings = 0
        for label, run in self._others():
            alive()
            try:
                self._add_other(run)
            except torch.OutOfMemoryError:
                raise
            except Exception:
                # It needs more than a block may have; a GPU that is broken says so again at once.
                continue
            if label.startswith("rounding"):
                roundings += 1
            else:
                labels.append(label)
        return [*labels, *([f"{roundings} with other roundings"] if roundings else [])]

    def _add_other(self, run: Run) -> None:
        self.fill()
        run()
        for storage in self.storages:
            if storage.noise is not None:
                storage.noise.add_other(storage.bits)

    def _judged_again(
        self, differences: list[MemoryDifference], poison: int, alive: Callable[[], None]
    ) -> list[MemoryDifference]:
        """What a run left, judged by the noise, which is measured now: another run might not go wrong again."""
        left = [storage.body.clone() for storage in self.storages]
        self.measure_noise(alive)
        for storage, body in zip(self.storages, left, strict=True):
            storage.body.copy_(body)
        again = [self._compared(storage, poison) for storage in self.storages]
        for difference, before in zip(again, differences, strict=True):
            difference.outside = before.outside
        return again

    def _run_compared(self, run: Run, poison: int) -> list[MemoryDifference]:
        self.fill(poison)
        run()
        return [self._compared(storage, poison) for storage in self.storages]

    def _compared(self, storage: _Storage, poison: int) -> MemoryDifference:
        before = bits_of(storage.pristine, storage.dtype)
        difference = compare_memory(
            storage.name,
            storage.dtype,
            storage.bits,
            before if storage.reference is None else storage.reference,
            before=before,
            poison=poisons_of(storage.dtype)[poison] if storage.is_output else None,
            unwritten=storage.unwritten,
            noise=storage.noise,
        )
        difference.outside = not storage.guards_are_whole()
        return difference


def _keep(tensor: torch.Tensor, memory: torch.UntypedStorage) -> _Storage:
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(memory)
    try:
        pristine = whole.clone()
        buffer = torch.full((pristine.numel() + 2 * _GUARD_BYTES,), _GUARD, dtype=torch.uint8, device=tensor.device)
    except torch.OutOfMemoryError as error:
        raise RecordingError(
            f"{memory.nbytes() / 2**30:.1f} GiB of the launch's memory cannot be copied twice in addition to the "
            "script's own: use smaller tensors."
        ) from error
    return _Storage(pristine, buffer, torch.uint8)


def _extent(tensor: torch.Tensor) -> tuple[int, int, int]:
    if not tensor.numel():
        return (0, 0, 0)
    reach, elements = 0, 1
    for size, stride in zip(map(int, tensor.size()), map(int, tensor.stride()), strict=True):
        if stride:
            reach += (size - 1) * stride
            elements *= size
    first = int(tensor.storage_offset()) * tensor.element_size()
    return (first, first + (reach + 1) * tensor.element_size(), elements * tensor.element_size())
