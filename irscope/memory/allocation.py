"""Shared and tensor memory over time: each buffer's place, size, owner and live interval, and the peak.

Offsets are the compiler's, from the IR after it allocated; sizes are those it wrote, or follow from the type. Sources:
Triton's lib/Analysis/Allocation.cpp, TritonGPUAttrDefs.td (padded layouts), lib/Dialect/TritonNvidiaGPU (columns).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, get_args

from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS
from irscope.ir.locations.model import chain_texts, line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import Encoding, Padding, read_encoding
from irscope.ir.mlir.reader import MlirModule, Operation, parse_mlir
from irscope.ir.mlir.types import Type, read_types
from irscope.memory.liveness import Liveness
from irscope.model.capture import Capture
from irscope.target import Target

_COLUMN_BITS = 32
"""A column of tensor memory is 32 bits wide in each of its 128 lanes. Source: "PTX ISA", Tensor Memory."""
_TENSOR_ROWS = 128

_Space = Literal["shared", "tensor"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """One piece of memory that an operation owns for a while."""

    kind: Literal["buffer", "barrier", "scratch", "call", "warps"]
    """`scratch` is an operation's own; `call` what a called function needs; `warps` the states of specialised warps."""
    owner: str
    """The operation: `ttg.local_alloc`, `ttg.convert_layout`, `tt.reduce`."""
    value: str
    """Its result; empty for scratch."""
    what: str
    """`3·128×64×f16`, the type of a buffer; or what a scratch is of."""
    line: int
    """In the text, 1-based."""
    place: str
    """`file:line` of the Python source, or an empty string."""
    chain: tuple[str, ...]
    """`file:line` of every frame, innermost first."""
    offset: int
    """Bytes (shared memory) or columns (tensor memory)."""
    size: int
    start: int
    """The first operation at which it is live, in program order."""
    end: int
    """The one behind the last."""
    is_exact: bool = True
    """Whether the size is known; otherwise it is the most that fits."""
    padding: int = 0
    """Bytes within it that hold nothing."""
    row: int = 0
    """The first of its rows in tensor memory."""
    ttgir_line: int = 0
    """The first line of its operation in the TTGIR, 1-based; 0 if that is not known."""

    @property
    def stop(self) -> int:
        """The offset behind it."""
        return self.offset + self.size

    def is_live(self, step: int) -> bool:
        return self.start <= step < self.end


@dataclass(frozen=True, slots=True)
class _ProgramPoint:
    """One operation in program order."""

    number: int
    operation: str
    line: int
    """In the text, 1-based."""
    place: str
    """`file:line` of the Python source, or an empty string."""


@dataclass(frozen=True, slots=True)
class AllocatedMemory:
    """One memory of a kernel over time."""

    space: _Space
    total: int
    """What the kernel asks for, as the compiler wrote it, in bytes or columns."""
    limit: int | None
    """What a block can have on the target; None if it is not known."""
    buffers: tuple[Buffer, ...]
    steps: tuple[_ProgramPoint, ...]
    loops: tuple[tuple[int, int], ...]
    """The half-open interval of each loop, in program order."""

    @property
    def unit(self) -> str:
        return "bytes" if self.space == "shared" else "columns"

    def live_at(self, step: int) -> tuple[Buffer, ...]:
        """The buffers live at an operation, by offset."""
        return tuple(sorted((one for one in self.buffers if one.is_live(step)), key=lambda one: one.offset))

    @property
    def peak(self) -> int:
        """The first operation at which most is held."""
        starts = sorted({0, *(one.start for one in self.buffers)})
        return max(starts, key=lambda step: (covered(self.live_at(step)), -step))

    @property
    def held_at_peak(self) -> int:
        """Bytes or columns held at the peak; what is missing to the total are gaps."""
        return covered(self.live_at(self.peak))


def covered(buffers: Iterable[Buffer]) -> int:
    """The bytes or columns that some buffers take together; buffers in other rows of a column count once."""
    total = end = 0
    for one in sorted(buffers, key=lambda one: one.offset):
        total += max(one.stop - max(one.offset, end), 0)
        end = max(end, one.stop)
    return total


def shared_text(capture: Capture) -> str | None:
    """The IR after shared and tensor memory were allocated; None if the capture does not hold it."""
    names = ("allocate_shared_memory", "allocate_tensor_memory")
    passes = [one for one in capture.passes() if one.name.startswith(names) and one.outcome == "ran"]
    return capture.text_after(passes[-1]) if passes else None


def allocations_of(capture: Capture) -> tuple[AllocatedMemory, ...]:
    """Shared memory over time, and tensor memory if the kernel has any; empty if the capture does not hold that IR."""
    text = shared_text(capture)
    if text is None:
        return ()
    reader = _Reader(text, capture)
    found = (reader.allocation(space) for space in ("shared", "tensor"))
    return tuple(one for one in found if one is not None)


class _Reader:
    def __init__(self, text: str, capture: Capture) -> None:
        self.module: MlirModule = parse_mlir(text)
        self.kernel = self.module.kernel
        self.target = capture.target
        self._locations = read_locations(text, "mlir")
        own = self._locations.chain_at(self.kernel.first_line) if self.kernel is not None else ()
        self._file = own[0].file if own else ""
        owners = {one.name for one in self.module.walk() if any(_offsets(one, space) for space in get_args(_Space))}
        self._ttgir_lines = paired_lines(text, capture.texts.get("ttgir", ""), owners)
        self._needs: dict[str, tuple[int, bool]] = {}
        """Function → what it needs, and whether that is exact."""
        self._functions = {one.symbol: one for one in self.module.walk() if one.kind == "function"}

    def allocation(self, space: _Space) -> AllocatedMemory | None:
        total = self.module.option("shared" if space == "shared" else "tensor_memory_size")
        if self.kernel is None or not isinstance(total, int) or (space == "tensor" and not total):
            return None
        live = Liveness(self.kernel)
        buffers = list(self._buffers(self.kernel, live, space))
        buffers = _sized(buffers, total)
        steps = sorted((self._step(live.number_of(one), one) for one in self.kernel.walk()), key=lambda one: one.number)
        return AllocatedMemory(
            space,
            total,
            _limit(self.target, space),
            tuple(sorted(buffers, key=lambda one: (one.start, one.offset))),
            tuple(_filled(steps, live.steps)),
            tuple(live.loops()),
        )

    def _step(self, number: int, operation: Operation) -> _ProgramPoint:
        return _ProgramPoint(number, operation.name, operation.first_line, self._place(operation)[0])

    def _place(self, operation: Operation) -> tuple[str, tuple[str, ...]]:
        chain = self._locations.chain_at(operation.first_line)
        return line_text(place_of(chain, self._file)), chain_texts(chain)

    def _buffers(self, function: Operation, live: Liveness, space: _Space) -> Iterator[Buffer]:
        for operation in function.walk():
            offsets = _offsets(operation, space)
            if not offsets:
                continue
            place, chain = self._place(operation)
            kinds = read_types(operation.types)
            common = Buffer(
                "buffer", operation.name, "", "", operation.first_line, place, chain, 0, 0, 0, 0,
                row=_integer(operation, "tensor_memory_row_offset") or 0,
                ttgir_line=self._ttgir_lines.get(operation.first_line, 0),
            )  # fmt: skip
            if operation.opcode in ("local_alloc", "tmem_alloc"):
                yield from self._explicit(common, operation, kinds[-1], offsets, live)
                continue
            size = _integer(operation, "allocation.size")
            start = live.number_of(operation)
            found = replace(
                common,
                kind="scratch",
                what=_scratch(operation, kinds),
                offset=offsets[0],
                size=size or 0,
                is_exact=size is not None,
                start=start,
                end=start + 1,
            )
            if operation is function:
                found = replace(found, kind="warps", what="states of specialised warps", start=0, end=live.steps)
            elif operation.kind == "call":
                callee, bytes_needed, is_exact = self._need(operation)
                found = replace(found, kind="call", what=callee, size=bytes_needed, is_exact=is_exact)
            yield found

    def _explicit(
        self, common: Buffer, operation: Operation, kind: Type, offsets: Sequence[int], live: Liveness
    ) -> Iterator[Buffer]:
        value = operation.results[0]
        start, end = live.buffer_interval(value)
        encoding = read_encoding(self.module.resolve(kind.encoding))
        size, padding = (_bytes if operation.opcode == "local_alloc" else _columns)(kind, encoding)
        barrier = str(kind.element) == "i64" and size <= 8 * prod(kind.shape) and prod(kind.shape[1:]) == 1
        for offset in offsets:
            yield replace(
                common,
                kind="barrier" if barrier else "buffer",
                value=value.name,
                what="×".join([*map(str, kind.shape), str(kind.element)]),
                offset=offset,
                size=size // len(offsets),
                padding=padding // len(offsets),
                start=start,
                end=end,
            )

    def _need(self, call: Operation) -> tuple[str, int, bool]:
        """The name of a called function, its shared memory with that of what it calls, and whether that is exact."""
        name = call.symbol
        if name not in self._needs:
            # Until it is known, for a function that calls itself, which no compiler makes.
            self._needs[name] = 0, False
            function = self._functions.get(name)
            inner = list(self._buffers(function, Liveness(function), "shared")) if function is not None else []
            self._needs[name] = max((one.stop for one in inner), default=0), all(one.is_exact for one in inner)
        return name, *self._needs[name]


def _filled(steps: Sequence[_ProgramPoint], count: int) -> list[_ProgramPoint]:
    """A step for each number: those of operations that are not printed are the next one's."""
    found: list[_ProgramPoint] = []
    for step in steps:
        found += [replace(step, number=number) for number in range(len(found), step.number + 1)]
    return found[:count]


def _integer(operation: Operation, name: str) -> int | None:
    value = operation.attribute(name)
    return value if isinstance(value, int) else None


def _offsets(operation: Operation, space: _Space) -> tuple[int, ...]:
    """The offsets that the compiler gave an operation; none without one."""
    value = operation.attribute("allocation.offset" if space == "shared" else "tensor_memory_col_offset")
    values = value if isinstance(value, tuple) else (value,)
    return tuple(one for one in values if isinstance(one, int))


def _scratch(operation: Operation, kinds: Sequence[Type]) -> str:
    if operation.kind == "specialization":
        return "captures"
    return " → ".join(dict.fromkeys(map(str, (kinds[0], kinds[-1])))).replace("x", "×") if kinds else ""


def _sized(buffers: list[Buffer], total: int) -> list[Buffer]:
    """Buffers with a size for each: the most that fits below what lives at the same time, where none is written.

    That one is exact if nothing else reaches the total.
    """
    result: list[Buffer] = []
    for one in buffers:
        if not one.is_exact:
            above = [
                other.offset
                for other in buffers
                if other is not one and other.offset > one.offset and other.start < one.end and one.start < other.end
            ]
            one = replace(one, size=min(above, default=total) - one.offset)
        result.append(one)
    reaching = [one for one in result if one.stop == total]
    return [replace(one, is_exact=True) if reaching == [one] else one for one in result]


def _bytes(kind: Type, encoding: Encoding) -> tuple[int, int]:
    """(bytes of an allocation in one CTA, bytes of padding among them)."""
    elements = prod(kind.allocated or kind.shape) // _ctas(encoding)
    if encoding["fp4Padded"] is True:
        elements *= 2
    padding = sum((elements - 1) // interval * pad for interval, pad in _pairs(encoding) if interval)
    return (elements + padding) * kind.element_bits // 8, padding * kind.element_bits // 8


def _pairs(encoding: Encoding) -> Iterator[Padding]:
    """The intervals and padding of a padded layout, of one inside a partitioned layout too."""
    inner = encoding["partitionLayout"]
    own = inner if isinstance(inner, Encoding) else encoding
    if own.kind == "padded_shared" and own.parameters and isinstance(own.parameters[0][1], tuple):
        yield from (pair for pair in own.parameters[0][1] if isinstance(pair, Padding))


def _ctas(encoding: Encoding) -> int:
    vectors = encoding["CGALayout"] or encoding["block"] or ()
    split = [one for one in vectors if isinstance(one, tuple) and any(one)] if isinstance(vectors, tuple) else []
    return 1 << len(split)


def _columns(kind: Type, encoding: Encoding) -> tuple[int, int]:
    """(columns of an allocation in tensor memory, 0 of padding)."""
    rows, columns = encoding["blockM"], encoding["blockN"]
    shape = kind.allocated or kind.shape
    if not isinstance(rows, int) or not isinstance(columns, int):
        # Scales: four bytes of each of 128 rows fill a column.
        return max(prod(shape) * kind.element_bits // (_TENSOR_ROWS * _COLUMN_BITS // 4) // 4, 1), 0
    stride = encoding["colStride"]
    bits = kind.element_bits * (stride if isinstance(stride, int) else 1)
    blocks = prod(shape) // _ctas(encoding) // max(rows * columns, 1)
    return max(blocks * columns * bits // _COLUMN_BITS, 1), 0


def _limit(target: Target, space: _Space) -> int | None:
    limits = (CUDA_LIMITS if target.backend == "cuda" else HIP_LIMITS).get(target.arch)
    if limits is None:
        return None
    return limits.shared_bytes_per_block if space == "shared" else getattr(limits, "tensor_memory_columns", None)


# ── The operations of two texts of one module, between which passes renamed the values ──────────────────────────────


def paired_lines(text: str, other: str, names: Collection[str]) -> dict[int, int]:
    """First line of an operation in one text → that of the same operation in the other, before or after some passes.

    Operations are alike that have one name, the same types and the same place in Python. Those that are alike are
    paired in order, if both texts have equally many of them.
    """
    ours, theirs = _alike(text, names), _alike(other, names)
    return {
        one: same
        for key, lines in ours.items()
        if len(lines) == len(theirs.get(key, ()))
        for one, same in zip(lines, theirs[key], strict=True)
    }


def _alike(text: str, names: Collection[str]) -> dict[object, list[int]]:
    """The first lines of operations by what passes leave: name, types with aliases resolved, and place in Python."""
    module, locations = parse_mlir(text), read_locations(text, "mlir")
    found: dict[object, list[int]] = {}
    for operation in module.walk():
        if operation.name in names:
            types = tuple((str(kind), module.resolve(kind.encoding)) for kind in read_types(_typed(operation)))
            key = operation.name, types, locations.chain_at(operation.first_line)
            found.setdefault(key, []).append(operation.first_line)
    return found


def _typed(operation: Operation) -> str:
    own = f"{operation.text} {operation.closing}"
    return own.partition(" = ")[2] if operation.results else own
