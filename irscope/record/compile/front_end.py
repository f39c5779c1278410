"""An error of Triton's front end as Python would print it: the reason, and the chain of calls to it."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

from irscope.model.capture import Kernel
from irscope.record.compile.launches import causes, describe_kernel, describe_traceback
from irscope.record.triton import api as triton_api

# NameError('nowhere is not defined')
_REPR = re.compile(r"^(?P<type>[A-Za-z_]\w*)\((?P<quote>['\"])(?P<message>.*)(?P=quote)\)$", re.DOTALL)


def describe_compile_error(error: BaseException) -> dict[str, str]:
    """As `describe_traceback`, but for an error of Triton's front end, the message is made of the chain of calls.

    Its first line is the reason; a place for each call follows, the kernel's first.
    """
    described = describe_traceback(error)
    chain = [one for one in causes(error) if _is_front_ends(one)]
    if chain:
        described["message"] = "\n".join([_reason(error), *_places(chain)])
    return described


def _reason(error: BaseException) -> str:
    """The innermost error's message, with its type."""
    *_, innermost = causes(error)
    if not _is_front_ends(innermost):
        return f"{type(innermost).__name__}: {innermost}".rstrip(": ")
    message = str(getattr(innermost, "error_message", "") or "").strip()
    if (raised := _REPR.match(message)) is not None:
        return f"{raised['type']}: {raised['message']}"
    return f"{type(innermost).__name__}: {message}".rstrip(": ")


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
            yield f'  File "{kernel.file}", line {kernel.line + line - 1}, in {kernel.name}'
        text = lines[line - 1]
        indent = len(text) - len(text.lstrip())
        yield f"    {text.strip()}"
        yield f"    {' ' * max(0, column - indent)}^"


def _functions() -> dict[str, Kernel]:
    """Every `@triton.jit` function in memory by its text, the only thing in Triton's error that identifies it."""
    kind = triton_api.jit_function_class()
    # By type: `isinstance` reads `__class__`, for which some objects of torch issue a deprecation warning.
    found = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    return {str(one.src): describe_kernel(one) for one in found}


def _is_front_ends(error: BaseException) -> bool:
    """Whether an error is a `triton.CompilationError`, which holds the function's text and the wrong node."""
    return all(hasattr(error, name) for name in ("src", "node", "error_message"))
