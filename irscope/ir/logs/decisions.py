"""A compiler's decisions about an operation, with reasons: the nouns that its log is read into."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.ir.locations.model import Chain

# %x_30 = tt.load %a_23, %x_29, %cst : tensor<…>    "tt.addptr"(%a, %b) : …    tt.store %31, %25#2 : tensor<…>
_OPERATION = re.compile(r'\s*(?:(?P<value>%[\w.$-]+)(?::\d+)?(?:, %[^=]{0,400})? = )?"?(?P<name>[a-z_]\w*(?:\.\w+)+)')
# Thread|Width
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    text: str
    chain: Chain
    """Where it comes from; empty if the log was made without locations."""

    @property
    def name(self) -> str:
        """`tt.load`; empty for a block argument."""
        match = _OPERATION.match(self.text)
        return match["name"] if match else ""

    @property
    def value(self) -> str:
        """The name of its first result, `%x_30`, as in the snapshots around the pass; empty without one."""
        match = _OPERATION.match(self.text)
        return (match["value"] or "") if match else ""


@dataclass(frozen=True, slots=True)
class LogDecision:
    stage: str
    index: int | None
    """The pass, by the index of its snapshot; None for what a stage said outside of its passes."""
    line: int
    """Where the log of that pass begins to say it, 1-based."""
    operation: LoggedOperation | None
    """None if it is about no single operation; with a location alone if the log names the place only."""

    @property
    def kind(self) -> str:
        """Its class as JSON names it: `thread-width`."""
        return _CAPITAL.sub("-", type(self).__name__).lower()

    @property
    def chain(self) -> Chain:
        return self.operation.chain if self.operation is not None else ()

    @property
    def said(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ThreadWidth(LogDecision):
    """`coalesce`: how many elements in a row one thread takes of a memory access, and what limits them."""

    contiguity: tuple[int, ...]
    """Of the pointers, by dimension: how many in a row are consecutive."""
    divisibility: tuple[int, ...]
    """The largest known power of two that divides the address of the first of those, in bytes."""
    constancy: tuple[int, ...]
    """How many in a row are equal."""
    order: tuple[int, ...]
    """The dimensions, the one that threads take elements along first."""
    element_bytes: int
    own: int
    """How many elements one thread could take at once, by contiguity and divisibility of this access alone."""
    others: tuple[int, ...]
    """The same of each access of the same shape and order that depends on it, or that it depends on."""
    chosen: int
    """How many elements in a row its layout gives a thread."""

    @property
    def at_once(self) -> int:
        """How many elements one thread takes at once, a mask aside: what its access allows, and its layout gives it."""
        return min(self.own, self.chosen)

    @property
    def limit(self) -> str:
        """What limits `at_once` below 16 bytes: `contiguity`, `divisibility`, `both`, or `tile`, the size of its tile.

        Empty at 16 bytes, and where it is none of these.
        """
        if self.at_once * self.element_bytes >= 16:
            return ""
        if self.chosen < self.own:
            return "tile"
        dimension = self.order[0]
        if dimension >= min(len(self.contiguity), len(self.divisibility)):
            return ""
        rows, aligned = self.contiguity[dimension], max(1, self.divisibility[dimension] // max(1, self.element_bytes))
        if self.own < min(rows, aligned):
            return ""
        return "both" if rows == aligned else ("contiguity" if rows < aligned else "divisibility")

    @property
    def said(self) -> str:
        limit = f", limited by {self.limit}" if self.limit else ""
        info = f"contiguity {_list(self.contiguity)}, divisibility {_list(self.divisibility)}"
        more = f"; its layout has {self.chosen}, for other accesses" if self.chosen > self.own else ""
        along = f"along dimension {self.order[0]}"
        return f"{self.at_once} × {self.element_bytes} bytes at once {along}{limit} ({info}){more}"


@dataclass(frozen=True, slots=True)
class LoadPipelining(LogDecision):
    """The pipeliner: whether a load in a loop is considered."""

    width_bits: int | None
    """What one thread copies at once; None where the log does not say."""
    distance: int | None
    """How many other loads lie between it and the dot; None if it is refused."""
    reason: str
    """Why it is refused: empty if it is not."""

    @property
    def said(self) -> str:
        width = f"{self.width_bits} bits wide" if self.width_bits is not None else "of unknown width"
        if self.reason:
            return f"not pipelined: {self.reason} ({width})"
        return f"may be pipelined, at distance {self.distance} ({width})"


@dataclass(frozen=True, slots=True)
class AsyncDot(LogDecision):
    """Hopper: whether a dot in a loop may be still under way when the next iteration begins."""

    reason: str
    """Why it is waited for; empty if no reason is given."""

    @property
    def said(self) -> str:
        return f"blocks at once: {self.reason}" if self.reason else "may stay in flight: the log reports no obstacle"


@dataclass(frozen=True, slots=True)
class Rematerialisation(LogDecision):
    """`remove-layout-conversions`: whether a conversion is removed by computing its source in the other layout."""

    encoding: str
    """The layout that the conversion makes."""
    conversion_cost: int | None
    """By the compiler's own measure; None where it was not weighed."""
    rematerialisation_cost: int | None
    reason: str
    """Why the conversion stays; empty if it is removed."""

    @property
    def said(self) -> str:
        costs = ""
        if self.conversion_cost is not None and self.rematerialisation_cost is not None:
            costs = f" (cost {self.conversion_cost} for the conversion, {self.rematerialisation_cost} without it)"
        return (f"conversion kept: {self.reason}" if self.reason else "conversion removed") + costs


@dataclass(frozen=True, slots=True)
class VectorWidth(LogDecision):
    """Lowering to LLVM IR: a remark on an access that is not vectorised."""

    elements: int
    without_mask: int
    """What it would be without the mask."""
    per_thread: int
    mask_alignment: int
    """-1 without a mask."""

    @property
    def said(self) -> str:
        mask = f", {self.without_mask} but for its mask" if self.without_mask > self.elements else ""
        return f"{self.elements} of the {self.per_thread} elements of a thread in one instruction{mask}"


@dataclass(frozen=True, slots=True)
class PlacedBuffer(LogDecision):
    """The allocator: where a buffer lies in shared memory, and when it is in use."""

    number: int
    size_bytes: int
    offset_bytes: int
    first: int
    """The first and the last operation, in program order, between which it is in use."""
    last: int

    @property
    def said(self) -> str:
        owner = f" of {self.operation.name}" if self.operation is not None else ""
        return (
            f"buffer {self.number}{owner}: {self.size_bytes} bytes at {self.offset_bytes}, "
            f"from {self.first} to {self.last}"
        )


@dataclass(frozen=True, slots=True)
class Partition(LogDecision):
    """Warp specialisation, from Triton 3.7 on: what a group of warps gets of a loop in the end."""

    number: int | None
    """None if it has none of its own."""
    operations: int
    cost: int
    """By the compiler's own measure."""
    flags: tuple[str, ...]
    """What stands in it: `MMA`, `LOAD`, `STORE`, `TMEM`, `SFU`, `VIEW`."""

    @property
    def said(self) -> str:
        name = "a partition" if self.number is None else f"partition {self.number}"
        return f"{name}: {self.operations} operations, cost {self.cost} ({' and '.join(self.flags) or 'none of note'})"


@dataclass(frozen=True, slots=True)
class PartitionMerge(LogDecision):
    """Warp specialisation, from Triton 3.7 on: two operations, or two partitions, that go to the same warps."""

    rule: str
    """The compiler's name of the reason: `load_local_alloc`, `tmem_load`; of two partitions, `load`, `mma`."""
    first: str
    """`tt.descriptor_load`, `iter arg 6`; of a partition, its flags and how many operations it has."""
    second: str

    @property
    def said(self) -> str:
        return f"{self.first} and {self.second} go to the same warps: {self.rule}"


@dataclass(frozen=True, slots=True)
class Remark(LogDecision):
    """A remark or a warning of a pass on an operation, in its own words: `MMA version 3 acceleration not applied …`."""

    text: str

    @property
    def said(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PtxasAdvice(LogDecision):
    """ptxas: an advisory or a warning."""

    code: str
    """`C7510`; empty without one."""
    text: str
    function: str
    """The function that it names; empty if it names none."""
    ptx_line: int | None
    """The line of the PTX that it names, 1-based: the ptxas of Triton 3.9 does."""

    @property
    def said(self) -> str:
        return f"ptxas{f' {self.code}' if self.code else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class Refusal(LogDecision):
    """Another pass that could not do its work on an operation or a loop."""

    type: str
    """The part of the compiler, as `tritonamdgpu-block-pingpong`."""
    reason: str

    @property
    def said(self) -> str:
        return f"{self.type}: {self.reason}"


def _list(values: tuple[int, ...]) -> str:
    return "×".join(map(str, values)) or "none"
