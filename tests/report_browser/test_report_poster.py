"""The poster on top of the overview: that of `irscope poster`, in the page's colours, and saved as it is shown."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from irscope.api.timing import time
from irscope.model.capture import Capture
from irscope.model.evidence import CompileTimes, TimeSpan
from irscope.render.canvas import theme_named
from irscope.render.poster.poster import poster_svg
from irscope.render.timing import prediction_svg, prediction_text, times_svg
from tests.analysis.in_flight.launched import matmul
from tests.render.poster.texts import texts_of
from tests.report_browser.captures import predicted, softmax
from tests.report_browser.conftest import Open

pytestmark = pytest.mark.slow
_FILL = "getComputedStyle(document.querySelector('.poster .p-page')).fill"


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


@cache
def timed() -> Capture:
    """A matmul, and where the time of its compile went."""
    spans = [("matmul", "compile", 0, 90, 0), ("ttgir", "stage", 0, 40, 1), ("pipeline#1", "pass", 5, 30, 2)]
    times = CompileTimes(
        tuple(TimeSpan(name, kind, at * 10**6, ms * 10**6, depth) for name, kind, at, ms, depth in spans)
    )
    return replace(matmul("matmul-cuda-80", 1024), times=times)


def test_where_a_compiles_time_went_is_drawn_in_both_themes(open_report: Open) -> None:
    page = open_report([timed()], "tab=time")
    page.wait_for_selector(".flame svg text")
    shown = page.evaluate("[...document.querySelectorAll('.flame svg text')].map(one => one.textContent)")
    assert shown == [one.text for one in texts_of(times_svg(timed()))]
    assert {"ttgir", "pipeline#1"} <= set(shown)
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        assert page.evaluate(_FILL.replace(".poster", ".flame")) == rgb(theme_named(theme).page)


def test_the_predicted_time_has_a_tab(open_report: Open) -> None:
    prediction = time(predicted())
    page = open_report([predicted()], "tab=time")
    page.wait_for_selector(".flame svg text")
    shown = page.evaluate("[...document.querySelectorAll('.flame svg text')].map(one => one.textContent)")
    assert shown == [one.text for one in texts_of(prediction_svg(prediction))]
    assert page.locator(".overview > p").first.text_content() in prediction_text(prediction)
    lines = page.locator(".card", has=page.locator("h2", has_text="Lines"))
    assert lines.locator("tbody tr").count() == min(10, len(prediction.lines))
    worst = prediction.lines[0]
    cells = lines.locator("tbody tr").first.locator("td").all_text_contents()
    assert cells[:2] == [f"{Path(worst.file).name}:{worst.line}", f"{worst.share:.1%}"]


def test_where_no_time_is_predicted_the_tab_names_the_command(open_report: Open) -> None:
    page = open_report([softmax()], "tab=time")
    assert f"irscope time {softmax().id}" in page.locator(".remark").text_content()


def test_the_poster_is_the_commands_and_follows_the_theme(open_report: Open, tmp_path: Path) -> None:
    wanted = [one.text for one in texts_of(poster_svg(timed()))]
    page = open_report([timed()])
    page.wait_for_selector(".poster:not(.flame) svg text")
    assert (
        page.evaluate("[...document.querySelectorAll('.poster:not(.flame) svg text')].map(one => one.textContent)")
        == wanted
    )
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        assert page.evaluate(_FILL) == rgb(theme_named(theme).page)
    with page.expect_download() as saved:
        page.click(".poster:not(.flame) figcaption button")
    saved.value.save_as(tmp_path / "poster.svg")
    alone = (tmp_path / "poster.svg").read_text("utf-8")
    assert [one.text for one in texts_of(alone)] == wanted
    assert rgb(theme_named("dark").page) in alone
