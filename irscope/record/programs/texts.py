"""Programs whose text is in no file of its own: cells of a notebook, standard input."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType

__all__ = ["as_main", "compiled", "with_text"]


def compiled(source: str, filename: str, flags: int = 0) -> CodeType:
    """A program's code; on the virtual GPU rewritten as that of a file is."""
    from irscope.record.virtual.follow import current_following
    from irscope.record.virtual.rewrite import rewrite

    tree = rewrite(source, filename) if current_following() is not None else ast.parse(source, filename)
    return compile(tree, filename, "exec", flags, dont_inherit=True)


def with_text(filename: str, source: str) -> None:
    """Let `inspect.getsource`, which Triton calls, find the text of what is no file."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


@contextmanager
def as_main(filename: str) -> Iterator[ModuleType]:
    """A new module as `__main__`, until the end of the block."""
    before = sys.modules["__main__"]
    main = ModuleType("__main__")
    main.__file__ = filename
    vars(main)["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    try:
        yield main
    finally:
        sys.modules["__main__"] = before
