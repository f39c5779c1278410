"""Whether a caller would catch what a launch raises: then its compile must end before the launch returns."""

from __future__ import annotations

import dis
import linecache
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

__all__ = ["a_caller_catches"]

# They run a program and report whatever it raises: no part of what it does depends on it.
_REPORTERS = ("_pytest", "pluggy", "xdist", "execnet", "unittest", "IPython", "runpy", "triton", "irscope")
# Context managers that swallow an exception; others let it pass.
_SWALLOWING = ("suppress", "raises", "assertRaises")


def a_caller_catches(frame: FrameType | None) -> bool:
    """Whether an `except` of a caller is around its call, outside of Triton and of what runs programs."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _REPORTERS and _catches(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def _catches(code: CodeType, at: int) -> bool:
    if sys.version_info < (3, 11):
        return _may_catch(code, at)
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    instructions = list(dis.get_instructions(code)) if table else []
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    seen: set[int] = set()
    while (entry := next((row for row in table if row.start <= at < row.end), None)) and entry.target not in seen:
        seen.add(entry.target)
        handler = instructions[places[entry.target] :]
        if _handles(code, handler):
            return True
        # What it raises again reaches the handler that is around it.
        at = next((one.offset for one in handler if one.opname == "RERAISE"), -1)
    return False


def _handles(code: CodeType, handler: list[Any]) -> bool:
    """Whether a handler is an `except`, not a `finally`, the clean-up of another handler, or a harmless `with`."""
    for instruction in handler:
        name = instruction.opname
        if name == "WITH_EXCEPT_START":
            line = getattr(getattr(instruction, "positions", None), "lineno", None)
            text = linecache.getline(code.co_filename, line) if line else ""
            return any(word in text for word in _SWALLOWING)
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"):
            # The clean-up of a handler is COPY, POP_EXCEPT, RERAISE.
            return name != "POP_EXCEPT" or handler[0].opname != "COPY"
        if name == "RERAISE":
            return False
    return True


def _may_catch(code: CodeType, at: int) -> bool:
    """For Python 3.10: whether the call stands within a `try`, be it with `except` or `finally`."""
    return any(
        instruction.opname == "SETUP_FINALLY" and instruction.offset < at < instruction.argval
        for instruction in dis.get_instructions(code)
    )
