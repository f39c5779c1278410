"""The table of the real parts, against the limits of their architectures."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irscope.device.parts import DEVICE_PARTS, DevicePart, part_of
from irscope.target import KNOWN_TARGETS


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_known_target_has_a_part(target: object) -> None:
    part = DEVICE_PARTS[str(target)]
    assert part.warp_size == target.warp_size
    assert part.source


@pytest.mark.parametrize("part", DEVICE_PARTS.values(), ids=lambda part: part.target)
def test_a_part_is_one_that_can_be(part: DevicePart) -> None:
    assert part.shared_bytes_per_block <= part.shared_bytes_per_multiprocessor
    assert part.threads_per_block <= part.threads_per_multiprocessor
    # No part of these architectures has less than a T4's bandwidth, or more than 10 TB/s.
    assert 300e9 < 2 * part.memory_clock_khz * 1000 * part.memory_bus_bits / 8 < 10e12


@pytest.mark.parametrize(
    ("target", "shared_bytes", "capability"),
    [
        ("cuda:75", 65536, (7, 5)),
        ("cuda:80", 166912, (8, 0)),
        ("cuda:86", 101376, (8, 6)),
        ("cuda:89", 101376, (8, 9)),
        ("cuda:90", 232448, (9, 0)),
        ("cuda:100", 232448, (10, 0)),
        ("cuda:103", 232448, (10, 3)),
        ("cuda:120", 101376, (12, 0)),
        ("hip:gfx90a", 65536, (9, 0)),
        ("hip:gfx942", 65536, (9, 4)),
        ("hip:gfx950", 163840, (9, 5)),
        ("hip:gfx1100", 65536, (11, 0)),
        ("hip:gfx1201", 65536, (12, 0)),
    ],
)
def test_what_a_kernel_is_held_to(target: str, shared_bytes: int, capability: tuple[int, int]) -> None:
    part = part_of(target)
    assert part.shared_bytes_per_block == shared_bytes
    assert part.capability == capability


def test_an_architecture_without_a_row_is_answered_by_its_nearest_older_relative() -> None:
    assert part_of("cuda:87").target == "cuda:86"
    assert part_of("hip:gfx940").target == "hip:gfx90a"
    assert part_of("hip:gfx1150").target == "hip:gfx1100"
    with pytest.raises(KeyError, match="xpu"):
        part_of("xpu:1")


def test_the_table_needs_neither_triton_nor_torch() -> None:
    program = "import sys; import irscope.device.parts; sys.exit(bool({'torch', 'triton'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
