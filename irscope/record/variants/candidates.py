"""Candidates: requests that are compiled until the first that is interesting; each is judged once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.record.process.codec import frame_of
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.kept import lasts
from irscope.record.variants.pool import VariantPool

__all__ = ["Candidates"]


_Judge = Callable[[RecordRequest, Capture], bool]


class Candidates:
    """Judges requests by their captures, and keeps the judgements by a digest of the request."""

    def __init__(self, pool: VariantPool, judge: _Judge, kept: Path | None = None) -> None:
        """`judge`: whether what a request was compiled to is interesting.

        `kept`: the file of the judgements of an earlier run; it grows.
        """
        self._pool = pool
        self._judge = judge
        self._file = kept
        self.known: dict[str, bool] = _read(kept)
        self.compiled = 0
        """How many requests were compiled."""
        self.repeated = 0
        """How many were judged before."""

    def first(self, requests: Iterable[RecordRequest]) -> int | None:
        """The place of the first request whose capture is interesting; None if there is none.

        Several are compiled at a time; those behind one that is interesting are given up.
        """
        left = enumerate(requests)
        known: list[int] = []
        """The places of those that were judged interesting before; at most one."""
        compiled: list[tuple[int, RecordRequest]] = []
        judged: dict[int, bool] = {}

        def missing() -> Iterator[RecordRequest]:
            for place, request in left:
                if (before := self.known.get(_digest_of(request))) is None:
                    compiled.append((place, request))
                    yield request
                    if any(judged.values()):
                        return
                else:
                    self.repeated += 1
                    if before:
                        known.append(place)
                        return

        while not (known or any(judged.values())):
            begun = len(compiled)
            try:
                with closing(self._pool.compile(missing())) as captures:
                    for index, capture in captures:
                        place, request = compiled[begun + index]
                        judged[place] = self._judged(request, capture)
                        interesting = [one for one, holds in judged.items() if holds]
                        if interesting and all(one in judged for one, _ in compiled if one < min(interesting)):
                            break
            except IrscopeError:
                # Which one is refused shows only alone.
                for place, request in compiled[begun:]:
                    if place not in judged:
                        judged[place] = self._judged_alone(request)
            if len(compiled) == begun:
                break
        return min([*known, *(place for place, holds in judged.items() if holds)], default=None)

    def _judged_alone(self, request: RecordRequest) -> bool:
        try:
            return self._judged(request, self._pool.compile_one(request))
        except IrscopeError:
            return False

    def _judged(self, request: RecordRequest, capture: Capture) -> bool:
        self.compiled += 1
        is_interesting = self._judge(request, capture)
        self._keep(_digest_of(request), is_interesting, lasts(capture.failure))
        return is_interesting

    def _keep(self, digest: str, is_interesting: bool, lasts: bool) -> None:
        self.known[digest] = is_interesting
        if self._file is not None and lasts:
            with self._file.open("a", encoding="ascii") as file:
                file.write(f"{digest} {int(is_interesting)}\n")


def _digest_of(request: RecordRequest) -> str:
    """A digest of a request: equal for those that compile alike."""
    return hashlib.sha256(frame_of(request)).hexdigest()[:32]


def _read(file: Path | None) -> dict[str, bool]:
    if file is None or not file.is_file():
        return {}
    rows = (line.split() for line in file.read_text("ascii", "replace").splitlines())
    return {row[0]: row[1] == "1" for row in rows if len(row) == 2}
