"""The words for launches: what tells those of one kernel apart, lists in sentences, and folders of generated files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

_MOST_COLUMNS = 6
"""Parts with a column of their own; more are one column of NAME=VALUE."""
_ABSENT = "–"
DIVISIBILITY = "tt.divisibility"
DIVISIBLE = f"{DIVISIBILITY}=16"
"""What a signature says of an argument that 16 divides, as Triton writes it."""

Row = tuple[Hashable, Mapping[str, str]]
"""What rows are compared within (the kernel, and its target where options are among the parts), and its parts."""


class _HasParts(Protocol):
    """A launch, or the facts of one."""

    @property
    def signature(self) -> Sequence[tuple[str, str]]: ...
    @property
    def constants(self) -> Sequence[tuple[str, str]]: ...
    @property
    def attributes(self) -> Sequence[tuple[str, str]]: ...
    @property
    def options(self) -> Sequence[tuple[str, Any]]: ...


def parts_of(launch: _HasParts) -> dict[str, str]:
    """Each parameter's constant or type, with what is known of its value (`*fp16:16`), then each compile option.

    A parameter comes before an option of the same name.
    """
    known: dict[str, str] = {}
    for path, text in launch.attributes:
        known[path] = known.get(path, "") + ":" + text.removeprefix(f"{DIVISIBILITY}=")
    constants = dict(launch.constants)
    parts = {name: constants.get(name, kind) + known.get(name, "") for name, kind in launch.signature}
    # Elements of tuples: x[0].
    parts |= {path: value for path, value in constants.items() if path not in parts}
    parts |= {path: text.lstrip(":") for path, text in known.items() if path not in parts}
    return parts | {name: str(value) for name, value in launch.options if name not in parts}


def divisor_of(attributes: str) -> int:
    """The number that divides an argument, as the text of its attributes in a signature says; 1 if it says none."""
    digits = attributes.partition(DIVISIBILITY)[2].lstrip(" =:'\",")
    length = next((at for at, one in enumerate(digits) if not one.isdecimal()), len(digits))
    return int(digits[:length]) if 0 < length < 10 else 1


def telling_names(rows: Sequence[Mapping[str, str]], shown: Sequence[str] = ()) -> list[str]:
    """The parts that tell these rows apart as far as all of their parts together do, few of them, in their order.

    `shown`: parts that a reader sees anyway. The part that tells the most rows apart is taken first.
    """
    names = list(dict.fromkeys(name for parts in rows for name in parts))
    differing = [name for name in names if len({parts.get(name) for parts in rows}) > 1]
    known = [tuple(parts.get(name) for name in shown) for parts in rows]
    chosen: list[str] = []
    while True:
        counts = {
            name: len({(*key, parts.get(name)) for key, parts in zip(known, rows, strict=True)})
            for name in differing
            if name not in shown and name not in chosen
        }
        best = max(counts, key=lambda name: counts[name], default="")
        if not best or counts[best] == len(set(known)):
            return [name for name in names if name in chosen]
        chosen.append(best)
        known = [(*key, parts.get(best)) for key, parts in zip(known, rows, strict=True)]


def telling_columns(rows: Sequence[Row], *, without: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """The columns of a table that tell its rows apart, and each row's cells: for each part, or one for all.

    `without`: parts that the table shows already.
    """
    telling = _telling_of_groups(rows, without)
    names = list(dict.fromkeys(name for found in telling.values() for name in found))
    if len(names) <= _MOST_COLUMNS:
        return names, [[parts.get(name, _ABSENT) for name in names] for _, parts in rows]
    return ["differs in"], [[text] for text in _texts(rows, telling)]


def telling_texts(rows: Sequence[Row]) -> list[str]:
    """What tells each row from the others of its group: `BLOCK=64 num_warps=8`; empty where nothing does."""
    return _texts(rows, _telling_of_groups(rows, ()))


def _telling_of_groups(rows: Sequence[Row], without: Sequence[str]) -> dict[Hashable, list[str]]:
    groups: defaultdict[Hashable, list[Mapping[str, str]]] = defaultdict(list)
    for group, parts in rows:
        groups[group].append(parts)
    return {group: telling_names(members, without) for group, members in groups.items()}


def _texts(rows: Sequence[Row], telling: Mapping[Hashable, Sequence[str]]) -> list[str]:
    return [" ".join(f"{name}={parts.get(name) or _ABSENT}" for name in telling[group]) for group, parts in rows]


def joined(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


# /tmp/torchinductor_user/ln/cln4vrfuae3mpo4ob4g42q6fcclqvmvrztuqwzigfapmx6wvr5wg.py
_GENERATED = re.compile(r"(?P<folder>.+[/\\])(?P<short>[a-z2-7]{2})[/\\]c(?P=short)[a-z2-7]{49}\.py")


def folder_of_generated(path: str) -> str:
    """The folder of TorchInductor's cache that a kernel's file lies in, with its last slash; empty for any other file.

    The names are those of `torch._inductor.codecache.code_hash` and `get_path`.
    """
    found = _GENERATED.fullmatch(path)
    return found["folder"] if found else ""
