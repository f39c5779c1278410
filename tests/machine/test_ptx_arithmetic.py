"""Integer instructions of PTX, against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.machine.ptx_arithmetic import computed

_NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20)


@pytest.mark.parametrize("kind", ["u64", "s64", "u32", "s32"])
@given(numbers=_NUMBERS)
def test_the_upper_half_of_a_product(kind: str, numbers: list[int]) -> None:
    bits = int(kind[1:])

    def read(number: int) -> int:
        low = number % 2**bits
        return low - 2**bits if kind.startswith("s") and low >= 2 ** (bits - 1) else low

    pairs = [(one, two) for one in numbers for two in numbers]
    found = computed("mul", ["hi", kind], [np.array(side) for side in zip(*pairs, strict=True)])
    assert found is not None
    assert [number % 2**bits for number in found.tolist()] == [
        (read(one) * read(two) >> bits) % 2**bits for one, two in pairs
    ]
