"""One way to write each kind of figure: the same share is the same text wherever it stands."""

from __future__ import annotations

import json
import re

import pytest

from irscope.analysis.diff.captures import diff
from irscope.cli.show import summary
from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources
from irscope.render.capture import capture_json, occupancy_text, summary_html
from irscope.render.report.facts import findings_of
from irscope.render.text.diff import render_comparison
from irscope.render.text.tables import difference, milliseconds, percent, resource_title, resource_value
from irscope.store.shelf import StoredCaptures
from irscope.target import Target


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0 %"), (0.125, "12.5 %"), (0.1875, "18.8 %"), (0.5, "50 %"), (1, "100 %"), (1.03, "103 %"),
        (1 / 3, "33.3 %"), (0.0001, "< 0.1 %"), (0.9999, "> 99.9 %"), (5 / 48, "10.4 %"),
    ],
)  # fmt: skip
def test_shares(fraction: float, text: str) -> None:
    assert percent(fraction) == text


def test_durations_and_resources() -> None:
    assert [milliseconds(us) for us in (0, 420, 9_999, 12_540, 204_400, 1_204_400)] == [
        "0.00", "0.42", "10.00", "12.5", "204", "1204",
    ]  # fmt: skip
    assert (resource_title("occupancy_percent"), resource_value("occupancy_percent", 12.5)) == ("occupancy", "12.5 %")
    assert (resource_title("shared_bytes"), resource_value("shared_bytes", 49152)) == ("shared bytes", "49152")
    assert resource_value("registers", None) == "–"
    assert (difference(37.5), difference(-2.0833333), difference(None)) == ("+37.5", "-2.1", "")


def capture(registers: int, warps: int = 8) -> Capture:
    return Capture(
        Launch(Kernel("k", "k.py", 1), options=(("num_warps", warps),)),
        Target.parse("cuda:90"),
        artifacts=(Artifact("source", "module {}"), Artifact("ptx", ".version 8.0\n")),
        resources=Resources(registers=registers, shared_bytes=0, spill_store_bytes=0),
    )


def shares_in(text: str) -> set[str]:
    return set(re.findall(r"[\d.]+ ?%", re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)))


@pytest.mark.parametrize(("registers", "warps"), [(255, 8), (255, 1), (168, 12), (40, 4), (90, 5), (200, 3)])
def test_occupancy_is_written_one_way_everywhere(registers: int, warps: int) -> None:
    one, other = capture(registers, warps), capture(32, warps)
    found = occupancy_of(one)
    assert found is not None
    text = percent(found.fraction)
    assert occupancy_text(one).startswith(f"{text} (")
    assert text in summary(StoredCaptures.of([one]), None)
    assert shares_in(summary_html(one)) == {text}
    comparison = diff(one, other)
    ours = {text, occupancy_text(other).partition(" (")[0]}
    assert shares_in(render_comparison(comparison, stages=())) == (ours if len(ours) > 1 else set())
    for row in findings_of(one, (), (), among=None):
        if row["text"].startswith("Occupancy"):
            assert text in row["text"]
    # JSON holds the number itself.
    assert json.loads(json.dumps(capture_json(one)))["occupancy"]["fraction"] == found.fraction
