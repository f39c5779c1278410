"""Candidates: the first interesting one is found whatever ends first, and nothing is compiled that decides nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from irscope.errors import RecordingError
from irscope.model.capture import Artifact, Capture
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import Candidates, settled
from tests.analysis.recorded import stored

REFUSED = "3"
COMPILED = stored("chains", "cuda:90")


class Shuffled:
    """Compiles a few requests at a time, in any order; what a request is compiled to holds its text.

    The oldest of them lets no more others pass than there are jobs.
    """

    def __init__(self, jobs: int, chance: random.Random) -> None:
        self.jobs, self.chance = jobs, chance
        self.asked: list[str] = []

    def results(self, requests: Iterable[RecordRequest]) -> Iterator[tuple[int, Capture | RecordingError]]:
        waiting = enumerate(requests)
        running: list[tuple[int, RecordRequest]] = []
        passed = 0
        while True:
            running += islice(waiting, self.jobs - len(running))
            if not running:
                return
            picked = self.chance.randrange(len(running)) if passed < self.jobs else 0
            passed = passed + 1 if picked else 0
            place, request = running.pop(picked)
            try:
                yield place, self.compile_one(request)
            except RecordingError as error:
                yield place, error

    def compile_one(self, request: RecordRequest) -> Capture:
        self.asked.append(request.text)
        if request.text.startswith(REFUSED):
            raise RecordingError("refused")
        return replace(COMPILED, artifacts=(Artifact("ttir", request.text),))


def two_sides(good: set[str], bad: set[str]) -> object:
    """Interesting is what is good, and whose other side is bad."""

    def judge(request: RecordRequest, made: tuple[Capture, ...]) -> RecordRequest | bool:
        if not made:
            return request
        if len(made) == 1:
            return made[0].text("ttir") in good and RecordRequest(mode="text", text=f"{request.text}'")
        return made[1].text("ttir").removesuffix("'") in bad

    return judge


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_the_first_is_found(jobs: int) -> None:
    chance = random.Random(jobs)
    for _ in range(60):
        texts = [str(number) for number in range(9)]
        good, bad = ({*chance.sample(texts, 5)} for _ in range(2))
        pool = Shuffled(jobs, chance)
        candidates = Candidates(pool, judge := two_sides(good, bad))  # type: ignore[arg-type]
        requests = [RecordRequest(mode="text", text=text) for text in texts]
        interesting = [place for place, text in enumerate(texts) if text in good & bad - {REFUSED}]
        assert candidates.first(requests) == min(interesting, default=None)
        # The other side only of what may be interesting; what follows the first only as far as it was under way.
        assert {one.rstrip("'") for one in pool.asked if one.endswith("'")} <= good
        if interesting:
            assert {int(one.rstrip("'")) for one in pool.asked} <= {*range(interesting[0] + 3 * jobs)} | {int(REFUSED)}
        for request in requests:
            if request.text != REFUSED:
                holds, _ = settled(judge, request, pool.compile_one)  # type: ignore[arg-type]
                assert holds == (request.text in good & bad)
        # Judged once.
        pool.asked.clear()
        assert candidates.first(requests) == min(interesting, default=None)
        assert pool.asked == []


def test_judgements_last(tmp_path: Path) -> None:
    requests = [RecordRequest(mode="text", text=text) for text in "012"]
    for asked in (["0", "0'", "1", "1'"], []):
        pool = Shuffled(1, random.Random(0))
        found = Candidates(pool, two_sides({"0", "1"}, {"1"}), tmp_path / "kept").first(requests)  # type: ignore[arg-type]
        assert (found, pool.asked) == (1, asked)
