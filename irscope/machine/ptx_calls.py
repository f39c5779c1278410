"""Puts the bodies of called functions in the place of their calls: what is executed of PTX is one list of instructions.

Parameters of a call become registers. Source: "PTX ISA", section "Abstracting the ABI".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from string import ascii_lowercase, digits

from irscope.ir.asm.instructions import CodeLabel, Instruction
from irscope.ir.asm.operands import parse_operand, split_operands
from irscope.ir.asm.readers import PtxFunction

_DEEPEST = 16
"""Calls within calls; one that calls itself stays a call."""
_MOST = 100_000
"""Instructions, after which calls stay calls."""
_APART = 1_000_000
"""Between the numbers of a register in two bodies."""


@dataclass(slots=True)
class _Code:
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[CodeLabel] = field(default_factory=list[CodeLabel])
    tables: list[tuple[str, tuple[str, ...]]] = field(default_factory=list["tuple[str, tuple[str, ...]]"])


def with_calls(kernel: PtxFunction, functions: Sequence[PtxFunction]) -> PtxFunction:
    """The kernel with the bodies of what it calls in it, as far as `functions` have them."""
    bodies = {one.name: one for one in functions}
    if not any(_called(item, bodies) for item in kernel.instructions):
        return kernel
    code = _Code()
    _put(kernel, {}, bodies, code, count(), 0)
    return replace(
        kernel, instructions=tuple(code.instructions), labels=tuple(code.labels), tables=tuple(code.tables)
    )  # fmt: skip


def _called(item: Instruction, bodies: Mapping[str, PtxFunction]) -> PtxFunction | None:
    if not item.opcode.startswith("call") or item.predicate:
        return None
    return next((bodies[one] for one in item.operands if one in bodies), None)


def _put(
    function: PtxFunction, given: Mapping[str, str], bodies: Mapping[str, PtxFunction], code: _Code,
    numbers: count[int], depth: int,
) -> None:  # fmt: skip
    """Append a body. `given`: the names of its parameters and results → those of the caller's."""
    number = next(numbers)
    own = {one.name for one in function.labels}
    begins: list[int] = []
    """Of each instruction, its place in `code`."""

    def renamed(text: str) -> str:
        if text in own:
            return f"{text}@{number}"
        return _numbered(text, number * _APART)

    def register(text: str) -> str:
        """The register in place of `[param0+8]`; empty for a parameter of the kernel."""
        place = parse_operand(text)
        if place.name.startswith("%") or (not depth and place.name in {name for name, _ in function.parameters}):
            return ""
        return f"{given.get(place.name, f'{place.name}@{number}')}.{place.value}"

    for item in function.instructions:
        begins.append(len(code.instructions))
        body = _called(item, bodies)
        name, *suffixes = item.opcode.split(".")
        if body is not None and depth < _DEEPEST and len(code.instructions) < _MOST:
            # call.uni (retval0), name, (param0, param1)
            at = item.operands.index(body.name)
            results, arguments = (
                [f"{one}@{number}" for text in side for one in split_operands(text.strip("()"))]
                for side in (item.operands[:at], item.operands[at + 1 :])
            )
            inner = {f"func_retval{place}": one for place, one in enumerate(results)}
            inner |= zip([one.partition("[")[0] for one, _ in body.parameters], arguments, strict=False)
            _put(body, inner, bodies, code, numbers, depth + 1)
        elif name == "ret" and depth:
            code.instructions.append(replace(item, opcode="bra.uni", operands=(f"return@{number}",)))
        elif name in ("ld", "st") and "param" in suffixes and (held := register(item.operands[name == "ld"])):
            code.instructions += _moves(item, suffixes[-1], held, renamed(item.operands[name == "st"]))
        else:
            predicate = renamed(item.predicate)
            code.instructions.append(
                replace(item, operands=tuple([renamed(one) for one in item.operands]), predicate=predicate)
            )
    end = len(code.instructions)
    places = [*begins, end]
    for one in function.labels:
        scope = one.scope and (places[one.scope[0]], places[one.scope[1]])
        code.labels.append(replace(one, name=f"{one.name}@{number}", index=places[one.index], scope=scope))
    code.tables += [(f"{name}@{number}", tuple([f"{one}@{number}" for one in row])) for name, row in function.tables]
    if depth:
        code.labels.append(CodeLabel(f"return@{number}", end))


def _numbered(text: str, more: int) -> str:
    """An operand whose registers have larger numbers: `[%rd12+8]`, but not `%tid.x`."""
    first, *parts = text.split("%")
    found = [first]
    for part in parts:
        behind = part.lstrip(ascii_lowercase)
        rest = behind.lstrip(digits)
        number = behind[: len(behind) - len(rest)]
        found.append(f"{part[: len(part) - len(behind)]}{int(number) + more}{rest}" if number else part)
    return "%".join(found)


def _moves(item: Instruction, kind: str, held: str, values: str) -> list[Instruction]:
    """The load or store of a parameter as moves: `held`, the register in its place, and `values`, one or a vector."""
    base, _, first = held.rpartition(".")
    size = max(int("".join(filter(str.isdigit, kind)) or 8) // 8, 1)
    moves: list[Instruction] = []
    for place, value in enumerate(split_operands(values.strip("{}"))):
        pair = value, f"{base}.{int(first) + place * size}"
        moves.append(replace(item, opcode=f"mov.{kind}", operands=pair if item.opcode.startswith("ld") else pair[::-1]))
    return moves
