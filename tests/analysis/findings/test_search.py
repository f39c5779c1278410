"""The search of options and tiles by predicted time, and the grid of other tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from irscope.analysis.findings.model import FixChange
from irscope.analysis.findings.search import Changes, Searched, grid_with, search
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.target import Target

SOURCE = """
def product(a, b, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(axis=1)
    i = pid_m * BM + tl.arange(0, BM)
    j = pid_n * BN + tl.arange(0, BN)
    for k in range(0, M, BK):
        pass
"""
GROUPED = """
def product(a, M, N, BM: tl.constexpr, BN: tl.constexpr, OTHER: tl.constexpr):
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    row = tl.program_id(0) // columns
"""


def capture(source: str, grid: tuple[int, int, int], **constants: int) -> Capture:
    arguments = tuple(Argument(name, "scalar", value=value) for name, value in (("M", 1000), ("N", 512)))
    launch = Launch(
        Kernel("product", source=source),
        constants=tuple((name, str(value)) for name, value in constants.items()),
        options=(("num_warps", 4), ("num_stages", 3)),
        grid=grid,
        record=LaunchRecord(arguments=arguments),
    )
    return Capture(launch=launch, target=Target.parse("cuda:90"), artifacts=(Artifact("ttir", "scf.for"),))


OF_AXES = capture(SOURCE, (32, 16, 1), BM=32, BN=32, BK=32)
OF_ONE_AXIS = capture(GROUPED, (32 * 16, 1, 1), BM=32, BN=32, OTHER=64)


def test_the_grid_follows_the_tiles_that_the_kernel_multiplies_its_program_ids_by() -> None:
    assert grid_with(OF_AXES.launch, {"BM": "64"}) == (16, 16, 1)
    assert grid_with(OF_AXES.launch, {"BN": "128", "BK": "64"}) == (32, 4, 1)


def test_the_grid_of_one_axis_is_the_product_of_its_rounded_quotients() -> None:
    assert grid_with(OF_ONE_AXIS.launch, {"BM": "128"}) == (8 * 16, 1, 1)
    assert grid_with(OF_ONE_AXIS.launch, {"BM": "128", "BN": "64"}) == (8 * 8, 1, 1)
    assert grid_with(replace(OF_ONE_AXIS.launch, grid=(7, 1, 1)), {"BM": "64"}) is None


@pytest.mark.parametrize("constants", [{"OTHER": "128"}, {"GROUP": "4"}])
def test_the_grid_of_a_constant_that_is_no_tile_is_not_known(constants: dict[str, str]) -> None:
    assert grid_with(OF_ONE_AXIS.launch, constants) is None


def searched(most: int, *, with_tiles: bool = True) -> tuple[Searched, list[Changes]]:
    """A search where 128 × 128 × 64 with 8 warps is the fastest, and a tile of 256 does not compile."""
    asked: list[Changes] = []
    best = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}

    def compiled(wanted: Sequence[Changes]) -> Mapping[Changes, Capture]:
        asked.extend(wanted)
        made: dict[Changes, Capture] = {}
        for changes in wanted:
            if all(one.value != 256 for one in changes):
                options = tuple((one.name, one.value) for one in changes)
                made[changes] = replace(OF_AXES, launch=replace(OF_AXES.launch, options=options))
        return made

    def predicted(one: Capture) -> float:
        values = dict.fromkeys(("BM", "BN", "BK"), 32) | {"num_warps": 4, "num_stages": 3}
        values |= dict(one.launch.options)
        return 1.0 + sum(max(values[name], each) / min(values[name], each) for name, each in best.items())

    return search(OF_AXES, compiled, predicted, 20.0, most, with_tiles=with_tiles, begun={}), asked


def test_a_search_ends_where_no_step_gains() -> None:
    found, asked = searched(64)
    assert {one.name: one.value for one in found.changes} == {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8}
    assert {one.kind for one in found.changes if one.name != "num_warps"} == {"constant"}
    assert found.is_complete
    assert found.compiles == len(asked) == len(set(asked))
    assert "until nothing was gained" in found.text


def test_a_search_ends_with_its_compiles() -> None:
    found, asked = searched(3)
    assert (found.compiles, len(asked), found.is_complete) == (3, 3, False)
    assert found.changes
    assert "--tries" in found.text


def test_from_a_configuration_that_spills_no_step_has_more_elements_per_thread() -> None:
    spilling = replace(OF_AXES, resources=Resources(registers=255, spill_store_bytes=64))
    asked: list[Changes] = []

    def compiled(wanted: Sequence[Changes]) -> Mapping[Changes, Capture]:
        asked.extend(wanted)
        return dict.fromkeys(wanted, OF_AXES)

    search(spilling, compiled, lambda _: 30.0, 20.0, 64, with_tiles=True, begun={})
    values = [(one.name, one.value) for changes in asked for one in changes]
    assert {("num_warps", 8), ("BM", 16), ("num_stages", 4)} <= {*values}
    assert not {("num_warps", 2), ("BM", 64), ("BN", 64), ("BK", 64)} & {*values}


def test_a_search_begins_at_the_fastest_options_that_are_known() -> None:
    asked: list[Changes] = []

    def compiled(wanted: Sequence[Changes]) -> Mapping[Changes, Capture]:
        asked.extend(wanted)
        return dict.fromkeys(wanted, OF_AXES)

    fast = (FixChange("option", "num_warps", 16),)
    begun: dict[Changes, tuple[float, Capture]] = {fast: (10.0, OF_AXES), (FixChange("hint", "M", 16),): (5.0, OF_AXES)}
    found = search(OF_AXES, compiled, lambda _: 12.0, 20.0, 64, with_tiles=False, begun=begun)
    assert (found.changes, found.seconds) == (fast, 10.0)
    assert fast not in asked
    assert all(one[0].value in (8, 16, 32) for one in asked)


def test_without_the_python_only_options_are_searched() -> None:
    found, _ = searched(64, with_tiles=False)
    assert found.changes == (FixChange("option", "num_warps", 8),)
