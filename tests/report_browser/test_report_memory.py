"""The Memory tab: every number is the one of the command's `--json`, and its links lead where they say."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from irscope.memory.costs import costs_of
from irscope.model.capture import Capture
from irscope.model.evidence import OperationLines
from irscope.store.file import load, save
from tests.hostile.viewing import run_quietly
from tests.marks import sampled
from tests.memory.cases import too_large
from tests.report_browser.captures import attention, failed, softmax
from tests.report_browser.conftest import Open

pytestmark = pytest.mark.slow

MOST = 2**62
FIGURES = ("executions", "bytes", "units", "ideal_units", "wasted", "least_units", "lines", "masked_lanes")
SHARED = ("bits_per_thread", "wavefronts", "minimum_wavefronts", "banks")
AMD = Path(__file__).parents[1] / "data" / "layouts" / "matmul-hip-gfx942.irscope"

READ_GLOBAL = """() => [...document.querySelectorAll('[aria-label="Accesses to global memory"] tbody')].map((body) => ({
  line: Number(body.dataset.line),
  text: body.innerText,
  rows: Object.fromEntries([...body.querySelectorAll('tr[data-scope]')].map((row) => [row.dataset.scope, {
    ...Object.fromEntries([...row.querySelectorAll('[data-of]')].map((one) => [one.dataset.of, one.innerText])),
    mark: row.lastElementChild.innerText,
  }])),
}))"""
READ_SHARED = """() => [...document.querySelectorAll('[aria-label="Accesses to shared memory"] tbody tr')]
  .map((row) => ({
  line: Number(row.dataset.line),
  ...Object.fromEntries([...row.querySelectorAll('[data-of]')].map((one) => [one.dataset.of, one.innerText])),
}))"""
READ_BUFFERS = """() => [...document.querySelectorAll('.memory h3 + table tbody tr')].map(
  (row) => [...row.children].map((one) => one.innerText))"""


def of_command(capture: Capture, folder: Path, option: str) -> Any:
    path = save(capture, folder / "capture.irscope")
    code, out, told = run_quietly(("layout", str(path), option, "--json"))
    assert code in (0, 1), told
    return json.loads(out)


def words(span: list[int]) -> str:
    low, high = span
    if low == high:
        return f"{low:,}"
    return f"{low:,} to {high:,}" if high < MOST else f"at least {low:,}" if low else "not known"


def cells(traffic: dict[str, list[int]], with_lines: bool) -> dict[str, str]:
    (low, high), (least, most) = traffic["units"], traffic["ideal_units"]
    wasted = [max(low - most, 0), high - least if high < MOST else MOST]
    figures = {name: words({**traffic, "wasted": wasted}[name]) for name in FIGURES}
    return figures if with_lines else {name: text for name, text in figures.items() if name != "lines"}


def scopes(access: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """The rows of an access: programs that are alike as one."""
    groups = [list(names) for _, names in groupby(("first", "inner", "last"), key=lambda name: access[name])]
    rows = {f"{', '.join(names)} program": access[names[0]] for names in groups}
    return rows | {"launch": access["launch"]}


CASES = {
    "exact": attention,
    "wasted": lambda: attention(width=65),
    "bounds": lambda: attention(alignment=4, offset=3, width=72),
    "not recorded": lambda: attention(recorded=False),
    "amd": lambda: load(AMD),
}


@cache
def several() -> dict[str, Capture]:
    """The captures of one report, for what is looked at in one or two tests each."""
    reason = "compiling the TTGIR again for this gave another ptx"
    return {
        "bounds": CASES["bounds"](),
        "amd": CASES["amd"](),
        "operations": with_operations(attention(), OWN | {LATER: start_of_reduction()} | dict.fromkeys(*stores())),
        "another ptx": attention().with_(operations=(OperationLines("ptx", reason=reason),)),
        "no record": softmax(),
        "failed": failed(),
        "too large": too_large(),
    }


def opened(open_report: Open, name: str, rest: str = "tab=memory") -> Any:
    """The report that shows one of `several`."""
    return open_report(list(several().values()), f"c={[*several()].index(name) + 1}&{rest}")


@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_the_figures_are_the_commands(open_report: Open, tmp_path: Path, name: str) -> None:
    capture = several()[name] if name in several() else CASES[name]()
    page = opened(open_report, name) if name in several() else open_report([capture], "tab=memory")
    costs = of_command(capture, tmp_path, "--costs")
    shown = page.evaluate(READ_GLOBAL)
    accesses = [cost["access"] for cost in costs if cost["access"] is not None]
    assert accesses
    assert [one["line"] for one in shown] == [one["line"] for one in accesses]
    marks: set[str] = set()
    for one, access in zip(shown, accesses, strict=True):
        if not access["launch"]["executions"][1]:
            assert "never executed" in one["text"]
            continue
        rows = {scope: row for scope, row in one["rows"].items() if scope != "one execution"}
        expected = scopes(access)
        assert list(rows) == list(expected)
        for scope, traffic in expected.items():
            figures = {key: text for key, text in rows[scope].items() if key != "mark"}
            assert figures == cells(traffic, access["unit_bytes"] != access["line_bytes"]), (one["line"], scope)
            known = all(low == high for low, high in traffic.values())
            mark = rows[scope]["mark"].partition(" assumed ")[0]
            if scope == "launch":
                marks.add(access["certainty"])
                named = {"exact": "exact", "range": "between these bounds", "sampled": "sampled"}[access["certainty"]]
                assert mark == (named if known and named == "exact" else f"{named}: {access['basis']}")
            else:
                assert (mark == "exact") == known
        assert f"{access['bits_per_thread']} bits per thread" in one["text"]
    if name in ("bounds", "not recorded"):
        assert "range" in marks
    if name == "wasted":
        assert any(cell["wasted"] != "0" for one in shown for cell in one["rows"].values())


@pytest.mark.parametrize("name", ["exact", "amd"])
def test_shared_accesses_are_the_commands(open_report: Open, tmp_path: Path, name: str) -> None:
    capture = several()[name] if name in several() else CASES[name]()
    page = opened(open_report, name) if name in several() else open_report([capture], "tab=memory")
    expected = [cost for cost in of_command(capture, tmp_path, "--costs") if cost["kind"] == "shared"]
    shown = page.evaluate(READ_SHARED)
    assert [one["line"] for one in shown] == [cost["line"] for cost in expected]
    conflicts = set[str]()
    for one, cost in zip(shown, expected, strict=True):
        figures = cost["figures"]
        for key in SHARED:
            assert one[key] == (f"{figures[key]:,}" if key in figures else ""), (one["line"], key)
        ways = figures.get("ways")
        assert one["ways"] == ("" if ways is None else "none" if ways <= 1 else f"{round(ways, 2):g}-way")
        conflicts.add(one["ways"])
    assert "none" in conflicts


def test_buffers_over_time_are_the_commands(open_report: Open, tmp_path: Path) -> None:
    capture = attention()
    page = open_report([capture], "tab=memory")
    (memory,) = of_command(capture, tmp_path, "--memory")["memories"]
    shown = page.evaluate(READ_BUFFERS)
    assert len(shown) == len(memory["buffers"]) == 5
    for number, (row, one) in enumerate(zip(shown, memory["buffers"], strict=True)):
        title = f"{one['value']} {one['what']}"
        operation = f"ttgir:{one['ttgir_line']} {one['owner']}"
        steps = f"{one['start']} to {one['end'] - 1}"
        at_peak = "yes" if number in memory["peak"]["holders"] else ""
        size, offset = f"{one['size']:,}", f"{one['offset']:,}"
        assert row == [str(number + 1), title, operation, row[3], offset, size, "", steps, at_peak]
        assert row[3].endswith(":" + one["place"].rpartition(":")[2])
        assert "ttg.local_alloc" in capture.text("ttgir").split("\n")[one["ttgir_line"] - 1]
    assert f"peak: {memory['peak']['held']} bytes allocated" in page.inner_text(".memory h3")


def test_the_picture_is_the_commands(open_report: Open, tmp_path: Path) -> None:
    capture = attention()
    page = open_report([capture], "tab=memory")
    path = save(capture, tmp_path / "capture.irscope")
    code, _, told = run_quietly(("layout", str(path), "--memory", "-o", str(tmp_path / "x.svg")))
    assert code == 0, told
    svg = re.sub(r"<style>.*?</style>", "", (tmp_path / "x.svg").read_text("utf-8"), flags=re.DOTALL)
    in_page = (
        "[...document.querySelectorAll('svg.mem > g > g *')].map((one) => [one.tagName, one.getAttribute('x') ?? '', "
    )
    in_page += "one.getAttribute('d') ?? one.getAttribute('points') ?? '', one.children.length ? '' : one.textContent])"
    # Without the picture itself and its title.
    parsed = re.findall(r"<(\w+)([^>]*)>([^<]*)", svg)[2:]
    expected = [
        [
            tag,
            (re.search(r'\bx="([^"]*)"', attributes) or ["", ""])[1],
            (re.search(r'\b(?:d|points)="([^"]*)"', attributes) or ["", ""])[1],
            text.strip("\n"),
        ]
        for tag, attributes, text in parsed
    ]
    assert len(expected) > 40
    assert page.evaluate(in_page) == expected


def test_a_box_and_its_row_are_chosen_together(open_report: Open) -> None:
    page = open_report([attention()], "tab=memory")
    page.locator("svg.mem [data-buffer='3'] rect").click()
    assert page.locator("tr.chosen td").first.inner_text() == "4"
    page.get_by_role("button", name="2", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.locator("svg.mem .chosen").get_attribute("data-buffer") == "1"
    assert page.locator("tr.chosen").count() == 1


def test_rows_lead_to_the_operation_and_to_python(open_report: Open) -> None:
    capture = attention()
    page = open_report([capture], "tab=memory")
    (line,) = {one.line for one in costs_of(capture) if one.operation == "tt.store"}
    page.locator(f"tbody[data-line='{line}'] button", has_text="ttgir:").click()
    page.wait_for_selector(".stage-pane .lit-own")
    assert f"at=ttgir%3A{line}" in page.evaluate("location.hash")
    assert "tt.store" in page.locator(".lit-own").first.inner_text()
    page.go_back()
    page.wait_for_selector(".memory")
    page.locator(f"tbody[data-line='{line}'] button", has_text="flash_attention.py:").click()
    page.wait_for_selector(".stage-pane .lit-own")
    place = next(one.place for one in costs_of(capture) if one.line == line)
    assert f"at=py0%3A{place.rpartition(':')[2]}" in page.evaluate("location.hash")
    assert "store" in page.locator(".stage-pane:first-child .lit-own").inner_text()


@pytest.mark.parametrize(("system", "theme", "fill"), [
    ("dark", "light", "rgb(255, 255, 255)"), ("light", "dark", "rgb(25, 28, 34)"), ("dark", None, "rgb(25, 28, 34)"),
])  # fmt: skip
def test_the_picture_has_the_pages_theme(open_report: Open, system: str, theme: str | None, fill: str) -> None:
    page = open_report([attention()], "tab=memory")
    page.emulate_media(color_scheme=system)
    if theme:
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    assert page.evaluate("getComputedStyle(document.querySelector('.p-on')).fill") == fill


def with_operations(capture: Capture, of: dict[int, int]) -> Capture:
    """The capture with the operation of some lines of its PTX, and of no other line."""
    lines = capture.text("ptx").count("\n") + 1
    rows = OperationLines.of("ptx", [of.get(number, 0) for number in range(1, lines + 1)])
    return capture.with_(operations=(rows,))


def lit(page: Any, strength: str) -> list[str]:
    page.wait_for_selector(".stage-pane:nth-child(2) .lit-own, .stage-pane:first-child .lit-own")
    return page.eval_on_selector_all(
        f".stage-pane:nth-child(2) .cm-line.lit-{strength}", "all => all.map(one => one.textContent.trim())"
    )


# Two operations of one place in Python, and the instructions between them.
FIRST, SECOND, BEGIN, MIDDLE, END = 347, 348, 2568, 2571, 2574
OWN = {number: FIRST if number < MIDDLE else SECOND for number in range(BEGIN, END)}
LATER = 2400
"""A line of the PTX that is none of these: the reduction's."""


def start_of_reduction() -> int:
    ttgir = attention().text("ttgir").split("\n")
    return next(number for number, line in enumerate(ttgir, 1) if '"tt.reduce"' in line)


def stores() -> tuple[list[int], int]:
    """The lines of the PTX that store to global memory, and that of the TTGIR."""
    (line,) = {cost.line for cost in costs_of(attention()) if cost.operation == "tt.store"}
    ptx = attention().text("ptx").split("\n")
    return [number for number, text in enumerate(ptx, 1) if "st.global" in text], line


def test_two_operations_of_one_line_are_told_apart(open_report: Open) -> None:
    capture = attention()
    ptx = [line.strip() for line in capture.text("ptx").split("\n")]
    page = opened(open_report, "operations", f"tab=stages&panes=ttgir,ptx&at=ttgir:{FIRST}")
    assert lit(page, "strong") == ptx[BEGIN - 1 : MIDDLE - 1]
    # The other operation is near, as other columns of the line are.
    assert set(ptx[MIDDLE - 1 : END - 1]) <= set(lit(page, "weak"))
    page.evaluate(f"location.hash = 'c=3&tab=stages&panes=ttgir,ptx&at=ttgir:{SECOND}'")
    page.wait_for_timeout(200)
    assert lit(page, "strong") == ptx[MIDDLE - 1 : END - 1]
    page.evaluate(f"location.hash = 'c=3&tab=stages&panes=ptx,ttgir&at=ptx:{BEGIN}'")
    page.wait_for_selector(".stage-pane:first-child .lit-own")
    ttgir = capture.text("ttgir").split("\n")
    (strong,) = lit(page, "strong")
    assert ttgir[FIRST - 1].strip().startswith(strong)


def test_without_operations_a_line_has_those_of_its_place(open_report: Open) -> None:
    capture = attention()
    page = open_report([capture], f"tab=stages&panes=ttgir,ptx&at=ttgir:{FIRST}")
    ptx = [line.strip() for line in capture.text("ptx").split("\n")]
    assert lit(page, "strong") == ptx[BEGIN - 1 : END - 1]


def test_a_later_line_of_an_operation_is_the_operations(open_report: Open) -> None:
    capture = attention()
    ttgir, first = capture.text("ttgir").split("\n"), start_of_reduction()
    last = next(number for number in range(first, len(ttgir)) if ttgir[number - 1].startswith(" " * 6 + "})"))
    page = opened(open_report, "operations", f"tab=stages&panes=ttgir,ptx&at=ttgir:{last}")
    assert lit(page, "strong") == [capture.text("ptx").split("\n")[LATER - 1].strip()]


def test_instructions_are_counted_where_they_are_known(open_report: Open) -> None:
    numbers, line = stores()
    page = opened(open_report, "operations")
    assert f"ptx: {len(numbers)} × 128 bits" in page.inner_text(f"tbody[data-line='{line}']")
    assert "is not known" not in page.inner_text(".memory")


def test_where_instructions_are_not_known_the_command_is_named(open_report: Open) -> None:
    capture = attention()
    page = open_report([capture], "tab=memory")
    text = page.inner_text(".memory")
    assert f"irscope report {capture.id} --operations" in text
    assert "× 128 bits" not in text


def test_where_the_second_compile_gave_other_code_it_says_so(open_report: Open) -> None:
    text = opened(open_report, "another ptx").inner_text(".memory")
    assert several()["another ptx"].operations[0].reason in text
    assert "--operations" not in text


@pytest.mark.parametrize("name", ["no record", "failed", "too large"])
def test_captures_with_less_say_what_they_have_not(open_report: Open, name: str) -> None:
    page = opened(open_report, name)
    text = page.inner_text(".memory")
    if name == "failed":
        assert text == "The capture holds no TTGIR, from which accesses are read."
        return
    assert "Memory over time" in text
    if name == "too large":
        assert "limit exceeded by 18624" in text
        assert page.locator("svg.mem [data-buffer]").count() == 3
