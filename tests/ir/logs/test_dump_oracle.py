"""Dumps against Triton: the names of its builders, and what the tap saw of the same compile."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.ir.locations.strip import strip_locations
from irscope.ir.logs.dump_mlir import builder_name
from irscope.model.capture import PassSnapshot


@pytest.mark.triton
def test_every_builder_has_its_name() -> None:
    from types import ModuleType

    from triton._C.libtriton import amd, ir, nvidia, passes

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    arguments = ((), (1,), (True,), (90,), ("gfx942",), (90, 80), (3, True), (True, 1), ("cuda:90", 4, 32, 1))
    arguments += (("gfx942", True), ("gfx942", 0, 1), ("gfx942", True, True, True), (True, True, True))

    def builders(group: ModuleType) -> list[tuple[str, object]]:
        found: list[tuple[str, object]] = []
        for name, value in vars(group).items():
            if isinstance(value, ModuleType):
                found += builders(value)
            elif callable(value) and not isinstance(value, type):
                found.append((name.removeprefix("add_"), value))
        return found

    checked = 0
    for name, builder in [each for group in (passes, nvidia.passes, amd.passes) for each in builders(group)]:
        for values in arguments:
            manager = ir.pass_manager(context)
            try:
                builder(manager, *values)  # type: ignore[operator]
            except Exception:
                continue
            match = re.fullmatch(r"any\((?:[\w.]+\()?([\w-]+)(?:\{.*\})?\)*", manager.get_pipeline_str())
            if match is not None:
                assert builder_name(match[1]) == name, match[1]
                checked += 1
            break
    assert checked > 80


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        "cuda:90",
        "hip:gfx942",
        *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("cuda:80", "cuda:100", "cuda:120")),
    ],
)
def test_the_dump_says_what_the_tap_saw(target: str) -> None:
    from irscope.cli.dump import captures_via_mlir_dump
    from irscope.model.recording_options import RecordingOptions
    from irscope.record.process.requests import request_for
    from irscope.record.process.session import record_request

    path = Path(__file__).parents[2] / "record" / "kernels" / "no_torch.py"
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64"
    asked = RecordingOptions(targets=(target,), signature=signature, snapshots="all", disassemble=False)
    tapped = record_request(request_for(path, asked, kernel="tile_product")).captures
    dumped = captures_via_mlir_dump(f"{path}::tile_product", replace(asked, snapshots="triton"))
    assert [capture.id for capture in dumped] == [capture.id for capture in tapped]
    for ours, theirs in zip(dumped, tapped, strict=True):
        mine = [each for each in ours.snapshots if each.argument]
        its = [each for each in theirs.snapshots if each.argument]
        assert [described(each) for each in mine] == [described(each) for each in its]
        for index, (one, other) in enumerate(zip(mine[:-1], its, strict=False)):
            text, expected = ours.text_before(mine[index + 1]), theirs.text_before(its[index + 1])
            assert text is not None
            assert expected is not None
            assert strip_locations(text, "mlir") == strip_locations(expected, "mlir"), one.label
            assert one.changed == other.changed, one.label
        assert mine[-1].text_left_out


def described(snapshot: PassSnapshot) -> tuple[str, str]:
    return snapshot.label, snapshot.argument
