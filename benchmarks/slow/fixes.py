"""Whether the fixes that `irscope why` prints are faster: predicted here, timed on a GPU.

`python -m benchmarks.slow.fixes prepare FOLDER` compiles, without a GPU, what `why` prints for both launches of every
pair, and keeps the binary of each fix. `python -m benchmarks.slow.fixes time FOLDER RESULT.json`, with the same Triton
on a GPU, makes each launch with its own binary and with that of each fix in its place, in turns, L2 flushed before
each. A fix that changes an argument is timed where the launch's argument is so already.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.slow.pair import Pair
from benchmarks.slow.pairs import PAIRS
from irscope.model.capture import Capture

_ROUNDS = 30
_SIDES = ("slow", "fast")


def _prepare(name: str, folder: Path) -> list[dict[str, Any]]:
    """The printed fixes of both launches of a pair, whose binaries are now in the folder."""
    from benchmarks.slow.__main__ import recorded
    from irscope.analysis.findings import fixes
    from irscope.analysis.findings.arguments import not_so
    from irscope.api.explain import Explainer
    from irscope.record.variants.compiles import Compiles
    from irscope.store.file import to_bytes

    made: list[fixes.Tries] = []

    class Kept(fixes.Tries):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    one = next(each for each in PAIRS if each.name == name)
    rows: list[dict[str, Any]] = []
    for side in _SIDES:
        capture = recorded(one, getattr(one, side))
        made.clear()
        fixes.Tries = Kept
        with Compiles() as compiles:
            explanation = Explainer(compiles).explain(capture)
        prediction = explanation.time.prediction
        whole = prediction.seconds * 1e6 if prediction is not None else None
        rows.append({"pair": name, "side": side, "predicted_us": whole, "fix": ""})
        printed = {
            suggestion.changes: (finding.code, suggestion)
            for finding in explanation.findings
            for suggestion in finding.suggestions
            if suggestion.changes and suggestion.proof is not None and suggestion.proof.is_better
        }
        for changes, (code, suggestion) in printed.items():
            after = next(tries.captures[changes] for tries in made if changes in tries.captures)
            file = f"{name.replace(' ', '_')}-{side}-{len(rows)}.irscope"
            (folder / file).write_bytes(to_bytes(after))
            seconds = suggestion.proof.seconds if suggestion.proof is not None else None
            row: dict[str, Any] = {"pair": name, "side": side, "code": code, "fix": suggestion.tried, "file": file}
            row["predicted_us"] = seconds * 1e6 if seconds is not None else None
            rows.append(row | {"hindered": not_so(capture, changes)})
    return rows


def prepare(folder: Path, only: str, workers: int) -> None:
    """Compile the fixes of all pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [one.name for one in PAIRS if only in one.name]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        for found in pool.map(partial(_prepare, folder=folder), names):
            rows += found
            print(*(f"{row['pair']} {row['side']}: {row['fix'] or 'as it is'}" for row in found), sep="\n", flush=True)
            (folder / "fixes.json").write_text(json.dumps(rows, indent=1))


def _binary(capture: Capture) -> bytes:
    return next(bytes(each.data) for each in capture.artifacts if each.stage == "cubin")  # pyright: ignore


def _times(one: Pair, side: str, captures: list[Capture]) -> list[float]:
    """Microseconds of the launch as it is, and with each binary in its place."""
    from irscope.record.gpu.kernels import SeenLaunch, launch, watched_launches, with_binary
    from irscope.record.gpu.timing import time_launches

    seen: list[SeenLaunch] = []

    def on_launch(each: SeenLaunch, proceed: Any) -> Any:
        seen.append(each)
        return proceed()

    given = one.arguments()
    with watched_launches(on_launch):
        getattr(one, side)(*given)
    last = seen[-1]
    runs = [partial(launch, last.kernel, last.grid, last.arguments)]
    for capture in captures:
        metadata = json.loads(json.dumps(dict(capture.metadata), default=str))
        kernel = with_binary(last.kernel, _binary(capture), metadata)
        runs.append(partial(launch, kernel, capture.launch.grid or last.grid, last.arguments))
    return [median(each) for each in time_launches(runs, _ROUNDS, True, lambda: None)]


def timed(folder: Path, output: Path) -> None:
    """Time the launches of all pairs, and what is compiled of their fixes."""
    import torch
    import triton

    from benchmarks.slow.timed import warm
    from irscope.store.file import load

    warm()
    rows = json.loads((folder / "fixes.json").read_text())
    result = {"gpu": torch.cuda.get_device_name(), "triton": triton.__version__, "fixes": rows}
    for pair, side in dict.fromkeys((row["pair"], row["side"]) for row in rows):
        mine = [row for row in rows if (row["pair"], row["side"]) == (pair, side) and not row.get("hindered")]
        one = next(each for each in PAIRS if each.name == pair)
        try:
            captures = [load(folder / row["file"]) for row in mine if row["fix"]]
            for row, time in zip(mine, _times(one, side, captures), strict=True):
                row["measured_us"] = round(time, 2)
        except Exception as error:
            mine[0]["error"] = f"{type(error).__name__}: {error}"[:300]
        output.write_text(json.dumps(result, indent=1))
        torch.cuda.empty_cache()
    print(summary(rows))


def summary(rows: list[dict[str, Any]]) -> str:
    """A line for each fix, its measured and predicted time in times that of the launch; how many are faster."""
    base = {(row["pair"], row["side"]): row for row in rows if not row["fix"]}
    lines: list[str] = []
    ratios: list[float] = []
    for row in rows:
        before = base[row["pair"], row["side"]]
        if not row["fix"]:
            continue
        expected = (row["predicted_us"] or float("nan")) / (before["predicted_us"] or float("nan"))
        if "measured_us" in row and "measured_us" in before:
            ratio = row["measured_us"] / before["measured_us"]
            ratios.append(ratio)
            told = f"{before['measured_us']:.1f} → {row['measured_us']:.1f} µs, {ratio:.2f} times ({expected:.2f})"
        else:
            told = row.get("hindered") or before.get("error") or "not timed"
        lines.append(f"{row['pair']} {row['side']} {row['code']} {row['fix']}: {told}")
    faster, slower = sum(one < 1 for one in ratios), sum(one > 1.03 for one in ratios)
    return "\n".join([*lines, f"{faster} of {len(ratios)} fixes are faster, {slower} are slower by more than 3 %"])


def main() -> None:
    """Prepare or time the fixes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow.fixes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("prepare")
    first.add_argument("folder", type=Path)
    first.add_argument("--only", default="", help="pairs whose name has this in it")
    first.add_argument("--workers", type=int, default=2)
    second = commands.add_parser("time")
    second.add_argument("folder", type=Path)
    second.add_argument("result", type=Path)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.folder, given.only, given.workers)
    else:
        timed(given.folder, given.result)


if __name__ == "__main__":
    main()
