"""The tables of `bench` and `run`."""

from __future__ import annotations

import json

import pytest

from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.render.text.bench import (
    Bench,
    BenchRow,
    bench_json,
    error_text,
    rate_text,
    render_agreements,
    render_bench,
)

ROWS = (
    BenchRow("baseline", Timing(71.683, 70.8, 72.0, 100), None, None),
    BenchRow("-coalesce", Timing(143.4, 140.0, 150.0, 100), Ratio(2.0, 1.9, 2.1), Agreement("identical", 0.0, 0.0)),
    BenchRow("-cse", Timing(71.7, 70.8, 72.0, 100), Ratio(1.0, 0.99, 1.01), Agreement("identical"), same_binary=True),
    BenchRow("-inliner", None, None, Agreement("failed", detail="it does not compile: ttir:inliner#1: no")),
)


def bench(**changes: object) -> Bench:
    known: dict[str, object] = {
        "kernel": "copy_kernel",
        "launch": 2,
        "grid": (256, 64, 1),
        "device": "Some GPU",
        "rows": ROWS,
        "bytes": 268435456,
        "bytes_source": "as given",
        "flops_source": "not known: it has no dot",
        "ceiling_bytes_per_s": 4e12,
        "l2_bytes": 60 << 20,
    }
    return Bench(**{**known, **changes})  # type: ignore[arg-type]


def test_a_bench_as_text() -> None:
    lines = render_bench(bench()).splitlines()
    assert lines[0] == "copy_kernel, launch 2, grid 256×64×1, on Some GPU"
    assert lines[2].split("  ")[0] == "baseline"
    assert "71.68 µs" in lines[2]
    assert "3.74 TB/s" in lines[2]
    assert "93.6 %" in lines[2]
    assert "2.00x (1.90 to 2.10)" in lines[3]
    assert "identical, same binary" in lines[4]
    assert "1.00x, no difference" in lines[4]
    assert lines[6] == "-inliner: it does not compile: ttir:inliner#1: no"
    assert "the L2 of 60 MiB flushed before each" in lines[7]
    assert "FLOPs: not known: it has no dot." in lines
    assert "Ceilings, measured in this run: a large copy moves 4 TB/s." in lines
    assert "FLOP/s" not in lines[1]


def test_the_error_of_what_is_not_identical_is_shown() -> None:
    rows = (ROWS[0], BenchRow("-coalesce", ROWS[1].timing, ROWS[1].ratio, Agreement("close", 1e-6, 2.5e-7, "x", 9)))
    assert "close, max rel 2.5e-07" in render_bench(bench(rows=rows))


def test_rates_of_dots_and_noise() -> None:
    text = render_bench(
        bench(flops=10**9, flops_source="of its dots", ceiling_flops_per_s=5e14, dtype="float16", noise="N")
    )
    assert "FLOP/s" in text.splitlines()[1]
    assert "FLOPs: 1,000,000,000, of its dots." in text
    assert "torch.matmul of float16 makes 500 TFLOP/s" in text
    assert "Baseline: N." in text


def test_a_bench_as_json() -> None:
    data = json.loads(json.dumps(bench_json(bench())))
    base, slow, _, failed = data["variants"]
    assert base["bytes_per_s"] == pytest.approx(268435456 / 71.683e-6)
    assert slow["ratio"] == {"value": 2.0, "low": 1.9, "high": 2.1, "different": True}
    assert failed["time"] is None
    assert failed["result"]["passes"] is False
    assert data["ceilings"]["bytes_per_s"] == 4e12


@pytest.mark.parametrize(
    ("rate", "text"), [(4.184e12, "4.18 TB/s"), (7.5e14, "750 TB/s"), (1.2e15, "1.2 PB/s"), (999.0, "999 B/s")]
)
def test_rates(rate: float, text: str) -> None:
    assert rate_text(rate, "B/s") == text


def test_a_run_as_text() -> None:
    rows = [
        (1, "one_kernel", (4, 1, 1), 1, Agreement("close", 1.25e-7, 2e-6, "out_ptr", 12, noise=3e-7, over_noise=0.4)),
        (1, "one_kernel", (4, 1, 1), 2, Agreement("identical", 0.0, 0.0)),
        (2, "other_kernel", None, 0, Agreement("failed", detail="it does not compile")),
    ]
    lines = render_agreements(rows).splitlines()
    assert lines[1].split() == [
        "1.1",
        "one_kernel",
        "4×1×1",
        "close",
        "12",
        "1.2e-07",
        "2e-06",
        "3e-07",
        "0.4",
        "out_ptr",
    ]
    assert lines[2].split() == ["1.2", "one_kernel", "4×1×1", "identical", "0", "0", "0", "–", "–", "–"]
    assert lines[3].split() == [
        "2",
        "other_kernel",
        "–",
        "failed",
        "–",
        "–",
        "–",
        "–",
        "–",
        "–",
        "it",
        "does",
        "not",
        "compile",
    ]
    assert (error_text(None), error_text(0.0), error_text(0.5)) == ("–", "0", "0.5")
