"""Draws the posters of the examples on three targets, and measures their texts in Chromium: by hand, it takes minutes.

    python -m tests.render.poster FOLDER [TARGET...]

In FOLDER are the pictures, in every theme, and the captures, which a second run takes. Fails where two texts meet, one
leaves the page or its panel's page, or a text is wider than it was estimated to be.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.canvas import THEMES, Rect
from irscope.render.poster.poster import poster_svg
from irscope.store.file import load, save
from tests.render.poster.texts import Text, texts_of, wrong_boxes
from tests.report_browser.conftest import ARGUMENTS, CHROMIUM

EXAMPLES = ("matmul", "flash_attention", "layer_norm", "matmul_tma", "softmax", "vector_add", "gluon_transpose")
TARGETS = ("cuda:90", "cuda:100", "hip:gfx942")
_MEASURED = """() => [...document.querySelectorAll("text")].map(one => {
    const box = one.getBBox(); return [box.x, box.y, box.width, box.height];
})"""


def main(folder: Path, targets: tuple[str, ...]) -> int:
    """Draw and measure; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong = drawn = 0
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        for name, capture in _captures(folder, targets):
            for theme in THEMES:
                svg = poster_svg(capture, theme)
                file = folder / f"{name}-{theme}.svg"
                file.write_text(svg, "utf-8")
                page.goto(file.resolve().as_uri())
                for text in _wrong(svg, page.evaluate(_MEASURED)):
                    wrong += 1
                    print(f"{file}: {text}")
                page.screenshot(path=str(file.with_suffix(".png")))
                drawn += 1
        chromium.close()
    print(f"{drawn} posters, {wrong} faults")
    return int(wrong > 0)


def _captures(folder: Path, targets: tuple[str, ...]) -> list[tuple[str, Capture]]:
    found: list[tuple[str, Capture]] = []
    for target in targets:
        for example in EXAMPLES:
            stem = f"{example}-{target.replace(':', '-')}"
            files = sorted(folder.glob(f"{stem}-*.irscope"))
            if not files:
                captures = record_request(request_for(f"examples/{example}.py", targets=(target,))).captures
                files = [folder / f"{stem}-{number}.irscope" for number in range(len(captures))]
                for file, capture in zip(files, captures, strict=True):
                    save(capture, file)
            found += [(file.stem, load(file)) for file in files]
    return found


def _wrong(svg: str, boxes: list[list[float]]) -> list[str]:
    texts = texts_of(svg)
    measured: list[Text] = []
    found: list[str] = []
    for one, (x, _, width, _) in zip(texts, boxes, strict=True):
        if width > one.area.width + 1:
            found.append(f"{one.text!r} takes {width:.0f} pixels, estimated were {one.area.width:.0f}")
        measured.append(Text(one.text, one.size, one.look, Rect(x, one.area.top, width, one.area.height)))
    return found + wrong_boxes(measured)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), tuple(sys.argv[2:]) or TARGETS))
