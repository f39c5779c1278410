"""docs/json.md as a schema: reads its tables, and says where a value does not fit them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irscope.cli.output import JSON_VERSION
from irscope.device.measurement import Agreement
from tests.cli.product import Run

PAGE = Path(__file__).parents[2] / "docs" / "json.md"

# ### stored capture
_HEADING = re.compile(r"^### (.+)$")
# | `text`? | list of text | with `--stage NAME` |
_ROW = re.compile(r"^\| `(?P<key>[^`]+)`(?P<optional>\??) \| (?P<type>.+?) \| (?P<meaning>.*)\|$")
# [stored capture](#stored-capture)
_LINK = re.compile(r"^\[(?P<name>[^]]+)\]\(#(?P<anchor>[^)]+)\)$")
_LINK_ANYWHERE = re.compile(r"\[(?P<name>[^]]+)\]\(#[^)]+\)")
_PLAIN: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass
class Reference:
    """The tables of the page."""

    tables: dict[str, dict[str, tuple[str, bool]]] = field(default_factory=dict)
    """Name of an object -> key -> (type, whether it may be left out)."""
    commands: dict[str, str] = field(default_factory=dict)
    """Command, as the page writes it -> what it prints."""
    seen: set[tuple[str, str]] = field(default_factory=set)
    """(object, key) of everything that a value had, null or not."""
    valued: set[tuple[str, str]] = field(default_factory=set)
    """Those that had a value other than null, and other than an empty list or object."""

    def prints(self, command: str) -> str:
        """The type of what a command prints."""
        return next(prints for names, prints in self.commands.items() if command in (names, *_words(names)))

    def objects_in(self, type_: str) -> list[str]:
        """The object that a type names, if any."""
        return [match["name"] for match in _LINK_ANYWHERE.finditer(type_)]

    def misfits(self, value: Any, type_: str, where: str = "") -> Iterator[str]:
        """What in a value is not as its type says."""
        if type_.endswith(" or null"):
            if value is not None:
                yield from self.misfits(value, type_.removesuffix(" or null"), where)
        elif type_.startswith("list of "):
            if not isinstance(value, list):
                yield f"{where}: {value!r} is not a list"
                return
            for item in value:
                yield from self.misfits(item, type_.removeprefix("list of "), f"{where}[]")
        elif type_.startswith("map of "):
            if not isinstance(value, dict):
                yield f"{where}: {value!r} is not an object"
                return
            for key, item in value.items():
                yield from self.misfits(item, type_.removeprefix("map of "), f"{where}.{key}")
        elif link := _LINK.match(type_):
            yield from self._object(value, link["name"], where)
        elif type_ != "any":
            allowed = _PLAIN[type_]
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
                yield f"{where}: {value!r} is not {type_}"

    def _object(self, value: Any, name: str, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{where}: {value!r} is not an object"
            return
        table = self.tables[name]
        for key, item in value.items():
            if key not in table:
                yield f"{where}.{key} is not documented ({name})"
                continue
            self.seen.add((name, key))
            if item not in (None, [], {}):
                self.valued.add((name, key))
            yield from self.misfits(item, table[key][0], f"{where}.{key}")
        for key, (_, optional) in table.items():
            if key not in value and not optional:
                yield f"{where}.{key} is missing ({name})"


def _words(names: str) -> list[str]:
    return names.replace("`", "").split(", ")


def read_reference() -> Reference:
    """Read the page."""
    found = Reference()
    name = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if heading := _HEADING.match(line):
            name = heading[1]
            assert name not in found.tables, f"{name!r} has two tables"
            found.tables[name] = {}
        elif line.startswith("## "):
            name = ""
        elif row := _ROW.match(line) if name else None:
            assert row["key"] not in found.tables[name], f"{name}: {row['key']} stands there twice"
            found.tables[name][row["key"]] = (row["type"], bool(row["optional"]))
        elif line.startswith("| `"):
            assert not name, f"{name}: this row cannot be read: {line}"
            command, _, prints = line.strip("| ").partition(" | ")
            found.commands[command] = prints.strip()
    return found


RICH = Agreement("close", 0.5, 0.25, "x", 3, "detail", 0.1, 0.9, 0.2, 1, "12 runs")
OF_A_RECORDING = [
    ("access of a violation", "lane"),
    ("access of a violation", "warp"),
    ("layout use", "chains"),
    ("line count", "live_registers"),
    ("located operation", "live_registers"),
    *(("predicted launch", key) for key in ("interval_s", "lines", "minimum_s", "predicted_s")),
    *(("proof", key) for key in ("arguments", "assumed", "notes", "violations")),
    ("same bits", "orders"),
    *(("share of a line", key) for key in ("file", "line", "share")),
    ("verdict", "notes"),
]
"""Keys that the stored captures lack: what Triton is needed for prints them."""
NEVER_WITH_A_VALUE = {
    ("counts", "accumulators"),  # of AMD alone
    ("pass comparison", "fallback"),  # a pass's IR is always read
}
"""(object, key) of what the commands below print as null."""


def unseen(reference: Reference, *commands: str) -> list[tuple[str, str]]:
    """The documented keys of what these commands print that none of them printed with a value."""
    waiting = [reference.prints(command) for command in commands]
    names: list[str] = []
    for type_ in waiting:
        for name in reference.objects_in(type_):
            if name not in names:
                names.append(name)
                waiting += [nested for nested, _ in reference.tables[name].values()]
    documented = {(name, key) for name in names for key in reference.tables[name]}
    return sorted(documented - reference.valued - NEVER_WITH_A_VALUE)


def check(reference: Reference, run: Run, command: str, *arguments: object, code: int = 0) -> Any:
    """Run a command with `--json`, and compare what it prints with the row of the page that `command` names."""
    answer, out, err = run(*arguments, "--json")
    assert answer == code, err
    data = json.loads(out)
    for one in data if isinstance(data, list) else [data]:
        assert one.pop("irscope_json") == JSON_VERSION
    misfits = list(reference.misfits(data, reference.prints(command)))
    assert misfits == [], misfits
    return data
