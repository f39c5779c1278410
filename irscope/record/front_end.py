"""An error of the Python front end as Python would print it: what was wrong, and the calls that led to it."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any

from irscope.record import triton_api
from irscope.record.launches import describe_kernel, describe_traceback

# NameError('nowhere is not defined')
_REPR = re.compile(r"^(?P<type>[A-Za-z_]\w*)\((?P<quote>['\"])(?P<said>.*)(?P=quote)\)$", re.DOTALL)


def describe_compile_error(error: BaseException) -> dict[str, str]:
    """As `describe_traceback`; where Triton's front end refused a kernel, the message is made of the chain of calls.

    Its first line says what was wrong; then comes a place for each call, the kernel's first.
    """
    described = describe_traceback(error)
    chain = [one for one in _causes(error) if _is_front_ends(one)]
    if not chain:
        return described
    described["message"] = "\n".join([_reason(error), *_places(chain)])
    return described


def _causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__


def _reason(error: BaseException) -> str:
    """What the innermost error says, with its type."""
    *_, innermost = _causes(error)
    told = [one for one in _causes(error) if _is_front_ends(one)]
    if not _is_front_ends(innermost):
        return f"{type(innermost).__name__}: {innermost}".rstrip(": ")
    said = str(getattr(told[-1], "error_message", "") or "").strip()
    if (raised := _REPR.match(said)) is not None:
        return f"{raised['type']}: {raised['said']}"
    return f"{type(innermost).__name__}: {said}".rstrip(": ")


def _places(chain: list[BaseException]) -> Iterator[str]:
    functions = _functions()
    seen: set[tuple[str, int, int]] = set()
    for one in chain:
        source, node = str(getattr(one, "src", "") or ""), getattr(one, "node", None)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        lines = source.splitlines()
        if not 0 < line <= len(lines) or (source, line, column) in seen:
            continue
        seen.add((source, line, column))
        if (kernel := functions.get(source)) is not None:
            yield f'  File "{kernel["file"]}", line {kernel["line"] + line - 1}, in {kernel["name"]}'
        text = lines[line - 1]
        indent = len(text) - len(text.lstrip())
        yield f"    {text.strip()}"
        yield f"    {' ' * max(0, column - indent)}^"


def _functions() -> dict[str, dict[str, Any]]:
    """Every `@triton.jit` function there is by its text: Triton's error holds that, and no more of where it stands."""
    kind = triton_api.jit_function_class()
    # By type: `isinstance` asks some objects of torch for their class, and they warn that they are deprecated.
    found = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    return {str(one.src): describe_kernel(one) for one in found}


def _is_front_ends(error: BaseException) -> bool:
    """Whether it is a `triton.CompilationError`, which holds the function's text and the node that is wrong."""
    return all(hasattr(error, name) for name in ("src", "node", "error_message"))
