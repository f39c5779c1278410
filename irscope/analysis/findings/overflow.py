"""IRS701: sums and products of 32 bits that overflow in the launch, and lead an access astray."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.mlir.model import Operation, Value
from irscope.model.capture import Launch

_Bounds = tuple[int, int]
_MOST = (1 << 31) - 1
_SUMS = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
_SAME = (
    "splat", "unsplat", "expand_dims", "broadcast", "reshape", "trans", "convert_layout",
    "arith.extsi", "arith.index_cast",
)  # fmt: skip


def may_overflow(kernel: Operation, launch: Launch) -> bool:
    """Whether a sum or product of 32 bits of a TTGIR's kernel may be beyond them in a launch that was recorded."""
    return any(
        one.name in _SUMS and _is_word(one) and (bounds is None or not _fits(bounds))
        for one, bounds in _bounded(kernel, launch)
    )


def _is_word(one: Operation) -> bool:
    """Whether it computes integers of 32 bits."""
    kind = one.result_types[0] if one.results else None
    element = kind.element or kind if kind is not None else None
    return element is not None and element.form == "integer" and element.bits == 32


def _fits(bounds: _Bounds) -> bool:
    return bounds[0] >= -_MOST - 1 and bounds[1] <= _MOST


def _bounded(kernel: Operation, launch: Launch) -> Iterator[tuple[Operation, _Bounds | None]]:
    """(operation, the bounds of its first result, None if they are not known), in the order of the text."""
    held: dict[Value, _Bounds | None] = {}
    for value, _, _ in kernel.parameters:
        row = launch.record.argument(value.name.removeprefix("%")) if launch.record is not None else None
        given = row.value if row is not None and row.kind == "scalar" else None
        held[value] = (given, given) if isinstance(given, int) else None
    for one in kernel.walk():
        operands = [held.get(operand) for operand in one.operands]
        if one.name == "scf.for" and len(operands) > 1 and one.regions and one.regions[0].blocks[0].arguments:
            first, last = operands[0], operands[1]
            counted = (first[0], max(first[0], last[1])) if first is not None and last is not None else None
            held[one.regions[0].blocks[0].arguments[0]] = counted
        bounds = _of(one, operands, launch)
        for result in one.results:
            held[result] = bounds
        yield one, bounds


def _of(one: Operation, operands: list[_Bounds | None], launch: Launch) -> _Bounds | None:
    if one.kind == "constant" and one.opcode != "make_range":
        number = one.constant
        return (number, number) if isinstance(number, int) else None
    if one.opcode == "make_range":
        start, end = one.attribute("start"), one.attribute("end")
        return (start, end - 1) if isinstance(start, int) and isinstance(end, int) else None
    if one.opcode in ("get_program_id", "get_num_programs") and launch.grid is not None:
        size = launch.grid["xyz".index(str(one.attribute("axis")))]
        return (0, size - 1) if one.opcode == "get_program_id" else (size, size)
    known = [bounds for bounds in operands if bounds is not None]
    if len(known) < len(operands) or not known:
        return None
    if one.opcode in _SAME:
        return known[0]
    return _of_two(one.name, known[0], known[1]) if len(known) == 2 else None


def _of_two(name: str, one: _Bounds, other: _Bounds) -> _Bounds | None:
    if name == "arith.addi":
        return one[0] + other[0], one[1] + other[1]
    if name == "arith.subi":
        return one[0] - other[1], one[1] - other[0]
    if name == "arith.muli":
        products = [a * b for a in one for b in other]
        return min(products), max(products)
    if name == "arith.shli" and other[0] >= 0 and other[1] < 64:
        shifted = [a << b for a in one for b in other]
        return min(shifted), max(shifted)
    if name == "arith.minsi":
        return min(one[0], other[0]), min(one[1], other[1])
    if name == "arith.maxsi":
        return max(one[0], other[0]), max(one[1], other[1])
    if name == "arith.divsi" and other[0] > 0:
        return min(one[0], 0), max(one[1], 0)
    if name == "arith.remsi" and other[0] > 0:
        return (0 if one[0] >= 0 else 1 - other[1]), min(max(one[1], 0), other[1] - 1)
    return None


_SIGNS = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "×", "arith.shli": "<<"}
_ADVICE = "compute it in 64 bits: `.to(tl.int64)` on an operand (a program id, an index) before the multiplication"


def overflow_findings(studied: Studied) -> Iterator[Finding]:
    """The sums and products of 32 bits that lead an access astray; of a launch that was not recorded, none."""
    launch, kernel = studied.capture.launch, studied.uses.module.kernel
    if launch.record is None or launch.grid is None or kernel is None or not may_overflow(kernel, launch):
        return
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.addresses.overflow import overflows_of

    arguments = read_arguments(kernel, launch)
    for one in overflows_of(studied.uses.module, arguments.held, launch.grid):
        line, access = one.operation.first_line, one.access
        operands = f" {_SIGNS[one.operation.name]} ".join(f"{each:,}" for each in one.operands)
        program = ", ".join(map(str, one.program))
        named = {source.path: source.value for source in launch.record.arguments if source.kind == "scalar"}
        factors = [name for name, value in named.items() if value in one.operands and abs(int(value or 0)) > 1]
        causes = [
            studied.in_ir(
                f"in program ({program}) it is {operands} = {one.value:,}, beyond {_MOST:,}: "
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
            f"{access.name} of line {access.first_line} of ttgir goes to another address than it should",
            1,
            causes,
            [Suggestion(_ADVICE)],
        )
