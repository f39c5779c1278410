"""Programs that expect a GPU, run on the virtual one, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.once import kept

pytest.importorskip("triton", reason="the virtual GPU compiles with Triton, which is not installed")
pytestmark = pytest.mark.triton

SCRIPTS = Path(__file__).parents[1] / "scripts"
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="the program imports torch, which is not installed")
TIMEOUT_S = 300
Ran = Callable[..., dict[str, Any]]

JOBS = (
    ("cuda:90", "vector_add.py", "first"),
    ("cuda:90", "autograd.py", "first"),
    ("cuda:90", "autotuned.py", "first"),
    ("cuda:90", "autotuned.py", "all"),
    ("cuda:90", "reads.py", "first"),
    ("cuda:90", "devices.py", "first"),
    ("cuda:90", "streams.py", "first"),
    ("cuda:90", "custom_ops.py", "first"),
    ("cuda:80", "capability.py", "first"),
    ("cuda:100", "capability.py", "first"),
    ("hip:gfx942", "capability.py", "first"),
    ("hip:gfx1100", "capability.py", "first"),
    ("cuda:90", "gluon_copy.py", "first"),
    ("hip:gfx942", "gluon_copy.py", "first"),
    ("cuda:90", "descriptors.py", "first"),
    ("hip:gfx942", "descriptors.py", "first"),
    ("hip:gfx942", "addresses.py", "first"),
    ("cuda:90", "refused.py", "first"),
    ("cuda:90", "programs.py", "first"),
    ("cuda:90", "wrappers.py", "first"),
)
"""Target, program, autotuning policy. One process runs them all: torch takes longer to import than any of them to run,
and a virtual GPU that left something behind would trip up the next."""


def run_jobs(folder: Path, *jobs: tuple[str, str, str]) -> list[dict[str, Any]]:
    """What each of the programs printed, launched and timed."""
    results = folder / "results.jsonl"
    arguments = [word for target, script, policy in jobs for word in (target, str(SCRIPTS / script), policy)]
    environment = {**os.environ, "IRSCOPE_TEST_RESULTS": str(results), "TRITON_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "on_virtual_gpu.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in results.read_text().splitlines()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Gives the result of one of the JOBS, which must have run through."""
    made = kept("programs on the virtual GPU", lambda: run_jobs(tmp_path_factory.mktemp("virtual"), *JOBS))
    results = dict(zip(JOBS, made, strict=True))

    def result_of(target: str, script: str, policy: str = "first") -> dict[str, Any]:
        result = results[target, script, policy]
        assert not result["error"], result["error"]
        return result

    return result_of


def kernels_of(result: dict[str, Any]) -> list[str]:
    return [launch["kernel"] for launch in result["launches"]]


def timed_of(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Kernel, number of the tuning, configurations kept by pruning, index, whether the part has the resources."""
    return [(row["kernel"], row["tuning"], row["kept"], row["index"], row["fits"]) for row in result["timed"]]


COPIES = (("copy_kernel", 2, 3, 0, True), ("copy_kernel", 3, 3, 0, True))


@NEEDS_TORCH
def test_a_program_that_checks_itself_passes(ran: Ran) -> None:
    result = ran("cuda:90", "vector_add.py")
    whole, views = result["launches"]
    assert whole["grid"] == [97, 1, 1]
    assert whole["arch"] == "90"
    assert "the largest difference is 0.0" in result["stdout"]
    # Pointers are specialised by their addresses: x[1:] is off by 4 bytes, y[4:] by 16.
    assert [index in whole["attributes"] for index in "012"] == [True, True, True]
    assert [index in views["attributes"] for index in "012"] == [False, True, True]


@NEEDS_TORCH
def test_on_amd_small_storages_are_known_to_be_small(ran: Ran) -> None:
    result = ran("hip:gfx942", "addresses.py")
    first, odd, even, large = (launch["attributes"].get("0", []) for launch in result["launches"])
    assert first == [["tt.divisibility", 16], ["tt.pointer_range", 32]]
    assert odd == [["tt.pointer_range", 32]]
    assert even == first
    assert large == [["tt.divisibility", 16]]


@NEEDS_TORCH
def test_modules_custom_functions_optimizers_and_mixed_precision(ran: Ran) -> None:
    kernels = kernels_of(ran("cuda:90", "autograd.py"))
    assert kernels.count("scale_backward_kernel") == 5
    assert kernels.count("scale_kernel") == 7


@NEEDS_TORCH
def test_one_configuration_is_compiled_unless_asked(ran: Ran) -> None:
    result = ran("cuda:90", "autotuned.py")
    # The first is pruned by the script, the second needs more shared memory than the part has.
    assert timed_of(result) == [("square_kernel", 1, 3, 1, False), ("square_kernel", 1, 3, 2, True), *COPIES]
    assert "BLOCK: 32, num_warps: 2" in result["stdout"]
    assert kernels_of(result).count("square_kernel") == 2
    assert result["launches"][0]["step"] == [2, 4]


@NEEDS_TORCH
def test_all_configurations_are_compiled_when_asked(ran: Ran) -> None:
    result = ran("cuda:90", "autotuned.py", "all")
    square = [("square_kernel", 1, 3, index, fits) for index, fits in ((1, False), (2, True), (3, True))]
    assert timed_of(result) == square + [
        ("copy_kernel", tuning, 3, index, True) for tuning in (2, 3) for index in range(3)
    ]
    assert [launch["step"][0] for launch in result["launches"][:3]] == [2, 3, 2]


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("target", "kernel", "name"),
    [
        ("cuda:80", "old_kernel", "NVIDIA A100-SXM4-80GB"),
        ("cuda:100", "new_kernel", "NVIDIA B200"),
        ("hip:gfx942", "new_kernel", "AMD Instinct MI300X"),
        ("hip:gfx1100", "old_kernel", "AMD Radeon RX 7900 XTX"),
    ],
)
def test_a_program_that_asks_the_device_takes_its_branch(ran: Ran, target: str, kernel: str, name: str) -> None:
    result = ran(target, "capability.py")
    assert kernels_of(result) == [kernel]
    assert json.loads(result["stdout"])["name"] == name


@NEEDS_TORCH
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_gluon(ran: Ran, target: str) -> None:
    assert kernels_of(ran(target, "gluon_copy.py")) == ["copy_kernel"]


@NEEDS_TORCH
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_tensor_descriptors(ran: Ran, target: str) -> None:
    assert kernels_of(ran(target, "descriptors.py")) == ["host_kernel", "device_kernel"]


@NEEDS_TORCH
def test_streams_events_graphs_and_threads(ran: Ran) -> None:
    grids = [launch["grid"][0] for launch in ran("cuda:90", "streams.py")["launches"]]
    assert grids == [1, 2, 3, 4, 5, 5]


@NEEDS_TORCH
def test_what_the_launcher_refuses(ran: Ran) -> None:
    # What was refused was not launched: three with pinned memory, an empty tensor, two pointers, a large grid.
    assert kernels_of(ran("cuda:90", "refused.py")) == ["copy_kernel"] * 4 + ["first_of_two_kernel", "copy_kernel"]


@pytest.mark.parametrize("backend", ["nvidia", "amd"])
def test_a_refusal_is_in_the_words_of_the_installed_launcher(backend: str) -> None:
    from irscope.record.triton.driver import refusal_of

    folder = Path(str(import_module(f"triton.backends.{backend}").__file__)).parent
    text = "".join(path.read_text() for path in (folder / "driver.py", folder / "driver.c") if path.exists())
    # Adjacent literals of C are one.
    assert refusal_of(backend) in re.sub(r'"\s*"', "", text)


@NEEDS_TORCH
def test_generators_profiles_graphs_and_mappings_of_choices(ran: Ran) -> None:
    result = ran("cuda:90", "programs.py")
    assert kernels_of(result).count("scale_kernel") == len(kernels_of(result))
    # Two launches of the tuned kernel; one under the profiler; three of benchmarks; two around a graph.
    assert [launch["grid"][0] for launch in result["launches"]] == [1, 1, 1, 2, 2, 2, 3, 3]


@NEEDS_TORCH
def test_the_operators_of_a_library(ran: Ran) -> None:
    grids = [launch["grid"][0] for launch in ran("cuda:90", "custom_ops.py")["launches"]]
    assert grids == [1, 1, 2, 1]


@NEEDS_TORCH
def test_tensors_that_wrap_others(ran: Ran) -> None:
    launches = ran("cuda:90", "wrappers.py")["launches"]
    assert {(launch["kernel"], launch["grid"][0]) for launch in launches} == {("dequantise", 32)}
    assert len(launches) == 6


@NEEDS_TORCH
@pytest.mark.exhaustive
def test_the_kernels_that_torch_compile_writes(tmp_path: Path) -> None:
    """tests/record/programs/test_launch_watch_graph_watch.py records others, and says more of them."""
    (result,) = run_jobs(tmp_path, ("cuda:90", "compiled.py", "first"))
    assert not result["error"], result["error"]
    names = kernels_of(result)
    assert any("gelu" in name for name in names)
    assert any("layer_norm" in name for name in names)


@NEEDS_TORCH
@pytest.mark.parametrize("script", ["reads.py", "devices.py"])
def test_torch_alone(ran: Ran, script: str) -> None:
    ran("cuda:90", script)


def test_a_program_without_torch(tmp_path: Path) -> None:
    result = run_jobs(tmp_path, ("cuda:90", "without_torch.py", "first"))[0]
    assert not result["error"], result["error"]
    assert [launch["grid"] for launch in result["launches"]] == [[3, 2, 1], [5, 1, 1], [6, 1, 1]]
    assert ["0" in launch["attributes"] for launch in result["launches"]] == [True, False, True]


def test_nothing_is_left_behind() -> None:
    assert run_script("restored.py", 0).stdout.strip() == "restored"


@pytest.mark.newest
@pytest.mark.parametrize(("ending", "returncode"), [("fall_off", 0), ("exit", 3)])
def test_the_interpreter_may_end_within(ending: str, returncode: int) -> None:
    assert "Exception ignored" not in run_script("ends_within.py", returncode, ending).stderr


def run_script(script: str, returncode: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == returncode, done.stderr
    return done
