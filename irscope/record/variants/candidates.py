"""Candidates: requests that are compiled until the first that is interesting; each is judged once."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from irscope.model.capture import Capture, Failure
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.compiles import lasts
from irscope.record.variants.pool import VariantPool

Judge = Callable[[RecordRequest, tuple[Capture, ...]], "RecordRequest | bool"]
"""Whether a request is interesting, by what was compiled for it so far (at first nothing); or what is to be compiled
next to tell. It is asked again once that is there."""


def settled(
    judge: Judge, request: RecordRequest, compile_one: Callable[[RecordRequest], Capture]
) -> tuple[bool, tuple[Capture, ...]]:
    """(whether a request is interesting, what was compiled to tell)."""
    made: tuple[Capture, ...] = ()
    while not isinstance(answer := judge(request, made), bool):
        made = (*made, compile_one(answer))
    return answer, made


@dataclass(slots=True)
class _Candidate:
    """A request that is not judged yet."""

    place: int
    request: RecordRequest
    wanted: RecordRequest
    """What is compiled next."""
    made: tuple[Capture, ...] = ()


class Candidates:
    """Judges requests, and keeps the judgements by a digest of the request."""

    def __init__(
        self, pool: VariantPool, judge: Judge, kept: Path | None = None, *, timeouts_last: bool = False
    ) -> None:
        """`kept`: the file of the judgements of an earlier run; it grows.

        `timeouts_last`: whether those that ran out of time are kept there too.
        """
        self._pool = pool
        self._judge = judge
        self._file = kept
        self._timeouts_last = timeouts_last
        self.known: dict[str, bool] = _read(kept)
        self.compiled = 0
        """How many requests were judged by compiling."""
        self.repeated = 0
        """How many were judged before."""

    def first(self, requests: Iterable[RecordRequest]) -> int | None:
        """The place of the first interesting request; None if there is none.

        Several are compiled at a time; those behind one that is interesting are given up.
        """
        left = enumerate(requests)
        under_way: dict[int, _Candidate] = {}
        waiting: deque[_Candidate] = deque()
        """Those under way of which something more is to be compiled."""
        compiled: list[_Candidate] = []
        """By the place of a compile in this round."""
        first: int | None = None

        def missing() -> Iterator[RecordRequest]:
            nonlocal first
            while waiting or first is None:
                if not waiting:
                    if (row := next(left, None)) is None:
                        return
                    if (answer := self._first_of(row[1])) is True:
                        first = row[0]
                    if isinstance(answer, bool):
                        continue
                    waiting.append(under_way.setdefault(row[0], _Candidate(*row, answer)))
                compiled.append(candidate := waiting.popleft())
                yield candidate.wanted

        def judged(candidate: _Candidate, is_interesting: bool) -> None:
            nonlocal first
            del under_way[candidate.place]
            self._keep(candidate, is_interesting)
            if is_interesting and (first is None or candidate.place < first):
                first = candidate.place

        while True:
            compiled.clear()
            with closing(self._pool.results(missing())) as captures:
                for index, capture in captures:
                    candidate = compiled[index]
                    answer: RecordRequest | bool = False
                    if isinstance(capture, Capture):
                        candidate.made = (*candidate.made, capture)
                        answer = self._judge(candidate.request, candidate.made)
                    if isinstance(answer, bool):
                        judged(candidate, answer)
                        if first is not None and all(place > first for place in under_way):
                            return first
                    else:
                        candidate.wanted = answer
                        waiting.append(candidate)
            if not under_way:
                return first

    def _first_of(self, request: RecordRequest) -> RecordRequest | bool:
        """What is to be compiled first of a request, or how it was judged before."""
        before = self.known.get(_digest_of(request))
        if before is None:
            return self._judge(request, ())
        self.repeated += 1
        return before

    def _keep(self, candidate: _Candidate, is_interesting: bool) -> None:
        self.compiled += 1
        digest = _digest_of(candidate.request)
        self.known[digest] = is_interesting
        if self._file is not None and all(self._lasts(capture.failure) for capture in candidate.made):
            with self._file.open("a", encoding="ascii") as file:
                file.write(f"{digest} {int(is_interesting)}\n")

    def _lasts(self, failure: Failure | None) -> bool:
        return lasts(failure) or (self._timeouts_last and failure is not None and failure.kind == "timeout")


def _digest_of(request: RecordRequest) -> str:
    """A digest of a request: equal for those that compile alike."""
    return hashlib.sha256(repr(request).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(file: Path | None) -> dict[str, bool]:
    if file is None or not file.is_file():
        return {}
    rows = (line.split() for line in file.read_text("ascii", "replace").splitlines())
    return {row[0]: row[1] == "1" for row in rows if len(row) == 2}
