"""The device, the address and, as far as they are known, the values of virtual tensors.

All of it is stored in torch's own objects (the storage or the tensor), and freed with them. Values are stored in the
storage, so that all views of one memory agree.
"""

from __future__ import annotations

import base64
import ctypes
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch

from irscope.record.virtual.numbers import PlaceholderInt, Reads, carry, plain
from irscope.record.virtual.placeholders import current_following
from irscope.record.virtual.places import place_of_reader

_BASE = 0x7F00_0000_0000
"""The first address of the device's memory, as on a real device."""
_ALIGNMENT = 512
"""The alignment of an allocation in bytes, as in torch's own allocator."""
KNOWN_BYTES = 128 << 10
"""Tensors of up to so many bytes are computed, and their data stored with a launch if they are integers: lengths,
offsets, indices and small weights, by which addresses and loops are known."""
_DRAWN_BYTES = 16 << 10
"""Of integers that stand in for random ones, or follow from such, so many bytes are stored with a launch."""

_LARGE_BYTES = 1 << 26
"""Tensors of this size and more are counted as allocated."""

_ADDRESS = "_irscope_address"
_COUNTED = "_irscope_counted"
_DEVICE = "_irscope_device"
_PINNED = "_irscope_pinned"
_SHADOW = "_irscope_shadow"
_ASSUMED_RESULT = "_irscope_assumed_result"
_UNWRITTEN = "_irscope_unwritten"
_NUMBERS = count(1)
"""Of the storages that `torch.empty` made."""

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
META = torch.device("meta")


@dataclass(slots=True, eq=False)
class _Shadow:
    """The bytes of a storage without data, computed on the CPU."""

    data: torch.UntypedStorage
    is_placeholder: bool
    """Whether they are placeholders of the program's values: random numbers of another generator, for example."""
    epoch: int


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    values: torch.Tensor
    """On the CPU; a view of the storage's shadow, so that a write is seen by all views."""
    is_placeholder: bool = False
    """Whether they are placeholder values for values that only a GPU has."""


class _Epoch:
    """Counts the writes to unknown places, which invalidate all shadows made before."""

    now = 0


class VirtualMemory:
    """The memory of one virtual device: addresses, and the tensors that report another device than `cuda:0`."""

    def __init__(self, size_bytes: int, on_note: Callable[[str], None]) -> None:
        self._next = _BASE
        self._on_note = on_note
        self._size_bytes = size_bytes
        self.used_bytes = self.most_used_bytes = 0
        """How much the large tensors take: a lower bound."""
        self.current_device = 0
        self.marks = False
        """Whether any tensor reports another device."""

    @property
    def free_bytes(self) -> int:
        return self._size_bytes - self.used_bytes

    def allocate(self, tensor: torch.Tensor) -> None:
        """Count the memory of a new tensor if it is large; raises torch's error if it is more than is left."""
        if tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        if size < _LARGE_BYTES or _COUNTED in storage.__dict__:
            return
        if size > self.free_bytes:
            place = place_of_reader().label
            wanted, used, total = (_gibibytes(count) for count in (size, self.used_bytes, self._size_bytes))
            self._on_note(f"CUDA out of memory at {place}: {wanted} requested, {used} of {total} in use.")
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {wanted}. GPU 0 has a total capacity of {total} of which "
                f"{_gibibytes(self.free_bytes)} is free."
            )
        setattr(storage, _COUNTED, True)
        self.used_bytes += size
        self.most_used_bytes = max(self.most_used_bytes, self.used_bytes)
        weakref.finalize(storage, self._free, size).atexit = False

    def _free(self, size: int) -> None:
        self.used_bytes -= size

    def index_of(self, device: Any) -> int:
        if isinstance(device, str):
            device = torch.device(device)
        if isinstance(device, torch.Tensor):
            device = device.get_device()
        if isinstance(device, torch.device):
            device = device.index if device.type == "cuda" else None
        index = self.current_device if device is None or device < 0 else device
        if index > 0:
            self._on_note(
                f"{place_of_reader().label} uses cuda:{index}, which is assumed to exist, but the virtual GPU is one "
                "device, and torch.cuda.device_count() is 1."
            )
        return index

    def exchange_device(self, device: Any) -> int:
        """Make a device the current one; returns the index of the one before."""
        before, self.current_device = self.current_device, self.index_of(device)
        return before

    def address(self, storage: Any) -> int:
        address = storage.__dict__.get(_ADDRESS)
        if address is None:
            address = self._next
            size = max(int(storage.nbytes()), 1)
            self._next += -(-size // _ALIGNMENT) * _ALIGNMENT
            setattr(storage, _ADDRESS, address)
        return address

    def data_ptr(self, tensor: torch.Tensor) -> int:
        if tensor.numel() == 0:
            return 0
        return self.address(tensor.untyped_storage()) + tensor.storage_offset() * tensor.element_size()

    def mark(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        self.marks = True
        setattr(tensor.untyped_storage(), _DEVICE, device)
        return tensor

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        setattr(tensor.untyped_storage(), _PINNED, True)
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and _PINNED in tensor.untyped_storage().__dict__

    def device(self, tensor: torch.Tensor) -> torch.device:
        if not tensor.is_meta:
            return tensor.device
        if not self.marks or tensor.layout is not torch.strided:
            return CUDA
        return tensor.untyped_storage().__dict__.get(_DEVICE, CUDA)


def _gibibytes(size: int) -> str:
    return f"{size / (1 << 30):.2f} GiB"


def values_of(tensor: torch.Tensor) -> Known | None:
    """A tensor's values, or None if they are not known; those of a real tensor are."""
    if is_wrapper(tensor):
        return None
    if not tensor.is_meta:
        return Known(tensor)
    shadow = _shadow(tensor)
    return None if shadow is None else Known(_view(tensor, shadow.data), shadow.is_placeholder)


def computed_values(tensor: torch.Tensor) -> torch.Tensor | None:
    """A tensor's values if they are known, and no placeholder values."""
    known = values_of(tensor)
    return None if known is None or known.is_placeholder else known.values


def has_values(tensor: torch.Tensor) -> bool:
    if is_wrapper(tensor):
        return False
    return not tensor.is_meta or _shadow(tensor) is not None


def store_values(tensor: torch.Tensor, values: torch.Tensor, *, is_placeholder: bool = False) -> torch.Tensor:
    """Store the values of a tensor that shares its memory with no other, unless they are too many."""
    room = reserve_values(tensor, is_placeholder=is_placeholder)
    if room is not None:
        with torch.no_grad():
            room.copy_(values.detach())
    return tensor


def reserve_values(tensor: torch.Tensor, *, is_placeholder: bool = False) -> torch.Tensor | None:
    """A tensor on the CPU for the values of another, to be written at once; None if they are too many."""
    if not has_shadow(tensor):
        return None
    storage = tensor.untyped_storage()
    if storage.nbytes() > KNOWN_BYTES:
        return None
    data = torch.UntypedStorage(storage.nbytes(), device=CPU)
    setattr(storage, _SHADOW, _Shadow(data, is_placeholder, _Epoch.now))
    return _view(tensor, data)


def invalidate(tensor: torch.Tensor) -> None:
    """Forget the values of a tensor, and of all others that share its memory: it was written with unknown values."""
    tensor.__dict__.pop(_ASSUMED_RESULT, None)
    if tensor.is_meta and tensor.layout is torch.strided:
        marks = tensor.untyped_storage().__dict__
        marks.pop(_SHADOW, None)
        marks.pop(_UNWRITTEN, None)


@dataclass(slots=True)
class _Unwritten:
    """A storage that `torch.empty` made, as long as nothing but launches wrote to it."""

    number: int
    version: int
    """Of its tensors: another one says that torch wrote."""
    epoch: int
    launches: int = 0


_T = torch.Tensor
_EMPTY = frozenset({torch.empty, torch.empty_like, torch.empty_strided, _T.new_empty, _T.new_empty_strided})
"""What allocates memory, and writes nothing to it."""


def note_unwritten(func: Any, args: Sequence[Any], result: Any) -> None:
    """Note that a call made a tensor of the GPU whose memory is not written, or a way to write to it unseen."""
    if func in _EMPTY:
        # Tensors of inference count no versions.
        if isinstance(result, torch.Tensor) and result.layout is torch.strided and not result.is_inference():
            mark = _Unwritten(next(_NUMBERS), result._version, _Epoch.now)
            result.untyped_storage().__dict__[_UNWRITTEN] = mark
    elif func == _T.data.__get__ and args[0].layout is torch.strided:  # type: ignore[attr-defined]
        # It has versions of its own.
        args[0].untyped_storage().__dict__.pop(_UNWRITTEN, None)


def _unwritten(tensor: torch.Tensor) -> _Unwritten | None:
    """What is known of a tensor's memory that `torch.empty` made; None if torch wrote to it since, or made it else."""
    if tensor.layout is not torch.strided:
        return None
    mark = tensor.untyped_storage().__dict__.get(_UNWRITTEN)
    return mark if mark is not None and (mark.version, mark.epoch) == (tensor._version, _Epoch.now) else None


def written_by_launch(tensors: Sequence[torch.Tensor]) -> None:
    """Forget the values of tensors that one launch writes to."""
    marks = [(tensor.untyped_storage(), mark) for tensor in tensors if (mark := _unwritten(tensor)) is not None]
    for tensor in tensors:
        invalidate(tensor)
    for storage, mark in marks:
        # Once, however many of the tensors are views of it.
        storage.__dict__[_UNWRITTEN] = replace(mark, launches=mark.launches + 1)


def invalidate_all() -> None:
    """Forget all values: unknown values were written to an unknown place."""
    _Epoch.now += 1


def mark_placeholder(tensor: torch.Tensor) -> None:
    shadow = _shadow(tensor)
    if shadow is not None:
        shadow.is_placeholder = True


def covers(tensor: torch.Tensor) -> bool:
    """Whether a tensor covers all of its memory, so that writing it overwrites everything."""
    if not has_shadow(tensor) or not tensor.is_contiguous():
        return False
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def has_shadow(tensor: torch.Tensor) -> bool:
    """Whether the values of a tensor of this kind can be known: it is strided, and no wrapper of other tensors."""
    if not tensor.is_meta or tensor.layout is not torch.strided:
        return False
    return not tensor.is_quantized and not is_wrapper(tensor)


def is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether a tensor's class implements torch's operators itself, and has its data in other tensors."""
    return type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl


def assumed_result(tensor: torch.Tensor) -> bool | None:
    return tensor.__dict__.get(_ASSUMED_RESULT)


def assume_result(tensor: Any, holds: bool) -> Any:
    if isinstance(tensor, torch.Tensor):
        tensor.__dict__[_ASSUMED_RESULT] = holds
    return tensor


def _shadow(tensor: torch.Tensor) -> _Shadow | None:
    if not has_shadow(tensor):
        return None
    storage = tensor.untyped_storage()
    shadow = storage.__dict__.get(_SHADOW)
    if shadow is None or shadow.epoch != _Epoch.now or shadow.data.nbytes() != storage.nbytes():
        return None
    return shadow


def _view(tensor: torch.Tensor, data: torch.UntypedStorage) -> torch.Tensor:
    values = torch.empty(0, dtype=tensor.dtype, device=CPU)
    values.set_(data, tensor.storage_offset(), tensor.shape, tensor.stride())
    if tensor.is_conj():
        values = values.conj()
    return values._neg_view() if tensor.is_neg() else values


def recorded_values(tensor: torch.Tensor, most_bytes: int) -> dict[str, Any]:
    """What is known of a tensor's data: the range of integers, the elements of a small or smaller one, or that nothing
    wrote to it. A tensor of a GPU is read where it is small or any data are wanted, which waits for the GPU.
    """
    # To the functions of the virtual GPU's mode it is a tensor of a GPU.
    with torch._C.DisableTorchFunction(), torch.no_grad():
        is_small = not tensor.dtype.is_floating_point and tensor.numel() * tensor.element_size() <= KNOWN_BYTES
        if not tensor.is_meta and not most_bytes and not is_small:
            return {}
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return {}
        row: dict[str, Any] = {}
        if (mark := _unwritten(tensor)) is not None:
            row = {"is_unwritten": not mark.launches, "empty_storage": mark.number, "launches_before": mark.launches}
        known = values_of(tensor) if mark is None or not tensor.is_meta else None
        if known is None or not tensor.numel() or tensor.is_complex():
            return row
        values = known.values.detach().cpu().contiguous()
        if not values.dtype.is_floating_point:
            row |= {"least": int(values.min()), "greatest": int(values.max())}
            most_bytes = max(most_bytes, KNOWN_BYTES)
        elif known.is_placeholder:
            return row
        size = values.numel() * values.element_size()
        if size <= (_DRAWN_BYTES if known.is_placeholder else most_bytes):
            data = zlib.compress(ctypes.string_at(values.data_ptr(), size), 6)
            row["drawn" if known.is_placeholder else "data"] = base64.b85encode(data).decode()
    return row


_SIZES = "_irscope_sizes"

Sizes = dict[int, Reads]
"""By dimension, counted from the last (0): the reads of its size."""


def _sizes_of(tensor: torch.Tensor) -> Sizes:
    return tensor.__dict__.get(_SIZES, {})


def carry_sizes(operands: Sequence[torch.Tensor], numbers: Sequence[Any], result: Any) -> None:
    """Mark those sizes of a call's results that are equal to a placeholder size of an operand, or to such a number."""
    placeholders = [sizes for tensor in operands if (sizes := _sizes_of(tensor))]
    integers = [number for number in numbers if isinstance(number, PlaceholderInt)]
    if not placeholders and not integers:
        return
    for made in result if isinstance(result, list | tuple) else (result,):
        if not isinstance(made, torch.Tensor) or not made.is_meta or any(made is operand for operand in operands):
            continue
        sizes_of_result: Sizes = {}
        for tensor in operands:
            for place, reads in _sizes_of(tensor).items():
                size = tensor.shape[-1 - place]
                if place < made.dim() and made.shape[-1 - place] == size:
                    sizes_of_result[place] = sizes_of_result.get(place, frozenset()) | reads
                elif made.shape.count(size) == 1:
                    place = made.dim() - 1 - made.shape.index(size)
                    sizes_of_result[place] = sizes_of_result.get(place, frozenset()) | reads
        for number in integers:
            if made.shape.count(plain(number)) >= 1:
                sizes_of_result[made.dim() - 1 - made.shape.index(plain(number))] = number.reads
        if sizes_of_result:
            set_sizes(made, sizes_of_result, decides=not placeholders)


def set_sizes(tensor: torch.Tensor, sizes: Sizes, *, decides: bool) -> torch.Tensor:
    """Mark sizes of a tensor as placeholder values. `decides`: whether a placeholder value becomes a shape here."""
    tensor.__dict__[_SIZES] = sizes
    if decides:
        current_following().decide("shape", frozenset().union(*sizes.values()))
    return tensor


def install_shapes(handlers: dict[Any, Any]) -> None:
    T = torch.Tensor
    handlers[T.shape.__get__] = lambda func, args, kwargs: _shape(args[0], func(*args))
    handlers[T.size] = lambda func, args, kwargs: _size(func, args, kwargs)
    handlers[T.numel] = handlers[T.nelement] = lambda func, args, kwargs: _count(args[0], func(*args))


def _shape(tensor: torch.Tensor, shape: torch.Size) -> torch.Size:
    sizes = _sizes_of(tensor)
    if not sizes:
        return shape
    last = len(shape) - 1
    return torch.Size([carry(size, sizes.get(last - place, frozenset())) for place, size in enumerate(shape)])


def _size(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(dim, int) or not _sizes_of(args[0]):
        result = func(*args, **kwargs)
        return _shape(args[0], result) if isinstance(result, torch.Size) else result
    return _shape(args[0], func(args[0]))[plain(dim)]


def _count(tensor: torch.Tensor, count: int) -> int:
    sizes = _sizes_of(tensor)
    return carry(count, frozenset().union(*sizes.values())) if sizes else count
