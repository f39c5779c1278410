"""The end of a chain of causes: what the launch gave an argument, and why the compiler does not know more of it."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.findings.model import Cause, Change, Suggestion
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument

__all__ = ["aligned", "divisibility_cause", "hinted", "is_hidden_unit", "not_so", "unit_stride", "unit_stride_cause"]

_DIVISOR = 16
"""What Triton specialises integers and addresses on."""


def divisibility_cause(capture: Capture, name: str) -> Cause:
    """Why it is not known that 16 divides an argument."""
    row = _recorded(capture, name)
    if row is None:
        return Cause(f"the signature does not say that {_DIVISOR} divides {name}", "launch", "the signature")
    if row.kind == "tensor":
        if (row.alignment_bytes or 0) < _DIVISOR:
            return _launched(f"{name} begins at a multiple of {row.alignment_bytes} bytes only, in this launch")
        return _launched(
            f"{name} begins at a multiple of {_DIVISOR} bytes, but Triton was told not to specialise on it"
        )
    if isinstance(row.value, int) and row.value % _DIVISOR:
        return _launched(f"{name} is {row.value} in this launch: {_DIVISOR} does not divide it")
    return _launched(f"{name} is {row.value}, a multiple of {_DIVISOR}, but Triton was told not to specialise on it")


def aligned(capture: Capture, names: Sequence[str]) -> Suggestion:
    """What makes the compiler know that 16 divides some arguments."""
    rows = [_recorded(capture, name) for name in names]
    listed = " and ".join(names)
    if all(row is not None and _is_divided(row) for row in rows):
        text = f"let Triton specialise on {listed}: do_not_specialize or do_not_specialize_on_alignment names it"
    elif any(row is not None and row.kind == "tensor" for row in rows):
        text = f"pass {listed} at addresses that {_DIVISOR} divides: a view may begin elsewhere"
    else:
        text = (
            f"pass {listed} as a multiple of {_DIVISOR} (pad the tensor), or make it tl.constexpr if it is one already"
        )
    return Suggestion(text, tuple(Change("divisible", name, _DIVISOR) for name in names))


def unit_stride_cause(capture: Capture, name: str) -> Cause:
    """Why it is not known that an argument is 1."""
    row = _recorded(capture, name)
    if row is None:
        return Cause(f"the signature does not say that {name} is 1", "launch", "the signature")
    if row.value == 1:
        return _launched(f"{name} is 1 in this launch, but Triton was told not to specialise on it")
    return _launched(f"{name} is {row.value} in this launch")


def is_hidden_unit(capture: Capture, name: str) -> bool:
    """Whether an argument may be 1 without the compiler knowing it."""
    row = _recorded(capture, name)
    return row is None or row.value == 1


def unit_stride(capture: Capture, name: str, others: Sequence[str]) -> Suggestion:
    """What makes neighbours contiguous, by a stride that is 1, if 16 divides some other arguments."""
    row = _recorded(capture, name)
    if row is not None and row.value == 1:
        text = f"let Triton specialise on {name} (do_not_specialize names it), or make it tl.constexpr"
    elif row is None:
        text = f"give {name} as 1 (in a signature: 1 in place of its type), if it is"
    else:
        text = f"pass a tensor with {name} = 1 (a view: .contiguous()), or load along the dimension that has stride 1"
    if others:
        text += f"; and {' and '.join(others)} as a multiple of {_DIVISOR}"
    changes = (Change("constant", name, 1), *(Change("divisible", other, _DIVISOR) for other in others))
    return Suggestion(text, changes)


def hinted(capture: Capture, names: Sequence[str]) -> list[Suggestion]:
    """A hint for the kernel, if these arguments are multiples of a smaller number that may be enough."""
    rows = [_recorded(capture, name) for name in names]
    values = [row.value if row is not None and row.kind == "scalar" else None for row in rows]
    divisors = [value & -value for value in values if isinstance(value, int) and value > 0]
    if len(divisors) < len(names) or not all(1 < divisor < _DIVISOR for divisor in divisors):
        return []
    listed = " and ".join(
        f"{divisor} for {name} ({value} in this launch)"
        for name, divisor, value in zip(names, divisors, values, strict=True)
    )
    text = f"say in the kernel what its products are multiples of, with tl.multiple_of: {listed}"
    changes = (Change("hint", name, divisor) for name, divisor in zip(names, divisors, strict=True))
    return [Suggestion(text, tuple(changes))]


def not_so(capture: Capture, changes: Sequence[Change]) -> str:
    """Which change of an argument does not hold in the launch itself, so that it must not run so; empty if all do."""
    for one in changes:
        row = _recorded(capture, one.name)
        if one.kind in ("option", "layout"):
            continue
        value = row and (row.alignment_bytes if row.kind == "tensor" else row.value)
        if not isinstance(value, int):
            return f"{one.name} is not known of this launch"
        if one.kind == "constant" and value != one.value:
            return f"{one.name} is {value} in this launch, not {one.value}"
        if one.kind != "constant" and isinstance(one.value, int) and value % one.value:
            return f"{one.name} is {value} in this launch, which {one.value} does not divide"
    return ""


def _is_divided(row: Argument) -> bool:
    if row.kind == "tensor":
        return (row.alignment_bytes or 0) >= _DIVISOR
    return isinstance(row.value, int) and row.value % _DIVISOR == 0


def _recorded(capture: Capture, name: str) -> Argument | None:
    record = capture.launch.record
    return record.argument(name) if record is not None else None


def _launched(text: str) -> Cause:
    return Cause(text, "launch", "the arguments of the launch")
