"""Which stored captures `irscope ls` lists: by kernel, file, target, option, date and outcome."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from irscope.cli import options
from irscope.cli.grouped import grouped
from irscope.errors import TargetError, UsageError
from irscope.store.shelf import StoredRow
from irscope.target import Target

_which = options.in_panel("Which")

# 30min  |  2 h  |  1.5d
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Filters:
    """What a listed capture has to fit; with nothing given, all do."""

    kernel: Annotated[
        str | None,
        typer.Argument(
            metavar="[KERNEL|COLLECTION[::KERNEL]]",
            help="Part of the kernel's name, or a pattern: 'matmul*'; or a collection to list.",
            show_default=False,
        ),
    ] = None
    file: Annotated[str | None, _which("--file", metavar="PATH", help="Part of the path of the kernel's file.")] = None
    target: Annotated[
        list[str] | None,
        _which("--target", "-t", metavar="BACKEND[:ARCH]", help="cuda:90, hip, h100, …; repeatable."),
    ] = None
    option: Annotated[
        list[str] | None,
        _which("--option", metavar="NAME=VALUE", help="A compile option or a constant: BLOCK_M=64; repeatable."),
    ] = None
    failed: Annotated[bool, _which("--failed", help="Those that failed, or do not fit the GPU.")] = False
    since: Annotated[
        str | None, _which("--since", metavar="WHEN", help="Recorded since: 30min, 2h, 3d, 2026-01-31, ….")
    ] = None
    last: Annotated[bool, _which("--last", help="Those of the last recording.")] = False

    def chosen(self, rows: Sequence[StoredRow], last: Collection[str]) -> list[StoredRow]:
        """The rows that fit, in their order; raises UsageError for a value that is none.

        `last`: the names of the last recording's files.
        """
        targets = [_target(text) for text in self.target or ()]
        pairs = [_pair(text) for text in self.option or ()]
        since = None if self.since is None else _moment(self.since)

        def fits(row: StoredRow) -> bool:
            one, target = row.facts, row.facts.target
            return (
                (self.kernel is None or self.kernel in one.name or fnmatchcase(one.name, self.kernel))
                and (self.file is None or self.file in one.file)
                and (not targets or any(wanted in (str(target), target.backend) for wanted in targets))
                and (not pairs or set(pairs) <= one.parts.items())
                and (not self.failed or one.status == "failed")
                and (since is None or _timestamp(one.date) >= since)
                and (not self.last or row.file in last)
            )

        return [row for row in rows if fits(row)]

    def described(self) -> Iterator[str]:
        """The filters that are given, as they are written."""
        if self.kernel is not None:
            yield self.kernel
        named = [
            ("--file", [self.file]),
            ("--target", self.target),
            ("--option", self.option),
            ("--since", [self.since]),
        ]
        for name, values in named:
            yield from (f"{name} {value}" for value in values or () if value is not None)
        yield from (name for name, given in (("--failed", self.failed), ("--last", self.last)) if given)


with_filters = grouped("filters", Filters)
"""The decorator of a command that takes the Filters as its parameter `filters`."""


def _target(text: str) -> str:
    if text in ("cuda", "hip"):
        return text
    try:
        return str(Target.parse(text))
    except TargetError as error:
        raise UsageError(f"--target {text!r}: write a backend (cuda, hip) or a target. {error}") from error


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--option {text!r}: write NAME=VALUE, such as num_warps=8 or BLOCK_M=64.")
    return name.strip(), value.strip()


def _moment(text: str) -> float:
    """When a text means, in seconds since 1970: some time ago, or a date."""
    if found := _AGE.fullmatch(text.strip()):
        now = datetime.datetime.now(datetime.timezone.utc).timestamp()
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        # Without a zone it is the user's own time.
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(f"--since {text!r}: write 30min, 2h, 3d, or a date such as 2026-01-31.") from None


def _timestamp(date: str) -> float:
    try:
        return datetime.datetime.fromisoformat(date).timestamp()
    except ValueError:
        return 0.0
