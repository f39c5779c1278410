"""The table of the real parts, against the limits of their architectures."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irscope.device.parts import DEVICE_PARTS, PEAKS, DevicePart, Peaks, Unit, part_of, peaks_of_device, peaks_of_target
from irscope.target import KNOWN_TARGETS, Target, part_named


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_known_target_has_a_part(target: Target) -> None:
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


MATRIX = {
    "cuda:75": {"f16": 1024, "i8": 2048},
    "cuda:80": {"f16": 2048, "f16 into f16": 2048, "bf16": 2048, "tf32": 1024, "f64": 128, "i8": 4096},
    "cuda:86": {"f16": 512, "f16 into f16": 1024, "bf16": 512, "tf32": 256, "i8": 2048},
    "cuda:89": {
        "f16": 512, "f16 into f16": 1024, "bf16": 512, "tf32": 256, "f8": 1024, "f8 into f16": 2048, "i8": 2048,
    },
    "cuda:90": {
        "f16": 4096, "f16 into f16": 4096, "bf16": 4096, "tf32": 2048, "f64": 256, "f8": 8192, "i8": 8192,
    },
    "cuda:120": {
        "f16": 512, "f16 into f16": 1024, "bf16": 512, "tf32": 256, "f8": 1024, "f8 into f16": 2048, "i8": 2048,
        "f4": 4096,
    },
    "hip:gfx90a": {"f16": 1024, "bf16": 1024, "f32": 256, "f64": 256, "i8": 1024},
    "hip:gfx942": {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 256, "f64": 256, "f8": 4096, "i8": 4096},
    "hip:gfx950": {
        "f16": 4096, "bf16": 4096, "f32": 256, "f64": 128, "f8": 8192, "f6": 16384, "f4": 16384, "i8": 8192,
    },
    "hip:gfx1100": {"f16": 512, "bf16": 512},
    "hip:gfx1201": {"f16": 1024, "bf16": 1024, "f8": 2048, "i8": 2048},
}  # fmt: skip
"""Target → operations per clock of the tensor or matrix cores of one SM or CU, from the white papers' tables."""
DATA_CENTRE_ADA = {"f16": 1024, "bf16": 1024, "tf32": 512, "f8": 2048, "i8": 2048}
"""The L4's: twice what GeForce cards of its architecture do with float32 sums."""
VECTOR = {
    "cuda:75": {"f32": 128},
    "cuda:80": {"f32": 128, "f64": 64, "f16": 512, "bf16": 256},
    "cuda:86": dict.fromkeys(("f32", "f16", "bf16"), 256),
    "cuda:89": dict.fromkeys(("f32", "f16", "bf16"), 256),
    "cuda:90": {"f32": 256, "f64": 128, "f16": 512, "bf16": 512},
    "cuda:120": dict.fromkeys(("f32", "f16", "bf16"), 256),
    "hip:gfx90a": {"f32": 128, "f64": 128},
    "hip:gfx942": {"f32": 256, "f64": 128},
    "hip:gfx950": {"f32": 256, "f64": 128},
    "hip:gfx1100": {"f32": 256, "f16": 512},
    "hip:gfx1201": {"f32": 256, "f16": 512},
}
BUS_GBPS = {"t4": 256 / 8 * 10, "rtx3090": 384 / 8 * 19.5, "rtx4090": 384 / 8 * 21, "rtx5090": 512 / 8 * 28,
            "rx7900xtx": 384 / 8 * 20, "rx9070xt": 256 / 8 * 20, "mi250x": 4096 / 8 * 3.2, "mi300x": 8192 / 8 * 5.2,
            "mi325x": 8192 / 8 * 6, "mi355x": 8192 / 8 * 8, "h100": 5120 / 8 * 5.238}  # fmt: skip
"""Part → GB/s of the width of its bus and the rate of a pin."""
NO_CLOCK = ("b200", "b300")
"""Their data sheets give figures of eight GPUs, and no clock."""


def per_clock(row: Peaks, unit: Unit) -> int:
    table = (
        (DATA_CENTRE_ADA if row.part == "l4" else MATRIX[row.target]) if unit.kind == "matrix" else VECTOR[row.target]
    )
    return 16 if unit.kind == "special" else table[unit.dtype]


@pytest.mark.parametrize("row", [one for one in PEAKS.values() if one.part not in NO_CLOCK], ids=lambda row: row.part)
def test_rates_are_units_times_operations_times_clock(row: Peaks) -> None:
    for unit, rate in row.rates.items():
        # The whitepapers give the tensor cores of float64 at the clock of the others.
        matrix_clock = unit.kind == "matrix" and not (unit.dtype == "f64" and row.target == "cuda:90")
        clock = row.clocks_mhz[0 if matrix_clock else 1]
        assert clock is not None
        assert rate == pytest.approx(row.units * per_clock(row, unit) * clock * 1e6, rel=0.01), unit


@pytest.mark.parametrize("part", NO_CLOCK)
def test_rates_without_a_clock_keep_their_ratios(part: str) -> None:
    rates = {unit.dtype: rate for unit, rate in PEAKS[part].rates.items() if unit.kind == "matrix"}
    assert rates["f8"] == rates["f6"] == 2 * rates["f16"] == 2 * rates["bf16"] == 4 * rates["tf32"]
    clock_mhz = rates["f16"] / (PEAKS[part].units * 8192) / 1e6
    assert 1700 < clock_mhz < 2000


@pytest.mark.parametrize("part", BUS_GBPS)
def test_bandwidth_is_bus_times_pins(part: str) -> None:
    # AMD rounds 6.14 and 8.19 TB/s down.
    assert PEAKS[part].bytes_per_s == pytest.approx(BUS_GBPS[part] * 1e9, rel=0.025)


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_every_target_has_a_part_and_agrees_with_the_device_table(target: Target) -> None:
    first, *_ = peaks_of_target(target)
    device = DEVICE_PARTS[str(target)]
    assert first.units == device.multiprocessor_count
    pins = 2 * device.memory_clock_khz * 1000 * device.memory_bus_bits / 8
    assert first.bytes_per_s == pytest.approx(pins, rel=0.03)


@pytest.mark.parametrize("row", PEAKS.values(), ids=lambda row: row.part)
def test_parts_are_named_as_targets_are(row: Peaks) -> None:
    named = part_named(row.part.replace("-", " "))
    assert str(named) == row.target
    assert row.source


@pytest.mark.parametrize(
    ("name", "target", "part"),
    [
        ("NVIDIA H100 80GB HBM3", "cuda:90", "h100"),
        ("NVIDIA H100 PCIe", "cuda:90", "h100-pcie"),
        ("NVIDIA H200", "cuda:90", "h200"),
        ("NVIDIA A100-SXM4-40GB", "cuda:80", "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", "cuda:80", "a100"),
        ("NVIDIA GeForce RTX 4090", "cuda:89", "rtx4090"),
        ("AMD Instinct MI300X", "hip:gfx942", "mi300x"),
        ("NVIDIA GH200 480GB", "cuda:90", None),
        ("NVIDIA H20", "cuda:90", None),
    ],
)
def test_the_part_of_a_device(name: str, target: str, part: str | None) -> None:
    found = peaks_of_device(name, Target.parse(target))
    assert (found.part if found is not None else None) == part


def test_a_rate_that_no_document_gives_is_none() -> None:
    assert PEAKS["b200"].rate(Unit("special", "f32")) is None
    assert PEAKS["t4"].rate(Unit("vector", "f64")) is None
    # One row for both, unless there is one of its own.
    assert PEAKS["b200"].rate(Unit("matrix", "f16 into f16")) == PEAKS["b200"].rate(Unit("matrix", "f16"))
    assert PEAKS["rtx4090"].rate(Unit("matrix", "f16 into f16")) != PEAKS["rtx4090"].rate(Unit("matrix", "f16"))
