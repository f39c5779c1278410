"""A program that is recorded again on each save: its files, and each kernel compared with its last good state."""

from __future__ import annotations

import ast
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from irscope.analysis.checks.results import kept_facts
from irscope.analysis.checks.subject import Subject
from irscope.analysis.findings.model import Finding
from irscope.analysis.regressions import FactChange, changed_facts
from irscope.errors import undamaged
from irscope.model.capture import Capture
from irscope.model.facts import CaptureFacts
from irscope.record.process.requests import imports_beside
from irscope.render.text.failure import failure_text
from irscope.store.baseline import variant_names

if TYPE_CHECKING:
    from irscope.analysis.diff.captures import Comparison


_INTERVAL_S = 0.2
_MOST_FILES = 2000
_Stamp = tuple[int, int, int]


def program_files(path: Path) -> tuple[Path, ...]:
    """A Python file and the modules beside it that it imports, and these import; other files alone."""
    found: dict[Path, None] = {}
    waiting = [path.absolute()]
    while waiting and len(found) < _MOST_FILES:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = None
        if file.suffix == ".py":
            waiting += _imported_beside(file, path.absolute().parent)
    return tuple(found)


def _imported_beside(file: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_text("utf-8", "replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        # Half written, or not Python: what it imported is known from before.
        return
    for _, files in imports_beside(tree, file, root):
        yield from files


class Watched:
    """Files, and how they were when they were looked at last."""

    def __init__(self, *, interval_s: float = _INTERVAL_S, sleep: Callable[[float], None] = time.sleep) -> None:
        self._interval_s = interval_s
        self._sleep = sleep
        self._stamps: dict[Path, _Stamp | None] = {}

    def look(self, files: Iterable[Path]) -> None:
        """Watch these files from now on, as they are now; those that were watched before stay as they were seen."""
        self._stamps = {file: self._stamps[file] if file in self._stamps else _stamp(file) for file in files}

    def wait(self) -> tuple[Path, ...]:
        """Wait until something was saved, and is whole; returns what has changed."""
        while True:
            changed = self._changed()
            # Saved in several writes, or by another editor's rename: until nothing more happens.
            while changed:
                self._sleep(self._interval_s)
                again = {file: _stamp(file) for file in self._stamps}
                if again == changed and all(again[file] is not None for file in self._differing(again)):
                    names = self._differing(again)
                    self._stamps = again
                    if names:
                        return names
                    break
                changed = again
            self._sleep(self._interval_s)

    def _changed(self) -> dict[Path, _Stamp | None] | None:
        now = {file: _stamp(file) for file in self._stamps}
        return now if now != self._stamps else None

    def _differing(self, now: dict[Path, _Stamp | None]) -> tuple[Path, ...]:
        return tuple(file for file in now if now[file] != self._stamps[file])


def _stamp(file: Path) -> _Stamp | None:
    """What changes when a file is saved; None for one that is not there."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


State = Literal["new", "same", "changed", "failed", "gone"]
_Key = tuple[str, str]
"""(kernel and target, variant)."""


@dataclass(frozen=True, slots=True)
class KernelRound:
    """The result of one recording for one variant of a kernel."""

    kernel: str
    """With its target."""
    variant: str
    state: State
    """`gone`: the file does not launch it any more. `failed`: the last good state stays."""
    facts: tuple[FactChange, ...] = ()
    """Those of which one way is worse, what got worse first."""
    comparison: Comparison | None = None
    added: tuple[Finding, ...] = ()
    removed: tuple[Finding, ...] = ()
    failure: str = ""


class LastGood:
    """The last state of each variant that compiled."""

    def __init__(self, stages: Sequence[str]) -> None:
        """`stages`: those whose texts are compared; the others are counted alone."""
        self._stages = stages
        self._held: dict[_Key, Subject] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def take(self, captures: Sequence[Capture], *, is_whole: bool) -> list[KernelRound]:
        """Compare captures with what was there before, which they replace where they compiled.

        `is_whole`: whether the program ran to its end, so that what is missing is gone.
        """
        keys = variant_names([CaptureFacts.of(one) for one in captures])
        before = _paired(keys, list(self._held))
        rounds = [self._one(key, capture, before.get(key)) for key, capture in zip(keys, captures, strict=True)]
        if is_whole:
            for key in [key for key in self._held if key not in keys]:
                if key not in before.values():
                    rounds.append(KernelRound(*key, "gone"))
                del self._held[key]
        return rounds

    def _one(self, key: _Key, capture: Capture, held_as: _Key | None) -> KernelRound:
        before = self._held.get(held_as) if held_as is not None else None
        if capture.status != "ok":
            if before is not None and held_as is not None and held_as != key:
                self._held[key] = self._held.pop(held_as)
            return KernelRound(*key, "failed", failure=failure_text(capture))
        now = Subject(capture)
        if held_as is not None:
            self._held.pop(held_as, None)
        self._held[key] = now
        if before is None:
            return KernelRound(*key, "new", added=_findings(now))
        if capture.id == before.capture.id and capture.texts == before.capture.texts:
            return KernelRound(*key, "same")
        from irscope.analysis.diff.captures import diff

        comparison = diff(before.capture, capture, stages=self._stages)
        is_same = comparison.is_empty and not comparison.resources
        added, removed = _moved(before, now)
        changed = changed_facts(before.facts(_facts), now.facts(_facts))
        facts = tuple(one for one in changed if one.name != "findings")
        return KernelRound(*key, "same" if is_same else "changed", facts, comparison, added, removed)


def _facts(subject: Subject) -> dict[str, int | float | str | tuple[str, ...]]:
    return undamaged(lambda: kept_facts(subject), {})


def _findings(state: Subject) -> tuple[Finding, ...]:
    return undamaged(lambda: state.findings, ())


def _moved(before: Subject, now: Subject) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings that were added, and those that were removed, by kind and the text of their line of Python."""

    def named(state: Subject) -> list[tuple[tuple[str, str, str], Finding]]:
        return [((one.code, one.operation, state.python_at(one.place)), one) for one in _findings(state)]

    was, is_ = named(before), named(now)
    return _beyond(is_, Counter(key for key, _ in was)), _beyond(was, Counter(key for key, _ in is_))


def _beyond(
    rows: list[tuple[tuple[str, str, str], Finding]], others: Counter[tuple[str, str, str]]
) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for key, finding in rows:
        if others[key]:
            others[key] -= 1
        else:
            found.append(finding)
    return tuple(found)


def _paired(now: Sequence[_Key], before: Sequence[_Key]) -> dict[_Key, _Key]:
    """For each variant the one before: the same, else those of its kernel that are left, in their order."""
    pairs = {key: key for key in now if key in before}
    left = [key for key in before if key not in pairs]
    for key in now:
        if key not in pairs and (other := next((one for one in left if one[0] == key[0]), None)) is not None:
            pairs[key] = other
            left.remove(other)
    return pairs
