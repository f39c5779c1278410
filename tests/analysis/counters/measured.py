"""Launches that an H200 counted: the captures of tests/data/counters, each with its profile."""

from __future__ import annotations

from functools import cache

from irscope.analysis.counters.operations import CountedLaunch, counted_launch
from irscope.model.capture import Capture
from irscope.store.file import load
from tests.conftest import DATA

NAMES = tuple(sorted(path.stem for path in (DATA / "counters").glob("*.irscope")))


def capture(name: str) -> Capture:
    return load(DATA / "counters" / f"{name}.irscope")


@cache
def counted(name: str) -> CountedLaunch:
    return counted_launch(capture(name))
