"""Recordings outside of the block of `warm_children` that the tests run in: with servers of their own, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irscope.record.process import child


class _Cold:
    """A block that forks nothing."""

    persistent = True

    def forked(self, *_: object) -> None:
        return None


@contextmanager
def _within(block: Any) -> Iterator[None]:
    token = child._warm.set(block)
    try:
        yield
    finally:
        child._warm.reset(token)


@contextmanager
def no_block() -> Iterator[None]:
    """As outside of the block of `warm_children` that the tests run in."""
    with _within(None):
        yield


@contextmanager
def new_processes() -> Iterator[None]:
    """Children that are new processes."""
    with _within(_Cold()):
        yield
