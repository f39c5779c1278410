"""The report's figures: `python benchmarks/report.py [CAPTURE.irscope…]` prints sizes, times and a browser's measures.

With no capture it records the first launch of two examples, with every pass's IR; more captures than `TOGETHER` make
one report. Times are processor seconds, of a page those of its main thread: other work on the machine counts less. What
needs a browser needs Playwright (`pip install playwright`) and a Chromium of the system.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irscope.model.capture import Capture
from irscope.render.report.page import Payload, render_report
from irscope.render.report.texts import pack, printed
from irscope.store.file import load

EXAMPLES = ("matmul", "flash_attention")
ROUNDS = 5
STEP_ROUNDS = 3
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
MANY_LINES = 3000
TOGETHER = 20

# Does something and waits until the browser has painted what came of it.
DO = """code => new Promise(done => {
  const begun = performance.now();
  code();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun), 0));
})"""


def run(*arguments: str) -> float:
    """The processor seconds of `irscope ARGUMENTS`, its children's among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "irscope", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(folder: Path) -> list[Path]:
    """Captures of the examples, recorded as a user would."""
    paths: list[Path] = []
    for name in EXAMPLES:
        path = folder / f"{name}.irscope"
        took = run("dump", f"examples/{name}.py", "--launch", "1", "--snapshots", "all", "-o", str(path))
        print(f"{name}: irscope dump took {took:.2f} s")
        paths.append(path)
    return paths


def sizes(captures: list[Capture], paths: list[Path], target: Path) -> None:
    """Write the page, and print how large it is and how long that took."""
    name = target.stem
    times: list[float] = []
    rounds = ROUNDS if len(captures) < TOGETHER else 1
    for _ in range(rounds):
        begun = time.process_time()
        render_report(captures)
        times.append(time.process_time() - begun)
    payload = Payload(captures)
    parts = (pack(payload.index), *(chunk.to_bytes() for chunk in payload.chunks))
    data = sum(len(printed(part)) for part in parts)
    texts = sum(len(item.text or "") for capture in captures for item in capture.snapshots)
    command = statistics.median(run("report", *map(str, paths), "-o", str(target)) for _ in range(rounds))
    print(
        f"{name}: page {target.stat().st_size / 1e6:.2f} MB, data {data / 1e6:.2f} MB, snapshots {texts / 1e6:.1f} MB"
    )
    compile_s = sum(capture.compile_us or 0 for capture in captures) / 1e6
    print(
        f"{name}: rendered in {statistics.median(times):.2f} s, irscope report {command:.2f} s, "
        f"compiled in {compile_s:.2f} s"
    )


def in_browser(pages: list[tuple[Path, Capture]]) -> None:
    """Print the first paint and the steps of each page."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("no figures of a browser: pip install playwright")
        return
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no figures of a browser: Chromium is not installed")
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for path, capture in pages:
            measure(browser, path, capture)
        browser.close()


class Tab:
    """A page of its own, with a clock of its main thread's processor time."""

    def __init__(self, browser: Any, url: str) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 800})
        self._session = self.page.context.new_cdp_session(self.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(url)
        self.page.wait_for_selector("html[data-ready]")

    def processor_ms(self) -> float:
        """What its tasks took up to now."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(item["value"] for item in metrics if item["name"] == "TaskDuration")

    def do(self, code: str) -> tuple[float, float]:
        """The milliseconds until what some code does is painted: by the clock, and of the processor."""
        before = self.processor_ms()
        took: float = self.page.evaluate(f"({DO})({code})")
        return took, self.processor_ms() - before


def measure(browser: Any, path: Path, capture: Capture) -> None:
    """Open a page afresh a few times, then step through its passes, a few times each way."""
    paints: list[float] = []
    ready: list[float] = []
    spent: list[float] = []
    for _ in range(ROUNDS):
        tab = Tab(browser, path.as_uri())
        paints.append(tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        ready.append(tab.page.evaluate("performance.now()"))
        spent.append(tab.processor_ms())
        tab.page.close()
    print(
        f"{path.stem}: first paint {statistics.median(paints):.0f} ms, usable {statistics.median(ready):.0f} ms after "
        f"the start ({statistics.median(spent):.0f} ms of processor)"
    )
    passes = list(capture.passes())
    numbers = [number for number, item in enumerate(passes) if item.changed]
    texts = {number: (capture.text_before(passes[number]), passes[number].text) for number in numbers}
    lines = {number: max((text or "").count("\n") for text in pair) for number, pair in texts.items()}
    for name, what in (("unified", ""), ("side by side", "&side=1")):
        rounds = [steps(browser, f"{path.as_uri()}#tab=passes{what}", numbers) for _ in range(STEP_ROUNDS)]
        rows = {number: medians(took) for number, took in zip(numbers, zip(*rounds, strict=True), strict=True)}
        small = [rows[number] for number in numbers if lines[number] < MANY_LINES]
        print(f"{path.stem}: stepping to a diff, {name}: {spread(small)}")
        if large := [rows[number] for number in numbers if lines[number] >= MANY_LINES]:
            longest = max(lines.values())
            print(f"{path.stem}: to one of {MANY_LINES} to {longest} lines, {name}: {spread(large)}")
    largest = max(numbers, key=lambda number: lines[number])
    cold = [Tab(browser, f"{path.as_uri()}#tab=passes&pass=1").do(click(largest)) for _ in range(ROUNDS)]
    clock, processor = medians(cold)
    print(
        f"{path.stem}: to {passes[largest].label}, {lines[largest]} lines, as the first thing in a fresh page: "
        f"{clock:.0f} ms, {processor:.0f} ms of processor"
    )


def click(number: int) -> str:
    """The code that chooses a pass."""
    return f"() => document.querySelectorAll('.item')[{number}].click()"


def medians(rows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Of both columns."""
    return statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows)


def spread(rows: Sequence[tuple[float, float]]) -> str:
    """The median and the maximum of both columns."""
    clock, processor = medians(rows)
    most = max(row[0] for row in rows), max(row[1] for row in rows)
    return f"{clock:.0f} ms, at most {most[0]:.0f} ms; of processor {processor:.0f} ms, at most {most[1]:.0f} ms"


def steps(browser: Any, url: str, numbers: list[int]) -> list[tuple[float, float]]:
    """The times of each step, in a page of its own: every text is unpacked for the first time."""
    tab = Tab(browser, url)
    tab.page.wait_for_selector(".item")
    tab.page.wait_for_timeout(300)
    found = [tab.do(click(number)) for number in numbers]
    tab.page.close()
    return found


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [Path(text) for text in sys.argv[1:]] or recorded(folder)
        captures = [load(path) for path in paths]
        if len(captures) > TOGETHER:
            page = folder / f"{len(captures)} captures.html"
            sizes(captures, paths, page)
            in_browser([(page, captures[0])])
            return
        pages: list[tuple[Path, Capture]] = []
        for capture, path in zip(captures, paths, strict=True):
            page = folder / f"{path.stem}.html"
            sizes([capture], [path], page)
            pages.append((page, capture))
        in_browser(pages)


if __name__ == "__main__":
    main()
