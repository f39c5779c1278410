"""A capture as a page of text: everything that was recorded of it, in any width, with nothing cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.analysis.findings.model import Cause, Finding
from irscope.model.capture import Artifact, Capture, Environment, Failure, Kernel, Launch, Resources
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.render.capture import render_capture
from irscope.render.text.tables import display_width
from irscope.store.file import load, save
from irscope.target import Target

LONG = "a_kernel_with_a_name_that_nobody_wants_to_type_twice_fwd_inner"


@pytest.fixture
def capture() -> Capture:
    launch = Launch(
        Kernel(LONG, "/a/folder/of/kernels.py", 12),
        signature=(("x_ptr", "*fp16"), ("n", "i32"), ("BLOCK", "constexpr")),
        constants=(("BLOCK", "128"),),
        attributes=(("x_ptr", "tt.divisibility=16"),),
        options=(("maxnreg", None), ("num_stages", 3), ("num_warps", 8)),
        set_options=(("num_warps", 8),),
        grid=(7, 2, 1),
        record=LaunchRecord(
            (
                Argument("x_ptr", "tensor", "float16", shape=(640, 3), strides=(3, 1), alignment_bytes=512),
                Argument("n", "scalar", "int", value=640),
            )
        ),
    )
    return Capture(
        launch,
        Target("cuda", "90", 32),
        artifacts=(Artifact("source", "module {\n}\n"), Artifact("ttir", "module {\n}\n", 1500)),
        resources=Resources(registers=96, shared_bytes=0),
        environment=Environment(triton_version="3.9.0", command="irscope dump kernels.py", tools=(("ptxas", "13.1"),)),
        notes=("The first note.", "The first note.", "The second."),
        compile_us=2500,
    )


def test_everything_stands_on_the_page(capture: Capture) -> None:
    text = render_capture(capture, ())
    rows = [line.split() for line in text.splitlines()]
    assert text.startswith(f"{capture.id}  {LONG}  cuda:90\n")
    for row in (
        ["kernel", "/a/folder/of/kernels.py:12"],
        ["grid", "7×2×1"],
        ["x_ptr", "*fp16:16", *["float16", "[640,", "3],", "strides", "3,", "1,", "aligned", "to", "512", "bytes"]],
        ["n", "i32", "640"],
        ["BLOCK", "128"],
        ["set", "by", "the", "script", "num_warps=8"],
        ["others", "maxnreg=None", "num_stages=3"],
        ["registers", "96"],
        ["ttir", "1.50", "2", "lines"],
        ["all", "2.50"],
        ["Triton", "3.9.0"],
        ["command", "irscope", "dump", "kernels.py"],
        ["ptxas", "13.1"],
    ):
        assert row in rows, row
    assert text.count("The first note.") == 1
    assert "Findings" not in text


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_it_fits_and_cuts_nothing(capture: Capture, width: int) -> None:
    finding = Finding(
        "IRS501",
        "",
        0,
        (),
        (),
        (("/k.py", 3),),
        "spills a lot " * 9,
        "8 bytes",
        8,
        (Cause("because " * 20, "ir", ""),),
        (),
    )
    failed = replace(capture, status="failed", failure=Failure("fit", "needs more than there is " * 9))
    whole, text = render_capture(failed, (finding,)), render_capture(failed, (finding,), width=width)
    assert sorted(text.split()) == sorted(whole.split())
    assert all(display_width(line) <= max(width, 2 + len(LONG) + 16 + 12) for line in text.splitlines())
    order = [text.index(title) for title in ("The compile", "Findings", "Launch", "Options", "Resources", "Notes")]
    assert order == sorted(order)


def test_show_prints_the_page_of_one_capture(
    capture: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = save(capture, tmp_path / "one.irscope")
    assert run(["show", str(one)]) == 0
    assert capsys.readouterr() == (render_capture(load(one), ()), "")
    two = save(replace(capture, target=Target("cuda", "80", 32)), tmp_path / "two.irscope")
    assert run(["show", str(one), str(two)]) == 0
    assert "occupancy" in capsys.readouterr().out.splitlines()[0]
