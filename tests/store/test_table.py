"""Tables of sweeps to and from files, and the rows of one that was ended."""

from __future__ import annotations

import csv
import io
import re
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import MissingTool, ParseError, UsageError, installing
from irscope.model.trial import SweepRow
from irscope.store.table import TABLE_SUFFIXES, Journal, load_table, save_table

ROW = SweepRow(
    "k", "c", "kernel", "a.py", 3, "B=64", "num_warps=8", "cuda:90", "", "", "3.9.0", "3.9.0", 8, 3, 1, "id", "ok", "",
    "", registers=20, occupancy_percent=62.5, counts=(("ld.global.128", 2),), findings=("IRS101", "IRS402"),
    compile_us=7,
)  # fmt: skip
SUFFIXES = [one for one in TABLE_SUFFIXES if one != ".parquet" or find_spec("pyarrow")]

words = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)
numbers = st.none() | st.integers(0, 2**53)
rows = st.builds(
    replace,
    st.just(ROW),
    key=words,
    constants=words,
    message=words,
    line=st.integers(0, 99),
    registers=numbers,
    num_warps=numbers,
    occupancy_percent=st.none() | st.floats(0, 100),
    counts=st.dictionaries(words, st.integers(0, 2**40), max_size=3).map(lambda one: tuple(one.items())),
    findings=st.lists(st.sampled_from(["IRS101", "IRS402"]), max_size=3).map(tuple),
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_comes_back(suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("table") / f"table{suffix.upper()}"

    @given(st.lists(rows, max_size=4))
    def comes_back(found: list[SweepRow]) -> None:
        save_table(found, path)
        assert load_table(path) == tuple(found)

    comes_back()


@given(st.lists(rows, min_size=1, max_size=3), st.sampled_from("=+-@\t'"))
def test_no_cell_of_csv_begins_a_formula(found: list[SweepRow], sign: str) -> None:
    found.append(replace(found[0], message=f'{sign}HYPERLINK("http://x")', kernel=f"{sign}1+1"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        save_table(found, path)
        cells = [cell for line in csv.reader(io.StringIO(path.read_bytes().decode(), newline="")) for cell in line]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert load_table(path) == tuple(found)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("data", [b"", b"PAR1", b"a,b\n1,2\n", b"[3]", b'{"a": 1}', b"\xff\xfe\0"])
def test_what_is_no_table(suffix: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_bytes(data)
    with pytest.raises(ParseError, match="is not a table of irscope sweep"):
        load_table(path)


def test_other_names_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'table.xlsx' is not the name of a table: it ends in .parquet, .csv, .json"):
        save_table([ROW], Path("table.xlsx"))
    with pytest.raises(ParseError, match="No such file"):
        load_table(tmp_path / "none.csv")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for call in (lambda: save_table([ROW], tmp_path / "a.parquet"), lambda: load_table(tmp_path / "a.parquet")):
        with pytest.raises(MissingTool, match=re.escape(installing("sweep"))):
            call()
    save_table([ROW], tmp_path / "a.csv")


def test_pyarrow_reads_it_as_it_is(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    other = replace(ROW, registers=None, message="caf\udce9")
    save_table([ROW, other], tmp_path / "a.parquet")
    held = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert held["registers"] == [20, None]
    assert held["findings"] == [["IRS101", "IRS402"]] * 2
    assert held["counts"] == [[("ld.global.128", 2)]] * 2
    assert held["message"] == ["", "caf?"]


def test_the_rows_of_a_sweep_that_was_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "folder" / "table.csv")
    assert list(journal.rows()) == []
    journal.add(ROW)
    # The process was killed within a line.
    with journal.path.open("ab") as file:
        file.write(b'\n{"key": "ha')
    Journal(tmp_path / "folder" / "table.csv").add(replace(ROW, key="other"))
    assert [one.key for one in journal.rows()] == ["k", "other"]
    journal.remove()
    assert list(journal.rows()) == []
