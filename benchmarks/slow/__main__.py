"""Whether `irscope why` names the cause of each slow kernel first, and accuses no twin.

`python -m benchmarks.slow FILE` reads the recording of all pairs, `irscope record -m benchmarks.slow.pairs -t h100
-o FILE`; `--times` is the JSON of `benchmarks.slow.timed`, whose times stand beside the predicted ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from triton.runtime.jit import JITFunction

from benchmarks.slow.pair import DEVICE, Pair
from benchmarks.slow.pairs import PAIRS
from irscope.analysis.findings.costs import every_finding, timed
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture
from irscope.store.collection import PackedCollection

_MOST_OF_TWIN = 0.05
_DEFAULTS = {"num_warps": 4, "num_stages": 3}
_TYPES = {
    "float16": "*fp16", "float32": "*fp32", "int32": "*i32", "float8_e4m3fn": "*fp8e4nv",
}  # fmt: skip


def recorded(run: Callable[..., Any], given: tuple[Any, ...], captures: list[Capture]) -> Capture:
    """The capture of a launch: equal compiles of several pairs are one capture."""
    launches: list[tuple[str, dict[str, Any], list[Any]]] = []

    def note(kernel: Any, *values: Any, grid: Any, warmup: bool, **options: Any) -> None:
        launches.append((kernel.__name__, options, list(values)))

    with patch.object(JITFunction, "run", note):
        run(*given)
    ((name, options, values),) = launches
    wanted = {**_DEFAULTS, **options}
    types = [_TYPES[str(one.dtype).removeprefix("torch.")] for one in values if isinstance(one, torch.Tensor)]
    ones = [isinstance(one, int) and one == 1 for one in values]

    def fits(capture: Capture) -> bool:
        launch = capture.launch
        constants = dict(launch.constants)
        signature = [kind for _, kind in launch.signature]
        return (
            capture.name == name
            and all(launch.option(key) == value for key, value in wanted.items() if key in _DEFAULTS)
            and all(constants.get(key) == repr(value) for key, value in wanted.items() if key not in _DEFAULTS)
            and [kind for kind in signature if kind.startswith("*")] == types
            and [kind == "constexpr" for kind in signature[: len(ones)]] == ones
        )

    matches = [one for one in captures if fits(one)]
    if len(matches) > 1:
        shapes = [tuple(one.shape) for one in values if isinstance(one, torch.Tensor)]
        matches = [one for one in matches if one.launch.record and shapes
                   == [each.shape for each in one.launch.record.arguments if each.shape]]  # fmt: skip
    if len(matches) != 1:
        raise SystemExit(f"{len(matches)} captures are {name} with {options}, not one")
    return matches[0]


def shown(findings: tuple[Finding, ...], most: int = 4) -> str:
    """Codes with their parts of the time."""
    parts = [f"{one.code} {one.share:.0%}" if one.seconds is not None else one.code for one in findings[:most]]
    return ", ".join(parts) or "none"


def judge(one: Pair, slow: Capture, fast: Capture, measured: dict[str, float]) -> tuple[bool, bool, float]:
    """Print a pair; (the cause is first, the twin has no finding above 5 %, how many times as fast it is predicted)."""
    findings, others = (every_finding(Studied(each)) for each in (slow, fast))
    times = [timed(each).prediction for each in (slow, fast)]
    names = bool(findings) and findings[0].code in one.codes
    above = [each for each in others if each.seconds is not None and each.share > _MOST_OF_TWIN]
    micro = [each.seconds * 1e6 if each is not None else float("nan") for each in times]
    marks = "ok  " if names else "MISS", "ok  " if not above else "TWIN"
    real = [measured.get(f"{side}_us", float("nan")) for side in ("slow", "fast")]
    print(f"{' '.join(marks)} {one.name}")
    print(f"       {micro[0]:.0f} → {micro[1]:.0f} µs predicted, {real[0]:.0f} → {real[1]:.0f} measured")
    print(f"       expected {'|'.join(one.codes)}: {shown(findings)}")
    print(f"       twin: {shown(others)}", flush=True)
    return names, not above, micro[0] / micro[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", nargs="+", metavar="FILE.irscope")
    parser.add_argument("--times", metavar="JSON", help="what `python -m benchmarks.slow.timed` wrote")
    parser.add_argument("--only", default="", help="pairs whose name has this in it")
    given = parser.parse_args()
    times = {}
    if given.times:
        times = {row["name"]: row for row in json.loads(Path(given.times).read_text())["pairs"]}
    collections = [PackedCollection(file) for file in given.recordings]
    captures = [one for each in collections for one in each.captures(each.entries())]
    DEVICE[0] = "meta"
    verdicts = []
    for one in PAIRS:
        if given.only in one.name:
            values = one.arguments()
            pair = [recorded(run, values, captures) for run in (one.slow, one.fast)]
            verdicts.append(judge(one, *pair, times.get(one.name, {})))
    count = len(verdicts)
    print(f"{sum(one for one, _, _ in verdicts)} of {count} causes are first, {sum(two for _, two, _ in verdicts)} of "
          f"{count} twins have no finding above {_MOST_OF_TWIN:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
