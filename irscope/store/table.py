"""The table of a sweep to and from one file: Parquet, CSV or JSON; and the rows so far, while it is being made."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from irscope.errors import MissingTool, ParseError, UsageError, installing
from irscope.model.trial import SweepRow
from irscope.store.disk import write_atomically
from irscope.store.schema import converted

_KINDS = {item.name: str(item.type) for item in fields(SweepRow)}
_NUMBERS: dict[str, type[int | float]] = {"int": int, "int | None": int, "float | None": float}
"""The type of a column of numbers, by that of its field."""
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "'")
"""What a text begins with that spreadsheets run as a formula, and the apostrophe that keeps them from it."""


def check_table(path: Path) -> None:
    """Raise UsageError for a file that is no table by its name, and MissingTool where pyarrow is missing for it."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise UsageError(f"{str(path)!r} is not the name of a table: it ends in {', '.join(TABLE_SUFFIXES)}.")
    if path.suffix.lower() == ".parquet":
        _parquet()


def save_table(rows: Sequence[SweepRow], path: Path) -> None:
    check_table(path)
    write_atomically(path, TABLE_SUFFIXES[path.suffix.lower()][0](rows))


def load_table(path: Path) -> tuple[SweepRow, ...]:
    """Read a table; raises ParseError for a file that is none."""
    check_table(path)
    try:
        rows = TABLE_SUFFIXES[path.suffix.lower()][1](path.read_bytes())
        return converted(rows, tuple[SweepRow, ...])
    except OSError as error:
        raise ParseError(f"cannot read {str(path)!r}: {error.strerror or error}.") from error
    except MissingTool:
        raise
    except Exception as error:
        # Whatever the readers of Parquet, CSV and JSON say of a file that is not such a table.
        raise ParseError(f"{str(path)!r} is not a table of irscope sweep: {error}") from error


class Journal:
    """The rows so far, a line each, beside the table: what is left of a sweep that was ended."""

    def __init__(self, table: Path) -> None:
        self.path = table.with_name(f"{table.name}.partial")

    def rows(self) -> Iterator[SweepRow]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError:
            return
        for line in lines:
            try:
                yield converted(json.loads(line), SweepRow)
            except Exception:
                # The process ended within a line, or somebody wrote into the file.
                continue

    def add(self, row: SweepRow) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            # What was cut short stays a line of its own.
            begin = b"\n" if file.tell() else b""
            file.write(begin + json.dumps(asdict(row)).encode("utf-8", "surrogatepass"))
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet  # pyright: ignore
    except ImportError as error:
        raise MissingTool(f"Parquet needs pyarrow: {installing('sweep')}. CSV and JSON need nothing.") from error
    return parquet


def _to_parquet(rows: Sequence[SweepRow]) -> bytes:
    parquet = _parquet()
    import pyarrow  # pyright: ignore

    arrow: Any = pyarrow

    kinds: dict[str, Any] = {
        "int": arrow.int64(),
        "int | None": arrow.int64(),
        "float | None": arrow.float64(),
        "str": arrow.string(),
        "tuple[tuple[str, int], ...]": arrow.map_(arrow.string(), arrow.int64()),
        "tuple[str, ...]": arrow.list_(arrow.string()),
    }
    schema = arrow.schema([(name, kinds[kind]) for name, kind in _KINDS.items()])
    sink = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist([_clean(asdict(row)) for row in rows], schema=schema), sink)
    return sink.getvalue()


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    return row | {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}


def _from_parquet(data: bytes) -> Any:
    return _parquet().read_table(io.BytesIO(data)).to_pylist()


def _to_csv(rows: Sequence[SweepRow]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_KINDS), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = asdict(row) | {"counts": json.dumps(dict(row.counts)), "findings": " ".join(row.findings)}
        writer.writerow({name: _escaped(value) for name, value in cells.items()})
    return text.getvalue().encode("utf-8", "surrogateescape")


def _escaped(value: Any) -> Any:
    """The value of a cell, with an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_SIGNS) else value


def _from_csv(data: bytes) -> Any:
    lines = csv.DictReader(io.StringIO(data.decode("utf-8", "surrogateescape")))
    if list(lines.fieldnames or ()) != list(_KINDS):
        raise ParseError("its columns are others.")
    rows: list[dict[str, Any]] = []
    for line in lines:
        row: dict[str, Any] = {
            name: text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA_SIGNS) else text
            for name, text in line.items()
        }
        for name, kind in _KINDS.items():
            if kind in _NUMBERS:
                row[name] = _NUMBERS[kind](row[name]) if row[name] else None
        row["counts"] = list(json.loads(row["counts"]).items())
        row["findings"] = row["findings"].split()
        rows.append(row)
    return rows


def _to_json(rows: Sequence[SweepRow]) -> bytes:
    plain = [asdict(row) | {"counts": dict(row.counts)} for row in rows]
    return json.dumps(plain, indent=1).encode()


def _from_json(data: bytes) -> Any:
    rows: Any = json.loads(data)
    return [row | {"counts": list(row["counts"].items())} for row in rows]


TABLE_SUFFIXES: dict[str, tuple[Callable[[Sequence[SweepRow]], bytes], Callable[[bytes], Any]]] = {
    ".parquet": (_to_parquet, _from_parquet),
    ".csv": (_to_csv, _from_csv),
    ".json": (_to_json, _from_json),
}
"""The forms of a table by the suffix of its file, each with what writes and what reads it."""
