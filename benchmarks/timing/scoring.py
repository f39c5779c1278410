"""How well predictions rank and match measured times: Kendall's τ, first choices, errors and bounds."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from irscope.device.measurement import quantile

_LEAST_US = 20.0
"""Absolute errors count kernels that take longer: below that the launch is most of the time."""
_NEAR = 5.0
"""Percent of the peak by which two limiters of Nsight Compute are as good as equal: DRAM's traffic fills L2 as well."""
_LIMITERS = {"dram": "dram", "l2": "l2", "l1": "l1", "shared": "l1", "atomics": "l2"}
_MOST_SPREAD = 0.1
"""The quartiles of an undisturbed measurement lie less than this part of the median apart."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One configuration's measured and predicted time."""

    family: str
    number: int
    measured_us: float
    predicted_us: float
    bound: str = ""
    interval_us: tuple[float, float] = (0.0, math.inf)
    is_assumed: bool = False
    """Whether what data decide was assumed."""


@dataclass(frozen=True, slots=True)
class FamilyScore:
    """How one family is ranked."""

    family: str
    count: int
    tau: float
    """Kendall's τ-b of predicted against measured times."""
    first: float
    """The measured time of the configuration that is predicted to be the fastest, in times the best."""
    best_among_three: bool
    error: float
    """The median of |predicted / measured - 1| of kernels above 20 µs; nan without any."""


def kendall(left: Sequence[float], right: Sequence[float]) -> float:
    """Kendall's τ-b, which takes ties out of account; 0 where one side is all ties."""
    agreeing = ties_left = ties_right = 0
    pairs = 0
    for (a, x), (b, y) in itertools.combinations(zip(left, right, strict=True), 2):
        pairs += 1
        ties_left += a == b
        ties_right += x == y
        agreeing += (a > b) - (a < b) if x > y else (a < b) - (a > b) if x < y else 0
    scale = math.sqrt((pairs - ties_left) * (pairs - ties_right))
    return agreeing / scale if scale else 0.0


def score_family(rows: Sequence[Measured]) -> FamilyScore:
    """Score one family's configurations; at least one."""
    ranked = sorted(rows, key=lambda row: row.predicted_us)
    best = min(row.measured_us for row in rows)
    errors = errors_of(rows)
    return FamilyScore(
        rows[0].family,
        len(rows),
        kendall([row.predicted_us for row in rows], [row.measured_us for row in rows]),
        ranked[0].measured_us / best,
        any(row.measured_us == best for row in ranked[:3]),
        statistics.median(errors) if errors else math.nan,
    )


def errors_of(rows: Sequence[Measured]) -> list[float]:
    """Relative errors of the kernels above 20 µs, in order."""
    return sorted(abs(row.predicted_us / row.measured_us - 1.0) for row in rows if row.measured_us > _LEAST_US)


def bound_agreement(
    rows: Sequence[Measured], profiles: Sequence[Mapping[str, Any]], near: float = 0.0
) -> tuple[int, int]:
    """Count (bounds that name Nsight Compute's top limiter, those that were compared).

    Compared is where the top limiter is above 60 % of its peak: Nsight Compute names nothing below that.
    `near`: a limiter within so many percent of the peak from the top one is as good.
    """
    predicted = {(row.family, row.number): row.bound.lower() for row in rows}
    agreeing = compared = 0
    for profile in profiles:
        bound = predicted.get((profile["family"], profile["number"]))
        shares = {name: profile.get(name) or 0.0 for name in ("dram", "l2", "l1", "sm")}
        top = max(shares, key=lambda name: shares[name])
        if bound is None or shares[top] < 60.0:
            continue
        compared += 1
        named = next((limiter for word, limiter in _LIMITERS.items() if word in bound), "sm")
        agreeing += shares[named] >= shares[top] - near
    return agreeing, compared


def is_disturbed(result: Mapping[str, Any]) -> bool:
    """Whether something else ran while a row of a file of results was measured: its times differ by too much."""
    return result["high_us"] - result["low_us"] > _MOST_SPREAD * result["median_us"]


def within(rows: Sequence[Measured]) -> float:
    """The part of the measured times that lie in their intervals; nan without any."""
    return (
        statistics.mean(low <= row.measured_us <= high for row in rows for low, high in [row.interval_us])
        if rows
        else math.nan
    )


def report(rows: Sequence[Measured], profiles: Sequence[Mapping[str, Any]] = ()) -> tuple[str, dict[str, Any]]:
    """Print all scores as a table, and return them as plain values."""
    families = [
        score_family([row for row in rows if row.family == name]) for name in dict.fromkeys(row.family for row in rows)
    ]
    families.sort(key=lambda score: score.tau)
    errors = errors_of(rows)
    agreeing, compared = bound_agreement(rows, profiles)
    total = {
        "configurations": len(rows),
        "families": len(families),
        "tau": statistics.mean(score.tau for score in families),
        "least_tau": families[0].tau,
        "first": math.exp(statistics.mean(math.log(score.first) for score in families)),
        "best_among_three": statistics.mean(score.best_among_three for score in families),
        "error_median": quantile(errors, 0.5) if errors else math.nan,
        "error_90": quantile(errors, 0.9) if errors else math.nan,
        "in_interval": within([row for row in rows if not row.is_assumed]),
        "in_interval_assumed": within([row for row in rows if row.is_assumed]),
        "bounds_agreeing": agreeing,
        "bounds_near": bound_agreement(rows, profiles, _NEAR)[0],
        "bounds_compared": compared,
    }
    lines = [f"{'family':<24} {'n':>3} {'tau':>6} {'first':>6} {'top 3':>6} {'error':>6}"]
    for score in families:
        top = "yes" if score.best_among_three else "no"
        lines.append(
            f"{score.family:<24} {score.count:>3} {score.tau:>6.2f} {score.first:>6.2f} {top:>6} {score.error:>6.0%}"
        )
    lines.append(", ".join(f"{name} {value:.3g}" for name, value in total.items()))
    return "\n".join(lines), total | {"by_family": [asdict(score) for score in families]}


def score(folder: Path, part: str, each: int = 0, workers: int = 1) -> str:
    """Predict every capture of a folder that `results.jsonl` has a time of, and report the scores.

    Args:
        folder: with captures, `results.jsonl` and possibly `ncu-*.jsonl`; `scores.json` is written there.
        part: `h100` or `h200`, as `irscope time --part` takes it.
        each: only so many configurations of each family; 0 for all.
        workers: processes that predict side by side.
    """
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()[1:]]
    results = [row for row in results if row["status"] == "ok" and not (each and row["number"] >= each)]
    disturbed = [row for row in results if is_disturbed(row)]
    kept = [row for row in results if not is_disturbed(row)]
    predict = partial(_predicted, folder, part)
    if workers == 1:
        predicted = [predict(row) for row in kept]
    else:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            predicted = list(pool.map(predict, kept, chunksize=4))
    rows = [row for row, _ in predicted if isinstance(row, Measured)]
    failures = [row for row, _ in predicted if isinstance(row, str)]
    costs = [cost for _, cost in predicted if cost]
    if not rows:
        return "\n".join(["nothing was predicted", *failures[:5]])
    profiles = [json.loads(line) for path in folder.glob("ncu-*.jsonl") for line in path.read_text().splitlines()]
    text, values = report(rows, profiles)
    if costs:
        values["cost_of_compile"] = statistics.median(costs)
        text += f"\na prediction takes {values['cost_of_compile']:.2f} of its compile, by processor time"
    content = values | {"rows": [asdict(row) for row in rows], "failures": failures}
    (folder / "scores.json").write_text(json.dumps(content, indent=1) + "\n")
    left_out = f"disturbed measurements left out: {len(disturbed)}"
    return "\n".join([text, left_out, f"not predicted: {len(failures)}", *failures[:5]])


def _predicted(folder: Path, part: str, result: Mapping[str, Any]) -> tuple[Measured | str, float]:
    """A configuration with its prediction, or why there is none; what that cost, in times the compile."""
    import irscope

    try:
        capture = irscope.load(folder / result["capture"])
        begin = time.process_time()
        prediction = irscope.time(capture, part=part)
    except Exception as error:
        return f"{result['capture']}: {type(error).__name__}: {error}", 0.0
    cost = (time.process_time() - begin) * 1e6 / capture.compile_us if capture.compile_us else 0.0
    low, high = prediction.interval
    row = Measured(
        result["family"], result["number"], result["median_us"], prediction.seconds * 1e6, prediction.bound,
        (low * 1e6, high * 1e6), bool(prediction.notes),
    )  # fmt: skip
    return row, cost
