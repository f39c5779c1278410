"""Occupancy: against NVIDIA's own calculator, LLVM's comments, and the table of parts."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS, excesses_of, occupancy, occupancy_of, with_fit
from irscope.device.parts import DEVICE_PARTS
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources, Target
from irscope.target import KNOWN_TARGETS

DATA = Path(__file__).parents[1] / "data" / "asm"
UNLIMITED = 2**31 - 1
VENDOR_ROWS = [
    tuple(int(word) for word in line.replace(":", "").split())
    for line in (DATA / "cuda_occupancy.txt").read_text().splitlines()
    if not line.startswith("#")
]
LLVM_ROWS = json.loads((DATA / "llvm_occupancy.json").read_text())


@pytest.mark.parametrize("arch", sorted({row[0] for row in VENDOR_ROWS}))
def test_cuda_occupancy_is_the_toolkit_s(arch: int) -> None:
    rows = [row for row in VENDOR_ROWS if row[0] == arch]
    assert len(rows) == 24
    for row in rows:
        _, registers, warps, shared, barriers, blocks, *limits = row
        resources = Resources(registers=registers, shared_bytes=shared, barriers=barriers)
        found = occupancy(resources, Target("cuda", str(arch), 32), warps)
        assert found is not None
        causes = dict(found.limits)
        names = ("registers", "shared memory", "warps", "CTAs", "barriers")
        assert (found.ctas_per_sm, [causes.get(name, UNLIMITED) for name in names]) == (blocks, limits), row
        assert found.limited_by == tuple(name for name, allowed in found.limits if allowed == blocks)


@pytest.mark.parametrize("row", LLVM_ROWS, ids=lambda row: f"{row['arch']}-{row['NumVgprs']}-{row['NumAgprs']}")
def test_hip_waves_are_llvm_s(row: dict[str, int]) -> None:
    resources = Resources(
        registers=row["NumVgprs"], accumulator_registers=row["NumAgprs"], scalar_registers=row["TotalNumSgprs"]
    )
    limits = HIP_LIMITS[str(row["arch"])]
    alone = occupancy(resources, Target("hip", str(row["arch"]), 64), 1)
    assert alone is not None
    assert alone.warps_per_sm // limits.simds == row["Occupancy"]
    found = occupancy(resources, Target("hip", str(row["arch"]), 64), row["warps"])
    assert found is not None
    assert found.warps_per_sm <= row["Occupancy"] * limits.simds
    assert found.warps_per_sm > row["Occupancy"] * limits.simds - row["warps"]


def test_scalar_registers_limit_cdna_but_not_rdna() -> None:
    """LLVM: with more than 100 SGPRs a SIMD of gfx9 holds seven waves."""
    resources = Resources(registers=24, scalar_registers=102)
    for arch, waves in (("gfx942", 7), ("gfx1100", 16)):
        found = occupancy(resources, Target("hip", arch, 64), 1)
        assert found is not None
        assert found.warps_per_sm == waves * HIP_LIMITS[arch].simds


@pytest.mark.parametrize(
    ("arch", "shared_bytes", "blocks"),
    [
        ("gfx942", 32768, 2),
        ("gfx942", 32769, 1),
        ("gfx942", 65537, 0),
        ("gfx942", 513, 8),
        ("gfx950", 80 << 10, 2),
        ("gfx950", 54000, 2),
        ("gfx1100", 65536, 2),
        ("gfx1201", 32768, 4),
    ],
)
def test_lds_limits_work_groups(arch: str, shared_bytes: int, blocks: int) -> None:
    found = occupancy(Resources(registers=32, shared_bytes=shared_bytes), Target("hip", arch, 64), 4)
    assert found is not None
    assert found.ctas_per_sm == min(blocks, found.max_warps // 4)
    assert (found.ctas_per_sm > 0) == bool(blocks)


def test_what_limits_is_named() -> None:
    found = occupancy(Resources(registers=168, shared_bytes=100 << 10, barriers=1), Target("cuda", "90", 32), 4)
    assert found is not None
    assert (found.ctas_per_sm, found.limited_by, found.fraction, found.unit) == (2, ("shared memory",), 0.125, "SM")
    found = occupancy(Resources(registers=16), Target("hip", "gfx942", 64), 4)
    assert found is not None
    assert (found.limited_by, found.fraction) == (("warps",), 1.0), "registers that allow more do not limit"


def test_tensor_memory_limits_blackwell() -> None:
    resources = Resources(registers=32, tensor_memory_columns=256)
    found = occupancy(resources, Target("cuda", "100", 32), 4)
    assert found is not None
    assert (found.ctas_per_sm, found.limited_by) == (2, ("tensor memory",))
    hopper = occupancy(resources, Target("cuda", "90", 32), 4)
    assert hopper is not None
    assert "tensor memory" not in dict(hopper.limits)


@pytest.mark.parametrize("target", ["cuda:52", "hip:gfx803", "vulkan:1"])
def test_an_unknown_architecture_has_no_answer(target: str) -> None:
    backend, _, arch = target.partition(":")
    assert occupancy(Resources(registers=32), Target(backend, arch, 32), 4) is None
    assert occupancy(Resources(), Target("cuda", "90", 32), 4) is None


DATA_SHEETS = {
    "cuda:75": (32, 64, 64, 64),
    "cuda:80": (64, 64, 164, 163),
    "cuda:86": (48, 64, 100, 99),
    "cuda:89": (48, 64, 100, 99),
    "cuda:90": (64, 64, 228, 227),
    "cuda:100": (64, 64, 228, 227),
    "cuda:103": (64, 64, 228, 227),
    "cuda:120": (48, 64, 100, 99),
    "hip:gfx90a": (32, 128, 64, 64),
    "hip:gfx942": (32, 128, 64, 64),
    "hip:gfx950": (32, 128, 160, 160),
    "hip:gfx1100": (32, 96, 64, 64),
    "hip:gfx1201": (32, 96, 64, 64),
}
"""Target → warps, Ki registers, KiB of shared memory of a multiprocessor, KiB a block may have: from the vendors'
guides, written down apart from the tables of limits."""


def test_every_part_has_what_its_data_sheet_says() -> None:
    assert DATA_SHEETS.keys() == DEVICE_PARTS.keys() >= {str(target) for target in KNOWN_TARGETS}
    for target, numbers in DATA_SHEETS.items():
        part = DEVICE_PARTS[target]
        kibi = (part.registers_per_multiprocessor, part.shared_bytes_per_multiprocessor, part.shared_bytes_per_block)
        assert (part.warps_per_multiprocessor, *(number / 1024 for number in kibi)) == numbers, target


@given(
    st.sampled_from(KNOWN_TARGETS),
    st.integers(1, 255),
    st.integers(1, 16),
    st.integers(0, 64 << 10),
    st.integers(0, 32),
)
def test_more_resources_never_raise_occupancy(
    target: Target, registers: int, warps: int, shared: int, more: int
) -> None:
    less = occupancy(Resources(registers=registers, shared_bytes=shared), target, warps)
    higher = occupancy(Resources(registers=registers + more, shared_bytes=shared + 100 * more), target, warps)
    assert less is not None
    assert higher is not None
    assert higher.ctas_per_sm <= less.ctas_per_sm
    assert 0 <= higher.fraction <= less.fraction <= 1
    assert less.ctas_per_sm == min(allowed for _, allowed in less.limits)


def compiled(target: str, warps: int = 4, ctas: int = 1, **resources: int) -> Capture:
    backend, _, arch = target.partition(":")
    warp_size = DEVICE_PARTS[target].warp_size if target in DEVICE_PARTS else 32
    return Capture(
        Launch(Kernel("k")),
        Target(backend, arch, warp_size),
        artifacts=(Artifact("cubin" if backend == "cuda" else "hsaco", b"\x7fELF"),),
        resources=Resources(**{"registers": 32, **resources}),
        metadata=(("num_ctas", ctas), ("num_warps", warps)),
    )


def test_the_limit_of_shared_memory_is_the_parts() -> None:
    """The table of parts has the vendor's limit; one byte more does not fit."""
    for name, part in DEVICE_PARTS.items():
        arch = name.partition(":")[2]
        if arch not in CUDA_LIMITS and arch not in HIP_LIMITS:
            continue
        most = part.shared_bytes_per_block
        assert excesses_of(compiled(name, shared_bytes=most)) == ()
        (excess,) = excesses_of(compiled(name, shared_bytes=most + 1))
        assert (excess.resource, excess.needed, excess.limit) == ("shared memory", most + 1, most)
        warps = part.threads_per_block // part.warp_size
        assert excesses_of(compiled(name, warps=warps)) == ()
        (excess,) = excesses_of(compiled(name, warps=2 * warps))
        assert (excess.resource, excess.needed, excess.limit) == (
            "threads",
            2 * part.threads_per_block,
            part.threads_per_block,
        )


def test_what_fits_is_what_has_an_occupancy() -> None:
    archs = [f"cuda:{arch}" for arch in CUDA_LIMITS] + [f"hip:{arch}" for arch in HIP_LIMITS]
    sizes = product(archs, (1, 4, 8, 16, 32), (16, 128, 255), (0, 48 << 10, 100 << 10, 1 << 20))
    for target, warps, registers, shared in sizes:
        capture = compiled(target, warps, registers=registers, shared_bytes=shared)
        found = occupancy_of(capture)
        assert found is not None
        excesses = excesses_of(capture)
        assert (found.ctas_per_sm > 0) == (not excesses)
        assert all(excess.needed > excess.limit for excess in excesses), excesses


def test_tensor_memory_and_clusters() -> None:
    (excess,) = excesses_of(compiled("cuda:100", tensor_memory_columns=1024))
    assert str(excess) == "tensor memory: 1024 columns per CTA needed, 512 available on cuda:100: limit exceeded by 512"
    assert excesses_of(compiled("cuda:90", ctas=16)) == ()
    (excess,) = excesses_of(compiled("cuda:90", ctas=32))
    assert (excess.resource, excess.needed, excess.limit) == ("cluster", 32, 16)


def test_only_what_has_a_binary_is_judged() -> None:
    capture = compiled("cuda:90", shared_bytes=1 << 20)
    failed = with_fit(capture)
    assert (failed.status, failed.artifacts) == ("failed", capture.artifacts)
    assert failed.failure is not None
    assert failed.failure.kind == "fit"
    assert with_fit(failed) is failed
    assert with_fit(capture.with_(artifacts=())).status == "ok"
    unknown = compiled("cuda:90").with_(target=Target("cuda", "999", 32))
    assert with_fit(unknown).status == "ok"
