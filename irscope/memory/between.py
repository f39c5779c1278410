"""What lies between two layouts of a tensor: what a conversion moves and costs, or an access and its bank conflicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from irscope.errors import UsageError
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import ThreadMap, is_surjective, moved_share, what_moves
from irscope.memory.conflicts import shared_access


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion from one layout in registers to another."""

    moves: Literal["nothing", "registers", "lanes", "warps", "CTAs"]
    """The smallest unit that elements leave."""
    moved_share: float
    """The share of the destination's registers whose element the same thread did not hold before, 0 to 1."""
    bytes: int
    wavefronts: int
    """Per warp, at least: one for 128 bytes that lanes exchange, two for 128 bytes through shared memory."""
    kind: Literal["conversion"] = "conversion"

    def __str__(self) -> str:
        if self.moves in ("nothing", "registers"):
            return f"moves {'nothing' if self.moves == 'nothing' else 'across registers of each thread'}: no exchange"
        how = "exchanged by lanes" if self.moves == "lanes" else "through shared memory"
        return (
            f"moves across {self.moves}: other threads fill {_percent(self.moved_share)} of the registers; "
            f"{self.wavefronts} wavefronts per warp at least, {how}"
        )


@dataclass(frozen=True, slots=True)
class SharedTransfer:
    """A load or store between registers and shared memory, for one warp."""

    store: bool
    """Whether registers are the first of the two layouts; banks serve loads and stores differently on AMD."""
    bits_per_thread: int
    instructions: int
    wavefronts: int
    minimum_wavefronts: int
    banks: int
    compiler_ways: int | None = None
    """The compiler's own count of the conflicts, plus one; None if it was not asked or does not answer."""
    kind: Literal["access"] = "access"

    @property
    def ways(self) -> float:
        """1.0 without conflicts; 2.0 for two-way conflicts."""
        return self.wavefronts / max(self.minimum_wavefronts, 1)

    def __str__(self) -> str:
        conflicts = f"{self.ways:.3g}-way bank conflicts" if self.ways > 1 else "no bank conflicts"
        if self.compiler_ways is None:
            counted = "irscope's model; the compiler was not queried"
        elif self.compiler_ways == self.ways:
            counted = "as the compiler counts"
        else:
            counted = f"irscope's model; the compiler counts {self.compiler_ways}-way"
        accesses = f"{self.instructions} {'stores' if self.store else 'loads'}"
        return (
            f"{conflicts} ({counted}): {accesses} of {self.bits_per_thread} bits per lane, "
            f"{self.wavefronts} wavefronts per warp (minimum {self.minimum_wavefronts}, {self.banks} banks)"
        )


@dataclass(frozen=True, slots=True)
class Relocation:
    """Two layouts in the same memory."""

    moved_share: float
    """The share of the elements whose byte, or CTA, differs, 0 to 1."""
    sizes: tuple[int, int]
    """Bytes of the two allocations."""
    kind: Literal["relocation"] = "relocation"

    def __str__(self) -> str:
        sizes = " and ".join(map(str, dict.fromkeys(self.sizes)))
        return f"{_percent(self.moved_share)} of the elements have another address ({sizes} bytes)"


Between = Conversion | SharedTransfer | Relocation


def between(first: DescribedLayout, second: DescribedLayout, compiler_ways: int | None = None) -> Between:
    """What lies between two layouts: a conversion, an access to shared memory, or other places in it.

    `compiler_ways`: the compiler's count of bank conflicts, plus one, if it is known. Raises UsageError if their shapes
    differ, or one has no map, is in tensor memory or leaves elements out.
    """
    names = f"{first.name} ({first.shape_text}) and {second.name} ({second.shape_text}) can't be compared"
    if first.shape != second.shape:
        raise UsageError(f"{names}: choose two layouts of one shape.")
    for item in (first, second):
        if item.threads is None and item.memory is None:
            raise UsageError(f"{names}: {item.name} is {'in tensor memory' if item.layout else 'without a map'}.")
        if item.layout is not None and not is_surjective(item.layout):
            raise UsageError(f"{names}: {item.name} leaves elements out, so the moves are undefined.")
    bits = first.element_bits
    if first.threads is not None and second.threads is not None:
        moves = what_moves(first.threads, second.threads)
        share = moved_share(first.threads, second.threads) if moves not in ("nothing", "registers") else 0.0
        wavefronts = conversion_wavefronts(second.threads, bits, moves)
        return Conversion(moves, share, second.threads.size * bits // 8, wavefronts)
    if first.memory is not None and second.memory is not None:
        ours, theirs, size = first.memory, second.memory, 1 << first.memory.layout.out_bits
        # Padding is no linear map: elements are counted.
        moved = sum(ours.place(element) != theirs.place(element) for element in range(size))
        return Relocation(moved / size, (ours.size_bytes, theirs.size_bytes))
    registers, memory = (first.threads or second.threads), (first.memory or second.memory)
    assert registers is not None
    assert memory is not None
    store = first.threads is not None
    access = shared_access(registers, memory, store=store, target=first.target)
    return SharedTransfer(
        store,
        access.bits_per_thread,
        access.instructions,
        access.wavefronts,
        access.minimum_wavefronts,
        access.banks,
        compiler_ways,
    )


def between_as_json(first: DescribedLayout, second: DescribedLayout, compiler_ways: int | None) -> dict[str, Any]:
    """What `between` says, as plain values, with the name of the other layout and the same in words."""
    found = between(first, second, compiler_ways)
    ways = {"ways": found.ways} if isinstance(found, SharedTransfer) else {}
    return {"with": second.name, "summary": str(found), **asdict(found), **ways}


def conversion_wavefronts(threads: ThreadMap, bits: int, moves: str) -> int:
    """The fewest wavefronts per warp of a conversion into a layout, by what it moves across."""
    # Through shared memory each byte is written once and read once; a shuffle moves four bytes per lane.
    if moves in ("nothing", "registers"):
        return 0
    bytes_per_warp = threads.registers * threads.lanes * bits // 8
    return -(-bytes_per_warp // 128) * (1 if moves == "lanes" else 2)


def _percent(share: float) -> str:
    return {0.0: "none", 1.0: "all"}.get(share) or f"{100 * share:.3g} %"
