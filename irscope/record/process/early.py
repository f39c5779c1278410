"""A recording process that is started before the command is read: that takes about as long as importing Triton does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from irscope.record.process.child import Child, child_process, early_child
from irscope.record.process.own_folder import own_folder

__all__ = ["begun_early", "recording_process"]

_Message = TypeVar("_Message")

_MODULE = "irscope.record"


@dataclass(slots=True)
class _Early:
    """A process that no recording has taken yet, and what it took from this one."""

    folder: Path
    child: Child[Any]
    environment: dict[str, str]
    working_folder: str


_early: _Early | None = None


@contextmanager
def begun_early() -> Iterator[None]:
    """Start a recording process, which ends with the block; where that is prevented, it is told when one is needed."""
    global _early
    with ExitStack() as stack:
        with contextlib.suppress(Exception):
            for standard in range(3):
                # A socket must not get the number of one that is closed.
                os.fstat(standard)
            folder = stack.enter_context(own_folder())
            child: Child[Any] = stack.enter_context(early_child(_MODULE, folder))
            _early = _Early(folder, child, dict(os.environ), os.getcwd())
        try:
            yield
        finally:
            _early = None


@contextmanager
def recording_process(
    kinds: Iterable[type[_Message]],
    *,
    interpreter: str | None,
    echo: Callable[[str], None] | None,
    ahead: Iterable[str],
) -> Iterator[tuple[Path, Child[_Message]]]:
    """(folder, recording process) until the end of the block; the arguments are those of `child_process`."""
    global _early
    early, _early = _early, None
    if (
        early is not None
        and interpreter is None
        and (early.environment, early.working_folder) == (os.environ, os.getcwd())
    ):
        early.child.expect(kinds, echo)
        with contextlib.closing(early.child):
            yield early.folder, early.child
        return
    with (
        own_folder() as folder,
        child_process(_MODULE, folder, kinds, interpreter=interpreter, echo=echo, ahead=ahead) as child,
    ):
        yield folder, child
