"""The table of an ablation in the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

from irscope.analysis.passes.ablation import Ablation, AblationRow, RowCounts
from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.render.text.searches import render_ablation

BASE = AblationRow((), "", RowCounts(100, 32, None, 0, 1024, 50.0, 2), program="p")
CHANGED = AblationRow(
    ("ttgir:coalesce#1",), "", replace(BASE.counts, instructions=250, occupancy=25.0), program="q", differs_from="ttgir"
)
IDLE = AblationRow(("ttgir:cse#2",), "", BASE.counts, program="p")
FAILS = AblationRow(("ttgir:<script>#1",), "", RowCounts(), failed_in="llir:x#1", message="error: a < b & c\nand more")
ABLATION = Ablation("kernel<&>", "cuda:90", ("ttgir",), BASE, (CHANGED, IDLE, FAILS), "0123456789abcdef", "3.9.0")


def on_gpu(variant: AblationRow, ratio: float) -> AblationRow:
    return replace(
        variant,
        agreement=Agreement("identical"),
        timing=Timing(12.5, 12, 13, 50),
        ratio=Ratio(ratio, ratio - 0.01, ratio + 0.01),
    )


def test_a_row_a_variant_and_the_idle_ones_by_name() -> None:
    lines = render_ablation(ABLATION).splitlines()
    assert lines[0] == "01234567 kernel<&> cuda:90: Triton 3.9.0: passes of ttgir switched off, one at a time"
    rows = {line.split("  ")[0]: line for line in lines}
    assert rows["ttgir:coalesce#1"].split() == [
        "ttgir:coalesce#1", "from", "ttgir", "250", "+150", "32", "0", "1024", "25", "%", "-25", "2",
    ]  # fmt: skip
    assert "fails in llir:x#1" in rows["ttgir:<script>#1"]
    assert "1 change nothing: ttgir:cse#2." in lines
    assert "ttgir:<script>#1: error: a < b & c" in lines
    assert "AGPRs" not in lines[2]


def test_every_row_where_asked() -> None:
    text = render_ablation(ABLATION, every=True)
    assert re.search(r"^ttgir:cse#2 +identical", text, re.MULTILINE)


def test_results_and_times_of_a_gpu() -> None:
    measured = replace(
        ABLATION, gpu="H200", baseline=on_gpu(BASE, 1.0), variants=(on_gpu(CHANGED, 1.5), on_gpu(IDLE, 1.0), FAILS)
    )
    text = render_ablation(measured, every=True, width=200)
    assert "12.5 µs" in text.splitlines()[3]
    assert "identical  1.50x (1.49 to 1.51)" in text
    assert "identical  1.00x, no difference" in text
    assert "on H200" in text
    wrong = replace(measured.variants[0], agreement=Agreement("different", max_abs_error=0.25))
    assert "different (0.25)" in render_ablation(replace(measured, variants=(wrong,)), width=200)


def test_what_does_not_fit_loses_the_columns_that_never_change() -> None:
    wide = render_ablation(ABLATION, width=200)
    assert "spill B" in wide.splitlines()[2]
    lines = render_ablation(ABLATION, width=80).splitlines()
    assert lines[2].split() == ["off", "artifacts", "instructions", "occupancy"]
    assert "The same in every row: registers 32, spill B 0, shared B 1024, converts 2." in lines
    assert max(map(len, lines[2:7])) <= 80


def test_amd_has_vgprs_and_lds() -> None:
    amd = replace(ABLATION, target="hip:gfx942", baseline=replace(BASE, counts=replace(BASE.counts, accumulators=64)))
    head = render_ablation(amd).splitlines()[2]
    assert "VGPRs" in head
    assert "AGPRs" in head
    assert "LDS B" in head


def test_what_is_missing_is_said() -> None:
    text = render_ablation(replace(ABLATION, missing=7))
    assert text.endswith("7 more were not compiled.\n")
