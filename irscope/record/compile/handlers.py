"""Whether what a launch raises may be caught: then its compile must end before the launch returns.

Only what is shown to let an exception pass does so: a `finally`, the clean-up of a handler, and a `with` whose manager
is a torch's, a lock's or a file's. What a manager is, is looked up by the expression of the `with`, whose names have
values in the frame; a call's result is an instance of the class that is called.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import linecache
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

__all__ = ["may_be_caught"]

_REPORTERS = ("IPython", "runpy", "importlib", "triton", "irscope")
"""Packages that run a program and report whatever it raises: no part of what it does depends on that."""
_PASSING = ("torch", "triton", "threading", "_thread", "io", "_io", "tempfile", "numpy", "irscope")
"""Packages whose context managers let every exception pass."""
_PASSING_MANAGERS = (
    contextlib.nullcontext,
    contextlib.closing,
    contextlib.redirect_stdout,
    contextlib.redirect_stderr,
    contextlib.chdir if sys.version_info >= (3, 11) else contextlib.nullcontext,
)

_Handler = tuple[bool, tuple[ast.expr, ...]]
"""Whether a handler around a place in code may catch, and the expressions of the managers that decide it otherwise."""


def may_be_caught(frame: FrameType | None) -> bool:
    """Whether a caller may catch what is raised at its call, outside of Triton and of what runs programs."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _REPORTERS:
            catches, managers = _handlers_at(frame.f_code, frame.f_lasti)
            if catches or not all(_lets_pass(manager, frame) for manager in managers):
                return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def _handlers_at(code: CodeType, at: int) -> _Handler:
    if sys.version_info < (3, 11):
        return _is_within_try(code, at), ()
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    instructions = list(dis.get_instructions(code)) if table else []
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    seen: set[int] = set()
    managers: list[ast.expr] = []
    while (entry := next((row for row in table if row.start <= at < row.end), None)) and entry.target not in seen:
        seen.add(entry.target)
        handler = instructions[places[entry.target] :]
        kind, place = _kind_of(handler)
        if kind == "except":
            return True, ()
        if kind == "with":
            if not (made := _managers_at(code, place)):
                return True, ()
            managers += made
        # What it raises again reaches the handler that is around it.
        at = next((one.offset for one in handler if one.opname == "RERAISE"), -1)
    return False, tuple(managers)


def _kind_of(handler: list[Any]) -> tuple[str, Any]:
    """`except`, `with` and its place, or `finally`, which the clean-up of another handler is too."""
    for instruction in handler:
        name = instruction.opname
        if name == "WITH_EXCEPT_START":
            return "with", getattr(instruction, "positions", None)
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"):
            # The clean-up of a handler is COPY, POP_EXCEPT, RERAISE.
            is_cleanup = name == "POP_EXCEPT" and handler[0].opname == "COPY"
            return ("finally" if is_cleanup else "except"), None
        if name == "RERAISE":
            return "finally", None
    return "except", None


def _managers_at(code: CodeType, place: Any) -> list[ast.expr]:
    """The expressions that made the managers of a `with`; none if they are not known.

    `place`: of what calls a manager's `__exit__`: up to Python 3.11 the whole statement, later its expression.
    """
    if place is None or place.lineno is None or place.col_offset is None:
        return []
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(place.lineno, place.end_lineno + 1)]
    lines[-1] = lines[-1][: place.end_col_offset]
    lines[0] = lines[0][place.col_offset :]
    text = b"".join(lines)
    with contextlib.suppress(SyntaxError, ValueError):
        # A `return` or an `await` stands in a function.
        inner = b"async def _():\n " + text if text.startswith((b"with", b"async")) else b"(" + text + b")"
        (statement,) = ast.parse(inner).body
        if isinstance(statement, ast.AsyncFunctionDef):
            (statement,) = statement.body
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return [item.context_expr for item in statement.items]
        if isinstance(statement, ast.Expr):
            return [statement.value]
    return []


def _lets_pass(manager: ast.expr, frame: FrameType) -> bool:
    """Whether a manager is of a kind that lets every exception pass, as far as its expression tells."""
    made = manager.func if isinstance(manager, ast.Call) else manager
    value = _value_of(made, frame)
    if value is None:
        return False
    if not isinstance(manager, ast.Call):
        value = type(value)
    if inspect.isclass(value) or inspect.isroutine(value):
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        return value in _PASSING_MANAGERS or value is open or package in _PASSING
    return False


def _value_of(expression: ast.expr, frame: FrameType) -> Any:
    """The value of a name with attributes; None for every other expression. Runs no code of the program's."""
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if expression.id in names:
                return names[expression.id]
        return None
    if isinstance(expression, ast.Attribute):
        owner = _value_of(expression.value, frame)
        found = inspect.getattr_static(owner, expression.attr, None) if owner is not None else None
        return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return None


def _is_within_try(code: CodeType, at: int) -> bool:
    """For Python 3.10: whether the call stands within a `try` or a `with`, whatever that does."""
    return any(
        instruction.opname in ("SETUP_FINALLY", "SETUP_WITH") and instruction.offset < at < instruction.argval
        for instruction in dis.get_instructions(code)
    )
