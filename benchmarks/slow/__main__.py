"""Whether `irscope why` names the cause of each slow kernel first, and accuses no twin.

`python -m benchmarks.slow [--times JSON]` records every pair for an H100, without a GPU, and prints what is first;
`--times` is what `benchmarks.slow.timed` wrote, whose times stand beside the predicted ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.slow.pair import Pair
from benchmarks.slow.pairs import PAIRS
from irscope.analysis.findings.costs import every_finding
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.in_process import _captured_launches
from irscope.record.variants.completing import with_layouts, with_sass
from irscope.target import Target

_MOST_OF_TWIN = 0.05
_LEAST_SLOWER = 1.05
"""A kernel that is measured to be less than so many times slower has to have no finding above 5 % itself."""
_TARGET = Target.parse("cuda:90")


def recorded(one: Pair, run: Callable[..., Any]) -> Capture:
    """The capture of a launch, with what its prediction needs."""
    request = RecordRequest(mode="script", snapshots="none")
    with _captured_launches(request, virtual=_TARGET) as captures:
        run(*one.arguments())
        return with_sass(with_layouts(captures[len(captures) - 1]))


def shown(findings: tuple[Finding, ...], most: int = 4) -> str:
    """Codes with their parts of the time."""
    parts = [f"{one.code} {one.share:.0%}" if one.seconds is not None else one.code for one in findings[:most]]
    return ", ".join(parts) or "none"


def judged(name: str, times: dict[str, dict[str, float]]) -> tuple[str, bool, bool]:
    """A pair's text; whether the cause is first; whether the twin has no finding above 5 %."""
    one = next(each for each in PAIRS if each.name == name)
    sides = recorded(one, one.slow), recorded(one, one.fast)
    (findings, slow), (others, fast) = (every_finding(Studied(each)) for each in sides)
    names = bool(findings) and findings[0].code in one.codes and not findings[0].is_small
    above = [each for each in others if each.seconds is not None and each.share > _MOST_OF_TWIN]
    micro = [each.seconds * 1e6 if each is not None else float("nan") for each in (slow, fast)]
    real = [times.get(name, {}).get(f"{side}_us", float("nan")) for side in ("slow", "fast")]
    is_slow = not real[0] < _LEAST_SLOWER * real[1]
    names = names if is_slow else not findings or findings[0].share <= _MOST_OF_TWIN
    marks = "ok  " if names else "MISS", "ok  " if not above else "TWIN", "" if is_slow else "(as fast)"
    text = f"""{" ".join(marks)} {name}
       {micro[0]:.0f} → {micro[1]:.0f} µs predicted, {real[0]:.0f} → {real[1]:.0f} measured
       expected {"|".join(one.codes)}: {shown(findings)}
       twin: {shown(others)}"""
    return text, names, not above


def main() -> None:
    """Judge the pairs, side by side."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow", description=__doc__)
    parser.add_argument("--times", type=Path, help="what `python -m benchmarks.slow.timed` wrote")
    parser.add_argument("--only", default="", help="pairs whose name has this in it")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    rows = json.loads(given.times.read_text("utf-8"))["pairs"] if given.times else []
    judge = partial(judged, times={row["name"]: row for row in rows})
    chosen = [one.name for one in PAIRS if given.only in one.name]
    verdicts: list[tuple[str, bool, bool]] = []
    with ProcessPoolExecutor(given.workers, get_context("fork")) as pool:
        for verdict in pool.map(judge, chosen):
            print(verdict[0], flush=True)
            verdicts.append(verdict)
    print(f"{sum(one for _, one, _ in verdicts)} of {len(verdicts)} causes are first, "
          f"{sum(two for *_, two in verdicts)} twins have no finding above {_MOST_OF_TWIN:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
