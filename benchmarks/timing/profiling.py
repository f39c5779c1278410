"""Nsight Compute's throughputs of some configurations of each family: what a model's named bound is held against."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.timing.family import FAMILIES

_SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "WarpStateStats",
    "ComputeWorkloadAnalysis",
    "LaunchStats",
    "Occupancy",
)
_MORE = (
    "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum,"
    "lts__t_requests.sum,l1tex__data_pipe_lsu_wavefronts.sum,l1tex__t_requests.sum,l1tex__t_sectors.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu.sum,smsp__inst_executed.sum,sm__cycles_active.avg,sm__cycles_elapsed.max"
)
_LIMITERS = {
    "dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
}
"""The metrics of Nsight Compute's section Speed of Light."""


_LEFT_OUT = ("device__", "derived__", "launch__", "c2clink__", "nvlink__", "profiler__")


def _is_kept(metric: str) -> bool:
    """Whether a metric is stored: why warps wait; of sums, averages and extremes the average or the sum alone."""
    if "issue_stalled" in metric:
        return metric.endswith("per_issue_active.ratio")
    return ".min" not in metric and ".max" not in metric and (".avg" in metric or ".sum" in metric)


def choose(results: list[dict[str, Any]], each: int) -> list[tuple[str, int]]:
    """Choose configurations of each family by their measured times: the best, and others spread over the ranks."""
    chosen: list[tuple[str, int]] = []
    for name in dict.fromkeys(row["family"] for row in results):
        rows = [row for row in results if row["family"] == name and row["status"] == "ok"]
        rows.sort(key=lambda row: row["median_us"])
        places = {round(place * (len(rows) - 1) / max(each, 2)) for place in range(each)} if rows else set()
        chosen += [(name, rows[place]["number"]) for place in sorted(places)]
    return chosen


def profile(results: Path, output: Path, each: int, seconds: float) -> None:
    """Profile some configurations of each family of a file of results, and write a row for each."""
    rows = [json.loads(line) for line in results.read_text().splitlines()[1:]]
    work = choose(rows, each)
    report = output.with_suffix(".ncu-rep")
    sections = [part for section in _SECTIONS for part in ("--section", section)]
    command = ["ncu", "--profile-from-start", "off", "--clock-control", "none", "-f", "-o", str(report), *sections]
    command += ["--metrics", _MORE, sys.executable, "-m", "benchmarks.timing", "launch-here"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        printed, _ = process.communicate(json.dumps(work), timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        printed, _ = process.communicate()
    launched = [tuple(json.loads(line[8:])) for line in printed.splitlines() if line.startswith("LAUNCHED")]
    print(f"{len(launched)} of {len(work)} launched under ncu: {printed[-300:]}", flush=True)
    imported = ["ncu", "-i", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    listed = subprocess.run(imported, capture_output=True, text=True, check=False).stdout
    profiled = [row for row in csv.DictReader(io.StringIO(listed)) if row.get("ID", "").isdigit()]
    with output.open("w") as stream:
        for (name, number), row in zip(launched, profiled, strict=False):
            read = {key: _number(value) for key, value in row.items() if not key.startswith(_LEFT_OUT)}
            metrics = {key: value for key, value in read.items() if value is not None and _is_kept(key)}
            shares = {limiter: metrics.get(metric) for limiter, metric in _LIMITERS.items()}
            stream.write(
                json.dumps(
                    {"family": name, "number": number, "kernel": row["Kernel Name"], **shares} | {"metrics": metrics}
                )
                + "\n"
            )


def _number(value: str) -> float | None:
    try:
        return float(value.replace(",", ""))
    except ValueError:
        return None


def launch_here(work: list[tuple[str, int]]) -> None:
    """Launch each configuration once for warming, and once between the profiler's start and stop."""
    import torch

    for name, number in work:
        family = FAMILIES[name]
        prepared = family.prepare(family.configs[number])
        prepared()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        prepared()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        print("LAUNCHED" + json.dumps([name, number]), flush=True)
