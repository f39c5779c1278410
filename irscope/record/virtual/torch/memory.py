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
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from irscope.record.virtual.placeholders import PlaceholderInt, Reads, carry, current_following, plain
from irscope.record.virtual.places import place_of_reader

_BASE = 0x7F00_0000_0000
"""The first address of the device's memory, as on a real device."""
_ALIGNMENT = 512
"""The alignment of an allocation in bytes, as in torch's own allocator."""
KNOWN_ELEMENTS = 16384
"""Tensors of up to this many elements are computed: lengths, offsets, indices and small weights."""
_KNOWN_BYTES = 8 * KNOWN_ELEMENTS

_INDEX_BYTES = 64 << 10
"""Of an integer tensor that a script made on the virtual GPU: by its elements the addresses of a gather are known."""

_LARGE_BYTES = 1 << 26
"""Tensors of this size and more are counted as allocated."""

_ADDRESS = "_irscope_address"
_COUNTED = "_irscope_counted"
_DEVICE = "_irscope_device"
_PINNED = "_irscope_pinned"
_SHADOW = "_irscope_shadow"
_ASSUMED_RESULT = "_irscope_assumed_result"

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
    """The known values of a tensor."""

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
        """`on_note` is called with what the program did that another machine would refuse, or this one does."""
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
        """The memory without the large tensors'."""
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
            self._on_note(f"CUDA out of memory at {place}: {wanted} do not fit beside {used} of {total}.")
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
        """The index of a device in any of the forms that torch takes."""
        if isinstance(device, str):
            device = torch.device(device)
        if isinstance(device, torch.Tensor):
            device = device.get_device()
        if isinstance(device, torch.device):
            device = device.index if device.type == "cuda" else None
        index = self.current_device if device is None or device < 0 else device
        if index > 0:
            self._on_note(
                f"{place_of_reader().label} uses cuda:{index}: it was taken to be there, but the virtual GPU is one "
                "device, and torch.cuda.device_count() is 1."
            )
        return index

    def exchange_device(self, device: Any) -> int:
        """Make a device the current one; returns the index of the one before."""
        before, self.current_device = self.current_device, self.index_of(device)
        return before

    def address(self, storage: Any) -> int:
        """The address of a storage, which is allocated by the first call."""
        address = storage.__dict__.get(_ADDRESS)
        if address is None:
            address = self._next
            size = max(int(storage.nbytes()), 1)
            self._next += -(-size // _ALIGNMENT) * _ALIGNMENT
            setattr(storage, _ADDRESS, address)
        return address

    def data_ptr(self, tensor: torch.Tensor) -> int:
        """The result of `tensor.data_ptr()`."""
        if tensor.numel() == 0:
            return 0
        return self.address(tensor.untyped_storage()) + tensor.storage_offset() * tensor.element_size()

    def mark(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Let a tensor and all others of its storage report `device`."""
        self.marks = True
        setattr(tensor.untyped_storage(), _DEVICE, device)
        return tensor

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Mark a tensor of the host, and all others of its storage, as pinned."""
        setattr(tensor.untyped_storage(), _PINNED, True)
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor of the host is marked as pinned."""
        return tensor.layout is torch.strided and _PINNED in tensor.untyped_storage().__dict__

    def device(self, tensor: torch.Tensor) -> torch.device:
        """The device that a tensor reports."""
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
    """Whether a tensor's values are known."""
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
    if storage.nbytes() > _KNOWN_BYTES:
        return None
    data = torch.UntypedStorage(storage.nbytes(), device=CPU)
    setattr(storage, _SHADOW, _Shadow(data, is_placeholder, _Epoch.now))
    return _view(tensor, data)


def invalidate(tensor: torch.Tensor) -> None:
    """Forget the values of a tensor, and of all others that share its memory: it was written with unknown values."""
    tensor.__dict__.pop(_ASSUMED_RESULT, None)
    if tensor.is_meta and tensor.layout is torch.strided:
        tensor.untyped_storage().__dict__.pop(_SHADOW, None)


def invalidate_all() -> None:
    """Forget all values: unknown values were written to an unknown place."""
    _Epoch.now += 1


def mark_placeholder(tensor: torch.Tensor) -> None:
    """Mark a tensor's values as placeholder values for values that only a GPU has."""
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
    """Whether a comparison of unknown operands is assumed to hold; None for any other tensor."""
    return tensor.__dict__.get(_ASSUMED_RESULT)


def assume_result(tensor: Any, holds: bool) -> Any:
    """Store the assumed outcome of a comparison."""
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
    """The range of an integer tensor, and its data if it has at most so many bytes, as fields of an Argument.

    Of an integer tensor of the virtual GPU the data are stored up to a fixed size, too.

    None of them if it is not known: a tensor of the virtual GPU as far as the script gave its values; one of a GPU is
    read only where any data are wanted, which waits for the GPU.
    """
    # To the functions of the virtual GPU's mode it is a tensor of a GPU.
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if not tensor.is_meta and not most_bytes:
            return {}
        known = values_of(tensor)
        if known is None or not tensor.numel() or tensor.is_complex():
            return {}
        values = known.values.detach().cpu().contiguous()
        row: dict[str, Any] = {}
        if not values.dtype.is_floating_point:
            row = {"least": int(values.min()), "greatest": int(values.max())}
            most_bytes = max(most_bytes, _INDEX_BYTES if tensor.is_meta else 0)
        size = values.numel() * values.element_size()
        if not known.is_placeholder and size <= most_bytes:
            data = zlib.compress(ctypes.string_at(values.data_ptr(), size), 6)
            row["data"] = base64.b85encode(data).decode()
    return row


_SIZES = "_irscope_sizes"

Sizes = dict[int, Reads]
"""By dimension, counted from the last (0): the reads of its size."""


def _sizes_of(tensor: torch.Tensor) -> Sizes:
    """The dimensions of a tensor whose sizes are placeholder values."""
    return tensor.__dict__.get(_SIZES, {})


def carry_sizes(operands: Sequence[torch.Tensor], numbers: Sequence[Any], result: Any) -> None:
    """Mark those sizes of a call's results that are placeholder values, or follow from them.

    These are the sizes that are equal to a placeholder size of an operand, or to a placeholder number in the arguments.
    """
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
    """Add the handlers that return sizes to a mode."""
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


T = torch.Tensor
OWN = frozenset({"aten", "prim", "prims", "_prims", "quantized", "c10d", "_c10d_functional", "inductor"})
"""The namespaces of torch's own operators."""
_GIVEN = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, T.new_tensor})
"""Factories whose numbers are in the script."""
CONSTANT = _GIVEN | frozenset(
    {torch.arange, torch.zeros, torch.ones, torch.full, torch.eye, torch.linspace, torch.logspace}
    | {torch.range, torch.randint, torch.randperm, torch.from_numpy, torch.frombuffer, torch.complex, torch.block_diag}
    | {torch.tril_indices, torch.triu_indices, torch.zeros_like, torch.ones_like, torch.full_like, torch.randint_like}
    | {T.new_zeros, T.new_ones, T.new_full}
    | {torch.hann_window, torch.hamming_window, torch.bartlett_window, torch.blackman_window, torch.kaiser_window}
)
"""Factories whose values follow from their arguments, or are random integers as good as any others."""
_RANDOM = frozenset({torch.randint, torch.randperm, torch.randint_like})
_UNWRITTEN = frozenset(
    {torch.empty_like, torch.rand_like, torch.randn_like}
    | {T.new, T.new_empty, T.new_empty_strided, T.resize, T.resize_as}
)
"""Their results are uninitialised memory, or numbers of the GPU's own generator."""
_PLACES_ONLY = frozenset({T.requires_grad_, T.share_memory_, T.retain_grad, T.register_hook, T.backward})
"""They change no values."""
_NORMALISATIONS = frozenset({F.batch_norm, F.instance_norm, torch.batch_norm, torch.instance_norm})
"""They write running averages that torch's version counters do not count."""
_OVERWRITES = frozenset({T.zero_, T.fill_, T.copy_, torch.zero_, torch.fill_})
"""They overwrite all of their first argument."""
_OPERAND_ELEMENTS = 4 * KNOWN_ELEMENTS


@dataclass(frozen=True, slots=True)
class Call:
    """A call of torch that has run on tensors without data."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[torch.Tensor]
    """Its operands."""
    result: Any
    is_placeholder: bool = False
    """Whether a number among its arguments is a placeholder value."""


class Shadows:
    """Computes the values of one mode's tensors."""

    def __init__(self) -> None:
        self._seeded = torch.Generator().manual_seed(0)

    def versions(self, virtual: Sequence[torch.Tensor]) -> list[int | None]:
        """The version counters before a call, for `learn`."""
        return [_version(tensor) for tensor in virtual]

    def learn(self, call: Call, versions: list[int | None]) -> None:
        """Compute the results of a call, and what it wrote, if its operands are known.

        `versions`: those of the operands without data, before the call.
        """
        func, args, result = call.func, call.args, call.result
        if func in _PLACES_ONLY or _is_of_a_library(func):
            return
        if func is T.__deepcopy__:
            known = values_of(args[0])
            if known is not None:
                store_values(result, known.values, is_placeholder=known.is_placeholder)
            return
        virtual = [tensor for tensor in call.tensors if tensor.is_meta]
        written = [tensor for tensor, before in zip(virtual, versions, strict=True) if _version(tensor) != before]
        written += _named_as_written(call)
        if written:
            self._learn_write(call, written)
            return
        if func in CONSTANT:
            self._learn_constant(call)
            return
        if func in _UNWRITTEN or not virtual:
            return
        known = _all_known(call.tensors)
        if func in _NORMALISATIONS and not known:
            for tensor in virtual[1:]:
                invalidate(tensor)
        if known and (fresh := _fresh(result, virtual)) and all(map(_is_small, fresh)):
            self._replay(call, call.tensors, fresh)

    def _learn_constant(self, call: Call) -> None:
        func, result = call.func, call.result
        if not isinstance(result, T) or not result.is_meta or not _is_small(result):
            return
        options = {**_values(call.kwargs), "device": CPU}
        if func in _RANDOM:
            options["generator"] = self._seeded
        args = tuple(_values(call.args))
        try:
            with torch.inference_mode(False), torch.no_grad():
                values = func(*args, **options)
        except Exception:  # for example `torch.tensor` of a tensor whose values are not known
            return
        operands = [values_of(item) for item in tensors_in((*args, *call.kwargs.values()))]
        is_placeholder = (
            call.is_placeholder
            or func in _RANDOM
            or any(operand is not None and operand.is_placeholder for operand in operands)
        )
        _attach([result], [values], is_placeholder)

    def _learn_write(self, call: Call, written: list[torch.Tensor]) -> None:
        tensors = call.tensors
        if any(not tensor.is_meta for tensor in written):
            return
        # Unknown so far, and not read here: as all of it is written, it becomes known.
        regained = [
            tensor
            for tensor in _overwritten(call)
            if covers(tensor) and not has_values(tensor) and sum(_shares(tensor, other) for other in tensors) == 1
        ]
        rest = [tensor for tensor in tensors if not any(tensor is other for other in regained)]
        if _all_known(rest):
            for tensor in regained:
                reserve_values(tensor)
        if not _all_known(tensors):
            for tensor in written:
                invalidate(tensor)
            return
        fresh = _fresh(call.result, [tensor for tensor in tensors if tensor.is_meta])
        if not self._replay(call, rest, fresh, written):
            for tensor in written:
                invalidate(tensor)

    def _replay(
        self, call: Call, tensors: list[torch.Tensor], fresh: list[torch.Tensor], written: Sequence[torch.Tensor] = ()
    ) -> bool:
        """Repeat a call on values; returns whether it succeeded."""
        is_placeholder = call.is_placeholder or any(
            known is not None and known.is_placeholder for known in map(values_of, tensors)
        )
        generator = torch.default_generator
        state = generator.get_state()
        try:
            with torch.inference_mode(False), torch.no_grad():
                values = call.func(*_values(call.args), **_values(call.kwargs))
        except Exception:  # whatever it is, this computation is not the script's
            return False
        finally:
            after = generator.get_state()
            if not torch.equal(state, after):
                # The program's own random numbers go on as if nothing had been drawn.
                generator.set_state(state)
                is_placeholder = True
        if is_placeholder:
            for tensor in written:
                mark_placeholder(tensor)
        flat = tensors_in(call.result)
        computed = tensors_in(values)
        if len(flat) == len(computed):
            pairs = [
                (result, value) for result, value in zip(flat, computed, strict=True) if any(result is f for f in fresh)
            ]
            _attach([result for result, _ in pairs], [value for _, value in pairs], is_placeholder)
        return True


def _is_of_a_library(func: Any) -> bool:
    """Whether a function is an operator that a library registered: its own calls and launches are followed instead."""
    if isinstance(func, torch._ops.OpOverload):
        return func.namespace not in OWN
    if isinstance(func, torch._ops.OpOverloadPacket):
        return func._qualified_op_name.partition("::")[0] not in OWN
    return False


def _attach(results: list[torch.Tensor], values: list[Any], is_placeholder: bool) -> None:
    made: set[int] = set()
    for result, value in zip(results, values, strict=True):
        if (
            not isinstance(value, T)
            or value.device.type != "cpu"
            or value.shape != result.shape
            or value.dtype != result.dtype
        ):
            continue
        if value.layout is not torch.strided or not has_shadow(result):
            continue
        storage = result.untyped_storage()._cdata
        if storage in made:
            known = values_of(result)
            if known is not None:
                known.values.copy_(value)
            continue
        store_values(result, value, is_placeholder=is_placeholder)
        made.add(storage)


def _fresh(result: Any, virtual: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The results with memory of their own."""
    shared = {tensor.untyped_storage()._cdata for tensor in virtual if tensor.layout is torch.strided}
    return [
        tensor for tensor in tensors_in(result) if has_shadow(tensor) and tensor.untyped_storage()._cdata not in shared
    ]


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors share memory."""
    if not second.is_meta or second.layout is not torch.strided:
        return False
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.numel() <= KNOWN_ELEMENTS


def _all_known(tensors: Sequence[torch.Tensor]) -> bool:
    return all(map(has_values, tensors)) and sum(tensor.numel() for tensor in tensors) <= _OPERAND_ELEMENTS


def _version(tensor: torch.Tensor) -> int | None:
    # Tensors of torch.inference_mode() have none.
    return None if tensor.is_inference() else tensor._version


def _named_as_written(call: Call) -> list[torch.Tensor]:
    """The tensors that a function writes by its name, as version counters may not: `out`, `add_`, `_foreach_mul_`."""
    written = tensors_in(call.kwargs.get("out"))
    name = getattr(call.func, "__name__", "")
    if name == "__setitem__" or (name.startswith("__i") and name[3:-2] in _IN_PLACE):
        return [*written, *tensors_in(call.args[:1])]
    if name.endswith("_") and not name.endswith("__"):
        # Optimisers pass several lists to one function, and write to most.
        return [*written, *tensors_in(call.args if name.startswith("_") else call.args[:1])]
    return written


def _overwritten(call: Call) -> list[torch.Tensor]:
    """The tensors that a function overwrites completely."""
    written = tensors_in(call.kwargs.get("out"))
    if call.func in _OVERWRITES:
        return [*written, *tensors_in(call.args[:1])]
    if call.func is T.__setitem__ and isinstance(call.args[0], T):
        places = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
        if all(not isinstance(place, T) and (place is Ellipsis or place == slice(None)) for place in places):
            return [*written, call.args[0]]
    return written


def _values(value: Any) -> Any:
    """Arguments with every tensor replaced by its values, and the device by the CPU."""

    def values(tensor: torch.Tensor) -> torch.Tensor:
        known = values_of(tensor)
        return tensor if known is None else known.values

    return mapped(value, values, CPU)


_IN_PLACE = frozenset(
    {"add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul"}
)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """All tensors in a value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def mapped(value: Any, change: Callable[[torch.Tensor], Any], device: torch.device | None = None) -> Any:
    """A value with each tensor changed; `device` replaces the device `meta`."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(item, change, device) for name, item in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(bound, change, device) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, list | tuple):
        items = [mapped(item, change, device) for item in value]
        # A named tuple of Python takes its fields one by one, one of torch takes them as a sequence.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if device is not None and isinstance(value, torch.device) and value.type == "meta":
        return device
    return value
