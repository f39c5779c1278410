"""`irscope upgrade`: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli import upgrade as command
from irscope.model.capture import Capture
from irscope.render.report.results import upgrade_captures, upgrade_results
from irscope.render.text.upgrade import sorted_rows
from tests.analysis.upgrade.rows import a_timed_upgrade, an_upgrade
from tests.cli.json_reference import check, read_reference, unseen
from tests.cli.product import Run

ENVIRONMENTS = ("--from", sys.executable, "--to", sys.executable)


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two compilers are those of texts."""
    monkeypatch.setattr(command, "_upgraded", lambda *_: an_upgrade())


@pytest.mark.usefixtures("stood_in")
def test_a_row_for_each_kernel_that_changed(irscope: Run) -> None:
    code, text, _ = irscope("upgrade", "last", *ENVIRONMENTS)
    assert code == command.WORSE
    assert "Triton 1.0 → 2.0: 6 variants of 6 kernels. 2 worse, 1 better, 1 changed" in text
    slower = "Compiling got slower: slow (cuda:90) 1.43 times as long, 2 compiles each: 210 to 220 → 300 to 320 ms"
    assert slower in text.splitlines()[0]
    assert text.splitlines()[0].endswith("most in ttgir:pipe#1 (1 → 90 ms by the clock).")
    rows = [line.split()[:2] for line in text.splitlines() if re.match(r"(worse|better|other|same|unpaired) ", line)]
    assert rows == [["worse", "broken"], ["worse", "slow"], ["better", "fast"], ["unpaired", "gone"]]
    assert "ttir → ttgir: coalesce#1 (uncertain)" in text
    assert "llir → ptx" in text
    every = irscope("upgrade", "last", *ENVIRONMENTS, "--all")[1]
    assert "little" in every
    assert "little" not in text


@pytest.mark.usefixtures("stood_in")
def test_what_cannot_be_run_is_said(irscope: Run) -> None:
    code, _, err = irscope("upgrade", "last", *ENVIRONMENTS, "--verify")
    assert code == command.WORSE
    assert "the meaning is not decided: " in err
    assert re.search(r"meaning: \d not decided", err)


@pytest.mark.triton
@pytest.mark.newest
def test_another_ptxas_is_blamed(irscope: Run, product: Capture, tmp_path: Path) -> None:
    import triton

    real = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    other = tmp_path / "ptxas"
    other.write_text(f'#!/bin/sh\ncase "$*" in *--version*) exec {real} --version;; esac\nexec {real} "$@" -O0\n')
    other.chmod(0o755)
    code, text, err = irscope("upgrade", product.id, "--to", f"ptxas={other}", "-j", 1)
    assert code == command.WORSE, err
    assert re.search(r"instructions [\d,]+ → [\d,]+ +ptx → cubin: ptxas", text)
    rows = {
        f"ptxas={tmp_path}": "is not a program",
        "ptxas=": "is not a program",
    }
    for value, said in rows.items():
        code, _, err = irscope("upgrade", product.id, "--to", value)
        assert (code, said in err) == (2, True), err
    assert "leave it out with --to ptxas=" in irscope("upgrade", product.id, "--to", f"ptxas={other}", "--time")[2]


@pytest.mark.usefixtures("stood_in")
def test_seven_lines_at_most_explain_a_kernel(irscope: Run) -> None:
    text = irscope("upgrade", "last", *ENVIRONMENTS)[1]
    blocks = re.findall(r"^\w.*\n((?:  .*\n)+)", text, re.MULTILINE)
    assert len(blocks) == 3
    assert all(len(block.splitlines()) <= 7 for block in blocks)
    assert "+ %0 = arith.subi %a, %b : i32" in text


@pytest.mark.usefixtures("stood_in")
def test_seven_lines_at_most_on_the_page_before_a_click(irscope: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert irscope("upgrade", "last", *ENVIRONMENTS, "-o", page)[0] == command.WORSE
    assert 'data-opened="tab=results"' in page.read_text("utf-8")
    results = upgrade_results(an_upgrade(), every=False)
    assert [one.verdict for one in results.sections] == ["worse", "worse", "better", "unpaired"]
    assert all(1 + len(section.lines) <= 7 for section in results.sections)
    # The kernels that have both sides are linked to their comparison; the IR of the guilty pass is behind a click.
    held = upgrade_captures(an_upgrade(), every=False)
    for section, row in zip(results.sections, sorted_rows(an_upgrade().rows, False), strict=True):
        sides = [held[int(section.view[side]) - 1] for side in ("a", "b")] if section.view else None
        assert sides == ([row.before, row.after] if row.before and row.after else None)
    texts = [text for one in results.sections for _, text in one.details]
    assert any(re.search(r"^\+ *%0 = arith.subi", text, re.MULTILINE) for text in texts)


@pytest.mark.usefixtures("stood_in")
def test_the_json_is_as_its_page_says(irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = read_reference()
    check(reference, irscope, "upgrade", "upgrade", "last", *ENVIRONMENTS, "--fail-on", "never")
    monkeypatch.setattr(command, "_upgraded", lambda *_: a_timed_upgrade())
    check(reference, irscope, "upgrade", "upgrade", "last", *ENVIRONMENTS, "--fail-on", "never")
    assert unseen(reference, "upgrade") == []


def test_what_launches_do_stands_first(irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_upgraded", lambda *_: a_timed_upgrade())
    code, text, _ = irscope("upgrade", "last", *ENVIRONMENTS)
    assert code == command.WORSE
    rows = [line for line in text.splitlines() if re.match(r"(worse|better|other|same|unpaired) ", line)]
    # What fails or computes something else, what is slower, what is worse by the compile alone.
    assert [line.split()[1] for line in rows] == ["broken", "same", "little", "slow", "fast", "gone"]
    by_name = {line.split()[1]: line for line in rows}
    assert by_name["same"].split()[-2:] == ["–", "fault"]
    assert "100.0 → 125.0 µs, 1.25x (1.24 to 1.26)" in by_name["little"]
    assert " different " in by_name["little"]
    assert "100.0 → 100.4 µs, 1.00x, no difference" in by_name["slow"]
    assert "0.50x (0.49 to 0.51)" in by_name["fast"]
    said = " ".join(text.split())
    assert "time 100.0 (99.00 to 102.0) → 125.0 (123.8 to 127.5) µs: medians and quartiles of 100 launches" in said
    assert "result different, 12 elements differ, up to 0.5 off, most in out: 12 elements beyond the noise" in said
    assert "results not compared: idx holds other integers" in said
    assert "not run: it does not compile with both" in said
    assert "Timed on Fake GPU, by each environment's own interpreter" in said
    # 1.004 within the noise is no change; the compile's own facts stay.
    little, slow = (
        next(one for one in a_timed_upgrade().rows if one.capture.name == name) for name in ("little", "slow")
    )
    assert [(one.name, one.verdict) for one in little.changes][:2] == [("result", "worse"), ("time_us", "worse")]
    assert "time_us" not in {one.name for one in slow.changes}
    assert irscope("upgrade", "last", *ENVIRONMENTS, "--fail-on", "time_us")[0] == command.WORSE
    sections = {one.title.split()[0]: one for one in upgrade_results(a_timed_upgrade(), every=False).sections}
    assert any("medians and quartiles of 100 launches" in line for line in sections["little"].lines)
    assert sections["little"].lines[0].startswith("result the same → different, time 100 µs → 125 µs")


@pytest.mark.usefixtures("stood_in")
@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("worse", 3), ("never", 0), ("registers", 3), ("spilled_bytes", 0), ("failure,stack_bytes", 3)],
)
def test_what_fails_is_chosen(irscope: Run, fail_on: str, code: int) -> None:
    assert irscope("upgrade", "last", *ENVIRONMENTS, "--fail-on", fail_on)[0] == code


def test_nothing_worse_is_a_success(irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    better = an_upgrade()
    better = replace(better, rows=tuple(one for one in better.rows if one.verdict != "worse"))
    monkeypatch.setattr(command, "_upgraded", lambda *_: better)
    assert irscope("upgrade", "last", *ENVIRONMENTS)[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--to ENV is missing"),
        (("--to", "/no/where"), "--to /no/where: neither a Python nor an environment"),
        (("--to", sys.executable, "--from", "/no/where"), "--from /no/where: neither a Python"),
        (("--to", sys.executable, "--fail-on", "register"), "did you mean"),
        (("--to", sys.executable, "--time"), "--time makes the launches of a script: give the FILE"),
    ],
)
def test_what_is_refused(irscope: Run, words: tuple[str, ...], says: str) -> None:
    code, _, errors = irscope("upgrade", "last", *words)
    assert code == 2
    assert says.lower() in errors.lower()
