"""IRS101 to IRS103, IRS602, IRS701: accesses to global memory that are narrow, fetch too much, loop, or go astray.

A load is narrow if the assembly moves fewer bits per thread than one thread's part of the tensor has, up to 128. It is
a finding only if its addresses show what would widen it: they are evaluated with and without each argument being a
multiple of 16, or 1, and with and without the mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from irscope.analysis.bounds import GREATEST, intervals, is_word, may_overflow
from irscope.analysis.findings.arguments import (
    aligned,
    divisibility_cause,
    factor_cause,
    hinted,
    is_hidden_unit,
    other_factors,
    unit_stride,
    unit_stride_cause,
)
from irscope.analysis.findings.changed import CHOSEN_BY, along_dimension, with_run
from irscope.analysis.findings.loops import LOADS
from irscope.analysis.findings.masks import unread_condition
from irscope.analysis.findings.model import Cause, Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.opcodes import is_compare_and_swap, is_packed_sum
from irscope.ir.locations.model import Place, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.logs.decisions import ThreadWidth, VectorWidth
from irscope.ir.mlir.edits import factor_sites
from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.types import element_bits, parse_type
from irscope.ir.reach import all_makers
from irscope.layout.maps import ThreadMap
from irscope.memory.access import SECTOR_BYTES, GlobalAccess
from irscope.memory.global_costs import fastest_dimension
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture
from irscope.model.layout import LinearLayout
from irscope.model.telling import joined

_WIDEST_BITS = 128
_LEAST_SHARE = 0.1
"""The fraction of the kernel's traffic below which an access gives no finding."""
_WASTE = 1.5
"""From this multiple of the least on sectors count as wasted: a row that begins within a sector is no waste."""


def access_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of each access, in the order of the text.

    The addresses of the whole launch are evaluated only where an access may be a finding.
    """
    for operation in studied.operations.values():
        if ACCESSES.get(operation.opcode, "atomic") == "atomic":
            continue
        layout = studied.layout_of(operation)
        if layout is None or layout.threads is None or _is_wide(studied, operation, layout.threads):
            continue
        if bits := studied.limits.element_bits(operation):
            yield from _AccessReader(studied, operation, layout.threads, bits).findings()


def _is_wide(studied: Studied, operation: Operation, threads: ThreadMap) -> bool:
    """Whether the width alone shows that an access is no finding, so that nothing need be evaluated.

    Its vectors are as wide as can be, of several elements, and go along the one dimension that the layout goes along
    first: so neighbours there lie side by side.
    """
    bits = 8 * studied.traffic.bytes_at(operation.first_line) // threads.size
    own = threads.size // (threads.lanes * threads.warps * threads.blocks) * bits
    widest = max(studied.machine.widths_of(operation), default=0)
    runs = [threads.contiguous(axis) for axis in range(len(threads.shape))]
    if _row_bytes(threads, bits) < SECTOR_BYTES:
        return False
    return 0 < bits < widest and widest >= min(_WIDEST_BITS, own) and sum(run > 1 for run in runs) == 1


def _row_bytes(threads: ThreadMap, bits: int) -> int:
    """The contiguous elements of a tile along its fastest dimension; of a one-dimensional tile, enough."""
    along = fastest_dimension(threads)
    return threads.shape[along] * bits // 8 if 0 <= along < len(threads.shape) > 1 else SECTOR_BYTES


def is_seen(studied: Studied, finding: Finding) -> bool:
    """Whether an access requests, or wastes, a large part of the kernel's global memory traffic."""
    size, loops = studied.traffic.bytes_at(finding.line), studied.operations[finding.line].loops
    if finding.code == "IRS103":
        warps = int(studied.capture.launch.option("num_warps", 4) or 4)
        cost = studied.global_cost(finding.line)
        size = cost.excess * warps * cost.access.unit_bytes if cost is not None and cost.access is not None else 0
    return studied.traffic.share(size, loops) >= _LEAST_SHARE


class _AccessReader:
    def __init__(self, studied: Studied, operation: Operation, threads: ThreadMap, bits: int) -> None:
        self._studied = studied
        self._capture = studied.capture
        self._operation = operation
        self._threads = threads
        self._bits = bits
        whole = threads.size // (threads.lanes * threads.warps * threads.blocks) * bits
        self._own_bits = max(whole, bits)
        """Of the tensor, for one thread."""
        self._possible = min(_WIDEST_BITS, self._own_bits)
        self._line = operation.first_line
        self._widths = studied.machine.widths_of(operation)
        self._actual = max(self._widths, default=0)
        self._undivided = _undivided(studied.limits.depends(operation))
        """The arguments that its addresses and mask depend on, of which it is not known that 16 divides them."""
        run = self._possible // bits
        self._free = {axis: _along(threads.shape, axis) for axis, size in enumerate(threads.shape) if size >= run}
        self._maps = [threads] if self._is_layout_given else [*self._free.values()]
        """The layouts that it can have: Triton's `coalesce` chooses one by the addresses, Gluon takes the kernel's."""

    @property
    def _is_layout_given(self) -> bool:
        return self._capture.launch.language == "gluon"

    def findings(self) -> Iterator[Finding]:
        if self._actual and self._may_waste():
            yield from self._wasted()
        is_narrow = 0 < self._actual < self._possible and self._line in self._studied.executed
        if is_narrow and (found := self._causes()) is not None:
            yield self._narrow(*found)

    def _may_waste(self) -> bool:
        """Whether neighbours may be apart: where they are not in any launch, none needs to be evaluated."""
        along, strides = fastest_dimension(self._threads), self._studied.limits.strides(self._operation)
        return along >= len(strides) or self._is_apart(strides[along]) or self._is_row_short

    @property
    def _is_row_short(self) -> bool:
        return _row_bytes(self._threads, self._bits) < SECTOR_BYTES

    def _is_apart(self, stride: int | None) -> bool:
        return stride is None or abs(stride) * 8 > self._bits

    def _reach(
        self,
        names: Sequence[str] = (),
        ones: Sequence[str] = (),
        *,
        masked: bool = True,
        factors: Sequence[tuple[int, int]] = (),
    ) -> int:
        """The bits that the addresses and the mask allow, whatever the layout, if arguments and constants were so."""
        given = [[f"%{name}" for name in row] for row in (names, ones)]
        width = partial(self._studied.limits.width, self._operation, masked=masked, factors=tuple(sorted(factors)))
        return min(max((width(free, *given) for free in self._maps), default=0), self._possible)

    def _needed(
        self, ones: Sequence[str], wanted: int, *, masked: bool = True, factors: Sequence[tuple[int, int]] = ()
    ) -> list[str]:
        """The arguments without which being multiples of 16 so many bits are not reached."""

        def is_needed(name: str) -> bool:
            others = [one for one in self._undivided if one != name]
            return self._reach(others, ones, masked=masked, factors=factors) < wanted

        return [name for name in self._undivided if name not in ones and is_needed(name)]

    # Narrow

    def _causes(self) -> tuple[int, list[Cause], list[Suggestion]] | None:
        """(bits that would be, causes, suggestions); None if nothing is found that would widen it."""
        if self._is_layout_given and (found := self._by_layout()) is not None:
            return found
        if self._reach() > self._actual:
            # If not its mask, a layout that the compiler chose for other reasons, or one of another access.
            return self._by_form_of_mask()
        if (wide := self._reach(self._undivided)) > self._actual and (names := self._needed((), wide)):
            what = self._evaluated(f"with {joined(names)} divisible by 16, {wide}-bit accesses per thread are possible")
            fixes = [*hinted(self._studied, names, wide // self._bits), aligned(self._capture, names)]
            return wide, [*self._said(), what, *self._divisibility(names)], fixes
        for name in self._undivided:
            wide = self._reach(self._undivided, (name,))
            if wide > self._actual and is_hidden_unit(self._capture, name):
                others = self._needed((name,), wide)
                what = self._evaluated(f"with {name} = 1, {wide}-bit accesses per thread are possible")
                causes = [what, unit_stride_cause(self._capture, name), *self._divisibility(others)]
                return wide, [*self._said(), *causes], [unit_stride(self._capture, name, others)]
        return self._by_factors() or self._by_mask()

    def _by_factors(self) -> tuple[int, list[Cause], list[Suggestion]] | None:
        """Constants that something is multiplied by, or compared with, and with them arguments."""
        run = self._possible // self._bits
        factors = self._studied.limits.factors(run)
        wide = self._reach(self._undivided, factors=factors) if factors else 0
        if wide <= self._actual:
            return None
        own = [one for one in factors if self._reach(self._undivided, factors=[*{*factors} - {one}]) < wide]
        names = self._needed((), wide, factors=own)
        module = self._studied.module
        # What is multiplied by a constant says more than what is compared with it.
        sites = sorted(factor_sites(module), key=lambda site: site[1].name != "arith.muli")
        lines = {value: one.first_line for value, one, _ in reversed(sites)}
        if not own:
            return None
        causes = [factor_cause(self._studied, lines[value], value, run) for value, _ in own]
        others = [(name, value, new) for (name, _), (value, new) in zip(causes, own, strict=True)]
        aside = f", and {joined(names)} divisible by 16" if names else ""
        told = joined(f"{new} in place of {value}" for _, value, new in others)
        what = self._evaluated(f"with {told}{aside}, {wide}-bit accesses per thread are possible")
        fix = other_factors(others, run)
        if names:
            more = aligned(self._capture, names)
            fix = Suggestion(f"{fix.text}; and {more.text}", (*fix.changes, *more.changes))
        return wide, [*self._said(), what, *(cause for _, cause in causes), *self._divisibility(names)], [fix]

    def _by_mask(self) -> tuple[int, list[Cause], list[Suggestion]] | None:
        # `coalesce` passes over masks: the layout is what it is without one.
        wide, names = self._studied.limits.width(self._operation, self._threads, masked=False), list[str]()
        if wide <= self._actual:
            wide = self._reach(self._undivided, masked=False)
            names = self._needed((), wide, masked=False)
            if wide <= self._actual or not names:
                return None
        aside = f"with {joined(names)} divisible by 16, and without its mask" if names else "without its mask"
        causes = [*self._masked(), self._evaluated(f"{aside}, {wide}-bit accesses per thread are possible")]
        of_mask = _undivided(self._studied.limits.depends(self._operation, mask_alone=True))
        ends = [name for name in of_mask if name not in names]
        causes += self._divisibility([*names, *ends])
        if ends:
            # Whether that is enough is for a compile to say: the mask could not be evaluated so far.
            return wide, causes, [aligned(self._capture, [*names, *ends])]
        causes.append(self._evaluated("its mask is not constant over so many bits"))
        text = "let the mask end at a multiple of the vector: pad, or mask whole tiles only"
        also = f"{aligned(self._capture, names).text}; and " if names else ""
        return wide, causes, [Suggestion(also + text)]

    def _by_form_of_mask(self) -> tuple[int, list[Cause], list[Suggestion]] | None:
        """A mask that changes at multiples of the vector only, which the compiler's analysis cannot tell of it."""
        wide = self._studied.limits.width(self._operation, self._threads)
        mask = self._operation.operand("mask")
        fault = unread_condition(self._studied.module, mask) if mask is not None else None
        if wide <= self._actual or fault is None:
            return None
        condition, is_inclusive = fault
        what = self._evaluated(f"its mask changes at multiples of {wide} bits only: {wide}-bit accesses are possible")
        if is_inclusive:
            why = (
                "the mask compares by <= or >: Triton derives constancy only from < and >=, with the index on the left"
            )
            text = "write the mask with `<`: `idx < n` in place of `idx <= n - 1`"
            fixes = [Suggestion(text, (FixChange("compare", "<=", "<"),))]
        else:
            why = "the mask computes with the index: Triton derives constancy only where the index itself is compared"
            fixes = [
                Suggestion("mask the access by `idx < n` alone, and apply the rest by tl.where to the loaded value")
            ]
        where = self._studied.in_ir(why, condition.first_line)
        return wide, [*self._masked(), what, where], fixes

    def _by_layout(self) -> tuple[int, list[Cause], list[Suggestion]] | None:
        limits, operation = self._studied.limits, self._operation
        widths = {axis: limits.width(operation, free) for axis, free in self._free.items()}
        now = min(max(widths.values(), default=0), self._possible)
        given = limits.width(operation, self._threads)
        if now <= max(given, self._actual):
            return None
        run = now // self._bits
        what = self._evaluated(
            f"its addresses allow {now} bits per thread, its layout gives each thread {given} contiguous bits"
        )
        changes: tuple[FixChange, ...] = ()
        layout = self._studied.layout_of(operation)
        # Of blocked layouts alone.
        if layout is not None and (wider := with_run(layout.encoding.text, max(widths, key=widths.__getitem__), run)):
            changes = (FixChange("layout", layout.encoding.text, wider),)
        text = f"give each thread {run} contiguous elements (size_per_thread of the contiguous dimension)"
        return now, [what], [Suggestion(text, changes)]

    def _divisibility(self, names: Sequence[str]) -> list[Cause]:
        return [divisibility_cause(self._capture, name) for name in names]

    def _said(self) -> list[Cause]:
        said = self._studied.said(self._line, ThreadWidth)
        found = [one for one in said if one.at_once * one.element_bytes * 8 < self._possible]
        return [self._studied.logged(one) for one in found[:1]]

    def _masked(self) -> list[Cause]:
        found = [one for one in self._studied.said(self._line, VectorWidth) if one.without_mask > one.elements]
        return [self._studied.logged(one) for one in found[:1]]

    def _narrow(self, wide: int, causes: Sequence[Cause], suggestions: Sequence[Suggestion]) -> Finding:
        stores = ACCESSES[self._operation.opcode] == "store"
        widths = ", ".join(f"{number} × {width} bits" for width, number in sorted(self._widths.items()))
        stage = self._studied.machine.text_stage
        many, few = (-(-self._own_bits // width) for width in (self._actual, wide))
        first = Cause(f"compiled to: {widths}", "assembly", f"{stage} of line {self._line} of ttgir")
        module, operands = self._studied.module, (self._operation.operand(name) for name in ("ptr", "mask"))
        made = all_makers(module.maker_of, filter(None, operands))
        lines = {one.first_line for one in made if one.results and one.result_types[0].shape}
        return self._studied.finding(
            "IRS102" if stores else "IRS101",
            self._line,
            f"{self._actual}-bit {'stores' if stores else 'loads'} per thread; {wide}-bit possible",
            f"{many} instructions per thread in place of {few}, per execution",
            many - few,
            [first, *causes],
            suggestions,
            factor=many / few,
            lines=sorted(lines),
        )

    # Wasted sectors

    def _wasted(self) -> Iterator[Finding]:
        cost = self._studied.global_cost(self._line)
        if cost is None or (access := cost.access) is None or not access.launch.executions[1]:
            return
        total = access.launch
        units, least = total.units[0], total.least_units[1]
        if not least or units < _WASTE * least:
            return
        if self._actual > max(access.possible_bits, self._bits):
            # LLVM has joined it with the loads of what lies between.
            return
        found = self._stride_causes(access)
        if found is None:
            return
        causes, suggestions = found
        unit = f"{access.unit} of {access.unit_bytes} bytes"
        shown = str(units) if total.units[0] == total.units[1] else f"at least {units}"
        first = self._evaluated(
            f"{shown} {unit} in a launch, where {least} would hold all bytes that each warp requests; {access.mark}"
        )
        yield self._studied.finding(
            "IRS103",
            self._line,
            f"accesses {units / least:.3g} times the {unit} that it needs",
            f"{(units - least) * access.unit_bytes} bytes more than needed, in a launch",
            cost.excess,
            [first, *causes, *(Cause(text, "launch", "assumed") for text in access.assumed)],
            suggestions,
        )

    def _stride_causes(self, access: GlobalAccess) -> tuple[list[Cause], list[Suggestion]] | None:
        along = fastest_dimension(self._threads)
        strides = access.strides
        if along >= len(strides) or (stride := strides[along]) is None:
            return None
        if not self._is_apart(stride):
            if not self._is_row_short:
                return None
            size = _row_bytes(self._threads, self._bits)
            cause = self._evaluated(f"the tile has {size} contiguous bytes per row, a sector has {access.unit_bytes}")
            count = access.unit_bytes * 8 // self._bits
            return [cause], [Suggestion(f"a tile of {count} or more elements along dimension {along}")]
        near = [axis for axis, one in enumerate(strides) if one is not None and 0 < abs(one) < access.unit_bytes]
        apart = self._evaluated(f"the stride along dimension {along} is {abs(stride)} bytes")
        if near and along not in near:
            other = near[-1]
            apart = self._evaluated(
                f"uncoalesced: the fastest dimension of its layout is {along}, whose stride is {abs(stride)} "
                f"bytes; along dimension {other} it is {abs(strides[other] or 0)}"
            )
        is_transposed = bool(near) and along not in near
        transposed = self._transposed(apart, near[-1], along) if is_transposed and not self._is_layout_given else None
        for name in self._undivided:
            wide = self._reach(self._undivided, (name,), masked=False)
            is_known = transposed is not None and not is_hidden_unit(self._capture, name)
            if wide > self._reach(self._undivided, masked=False) and not is_known:
                others = self._needed((name,), wide, masked=False)
                causes = [apart, *self._said(), unit_stride_cause(self._capture, name)]
                return causes, [unit_stride(self._capture, name, others)]
        if is_transposed:
            return ([apart], []) if self._is_layout_given else transposed
        text = "load the elements in between with other lanes of the same load, or reorder the tensor in memory"
        return [apart, *self._said()], [Suggestion(text)]

    def _transposed(self, apart: Cause, axis: int, along: int) -> tuple[list[Cause], list[Suggestion]] | None:
        """Of an access that `coalesce` did not lay along its contiguous dimension; None if it did not choose so.

        `along`: the dimension it took, which is the last one where it knows nothing, and before Triton 3.7 the first.
        """
        run = self._studied.limits.width(self._operation, _along(self._threads.shape, axis)) // self._bits
        run = min(max(run, 1), self._own_bits // self._bits)
        change = along_dimension(self._studied, self._operation, axis, run)
        if change is None:
            return None
        wide = self._reach(self._undivided)
        names = self._needed((), wide) if wide > self._reach() else []
        unseen = self._evaluated(
            f"{CHOSEN_BY} cannot derive from the arguments that dimension {axis} is contiguous: it takes "
            f"dimension {along} then"
        )
        is_store = ACCESSES[self._operation.opcode] == "store"
        text = (
            f"swap the tile's dimensions in its index, so that dimension {along} is contiguous, and tl.trans the "
            f"{'stored' if is_store else 'loaded'} tile; the compile tried changes the layout of this access alone, "
            f"in the IR after {CHOSEN_BY} (irscope edit --at {CHOSEN_BY} --edited FILE)"
        )
        fixes = [*hinted(self._studied, names, wide // self._bits), Suggestion(text, (change,))]
        fixes += [aligned(self._capture, names)] if names else []
        return [apart, *self._said(), unseen, *self._divisibility(names)], fixes

    def _evaluated(self, text: str) -> Cause:
        return self._studied.in_ir(text, self._line, "evaluated")


def _undivided(depends: Iterable[tuple[str, int]]) -> list[str]:
    """The arguments, of some with the number that is known to divide each, that 16 may not divide."""
    return [name.removeprefix("%") for name, divisor in depends if divisor % 16]


def _along(shape: tuple[int, ...], first: int) -> ThreadMap:
    """All elements as registers of one thread, one dimension first."""
    axes = [first, *(axis for axis in range(len(shape)) if axis != first)]
    vectors = [
        [1 << bit if other == axis else 0 for other in range(len(shape))]
        for axis in axes
        for bit in range(shape[axis].bit_length() - 1)
    ]
    return ThreadMap.of(LinearLayout.of({"register": vectors}, shape))


_ATOMICS = ("atomic_rmw", "buffer_atomic_rmw")
_SWAP = "atomic_cas"
_SMALL = ("f16", "bf16")


def atomic_findings(studied: Studied) -> Iterator[Finding]:
    """The atomics other than a compare-and-swap whose instructions have one."""
    for line, operation in studied.operations.items():
        if operation.opcode not in _ATOMICS:
            continue
        stage, count = _swaps_of(studied, line)
        if count:
            yield _finding(studied, operation, stage, count)


def _finding(studied: Studied, operation: Operation, stage: str, count: int) -> Finding:
    line, target = operation.first_line, studied.capture.target
    element, action = _pointee(studied, operation), operation.attribute("atomic_rmw_op")
    what = f"{action or 'operation'} of {element}"
    is_small_sum = element in _SMALL and "add" in what
    why, fixes = f"it is an atomic {what}, for which {target} has no instruction", list[str]()
    if is_small_sum and (stage == "sass" or any(is_packed_sum(item.opcode) for item in studied.instructions_of(line))):
        why = f"it is an atomic {what}: an instruction of {target} adds adjacent pairs of {element}"
        why += ", and a thread with a single element takes the loop"
        fixes.append("give each thread adjacent pairs: a larger tile or fewer warps, and contiguous addresses")
    elif stage == "sass":
        why = f"it is an atomic {what}, an instruction in the PTX, which ptxas expands to that loop"
    if is_small_sum:
        fixes.append("accumulate in float32, whose atomic add is one instruction")
    causes = [
        Cause(f"compiled to: {count} compare-and-swap", "assembly", f"{stage} of line {line} of ttgir"),
        studied.in_ir(why, line),
    ]
    return studied.finding(
        "IRS602",
        line,
        "is a loop around a compare-and-swap, not one instruction",
        "a load, and an iteration for each conflicting lane or warp",
        count,
        causes,
        [Suggestion(text) for text in fixes],
    )


def _pointee(studied: Studied, operation: Operation) -> str:
    pointer = operation.operand("ptr")
    kind = studied.module.type_of(pointer) if pointer is not None else None
    inner = (kind.element if kind.form == "tensor" else kind) if kind is not None else None
    return str(inner.element) if inner is not None and inner.element is not None else ""


def _swaps_of(studied: Studied, line: int) -> tuple[str, int]:
    """(stage, how many) of the compare-and-swaps of an operation: by its own instructions, or its place in SASS."""
    stage = studied.machine.text_stage
    place = studied.place_at(line)
    swaps = (studied.place_at(at) for at, one in studied.operations.items() if one.opcode == _SWAP)
    is_alone = bool(place) and place not in swaps
    own = studied.instructions_of(line) if is_alone or studied.machine.by_operation else ()
    if count := sum(is_compare_and_swap(item.kind, item.opcode) for item in own):
        return stage, count
    # ptxas makes loops of atomics that PTX has. Its SASS has lines, and no columns.
    return "sass", _swaps_in_sass(studied.capture, place) if is_alone else 0


def _swaps_in_sass(capture: Capture, place: Place) -> int:
    texts, sass = capture.texts, capture.texts.get("sass", "")
    locations = read_locations(sass, "sass", llir=texts.get("llir"), ptx=texts.get("ptx"))
    numbers = [one.line for one in read_instructions(sass, "sass") if is_compare_and_swap("sass", one.opcode)]
    return sum(place_of(locations.chain_at(number), capture.launch.kernel.file) == place for number in numbers)


_SIGNS = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "×", "arith.shli": "<<"}
_ADVICE = "compute it in 64 bits: `.to(tl.int64)` on an operand (a program id, an index) before the multiplication"


def overflow_findings(studied: Studied) -> Iterator[Finding]:
    """The sums and products of 32 bits that lead an access astray; of a launch that was not recorded, none."""
    launch, kernel = studied.capture.launch, studied.module.kernel
    if launch.record is None or launch.grid is None or kernel is None or not may_overflow(kernel, launch):
        return
    yield from _loaded_products(studied, kernel)
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.addresses.overflow import overflows_of

    arguments = read_arguments(kernel, launch)
    for one in overflows_of(studied.module, arguments.held, launch.grid):
        line, access = one.operation.first_line, one.access
        operands = f" {_SIGNS[one.operation.name]} ".join(f"{each:,}" for each in one.operands)
        program = ", ".join(map(str, one.program))
        named = {source.path: source.value for source in launch.record.arguments if source.kind == "scalar"}
        factors = [name for name, value in named.items() if value in one.operands and abs(int(value or 0)) > 1]
        causes = [
            studied.in_ir(
                f"in program ({program}) it is {operands} = {one.value:,}, beyond {GREATEST:,}: "
                f"it wraps around to {one.wrapped:,}",
                line,
                "evaluated",
            ),
            studied.in_ir(f"the addresses of {access.name} depend on it", access.first_line),
            *(Cause(f"{name} is {named[name]}", "launch", "the arguments, as recorded or stated") for name in factors),
            *(Cause(text, "launch", "assumed") for text in arguments.stand_ins),
        ]
        yield studied.finding(
            "IRS701",
            line,
            f"overflows 32 bits: {one.value:,}",
            f"{access.name} of line {access.first_line} of ttgir accesses a wrong address",
            1,
            causes,
            [Suggestion(_ADVICE)],
        )


def _loaded_products(studied: Studied, kernel: Operation) -> Iterator[Finding]:
    """The 32-bit products with a loaded number that lead into a tensor of more elements than 32 bits count."""
    launch, module = studied.capture.launch, studied.module
    kinds = {value: parse_type(kind) for value, kind, _ in kernel.parameters}
    large = dict[Value, tuple[str, int]]()
    for value, kind in kinds.items():
        row = launch.record.argument(value.name.removeprefix("%")) if launch.record is not None else None
        bits = element_bits(str(kind.element)) if kind.form == "pointer" and kind.element is not None else 0
        elements = 8 * (row.storage_bytes or 0) // bits if row is not None and bits else 0
        if elements > GREATEST:
            large[value] = row.path if row is not None else "", elements
    held = intervals(kernel, launch) if large else {}
    reported = set[int]()
    for operation in studied.operations.values():
        pointer = operation.operand("ptr") or (operation.operands[0] if operation.operands else None)
        if operation.opcode not in ACCESSES or pointer is None or not large:
            continue
        *_, first = (operation, *makers(module, pointer))
        into = large.get(first.operands[0]) if first.operands else None
        made = all_makers(module.maker_of, [pointer]) if into is not None else ()
        for product in (one for one in made if one.name == "arith.muli" and is_word(one)):
            sides = [held.get(value) for value in product.operands]
            made = all_makers(module.maker_of, reversed(product.operands))
            loads = [one for one in made if one.opcode in LOADS]
            if sides.count(None) != 1 or not loads or into is None or product.first_line in reported:
                continue
            reported.add(product.first_line)
            (low, high), (name, elements) = next(side for side in sides if side is not None), into
            factor = f"{high:,}" if low == high else f"up to {high:,}"
            yield studied.finding(
                "IRS701",
                product.first_line,
                f"may overflow 32 bits: a loaded index × {factor}, into {elements:,} elements of {name}",
                f"{operation.name} of line {operation.first_line} of ttgir accesses a wrong address for a large index",
                1,
                [
                    studied.in_ir(f"a product of 32 bits with what line {loads[0].first_line} loads",
                                  product.first_line),
                    Cause(f"{name} has {elements:,} elements, more than {GREATEST:,}", "launch",
                          "the storage of the launch's argument"),
                ],
                [Suggestion(_ADVICE)],
            )  # fmt: skip
