"""Stepping through the passes of large IR in the report: `python -m benchmarks.stepping [CAPTURE.irscope…]`.

The browser slows its processor down four times by itself (`Emulation.setCPUThrottlingRate`). A step is the key `j`,
from the press until what it shows is painted; who reads pauses between two, who looks for a pass does not. With no
capture it records a matmul whose largest text has 12,000 lines. Times are those of the main thread's processor: other
work on the machine counts less. The browser slows down by the clock, so that on a machine with other work it slows down
more than it was told: how much a loop took longer is printed, and the times of a processor four times as slow.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import ARGUMENTS, Tab, run
from irscope.model.capture import Capture
from irscope.render.report.page import render_report
from irscope.store.file import load

SLOWER = 4
PAUSE_MS = 1000
LEAST_LINES = 3000
# What the page does while its reader reads is held back until a step was measured: it comes after the painting.
HOLD = "window.held = []; window.idle ??= requestIdleCallback; window.requestIdleCallback = f => held.push(f); 0"
FREE = "window.requestIdleCallback = idle; held.forEach(f => idle(f)); 0"
# Milliseconds of some work that is always the same.
WORK = "() => { let found = 0; for (let n = 0; n < 2e7; n++) found = (found * 31 + n) | 0; return found; }"
# Whether what is painted waits for a comparison.
WAITS = "document.querySelector('.pass[aria-busy=true]') !== null"
STEP = "() => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))"


def recorded(folder: Path) -> Path:
    """A matmul of few warps: each thread of it has many elements, and so many lines."""
    path = folder / "matmul.irscope"
    run("dump", "examples/matmul.py::matmul_grouped_kernel", "--launch", "1", "--snapshots", "all", "-o", str(path))
    return path


def steps(tab: Tab, count: int, pause_ms: int) -> tuple[list[tuple[float, float]], int]:
    """(milliseconds by the clock, of the processor) of each step through the changes, from the first on.

    And how many of them were painted before their diff was there: a worker compares, whose time is not the page's.
    """
    found: list[tuple[float, float]] = []
    early = 0
    for _ in range(count):
        if pause_ms:
            tab.page.wait_for_timeout(pause_ms)
        tab.page.evaluate(HOLD)
        found.append(tab.do(STEP))
        early += tab.page.evaluate(WAITS)
        tab.page.evaluate(FREE)
    return found, early


def measure(browser: Any, page: Path, capture: Capture) -> None:
    """Print the median and the worst step, of all passes and of those with large texts."""
    passes = list(capture.passes())
    changed = [number for number, item in enumerate(passes) if item.changed]
    sizes = [max((text or "").count("\n") for text in _texts(capture, number)) for number in changed[1:]]
    for name, pause_ms, slower in ((f"after {PAUSE_MS} ms", PAUSE_MS, 1), (f"after {PAUSE_MS} ms", PAUSE_MS, SLOWER),
                                   ("at once", 0, SLOWER)):  # fmt: skip
        tab = Tab(browser, f"{page.as_uri()}#tab=passes&hide=1&pass={changed[0] + 1}")
        tab.page.wait_for_selector(".item")
        plain = _work(tab)
        session = tab.page.context.new_cdp_session(tab.page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        before = _work(tab)
        found, early = steps(tab, len(changed) - 1, pause_ms)
        slowed = (before + _work(tab)) / 2 / plain
        tab.page.close()
        large = [row for row, lines in zip(found, sizes, strict=True) if lines >= LEAST_LINES]
        print(f"{page.stem}: stepping {name}, slowed down {slower} times (a loop: {slowed:.1f}): {_spread(found)}")
        print(f"{page.stem}: of these to texts of {LEAST_LINES} to {max(sizes)} lines: {_spread(large or found)}")
        print(f"{page.stem}: {early} of them painted before their diff was there")
        if slower > 1:
            scaled = [row[1] * slower / slowed for row in found]
            print(
                f"{page.stem}: {slower} times exactly: {statistics.median(scaled):.0f} ms of processor, "
                f"at most {max(scaled):.0f} ms"
            )


def _work(tab: Tab) -> float:
    """What the same work takes, in milliseconds of the processor."""
    return statistics.median(tab.do(WORK)[1] for _ in range(5))


def _texts(capture: Capture, number: int) -> tuple[str | None, str | None]:
    snapshot = list(capture.passes())[number]
    return capture.text_before(snapshot), snapshot.text


def _spread(rows: list[tuple[float, float]]) -> str:
    processor = [row[1] for row in rows]
    return (
        f"{statistics.median(processor):.0f} ms of processor, at most {max(processor):.0f} ms "
        f"(by the clock {statistics.median(row[0] for row in rows):.0f}, {max(row[0] for row in rows):.0f}; "
        f"{len(rows)} steps)"
    )


def main() -> None:
    """Measure and print."""
    import shutil

    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for path in [Path(text) for text in sys.argv[1:]] or [recorded(folder)]:
            capture = load(path)
            page = folder / f"{path.stem}.html"
            page.write_text(render_report([capture]), "utf-8")
            measure(browser, page, capture)
        browser.close()


if __name__ == "__main__":
    main()
