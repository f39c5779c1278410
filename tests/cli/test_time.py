"""`irscope time` and `irscope tune` as a user types them, of stored captures: no Triton and no GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import irscope as irscope_package
from irscope.errors import NoDevice, UsageError
from irscope.model.capture import Failure
from irscope.store.file import load, save
from irscope.target import Target
from tests.cli.product import ROOT, Run
from tests.perfetto import tracks

MATMUL = next((ROOT / "tests" / "data" / "counters").rglob("matmul_naive_kernel.irscope"))


def test_the_time_its_bound_and_the_lines_are_printed(irscope: Run) -> None:
    code, out, _ = irscope("time", MATMUL)
    assert code == 0
    assert "Predicted time:" in out
    assert "bound by" in out
    assert "Roofline's minimum time" in out
    assert "Python" in out


def test_a_picture_is_written(irscope: Run, tmp_path: Path) -> None:
    assert irscope("time", MATMUL, "-o", tmp_path / "time.svg")[0] == 0
    assert ElementTree.fromstring((tmp_path / "time.svg").read_text()).tag.endswith("svg")


def test_perfetto_reads_the_timeline_of_each_warp(irscope: Run, tmp_path: Path) -> None:
    assert irscope("time", MATMUL, "-o", tmp_path / "x.trace.json")[0] == 0
    found = tracks(json.loads((tmp_path / "x.trace.json").read_text()))
    prediction = irscope_package.time(load(MATMUL))
    name = f"{prediction.kernel}: one CTA, predicted"
    assert sorted(found) == [f"{name} / warp {warp}" for warp in range(8)]
    for warp in range(8):
        slices = found[f"{name} / warp {warp}"]
        spans = [span for span in prediction.timeline if span.warp == warp]
        assert sorted(one.name for one in slices) == sorted(span.why for span in spans)
        whole_ns = sum(span.end - span.start for span in spans) / prediction.clock_hz * 1e9
        # The edges of neighbours are rounded alike.
        assert sum(one.duration_ns for one in slices) == pytest.approx(whole_ns, abs=len(slices) / 2)
        assert {one.depth for one in slices if one.duration_ns} == {0}


def test_a_picture_has_what_is_modelled(irscope: Run, tmp_path: Path) -> None:
    """No panel is empty where the machine code is not modelled, and of a failed compile there is no picture."""
    capture, path = load(MATMUL), tmp_path / "time.svg"
    save(replace(capture, target=Target.parse("mi300x")), tmp_path / "amd.irscope")
    assert irscope("time", tmp_path / "amd.irscope", "-o", path)[0] == 0
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text())
    (row,) = json.loads(irscope("time", tmp_path / "amd.irscope", "--json")[1])
    assert {"Share of each line", "One CTA"}.isdisjoint(texts)
    assert texts[-2 * len(row["busy"]) :] == [
        text for name, part in row["busy"].items() for text in (name, f"{part:.0%}")
    ]
    path.unlink()
    failure = Failure("compile", "ValueError: incompatible dimensions")
    save(replace(capture, artifacts=(), snapshots=(), status="failed", failure=failure), tmp_path / "failed.irscope")
    code, _, err = irscope("time", tmp_path / "failed.irscope", "-o", path)
    assert code == 1
    assert "ValueError: incompatible dimensions" in err
    assert not path.exists()


def test_another_size_and_grid(irscope: Run) -> None:
    (small,) = json.loads(irscope("time", MATMUL, "--json")[1])
    (large,) = json.loads(irscope("time", MATMUL, "--grid", "4096", "--json")[1])
    assert large["grid"] == [4096, 1, 1]
    assert large["seconds"] > small["seconds"]
    code, _, err = irscope("time", MATMUL, "--size", "nothing=16")
    assert code == 2
    assert "nothing" in err


def test_a_launch_without_a_grid_is_asked_for_one(irscope: Run, tmp_path: Path) -> None:
    capture = load(MATMUL)
    save(replace(capture, launch=replace(capture.launch, grid=None)), tmp_path / "x.irscope")
    code, _, err = irscope("time", tmp_path / "x.irscope")
    assert code == 2
    assert "--grid" in err
    save(replace(capture, launch=replace(capture.launch, grid=(0, 1, 1))), tmp_path / "empty.irscope")
    code, _, err = irscope("time", tmp_path / "empty.irscope")
    assert (code, err.count("runs no CTA: the launch's grid is 0×1×1")) == (2, 1)


def test_a_capture_that_cannot_be_predicted_is_named_and_left_out(irscope: Run, tmp_path: Path) -> None:
    capture = load(MATMUL)
    save(capture, tmp_path / "a.irscope")
    save(replace(capture, launch=replace(capture.launch, grid=None)), tmp_path / "b.irscope")
    for options, words in (((), "Predicted time"), (("--roofline",), "Peaks:")):
        code, out, err = irscope("time", tmp_path, *options)
        assert (code, out.count(words), err.count(f"({capture.id[:8]}): ")) == (0, 1, 1), (out, err)


@pytest.mark.parametrize("options", [(), ("--perf-model",)])
def test_a_capture_is_a_configuration(irscope: Run, options: tuple[str, ...]) -> None:
    code, out, _ = irscope("tune", MATMUL, *options)
    assert code == 0
    assert ("def perf_model" if options else "triton.Config(") in out


def test_sizes_need_a_grid(irscope: Run) -> None:
    code, _, err = irscope("tune", MATMUL, "--size", "m=512,1024")
    assert code == 2
    assert "--grid" in err
    code, out, _ = irscope("tune", MATMUL, "--size", "m=512,1024", "--grid", "cdiv(m, 128) * 4", "--json")
    assert code == 0
    assert json.loads(out)["sizes"] == [{"m": 512}, {"m": 1024}]


def test_a_configuration_that_was_not_launched_needs_a_grid(irscope: Run, tmp_path: Path) -> None:
    capture = load(MATMUL)
    save(replace(capture, launch=replace(capture.launch, grid=None)), tmp_path / "x.irscope")
    code, _, err = irscope("tune", tmp_path / "x.irscope")
    assert (code, "other tl.constexpr values, and not launched: --grid 'cdiv" in err) == (2, True)
    assert irscope("tune", tmp_path / "x.irscope", "--grid", "16")[0] == 0


@pytest.mark.parametrize("grid", ["__import__('os')", "m ** 9", "unknown", "m.x", "1 // 0"])
def test_a_grid_is_arithmetic_and_nothing_else(irscope: Run, grid: str) -> None:
    assert irscope("tune", MATMUL, "--size", "m=512", "--grid", grid)[0] == 2


def test_the_first_ones_are_measured_by_a_clock() -> None:
    from irscope.api.tuning import measured, ranked
    from irscope.device.measurement import Timing
    from irscope.errors import RecordingError
    from irscope.render.timing import tuning_json, tuning_text
    from irscope.timing.tuning import Candidate

    capture = load(MATMUL)
    options = [(*((key, value) for key, value in capture.launch.options if key != "num_warps"), ("num_warps", count))
               for count in (2, 4, 8)]  # fmt: skip
    captures = [replace(capture, launch=replace(capture.launch, options=row)) for row in options]

    def clock(candidate: Candidate) -> Timing:
        warps = dict(candidate.config)["num_warps"]
        if warps == 2:
            raise RecordingError("the launch did not end.")
        return Timing(100.0 / warps, 1.0, 2.0, 7)

    ranking = ranked(captures, part="h100")
    done = measured(ranking, 3, clock)
    assert [row.candidate for row in done.rows] == [row.candidate for row in ranking.rows]
    assert [dict(row.candidate.config)["num_warps"] for row in done.fastest_first[:2]] == [8, 4]
    text = tuning_text(done, 3)
    assert "predicted / measured" in text
    assert "num_warps=2 num_stages=3: not measured: the launch did not end." in text
    assert "12.5 µs measured" in text
    assert {row["why_not_measured"] for row in tuning_json(done)["configs"]} == {"", "the launch did not end."}
    assert sum(row.measured is not None for row in measured(ranking, 1, clock).rows) <= 1


def test_a_configuration_with_other_options_takes_the_place_of_the_scripts_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from irscope.api.tuning import clock_on_gpu
    from irscope.errors import RecordingError
    from irscope.record.gpu import session as sessions
    from irscope.timing.tuning import Candidate

    baseline = load(MATMUL)
    other = replace(baseline, launch=replace(baseline.launch, options=()))
    warps = dict(baseline.launch.options)["num_warps"]

    class Session:
        def __init__(self) -> None:
            self.baseline = baseline

        def times_us(self, captures: Sequence[Any] = (), *, rounds: int) -> list[list[float]]:
            return [[3.0] * rounds, [3.0] * rounds, *([7.0] * rounds for one in captures if one is other)]

    monkeypatch.setattr(sessions, "device_session", lambda *_: nullcontext(Session()))
    clock = clock_on_gpu(lambda _: (None, None))  # type: ignore[arg-type]
    assert clock(Candidate((("num_warps", warps),), other)).median_us == 3
    assert clock(Candidate((("num_warps", warps * 2),), other)).median_us == 7
    with pytest.raises(RecordingError, match="in place of BLOCK_M=1"):
        clock(Candidate((("BLOCK_M", 1),), other))


def test_what_is_measured_is_the_launch_of_a_script_at_its_own_sizes(irscope: Run) -> None:
    code, _, err = irscope("tune", MATMUL, "--time")
    assert code == 2
    assert "script" in err
    code, _, err = irscope("tune", MATMUL, "--time", "--size", "m=512", "--grid", "m")
    assert code == 2
    assert "--size" in err


def test_what_is_calibrated_is_used_and_named(irscope: Run) -> None:
    from irscope.api.timing import calibrate

    code, _, err = irscope("time", MATMUL, "--calibrate")
    assert code == 2
    assert "--calibrate" in err
    (before,) = json.loads(irscope("time", MATMUL, "--part", "h100", "--json")[1])
    assert not before["is_calibrated"]
    constants = {"launch_s": 1e-3, "units": 132.0, "unknown": 1.0}
    part, _, path = calibrate("python", lambda _: {"device": "NVIDIA H100 80GB HBM3", "constants": constants})
    assert part == "h100"
    assert path.is_file()
    (after,) = json.loads(irscope("time", MATMUL, "--part", "h100", "--json")[1])
    assert after["is_calibrated"]
    assert after["seconds"] - before["seconds"] == pytest.approx(1e-3, rel=0.01)
    assert "--calibrate" in irscope("time", MATMUL, "--part", "h100")[1]
    assert not json.loads(irscope("time", MATMUL, "--part", "h200", "--json")[1])[0]["is_calibrated"]
    with pytest.raises(UsageError, match="is not a part"):
        calibrate("python", lambda _: {"device": "Unheard Of 1", "constants": constants})
    with pytest.raises(NoDevice, match="could not be measured"):
        calibrate("/nonexistent/python")


PROTON = ROOT / "tests" / "data" / "proton"


def test_what_proton_measured_stands_beside_the_prediction(irscope: Run, tmp_path: Path) -> None:
    code, out, _ = irscope("time", MATMUL, "--proton", PROTON / "matmul.hatchet")
    assert code == 0
    assert "Proton: 10 launches of 205 µs" in out
    # 700 of 1,000 samples.
    assert "matmul.py:37             70.0%" in out
    # What Proton of Triton 3.6 wrote on an H100, whose lines have their function behind them.
    code, out, _ = irscope("time", MATMUL, "--proton", PROTON / "matmul-h100.hatchet")
    assert "Proton: 20 launches of 35.8 µs" in out
    assert re.search(r"matmul\.py:32 +48\.2%", out)
    code, out, _ = irscope("time", MATMUL, "--proton", PROTON / "matmul.chrome_trace")
    assert "Proton: 3 launches of 12 µs" in out
    assert re.search(r"load +75.0%", out)
    path = tmp_path / "joined.trace.json"
    assert irscope("time", MATMUL, "--proton", PROTON / "matmul.hatchet", "-o", path)[0] == 0
    events = json.loads(path.read_text())["traceEvents"]
    (line,) = (event["args"] for event in events if event["name"] == "matmul.py:37" and event.get("cat") == "line")
    (share,) = (
        row["share"] for row in json.loads(irscope("time", MATMUL, "--json")[1])[0]["lines"] if row["line"] == 37
    )
    assert line == {"file": "/home/user/matmul.py", "line": 37, "share": 0.7, "predicted_share": share}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("matmul.hatchet", {"launches": [10], "lines": [2]}),
        ("matmul.chrome_trace", {"launches": [2, 1], "scopes": [2]}),
    ],
)
def test_perfetto_reads_what_was_measured(irscope: Run, tmp_path: Path, file: str, expected: dict[str, Any]) -> None:
    path = tmp_path / "joined.trace.json"
    assert irscope("time", MATMUL, "--proton", PROTON / file, "-o", path)[0] == 0
    found = tracks(json.loads(path.read_text()))
    assert len([track for track in found if ": one CTA, predicted / warp " in track]) == 8
    for kind, counts in expected.items():
        assert sorted(len(row) for track, row in found.items() if f": {kind}, measured" in track) == sorted(counts)


def test_perfetto_drops_no_launch_that_begins_before_the_last_one_ends(irscope: Run, tmp_path: Path) -> None:
    launch = {"cat": "kernel", "name": "matmul_naive_kernel", "ph": "X", "tid": 7}
    events = [launch | {"ts": start, "dur": duration} for start, duration in ((0, 12.5), (12, 9), (25, 9), (26, 9))]
    (tmp_path / "overlapping.chrome_trace").write_text(json.dumps({"traceEvents": events}))
    path = tmp_path / "joined.trace.json"
    assert irscope("time", MATMUL, "--proton", tmp_path / "overlapping.chrome_trace", "-o", path)[0] == 0
    starts = {
        track.rpartition(" / ")[2]: [(one.start_ns, one.depth) for one in row]
        for track, row in tracks(json.loads(path.read_text())).items()
        if "launches" in track
    }
    assert starts == {"stream 7": [(0, 0), (25_000, 0)], "stream 7 (2)": [(12_000, 0), (26_000, 0)]}


def test_other_files_than_protons_are_refused(irscope: Run, tmp_path: Path) -> None:
    whole = (PROTON / "matmul.chrome_trace").read_text()
    for name, text, status, said in (
        ("half", whole[:-200], 0, "1 lines of half are not complete objects"),
        ("cut", (PROTON / "matmul.hatchet").read_text()[:200], 1, "is not complete JSON"),
        ("other", '{"traceEvents": []}', 1, "holds no kernel that Proton measured"),
        ("text", "kernel 12 us", 1, "is not an output of Proton"),
        ("packed", "\x82\xa5frame", 1, "is not an output of Proton"),
    ):
        (tmp_path / name).write_text(text)
        code, _, err = irscope("time", MATMUL, "--proton", tmp_path / name)
        assert (code, said in err) == (status, True), (name, err)
    code, _, err = irscope("time", MATMUL, "--proton", tmp_path / "half", "--roofline")
    assert (code, "--roofline" in err) == (2, True)
