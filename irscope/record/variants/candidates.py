"""Candidates: requests that are compiled until the first that is interesting; each is judged once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from irscope.model.capture import Capture
from irscope.record.process.codec import frame_of
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import VariantPool
from irscope.record.variants.store import lasts

__all__ = ["Candidates"]


class Candidates:
    """Judges requests by their captures, and keeps the judgements by a digest of the request."""

    def __init__(self, pool: VariantPool, judge: Callable[[RecordRequest, Capture], bool], kept: Path | None = None) -> None:
        """`judge`: whether what a request was compiled to is interesting. `kept`: the file of the judgements of an earlier run; it grows."""
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
        found: list[int] = []
        digests: dict[int, str] = {}
        judged: dict[int, bool] = {}
        places: list[int] = []
        compiled: list[RecordRequest] = []

        def missing() -> Iterator[RecordRequest]:
            for place, request in enumerate(requests):
                digest = digests[place] = digest_of(request)
                if digest in self.known:
                    self.repeated += 1
                    judged[place] = self.known[digest]
                    if judged[place]:
                        found.append(place)
                        return
                    continue
                places.append(place)
                compiled.append(request)
                yield request
                if found:
                    return

        with closing(self._pool.compile(missing())) as captures:  # type: ignore[type-var]
            for index, capture in captures:
                place = places[index]
                self.compiled += 1
                judged[place] = self._judge(compiled[index], capture)
                self._keep(digests[place], judged[place], lasts(capture.failure))
                if judged[place]:
                    found.append(place)
                if found and all(other in judged for other in places if other < min(found)):
                    break
        return min(found, default=None)

    def _keep(self, digest: str, is_interesting: bool, lasts: bool) -> None:
        self.known[digest] = is_interesting
        if self._file is not None and lasts:
            with self._file.open("a", encoding="ascii") as file:
                file.write(f"{digest} {int(is_interesting)}\n")


def digest_of(request: RecordRequest) -> str:
    """A digest of a request: equal for those that compile alike."""
    return hashlib.sha256(frame_of(request)).hexdigest()[:32]


def _read(file: Path | None) -> dict[str, bool]:
    if file is None or not file.is_file():
        return {}
    rows = (line.split() for line in file.read_text("ascii", "replace").splitlines())
    return {row[0]: row[1] == "1" for row in rows if len(row) == 2}
