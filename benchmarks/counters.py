"""Predicted beside the hardware's counters, for many kernels: python benchmarks/counters.py FOLDER [GROUP…].

Needs a GPU and Nsight Compute. Records the launches of benchmarks/counted.py, runs it again under Nsight Compute, and
compares every access. FOLDER gets counters.json with every figure, captures.zip with the captures and their profiles,
and log.txt. `python benchmarks/counters.py --again captures.zip` compares them anew, and prints the table of
docs/benchmarks.md.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.work import counted_work, predicted_work  # noqa: E402
from irscope.analysis.counters.operations import (  # noqa: E402
    counted_launch,
    kernel_of_page,
    matched_instructions,
)
from irscope.errors import IrscopeError  # noqa: E402
from irscope.ir.logs.source_page import CountedKernel, read_source_page  # noqa: E402
from irscope.model.capture import Capture  # noqa: E402
from irscope.model.evidence import Profile  # noqa: E402
from irscope.record.gpu.nsight import Nsight, find_nsight  # noqa: E402
from irscope.render.text.profile import profile_json  # noqa: E402
from irscope.store.file import from_bytes, to_bytes  # noqa: E402

SCRIPT = HERE / "counted.py"
WHOLE_S = 330.0
_SECTIONS = ("--clock-control", "none", "--section", "SourceCounters", "--section", "InstructionStats", "--section")
_MOVED = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_VERDICTS = ("equal", "within 1 %", "in range", "differs")


class Run:
    """One run: where it writes, and how much time is left of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._began = time.monotonic()
        self._log = (folder / "log.txt").open("w", encoding="utf-8")

    @property
    def left_s(self) -> float:
        return WHOLE_S - (time.monotonic() - self._began)

    def say(self, text: str) -> None:
        line = f"[{time.monotonic() - self._began:5.0f} s] {text}"
        print(line, flush=True)
        print(line, file=self._log, flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--again"]:
        with zipfile.ZipFile(sys.argv[2]) as archive, ProcessPoolExecutor() as processes:
            rows = list(processes.map(figures, map(archive.read, archive.namelist())))
        answer = {"nsight": "", "gpu": rows[0]["device"], "kernels": rows}
        print(table(answer), summary(answer), sep="\n")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder)
    groups = sys.argv[2:]
    nsight = find_nsight()
    run.say(f"{nsight.name} at {nsight.path}")
    with ThreadPoolExecutor(2) as pool:
        # The recording and the profiling are processes of their own.
        recorded = pool.submit(recorded_captures, run, groups)
        profiled = pool.submit(profiled_kernels, run, nsight, groups)
        captures, kernels = result_of(run, recorded, []), result_of(run, profiled, [])
    pairs = paired(run, captures, kernels)
    rows = compared(run, pairs)
    answer = {"nsight": nsight.name, "gpu": captures[0].environment.gpu if captures else "", "kernels": rows}
    (folder / "counters.json").write_text(json.dumps(answer, indent=1), "utf-8")
    run.say("wrote counters.json and captures.zip")
    print(summary(answer))


def result_of(run: Run, future: Any, otherwise: Any) -> Any:
    try:
        return future.result()
    except Exception as error:
        run.say(f"FAILED: {type(error).__name__}: {error}")
        return otherwise


def recorded_captures(run: Run, groups: Sequence[str]) -> list[Capture]:
    import irscope

    captures = irscope.record_all(str(SCRIPT), arguments=groups, snapshots="none")
    kept = [one for one in captures if one.status == "ok" and one.launch.grid is not None and "sass" in one.stages]
    kept = [one for one in kept if one.launch.autotuning is None or one.launch.autotuning.winner is not False]
    run.say(f"recorded {len(captures)} compiles, {len(kept)} of them launched")
    return kept


class Profiled(NamedTuple):
    """One launch that was profiled."""

    kernel: CountedKernel
    grid: str
    """As Nsight Compute writes it; empty if it is not known."""
    moved: tuple[int, ...] = ()
    """Bytes of DRAM that were read, and that were written."""


def profiled_kernels(run: Run, nsight: Nsight, groups: Sequence[str]) -> list[Profiled]:
    report = run.folder / "report.ncu-rep"
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"COUNTED_PROFILE": "1", "PYTHONPATH": path}
    command = [nsight.path, *_SECTIONS, "LaunchStats", "--metrics", ",".join(_MOVED)]
    command += ["--import-source", "yes", "--profile-from-start", "off"]
    command += ["--force-overwrite", "--export", str(report), sys.executable, str(SCRIPT), *groups]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=max(run.left_s - 60, 30), check=False
        )
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        said = f"TIMED OUT\n{(error.stdout or b'').decode()}{(error.stderr or b'').decode()}"
    (run.folder / "ncu.log").write_text(said, "utf-8")
    for line in said.splitlines():
        if "launched after" in line or "failed:" in line or "left out" in line or "==ERROR==" in line:
            run.say(f"ncu: {line}")
    page = nsight.export(report)
    (run.folder / "source.csv").write_text(page, "utf-8")
    kernels = read_source_page(page)
    raw = subprocess.run(
        [nsight.path, "--import", str(report), "--page", "raw", "--csv", "--print-units", "base"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    (run.folder / "raw.csv").write_text(raw, "utf-8")
    launches = launches_of(raw)
    run.say(f"profiled {len(kernels)} launches, {sum(map(len, launches.values()))} grids")
    save_instances(run, nsight, report)
    # The source page may have a launch of torch's twice, and has them in the order of the raw one.
    counts = Counter(one.name for one in kernels)
    known = {name: iter(rows) for name, rows in launches.items() if len(rows) == counts[name]}
    return [Profiled(one, *next(known[one.name])) if one.name in known else Profiled(one, "") for one in kernels]


def launches_of(raw: str) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """The grids of the launches of each kernel, and the bytes they moved, in their order."""
    rows = [row for row in csv.reader(io.StringIO(raw)) if row]
    header = next((number for number, row in enumerate(rows) if "Grid Size" in row), None)
    found: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    if header is not None:
        name, grid = rows[header].index("Kernel Name"), rows[header].index("Grid Size")
        moved = [rows[header].index(name) for name in _MOVED if name in rows[header]]
        # The row after the header has the units.
        for row in rows[header + 2 :]:
            # A launch that fails under Nsight Compute has "nan".
            counted = tuple(round(float(row[index].replace(",", ""))) for index in moved if row[index] != "nan")
            found.setdefault(row[name], []).append((row[grid], counted))
    return found


def save_instances(run: Run, nsight: Nsight, report: Path) -> None:
    """Wavefronts per instruction, which the source page only has as rounded averages."""
    metrics = "memory_l1_wavefronts_shared,memory_l1_wavefronts_shared_ideal,smsp__inst_executed.sum"
    command = [nsight.path, "--import", str(report), "--page", "raw", "--csv", "--metrics", metrics]
    for mode in ("details", "values"):
        done = subprocess.run(
            [*command, "--print-metric-instances", mode], capture_output=True, text=True, timeout=60, check=False
        )
        (run.folder / f"instances-{mode}.csv").write_text(done.stdout + done.stderr, "utf-8")


def paired(run: Run, captures: Sequence[Capture], kernels: Sequence[Profiled]) -> list[tuple[Capture, tuple[int, ...]]]:
    """Each capture with the first profile that is of its code and grid, and the bytes that it moved."""
    left = list(kernels)
    pairs: list[tuple[Capture, tuple[int, ...]]] = []
    for capture in captures:
        grid = f"({', '.join(map(str, capture.launch.grid or ()))})"
        reasons: list[str] = []
        for number, (kernel, their_grid, moved) in enumerate(left):
            if capture.name not in kernel.name or their_grid not in ("", grid):
                continue
            try:
                kernel_of_page(capture, kernel.page)
            except IrscopeError as error:
                reasons.append(str(error))
                continue
            del left[number]
            pairs.append((replace(capture, profile=Profile(kernel.page, capture.environment.gpu)), moved))
            break
        else:
            run.say(f"no profile for {capture.name} {grid}: {reasons[:1]}")
    names = [one.kernel.name for one in left]
    run.say(f"paired {len(pairs)} of {len(captures)} captures; {len(left)} profiles left: {names}")
    return pairs


def compared(run: Run, pairs: Sequence[tuple[Capture, tuple[int, ...]]]) -> list[dict[str, Any]]:
    """The figures of each capture; its operations are found by a compile, in parallel."""
    from irscope.record.compile.second import find_operations

    workers = max((os.cpu_count() or 4) - 2, 2)

    def full(capture: Capture) -> Capture:
        try:
            return replace(capture, operations=find_operations(capture))
        except Exception as error:
            run.say(f"no operations for {capture.name}: {error}")
            return capture

    with ThreadPoolExecutor(workers) as threads:
        known = list(threads.map(full, (capture for capture, _ in pairs)))
    run.say("found the operations")
    with zipfile.ZipFile(run.folder / "captures.zip", "w") as archive:
        for number, capture in enumerate(known):
            archive.writestr(f"{number:03}-{capture.name}.irscope", to_bytes(capture))
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(workers) as processes:
        waiting = {
            processes.submit(figures, to_bytes(one), moved): one for one, (_, moved) in zip(known, pairs, strict=True)
        }
        try:
            for future in as_completed(waiting, timeout=max(run.left_s, 20)):
                try:
                    rows.append(future.result())
                except Exception as error:
                    run.say(f"not compared: {waiting[future].name}: {type(error).__name__}: {error}")
        except TimeoutError:
            run.say(f"out of time: {len(waiting) - len(rows)} kernels are not compared")
            for process in list((getattr(processes, "_processes", None) or {}).values()):
                process.terminate()
    return sorted(rows, key=lambda row: (row["file"], row["kernel"], row["id"]))


def figures(data: bytes, moved: tuple[int, ...] = ()) -> dict[str, Any]:
    capture = from_bytes(data)
    found = profile_json(capture, counted_launch(capture))
    for row in found["operations"]:
        del row["instructions"]
    found["work"] = predicted_work(capture) | {"counted": counted_work(matched_instructions(capture)), "moved": moved}
    return found | {"file": Path(capture.launch.kernel.file).name, "triton": capture.environment.triton_version}


def summary(answer: dict[str, Any]) -> str:
    counts: dict[str, Counter[str]] = {}
    for row in answer["kernels"]:
        for operation in row["operations"]:
            for one in operation["comparisons"]:
                kind = f"{one['quantity']}, {'exact' if not one['reason'] else 'with a reason'}"
                counts.setdefault(kind, Counter())[one["verdict"]] += 1
    executed = Counter(
        "not known" if row["predicted_executed"] is None
        else "equal" if row["predicted_executed"] == row["counters"]["executed"] else "differs"
        for row in answer["kernels"]
    )  # fmt: skip
    names = len({row["kernel"] for row in answer["kernels"]})
    lines = [f"{len(answer['kernels'])} launches of {names} kernels on {answer['gpu']}, {answer['nsight']}"]
    lines += work_lines(answer["kernels"])
    lines.append(f"  instructions of the launch: {dict(executed)}")
    for kind, found in sorted(counts.items()):
        lines.append(f"  {kind}: " + ", ".join(f"{name} {found[name]}" for name in _VERDICTS if found[name]))
    for row, operation, one in differing(answer):
        where = f"{row['kernel']} {row['grid']} {operation['operation']} (ttgir {operation['line']})"
        low, high = one["predicted"]
        figures = f"{one['quantity']} {one['measured']} ({low}–{high})"
        lines.append(f"  {where}: {figures}: {one['reason'] or 'NO REASON'}")
    return "\n".join(lines)


def work_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """FLOP and bytes of DRAM of each launch: what was counted over what was predicted."""
    for row in rows:
        work, parts = row["work"], list[str]()
        counted = dict(zip(("read", "written"), work["moved"], strict=False)) | work["counted"]
        for name, (low, high) in (work["bytes"] | work["flops"]).items():
            figure = counted.get(name, 0)
            share = f"{figure / low:.3f}" if low else f"{figure} to 0"
            parts.append(
                f"{name} {'equal' if low == figure == high else share + ('' if low == high else ' of the least')}"
            )
        yield f"  {row['kernel']} {row['grid']}: {', '.join(parts)}"


def differing(answer: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    for row in answer["kernels"]:
        for operation in row["operations"]:
            yield from ((row, operation, one) for one in operation["comparisons"] if one["verdict"] == "differs")


def table(answer: dict[str, Any]) -> str:
    """A line per launch: its accesses, and how many of their figures are as counted."""
    lines = [
        "| kernel | grid | accesses | sectors counted | sectors | lines | accesses made | conflicts | instructions |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in answer["kernels"]:
        found = [one for operation in row["operations"] for one in operation["comparisons"]]
        of = {
            kind: [one for one in found if one["quantity"] == kind]
            for kind in ("sectors", "lines", "instructions", "ways")
        }
        if not found:
            continue
        sectors = sum(one["measured"] for one in of["sectors"])
        predicted, executed = row["predicted_executed"], row["counters"]["executed"]
        whole = (
            "" if predicted is None else f"{executed}, equal" if predicted == executed else f"{executed} ({predicted})"
        )
        cells = [row["kernel"].strip("_"), "×".join(map(str, row["grid"])), len(of["sectors"]), sectors]
        cells += [*map(verdicts, of.values()), whole]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def verdicts(rows: Sequence[dict[str, Any]]) -> str:
    """`equal`, or how many are what."""
    found = Counter(one["verdict"] for one in rows)
    names = [name for name in _VERDICTS if found[name]]
    return names[0] if len(names) == 1 else ", ".join(f"{found[name]} {name}" for name in names)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Threads of what timed out may still wait.
    os._exit(0)
