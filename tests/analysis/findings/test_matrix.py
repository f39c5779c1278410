"""The planted kernels' table: what is left to judge, and how it counts."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.findings.cases import marked_lines
from tests.analysis.findings.every import EVERY
from tests.analysis.findings.matrix import Row, read_rows, table, tasks_of
from tests.analysis.findings.verdict import Verdict

ROW = Row("3.9.0", "cuda:90", "IRS101", "IRS101-row-stride", Verdict("right"))


def test_every_case_names_a_line_or_the_whole_kernel() -> None:
    for name, case in EVERY.items():
        assert case.is_of_kernel or marked_lines(case.planted.kernel, case.code, case.planted.file), name
    assert len({case.planted for case in EVERY.values()}) >= 60


def test_what_was_judged_is_not_judged_again(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    kept.write_text(ROW.as_line() + "\n")
    known = read_rows([kept, tmp_path / "none.json"])
    assert known == [ROW]
    left = {(target, name) for target, names in tasks_of("3.9.0", known, [], []) for name in names}
    everything = {(target, name) for target, names in tasks_of("3.8.0", known, [], []) for name in names}
    assert everything - left == {("cuda:90", "IRS101-row-stride")}
    assert {target for target, _ in tasks_of("3.9.0", (), ["row"], ["cuda:80"])} == {"cuda:80"}


def test_the_table_counts_by_kind_and_names_what_is_not_right() -> None:
    missing = Row("3.6.0", "cuda:80", "IRS101", "IRS101-gate-down", Verdict("missing"))
    assert table([ROW, missing]).split("\n") == [
        "kind    3.6.0 cuda:80  3.9.0 cuda:90",
        "IRS101  0/1            1/1",
        "missing 3.6.0 cuda:80 IRS101-gate-down",
        "1 of 2 right, 2 planted kernels",
    ]
