"""A number of thousands of digits, wherever a text has one, is no error of Python's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.cases import text_steps
from tests.hostile.originals import LANGUAGES, texts
from tests.hostile.worker import fault_of

# The least limit that Python takes: numbers that it does not read need not be as long as by default.
_LIMIT = 640
_NUMBER = re.compile(r"\d+")
_PLACES = 6


@pytest.fixture(autouse=True)
def _short_numbers() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    if not hasattr(sys, "set_int_max_str_digits"):
        pytest.skip("this Python reads numbers of any length")
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(_LIMIT)
    yield
    sys.set_int_max_str_digits(before)


def with_long_numbers(text: str, place: int) -> str:
    """The text with its `place`-th number made long, in the first line of each form."""
    known: set[str] = set()
    lines: list[str] = []
    for line in text.split("\n"):
        numbers = list(_NUMBER.finditer(line))
        form = _NUMBER.sub("0", line)
        if len(numbers) > place and form not in known:
            known.add(form)
            at = numbers[place]
            line = line[: at.start()] + "9" * (_LIMIT + 1) + line[at.end() :]
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("place", range(_PLACES))
def test_long_numbers(language: str, place: int, tmp_path: Path) -> None:
    original = min((one for one in texts(language) if len(one) > 4000), key=len)
    steps = text_steps(language, original, with_long_numbers(original, place), [original] * len(LANGUAGES), tmp_path)
    # The readers: the commands, which ask the same ones, are searched by `make fuzz`.
    faults = [(step.name, fault) for step in steps if callable(step.run) and (fault := fault_of(step))]
    assert faults == []
