"""Whether `irscope why` names the cause of each slow kernel first, and accuses no twin.

`python -m benchmarks.slow FILE` reads the recording of all pairs, `irscope record -m benchmarks.slow.pairs --target h100
-o FILE`; `--times` is the JSON of `benchmarks.slow.timed`, whose times stand beside the predicted ones.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.slow.pair import Pair
from benchmarks.slow.pairs import PAIRS
from irscope.analysis.findings.costs import every_finding, timed
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture
from irscope.store.collection import PackedCollection

_MOST_OF_TWIN = 0.05


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
    parser.add_argument("recording", metavar="FILE.irscope")
    parser.add_argument("--times", metavar="JSON", help="what `python -m benchmarks.slow.timed` wrote")
    parser.add_argument("--only", default="", help="pairs whose name has this in it")
    given = parser.parse_args()
    times = {}
    if given.times:
        times = {row["name"]: row for row in json.loads(Path(given.times).read_text())["pairs"]}
    collection = PackedCollection(given.recording)
    captures = list(collection.captures(collection.entries()))
    launched = iter(captures)
    verdicts = []
    for one in PAIRS:
        pair = next(launched), next(launched)
        if given.only in one.name:
            verdicts.append(judge(one, *pair, times.get(one.name, {})))
    count = len(verdicts)
    print(f"{sum(one for one, _, _ in verdicts)} of {count} causes are first, {sum(two for _, two, _ in verdicts)} of "
          f"{count} twins have no finding above {_MOST_OF_TWIN:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
