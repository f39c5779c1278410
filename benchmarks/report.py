"""The report's figures: `python benchmarks/report.py [CAPTURE.irscope…]` prints sizes, times and a browser's measures.

With no capture it records the first launch of two examples, with every pass's IR. What needs a browser needs Playwright
(`pip install playwright`) and a Chromium of the system.
"""

from __future__ import annotations

import base64
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from irscope.capture import Capture
from irscope.render.report import render_report
from irscope.render.report_payload import Payload
from irscope.store import load

EXAMPLES = ("matmul", "flash_attention")
ROUNDS = 5
STEP_ROUNDS = 3
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
MANY_LINES = 3000

# Clicks a pass and waits until the browser has painted what came of it.
STEP = """number => new Promise(done => {
  const item = [...document.querySelectorAll('.item')][number];
  const begun = performance.now();
  item.click();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun), 0));
})"""


def recorded(folder: Path) -> list[Path]:
    """Captures of the examples, recorded as a user would."""
    paths: list[Path] = []
    for name in EXAMPLES:
        path = folder / f"{name}.irscope"
        command = [
            sys.executable,
            "-m",
            "irscope",
            "dump",
            f"examples/{name}.py",
            "--launch",
            "1",
            "--snapshots",
            "all",
            "-o",
            str(path),
        ]
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        print(f"{name}: irscope dump took {time.perf_counter() - begun:.2f} s")
        paths.append(path)
    return paths


def sizes(capture: Capture, path: Path, folder: Path) -> Path:
    """Write the page, and print how large it is and how long that took."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        page = render_report([capture])
        times.append(time.perf_counter() - begun)
    payload = Payload([capture])
    data = sum(len(base64.b64encode(part)) for part in (payload.packed_index(), *payload.packed_chunks()))
    target = folder / f"{path.stem}.html"
    target.write_text(page, "utf-8", "surrogateescape")
    texts = sum(len(item.text or "") for item in capture.snapshots)
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "irscope", "report", str(path), "-o", str(target)], check=True, capture_output=True
    )
    command = time.perf_counter() - begun
    print(
        f"{path.stem}: page {len(page) / 1e6:.2f} MB, of it data {data / 1e6:.2f} MB, "
        f"of {texts / 1e6:.1f} MB of snapshots"
    )
    compile_s = (capture.compile_us or 0) / 1e6
    print(
        f"{path.stem}: rendered in {statistics.median(times):.2f} s, irscope report {command:.2f} s, "
        f"compiled in {compile_s:.2f} s"
    )
    return target


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


def measure(browser: Any, path: Path, capture: Capture) -> None:
    """Open a page afresh a few times, then step through its passes, a few times each way."""
    paints: list[float] = []
    ready: list[float] = []
    for _ in range(ROUNDS):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        ready.append(page.evaluate("performance.now()"))
        page.close()
    print(
        f"{path.stem}: first paint {statistics.median(paints):.0f} ms, "
        f"usable {statistics.median(ready):.0f} ms after the start"
    )
    passes = list(capture.passes())
    numbers = [number for number, item in enumerate(passes) if item.changed]
    for what in ("", "&side=1"):
        rounds = [steps(browser, f"{path.as_uri()}#tab=passes{what}", numbers) for _ in range(STEP_ROUNDS)]
        rows = [
            (statistics.median(took), number) for took, number in zip(zip(*rounds, strict=True), numbers, strict=True)
        ]
        lines = {number: (passes[number].text or "").count("\n") for number in numbers}
        small = [took for took, number in rows if lines[number] < MANY_LINES]
        name = "side by side" if what else "unified"
        print(
            f"{path.stem}: stepping to a diff, {name}: "
            f"median {statistics.median(small):.0f} ms, at most {max(small):.0f} ms"
        )
        for took, number in rows:
            if lines[number] >= MANY_LINES:
                print(f"{path.stem}: to {passes[number].label}, {lines[number]} lines, {name}: {took:.0f} ms")


def steps(browser: Any, url: str, numbers: list[int]) -> list[float]:
    """Milliseconds of each step, in a page of its own: every text is unpacked for the first time."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(url)
    page.wait_for_selector(".item")
    page.wait_for_timeout(300)
    found = [page.evaluate(STEP, number) for number in numbers]
    page.close()
    return found


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [Path(text) for text in sys.argv[1:]] or recorded(folder)
        captures = [load(path) for path in paths]
        pages = [(sizes(capture, path, folder), capture) for path, capture in zip(paths, captures, strict=True)]
        in_browser(pages)


if __name__ == "__main__":
    main()
