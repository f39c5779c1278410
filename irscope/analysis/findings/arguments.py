"""The end of a chain of causes: the value of an argument in the launch, and why the compiler does not know it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import basename

from irscope.analysis.findings.model import Cause, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.source.map import python_line
from irscope.ir.locations.model import Place
from irscope.ir.mlir.edits import SAME, constant_of
from irscope.ir.mlir.model import Value
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument
from irscope.model.telling import joined

_DIVISOR = 16
"""The divisor that Triton specialises integers and addresses on."""


def divisibility_cause(capture: Capture, name: str) -> Cause:
    """Why it is not known that 16 divides an argument."""
    row = _recorded(capture, name)
    if row is None:
        return Cause(f"the signature does not state that {_DIVISOR} divides {name}", "launch", "the signature")
    if row.kind == "tensor":
        if (row.alignment_bytes or 0) < _DIVISOR:
            return _launched(
                f"the base address of {name} is a multiple of {row.alignment_bytes} bytes only, in this launch"
            )
        why = _unspecialized(capture, row)[0]
        return _launched(f"the base address of {name} is a multiple of {_DIVISOR} bytes, but {why}")
    if isinstance(row.value, int) and row.value % _DIVISOR:
        return _launched(f"{name} is {row.value} in this launch: {_DIVISOR} does not divide it")
    return _launched(f"{name} is {row.value}, a multiple of {_DIVISOR}, but {_unspecialized(capture, row)[0]}")


def aligned(capture: Capture, names: Sequence[str]) -> Suggestion:
    """The changes that let the compiler know that 16 divides some arguments."""
    rows = [_recorded(capture, name) for name in names]
    listed = joined(names)
    several = len(names) > 1
    if all(row is not None and _is_divided(row) for row in rows):
        ways = dict.fromkeys(_unspecialized(capture, row)[1] for row in rows if row is not None)
        text = f"let Triton specialise on {listed}: {joined(list(ways))}"
    elif any(row is not None and row.kind == "tensor" for row in rows):
        text = f"pass {listed} with a base address divisible by {_DIVISOR}: a view may have another offset"
    else:
        whole = f"{'multiples' if several else 'a multiple'} of {_DIVISOR} (pad the tensor)"
        values = [row.value if row is not None else None for row in rows]
        # The greatest power of two that divides each: of a constant the compiler knows it.
        power = min((one & -one if isinstance(one, int) and one else 1 for one in values), default=1)
        if power > 1:
            constant = f"make {'them' if several else 'it'} tl.constexpr: then the compiler knows that {power} divides "
            constant += " and ".join(dict.fromkeys(map(str, values)))
        else:
            constant = f"make {'them tl.constexpr if they are' if several else 'it tl.constexpr if it is one'} already"
        text = f"pass {listed} as {whole}, or {constant}"
    return Suggestion(text, tuple(FixChange("divisible", name, _DIVISOR) for name in names))


def unit_stride_cause(capture: Capture, name: str) -> Cause:
    """Why it is not known that an argument is 1."""
    row = _recorded(capture, name)
    if row is None:
        return Cause(f"the signature does not state that {name} is 1", "launch", "the signature")
    if row.value == 1:
        return _launched(f"{name} is 1 in this launch, but {_unspecialized(capture, row)[0]}")
    return _launched(f"{name} is {row.value} in this launch")


def is_hidden_unit(capture: Capture, name: str) -> bool:
    """Whether an argument may be 1 without the compiler knowing it."""
    row = _recorded(capture, name)
    return row is None or row.value == 1


def unit_stride(capture: Capture, name: str, others: Sequence[str]) -> Suggestion:
    """What makes neighbours contiguous, by a stride that is 1, if 16 divides some other arguments."""
    row = _recorded(capture, name)
    if row is not None and row.value == 1:
        text = f"let Triton specialise on {name} ({_unspecialized(capture, row)[1]}), or make it tl.constexpr"
    elif row is None:
        text = f"give {name} as 1 (in a signature: 1 in place of its type), if it is"
    else:
        text = f"pass a tensor with {name} = 1 (a view: .contiguous()), or load along the dimension that has stride 1"
    if others:
        text += f"; and {joined(others)} as {'multiples' if len(others) > 1 else 'a multiple'} of {_DIVISOR}"
    changes = (
        FixChange("constant", name, 1),
        *(FixChange("divisible", other, _DIVISOR) for other in others),
    )
    return Suggestion(text, changes)


def hinted(studied: Studied, names: Sequence[str], most: int) -> list[Suggestion]:
    """A hint for the kernel, if these arguments are multiples of a smaller number that may be enough.

    `most`: how many elements in a row the access would have with a larger one.
    """
    rows = [_recorded(studied.capture, name) for name in names]
    values = [row.value if row is not None and row.kind == "scalar" else None for row in rows]
    divisors = [value & -value for value in values if isinstance(value, int) and value > 0]
    if len(divisors) < len(names) or not all(1 < divisor < _DIVISOR for divisor in divisors):
        return []
    changes: list[FixChange] = []
    told: list[str] = []
    for name, divisor, value in zip(names, divisors, values, strict=True):
        products, remainders = studied.sites_of(name)
        # What is taken modulo the argument is as far in order as the argument, and what is divided by it, let it.
        run, launched = min(divisor, most), f"{name} ({value} in this launch)"
        if products:
            changes.append(FixChange("hint", name, divisor))
            told.append(f"tl.multiple_of(…, {divisor}) of the products with {launched}, {_at(products)}")
        if remainders:
            changes.append(FixChange("contiguous", name, run))
            hint = f"tl.max_contiguous(tl.multiple_of(…, {run}), {run})"
            told.append(f"{hint} of the remainders by {launched}, {_at(remainders)}")
        if not (products or remainders):
            return []
    return [Suggestion(f"state in the kernel {joined(told)}", tuple(changes))] if told else []


def _at(places: Place) -> str:
    return f"on {joined(f'{basename(file)}:{line}' for file, line in places)}"


def factor_cause(studied: Studied, line: int, value: int, divisor: int) -> tuple[str, Cause]:
    """The name of a constant, or the number itself, and that it keeps an access narrow.

    `line`: that of a product or comparison with it, in the TTGIR.
    """
    operation = studied.operations[line]
    module = studied.module
    others = [one for one in operation.operands if constant_of(module, one) != value]
    place = studied.place_at(line)
    text = python_line(studied.capture, *place[0]) if place else ""
    named = [name for name, written in studied.capture.launch.constants if written == str(value)]
    written = [name for name in named if re.search(rf"\b{re.escape(name)}\b", text)]
    is_literal = re.search(rf"(?<![\w.]){value}(?![\w.])", text) is not None
    name = str(value) if is_literal or not named else (written or named)[0]
    what = name if name == str(value) else f"{name}, {value},"
    other = _said_of(studied, others[0]) if others else "a value"
    verb = _VERBS.get(operation.name, "is added to")
    where = f" ({basename(place[0][0])}:{place[0][1]})" if place else ""
    return name, studied.in_ir(f"{what} {verb} {other}{where}, and {divisor} does not divide it", line)


_VERBS = {"arith.muli": "multiplies", "arith.cmpi": "ends a mask: it is compared with"}


def _said_of(studied: Studied, value: Value) -> str:
    made = studied.module.definition(value)
    while made is not None and made.opcode in SAME and made.operands:
        value = made.operands[0]
        made = studied.module.definition(value)
    return "the program id" if made is not None and made.opcode == "get_program_id" else value.name


def other_factors(names: Sequence[tuple[str, int, int]], divisor: int) -> Suggestion:
    """Other constants: (name, value, the next multiple of a number) of each."""
    told = (
        f"{'' if name == str(value) else f'{name} = '}{new}, or another multiple of {divisor}, in place of {value}"
        for name, value, new in names
    )
    text = f"pad the tensor: {joined(told)}"
    return Suggestion(text, tuple(FixChange("factor", name, new, value) for name, value, new in names))


_OF_ARGUMENTS = ("divisible", "constant", "hint", "contiguous", "factor")
"""Kinds of changes that say what an argument is."""


def not_so(capture: Capture, changes: Sequence[FixChange]) -> str:
    """Which change of an argument does not hold in the launch itself, so that it must not run so; empty if all do."""
    for one in changes:
        row = _recorded(capture, one.name)
        if one.kind not in _OF_ARGUMENTS or (row is None and one.name in capture.launch.constexprs):
            continue
        if one.kind == "factor":
            return f"it is {one.was} in this launch, not {one.value}"
        value = row and (row.alignment_bytes if row.kind == "tensor" else row.value)
        if not isinstance(value, int):
            return f"{one.name} is unknown for this launch"
        if one.kind == "constant" and value != one.value:
            return f"{one.name} is {value} in this launch, not {one.value}"
        if one.kind != "constant" and isinstance(one.value, int) and value % one.value:
            return f"{one.name} is {value} in this launch, which {one.value} does not divide"
    return ""


def _unspecialized(capture: Capture, row: Argument) -> tuple[str, str]:
    """Why Triton did not specialise on an argument's value, and the change that makes it do so.

    Source: create_function_from_signature in Triton's runtime/jit.py, 3.6 to 3.9: a parameter that is annotated as an
    int keeps that type, so that 1 makes no constant of it; one annotated as a float or bool is not specialised at all.
    """
    name = row.path.partition("[")[0]
    if not row.specializes_on_alignment and row.value != 1:
        return "do_not_specialize_on_alignment names it", f"take {name} out of do_not_specialize_on_alignment"
    # x: int      n : "i32" = 4      but neither x: tl.constexpr nor {x: int} in the body
    header = capture.launch.kernel.source.partition("):")[0]
    annotation = re.search(rf"[(,]\s*{re.escape(name)}\s*:\s*([\w.\"']+)", header)
    if annotation is not None and (row.value == 1 or not row.specializes):
        return (
            f"it is annotated as {annotation[1]}, so that its type is fixed",
            f"drop the annotation of {name}: {annotation[1]}",
        )
    if not row.specializes:
        return "do_not_specialize names it", f"take {name} out of do_not_specialize"
    return "Triton did not specialise on it", "pass it as a plain argument of the launch"


def _is_divided(row: Argument) -> bool:
    if row.kind == "tensor":
        return (row.alignment_bytes or 0) >= _DIVISOR
    return isinstance(row.value, int) and row.value % _DIVISOR == 0


def _recorded(capture: Capture, name: str) -> Argument | None:
    record = capture.launch.record
    return record.argument(name) if record is not None else None


def _launched(text: str) -> Cause:
    return Cause(text, "launch", "the arguments of the launch")
