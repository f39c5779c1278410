"""The examples' kernels, run on NumPy: against what they compute, and after every pass against the IR before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irscope.errors import NotRun, UsageError, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.captured import captured_inputs, run_capture, run_text, text_at
from irscope.machine.launch import Pointer, run
from tests.machine.recorded import REFERENCES, recorded, relative_error, small_examples
from tests.marks import newest_but

pytest.importorskip("torch", reason="the examples are recorded with tensors of torch")
pytestmark = pytest.mark.triton
MORE = Path(__file__).with_name("more_kernels.py")
WARPS = Path(__file__).parents[1] / "analysis" / "kernels" / "specialized.py"
TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")


@pytest.mark.parametrize("kernel", REFERENCES)
@pytest.mark.parametrize("target", newest_but(["cuda:90"], *TARGETS, rare={*TARGETS} - {"cuda:90"}))
def test_every_pass_leaves_what_the_kernel_computes(target, kernel):
    capture = small_examples(target)[kernel]
    name, reference, tolerance = REFERENCES[kernel]
    inputs = captured_inputs(capture)
    expected = reference({one: np.array(tensor, np.float64) for one, tensor in inputs.tensors.items()})
    texts = {"source": capture.text("source")}
    texts |= {one.label: one.text for one in capture.passes() if one.text and one.stage in ("ttir", "ttgir")}
    for label, text in texts.items():
        for lands_late in (True, False):
            given = captured_inputs(capture, inputs.tensors)
            found = run_text(text, capture.launch.grid, given, lands_late=lands_late)[name]
            assert relative_error(found, expected) <= tolerance, (label, lands_late)
            if "async" not in text:
                break


@pytest.mark.parametrize(
    "case",
    newest_but(
        [],
        *(f"more {one}" for one in TARGETS),
        "warps cuda:90",
        "warps cuda:100",
        rare={*(f"more {one}" for one in TARGETS), "warps cuda:90"},
    ),
)
def test_every_pass_of_other_kernels_leaves_what_the_source_computes(case):
    script, _, target = case.partition(" ")
    captures = recorded({"more": MORE, "warps": WARPS}[script], target)
    # Older parts have no float8, and a script stops at what does not compile.
    compiled = [one for one in captures if one.status == "ok"]
    assert len(compiled) >= (6 if script == "more" else 3)
    for capture in compiled:
        texts = {one.label: one.text for one in capture.passes() if one.text and one.stage in ("ttir", "ttgir")}
        grid = capture.launch.grid
        # Drawn once: each run is given a copy.
        drawn = captured_inputs(capture).tensors
        expected = run_text(capture.text("source"), grid, captured_inputs(capture, drawn))
        assert len(texts) > 3
        for label, text in texts.items():
            for name, values in run_text(text, grid, captured_inputs(capture, drawn)).items():
                where = (capture.name, label, name)
                if capture.name == "scaled_dot":
                    # Its products reach float32's largest numbers.
                    wanted = np.array(expected[name], np.float64)
                    assert np.array_equal(np.isfinite(values), np.isfinite(wanted)), where
                else:
                    assert relative_error(values, expected[name]) <= 1e-3, where


def test_a_pointer_in_a_tensor_is_not_followed():
    text = """module {
  tt.func public @kernel(%pointers: !tt.ptr<i64>, %out: !tt.ptr<f32>) {
    %address = tt.load %pointers : !tt.ptr<i64>
    %p = tt.int_to_ptr %address : i64 -> !tt.ptr<f32>
    %value = tt.load %p : !tt.ptr<f32>
    tt.store %out, %value : !tt.ptr<f32>
    tt.return
  }
}
"""
    out = np.zeros(1, np.float32)
    for address, error in ((0x7F00_0000_1000, NotRun), (0, WrongProgram)):
        pointers = np.array([address], np.int64)
        with pytest.raises(error):
            run(parse_mlir(text), (1, 1, 1), [Pointer(one.view(np.uint8)) for one in (pointers, out)])


def test_programs_leave_a_loop_at_different_times():
    text = """module {
  tt.func public @kernel(%out: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %program = tt.get_program_id x : i32
    %left:2 = scf.while (%i = %zero, %sum = %zero) : (i32, i32) -> (i32, i32) {
      %goes_on = arith.cmpi slt, %i, %program : i32
      scf.condition(%goes_on) %i, %sum : i32, i32
    } do {
    ^bb0(%i: i32, %sum: i32):
      %next = arith.addi %i, %one : i32
      %more = arith.addi %sum, %program : i32
      scf.yield %next, %more : i32, i32
    }
    %address = tt.addptr %out, %program : !tt.ptr<i32>, i32
    tt.store %address, %left#1 : !tt.ptr<i32>
    tt.return
  }
}
"""
    out = np.zeros(5, np.int32)
    run(parse_mlir(text), (5, 1, 1), [Pointer(out.view(np.uint8))])
    assert out.tolist() == [0, 1, 4, 9, 16]


def test_a_tensor_and_a_number_are_given_by_name():
    capture = small_examples("cuda:90")["triton add_kernel"]
    x = np.arange(2500, dtype=np.float32)
    found = run_capture(capture, {"x_ptr": x, "y_ptr": np.ones(2500), "n": 2000}, stage="ttgir", at="coalesce")
    assert np.array_equal(found["out_ptr"][:2000], x[:2000] + 1)
    # What no program writes stays as it was before the launch: poison.
    assert np.isnan(found["out_ptr"][2000:]).sum() + (found["out_ptr"][2000:] != 0).sum() > 0
    one_program = run_capture(capture, {"x_ptr": x, "y_ptr": np.ones(2500)}, programs=[1])
    assert np.array_equal(one_program["out_ptr"][1024:2048], x[1024:2048] + 1)


def test_what_is_no_argument_is_refused():
    capture = small_examples("cuda:90")["triton add_kernel"]
    with pytest.raises(UsageError, match=r"add_kernel has no argument 'x'.* Did you mean 'stride_x' or 'x_ptr'"):
        run_capture(capture, {"x": 1})
    with pytest.raises(UsageError, match=r"x_ptr has the shape \[2500\] in this launch, not \[3\]"):
        run_capture(capture, {"x_ptr": np.zeros(3)})
    with pytest.raises(UsageError, match=r"no IR is recorded after the pass 'colaesce'. Did you mean 'coalesce'"):
        text_at(capture, at="colaesce")
