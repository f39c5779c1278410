"""Which storage each access may reach: that of the argument its pointer comes from."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.uses import points
from irscope.ir.reach import reached
from irscope.machine.captured import Inputs
from irscope.machine.launch import HostDescriptor, Pointer
from irscope.machine.memory import GlobalMemory
from irscope.verify.slices import AddressSlice, loads_behind, sources_of
from irscope.verify.trace import ElementAccess, Listener, Observed


@dataclass(frozen=True, slots=True)
class _Tensor:
    path: str
    storage: int
    offset_bytes: int
    storage_bytes: int


class Arguments:
    """The tensor arguments of a launch, and where they lie in the machine's memory."""

    def __init__(self, module: MlirModule, inputs: Inputs, paths: Sequence[str]) -> None:
        """`paths`: the name of each of `inputs.given`."""
        numbers: dict[int, int] = {}
        self.tensors: list[_Tensor] = []
        self.of_parameter: dict[Value, _Tensor] = {}
        kernel = module.kernel
        parameters = kernel.regions[0].blocks[0].arguments if kernel is not None and kernel.regions else ()
        described = sum(isinstance(given, HostDescriptor) for given in inputs.given)
        extra = (len(parameters) - len(inputs.given)) // described if described else 0
        place = 0
        for path, given in zip(paths, inputs.given, strict=True):
            pointer = given.base if isinstance(given, HostDescriptor) else given
            if isinstance(pointer, Pointer):
                number = numbers.setdefault(id(pointer.storage), len(numbers))
                tensor = _Tensor(path, number, pointer.offset_bytes, pointer.storage.size)
                self.tensors.append(tensor)
                if place < len(parameters):
                    self.of_parameter[parameters[place]] = tensor
            place += 1 + (extra if isinstance(given, HostDescriptor) else 0)

    def named(self, memory: GlobalMemory, address: int) -> str:
        """`x_ptr + 4096 bytes`: the argument in whose storage an address lies."""
        for tensor in self.tensors:
            begin = memory.address(tensor.storage)
            if begin <= address < begin + tensor.storage_bytes:
                distance = address - begin - tensor.offset_bytes
                return f"{tensor.path} {'+' if distance >= 0 else '-'} {abs(distance)} bytes"
        return ""


class Bounds(Listener):
    """Checks each access against the storages of the arguments that its pointer may come from."""

    def __init__(self, module: MlirModule, arguments: Arguments) -> None:
        self._module, self._arguments = module, arguments
        self._allowed: dict[int, tuple[_Tensor, ...]] = {}
        self.found: dict[int, ElementAccess] = {}
        self.unknown: set[str] = set()
        """Operations whose pointer comes from no argument, such as an address that was loaded."""
        self.touched: set[tuple[int, int]] = set()
        """(`id` of an operation, number of a storage)."""
        self._memory: GlobalMemory | None = None
        maps = (operation for operation in module.walk() if operation.opcode == "tensormap_create")
        self._sources = sources_of(module)
        self._mapped = [value for operation in maps for value in operation.operand_group("global_address")]

    def begin(self, memory: GlobalMemory) -> None:
        self._memory = memory

    def observe(self, observed: Observed) -> None:
        """Note the first element of an operation that is outside."""
        key = id(observed.operation)
        if not observed.addresses.size or self._memory is None:
            return
        allowed = self._allowed.get(key)
        if allowed is None:
            allowed = self._allowed[key] = self.origins(observed.operation)
            if not allowed:
                self.unknown.add(observed.operation.name)
        if not allowed or key in self.found:
            return
        inside = np.zeros(observed.addresses.size, np.bool_)
        for tensor in allowed:
            begin = self._memory.address(tensor.storage)
            end = begin + tensor.storage_bytes - observed.element_bytes
            here = (observed.addresses >= begin) & (observed.addresses <= end)
            if here.any():
                self.touched.add((key, tensor.storage))
            inside |= here
        if inside.all():
            return
        outside = np.flatnonzero(~inside)
        self.found[key] = self._outside(observed, int(outside[0]), outside.size, allowed[0], self._memory)

    @staticmethod
    def _outside(observed: Observed, at: int, count: int, tensor: _Tensor, memory: GlobalMemory) -> ElementAccess:
        address = int(observed.addresses[at])
        begin = memory.address(tensor.storage)
        distance = address - begin
        size = tensor.storage_bytes
        if distance < 0:
            where = f"{-distance} bytes before the storage of {tensor.path} begins"
        else:
            where = f"{distance + observed.element_bytes - size} bytes beyond the end of the storage of {tensor.path}"
        detail = (
            f"{observed.kind} of {observed.element_bytes} bytes {where}, which has {size} bytes; "
            f"{count} element{'s' if count > 1 else ''} of this execution {'are' if count > 1 else 'is'} outside"
        )
        return observed.element_at(at, tensor.path, detail)

    def named(self, observed: Observed) -> str:
        """The argument and the byte of the first element of an access."""
        if self._memory is None or not observed.addresses.size:
            return ""
        return self._arguments.named(self._memory, int(observed.addresses[0]))

    def made_up_behind(self, slices: AddressSlice, made_up: Collection[str]) -> list[str]:
        """Names of the tensors among some whose elements decide the accesses of a slice, in the runs until now."""
        writers = [one for one in self._module.walk() if one.kind in ("store", "atomic")]
        possible, reads_shared, loads, storages = slices.possible, slices.reads_shared, set[int](), set[int]()
        while made_up and not loads.issuperset(map(id, slices.loads)):
            loads.update(map(id, slices.loads))
            storages |= {storage for one, storage in self.touched if one in loads}
            # What the kernel itself wrote there comes from other elements.
            stores = [one for one in writers if any((id(one), storage) in self.touched for storage in storages)]
            slices = loads_behind(self._module, stores)
            # Nor is known what a store leaves there that a mask may leave out.
            reads_shared |= slices.reads_shared or any(id(one) in possible for one in stores)
        return [
            tensor.path
            for tensor in self._arguments.tensors
            if tensor.path in made_up and (tensor.storage in storages or reads_shared)
        ]

    def written(self) -> frozenset[str]:
        """Names of the tensors that the kernel may store to, other than by atomic operations."""
        found: set[str] = set()
        for operation in self._module.walk():
            writes = any(effect.space == "global" and effect.kind == "writes" for effect in operation.effects)
            if writes and operation.kind != "atomic":
                found.update(tensor.path for tensor in self.origins(operation) or self._arguments.tensors)
        return frozenset(found)

    def origins(self, operation: Operation) -> tuple[_Tensor, ...]:
        """The tensors that the pointer operands of an operation may come from."""
        names = {effect.operand for effect in operation.effects if effect.space == "global"}
        origins: dict[str, _Tensor] = {}
        for value in reached([value for name in names for value in operation.operand_group(name)], self._before):
            if (tensor := self._arguments.of_parameter.get(value)) is not None:
                origins[tensor.path] = tensor
            elif self._module.definition(value) in (None, self._module.kernel):
                return ()
        return tuple(origins.values())

    def _before(self, value: Value) -> Iterable[Value]:
        """The pointers that one comes from."""
        if value in self._arguments.of_parameter:
            return ()
        maker = self._module.maker_of(value)
        if maker is not None and maker.opcode == "global_scratch_alloc":
            # Memory for tensor maps: who accesses by one accesses the tensor that it describes.
            return self._mapped
        return (one for one in self._sources(value) if points(self._module.type_of(one)))
