"""The Python text of a capture's kernel, to be edited, and the program that compiles it after that."""

from __future__ import annotations

from pathlib import Path

from irscope.errors import RecordingError
from irscope.model.capture import Capture
from irscope.render.reproduction.needed import NeededSource, needed_source
from irscope.render.reproduction.program import (
    compiling_code,
    future_import,
    launch_tables,
    pieces_text,
    sorted_imports,
    target_line,
)
from irscope.render.reproduction.values import NotExpressible, functions_among_constants

__all__ = ["driver_of", "python_text"]

_DRIVER = """
PATH = {path!r}

with open(PATH, encoding="utf-8", errors="surrogateescape") as file:
    exec(compile(file.read(), PATH, "exec", dont_inherit=True))

{tables}

{target}{code}
compile_kernel()
"""


def python_text(capture: Capture) -> str:
    """The kernel with the functions and constants that it uses, as Python; raises RecordingError without them."""
    needed = _needed(capture)
    return f"{future_import(capture)}{sorted_imports(needed.imports)}\n\n{pieces_text(needed)}"


def driver_of(capture: Capture, path: Path) -> str:
    """The program that compiles the text at `path` as the capture's own was, with every pass on.

    Functions stay where that file has them, and locations too.
    """
    try:
        tables, imports = launch_tables(capture, _needed(capture))
    except NotExpressible as reason:
        raise _refusal(capture, str(reason)) from reason
    lines = ["import gc", "import triton", "from triton.backends.compiler import GPUTarget", *imports]
    code = compiling_code(capture, "{}")
    return sorted_imports(lines) + _DRIVER.format(path=str(path), tables=tables, target=target_line(capture), code=code)


def _needed(capture: Capture) -> NeededSource:
    needed = needed_source(capture, functions_among_constants(capture.launch))
    if lacks := [*needed.obstacles, *(f"the capture does not hold {name}" for name in needed.missing)]:
        raise _refusal(capture, "; ".join(dict.fromkeys(lacks)))
    return needed


def _refusal(capture: Capture, why: str) -> RecordingError:
    return RecordingError(
        f"the Python text of {capture!r} cannot be compiled by itself: {why}. Edit its IR, as with --at ttir, or the "
        "script, and record that."
    )
