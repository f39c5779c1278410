"""Targets as text: architectures, names of parts, and what is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import irscope
from irscope.device.parts import DEVICE_PARTS, DevicePart
from irscope.errors import TargetError
from irscope.model.capture import Capture
from irscope.target import KNOWN_TARGETS, PARTS, Target, nearest_targets

KERNELS = Path(__file__).parent / "record" / "kernels" / "no_torch.py"
AXPY = {"kernel": "axpy", "signature": "*fp32:16, *fp32:16, i32:16, fp32", "constexprs": {"BLOCK": 256}}


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
def test_the_text_of_a_target_is_read_back(target: Target) -> None:
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("sm_90", "cuda:90"), ("sm90", "cuda:90"), ("90", "cuda:90"), ("sm_90a", "cuda:90"), ("sm_100f", "cuda:100"),
        ("cuda:90a", "cuda:90"), ("cuda:sm_103a", "cuda:103"), ("gfx942", "hip:gfx942"), ("gfx90a", "hip:gfx90a"),
        ("h100", "cuda:90"), ("H200", "cuda:90"), ("a100", "cuda:80"), ("b200", "cuda:100"), ("rtx4090", "cuda:89"),
        ("l40s", "cuda:89"), ("RTX 4090", "cuda:89"), ("GeForce RTX 5090", "cuda:120"), ("rtx-6000-ada", "cuda:89"),
        ("A100-SXM4-80GB", "cuda:80"), ("gh200", "cuda:90"), ("mi300x", "hip:gfx942"), ("MI355X", "hip:gfx950"),
        ("Instinct MI250X", "hip:gfx90a"), ("RX 7900 XTX", "hip:gfx1100"), (" h100 ", "cuda:90"),
    ],
)  # fmt: skip
def test_names_of_parts_and_architectures(text: str, target: str) -> None:
    assert str(Target.parse(text)) == target


@pytest.mark.parametrize("part", DEVICE_PARTS.values(), ids=lambda part: part.target)
def test_the_parts_of_the_device_table_are_known_by_their_drivers_names(part: DevicePart) -> None:
    assert str(Target.parse(part.name)) == part.target


@pytest.mark.parametrize(
    "text", ["", "cuda", "cuda:", "cuda:9x", "sm_", "x100", "hip:90", "gfx", "cuda:sm", "h1000", "xpu:1"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(TargetError, match="is not a target"):
        Target.parse(text)


def test_a_mistyped_part_is_suggested() -> None:
    with pytest.raises(TargetError, match="Did you mean 'mi300x'"):
        Target.parse("mi30x")


def test_the_nearest_are_the_neighbours() -> None:
    assert [str(one) for one in nearest_targets(Target("cuda", "91", 32))] == ["cuda:90", "cuda:100"]
    assert [str(one) for one in nearest_targets(Target("cuda", "9000", 32))] == ["cuda:120"]
    assert [str(one) for one in nearest_targets(Target("hip", "gfx941", 64))] == ["hip:gfx90a", "hip:gfx942"]


def record_axpy(target: str) -> Capture:
    return irscope.record(KERNELS, target=target, snapshots="none", **AXPY)


@pytest.mark.triton
@pytest.mark.parametrize("text", ["cuda:91", "cuda:9000", "sm_99", "hip:gfx999", "gfx943"])
def test_an_architecture_that_is_none_never_reaches_the_compiler(text: str) -> None:
    with pytest.raises(TargetError, match=r"does not support\. The nearest: ") as error:
        record_axpy(text)
    for known in KNOWN_TARGETS:
        assert str(known) in str(error.value)


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("text", ["cuda:87", "sm_121", "hip:gfx1250", "gfx908", "orin"])
def test_one_that_the_installed_tools_know_is_taken_though_irscope_does_not_know_it(text: str) -> None:
    capture = record_axpy(text)
    assert capture.status == "ok"
    assert capture.target == Target.parse(text)


@pytest.mark.triton
@pytest.mark.newest
def test_ptxas_itself_agrees_on_every_number() -> None:
    """Its list is right: what is on it assembles an empty kernel, what is not does not."""
    from irscope.record.triton import api as triton_api
    from irscope.record.triton.identity import check_architecture

    ptx = ".version 8.8\n.target sm_{}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    for number in (*range(70, 130, 3), 86, 87, 89, 90, 91, 99, 101, 103, 110, 120, 121, 900):
        target = Target("cuda", str(number), 32)
        ptxas = triton_api.assembler(target)
        command = [str(ptxas), f"--gpu-name=sm_{number}", "-o", "/dev/null", "/dev/stdin"]
        done = subprocess.run(command, input=ptx.format(number), capture_output=True, text=True, check=False)
        refused = "not defined for option 'gpu-name'" in done.stderr
        try:
            check_architecture(target)
        except TargetError:
            assert refused, (number, done.stderr)
        else:
            assert not refused, (number, done.stderr)


def test_every_part_is_of_an_architecture() -> None:
    assert all(str(Target.parse(name)) == target == str(Target.parse(target)) for name, target in PARTS.items())
