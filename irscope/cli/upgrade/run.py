"""Compiles captures by two compilers, compares what came of it, and has the blame found for what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from irscope.analysis.upgrade.blame import blame_of
from irscope.analysis.upgrade.compare import compared
from irscope.analysis.upgrade.model import Asking, Blame, Question, Row, Side
from irscope.analysis.upgrade.pairing import pairs_of, variants_of
from irscope.analysis.upgrade.report import Upgrade
from irscope.model.capture import Capture
from irscope.record.variants.grafts import Compiler, graft_request, own_request, refused, with_what_came_before

__all__ = ["blamed", "compiled", "rows_of", "upgraded"]

Progress = Callable[[str, int, int], None]
"""Told what is done, how many are done, and of how many."""


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total


def upgraded(
    captures: Sequence[Capture],
    before: Compiler,
    after: Compiler,
    recorded: tuple[Sequence[Capture], Sequence[Capture]] = ((), ()),
    *,
    blames: bool = True,
    progress: Progress = _silent,
) -> Upgrade:
    """Compile captures by two compilers, compare, and blame.

    `recorded`: what a program launched under each of the two, which is not compiled again.
    """
    ours, theirs = (compiled(captures, one, progress) for one in (before, after))
    pairs = [*zip(ours, theirs, strict=True), *pairs_of(*recorded)]
    found, asked = rows_of(pairs), 0
    if blames:
        found, asked = blamed(found, before, after, progress)
    sources = tuple(sorted({one.environment.triton_version for one in captures}))
    return Upgrade((before.version, after.version), tuple(found), sources, asked)


def compiled(captures: Sequence[Capture], compiler: Compiler, progress: Progress = _silent) -> list[Capture]:
    """Each capture, compiled by a compiler; the same compile once."""
    version = compiler.version
    first: dict[str, int] = {}
    for index, one in enumerate(captures):
        first.setdefault(one.id, index)
    places = list(first.values())
    found: dict[str, Capture] = {}
    requests = [own_request(captures[place], compiler.asked, version) for place in places]
    for number, made in compiler.compile(requests):
        origin = captures[places[number]]
        capture = refused(origin, version, made) if isinstance(made, str) else made
        # What the launch was given is not the compiler's to know.
        launch = replace(capture.launch, grid=origin.launch.grid, record=origin.launch.record)
        found[origin.id] = replace(capture, launch=launch, sources=origin.sources)
        progress(f"Triton {version}", len(found), len(places))
    return [found[one.id] for one in captures]


def rows_of(pairs: Sequence[tuple[Capture | None, Capture | None]]) -> list[Row]:
    """The rows of pairs, compared; equal pairs are one row."""
    rows = [compared(before, after) for before, after in _distinct(pairs)]
    variants = variants_of([one.capture for one in rows])
    return [replace(one, variant=variant) for one, variant in zip(rows, variants, strict=True)]


def _distinct(pairs: Sequence[tuple[Capture | None, Capture | None]]) -> list[tuple[Capture | None, Capture | None]]:
    """The pairs without those whose compiles are the same."""
    keys = [tuple("" if one is None else one.id for one in pair) for pair in pairs]
    return list(dict(zip(keys, pairs, strict=True)).values())


def blamed(
    rows: Sequence[Row], before: Compiler, after: Compiler, progress: Progress = _silent
) -> tuple[list[Row], int]:
    """Rows with the blame for what changed, and how many compiles that took; several kernels at once."""
    compilers: dict[Side, Compiler] = {"before": before, "after": after}
    found = list(rows)
    searches: dict[int, Asking[Blame | None]] = {}
    for index, row in enumerate(rows):
        if row.before is not None and row.after is not None and row.verdict in ("worse", "better"):
            searches[index] = blame_of(row.before, row.after, row.changes)
    total, count = len(searches), 0
    answers: dict[int, Capture | None] = dict.fromkeys(searches)
    while searches:
        questions: dict[int, Question] = {}
        for index, search in list(searches.items()):
            try:
                questions[index] = search.send(answers[index])
            except StopIteration as end:
                found[index] = replace(found[index], blame=end.value)
                del searches[index]
                progress("blame", total - len(searches), total)
        count += len(questions)
        answers = _answered(questions, rows, compilers)
    return found, count


def _answered(
    questions: dict[int, Question], rows: Sequence[Row], compilers: dict[Side, Compiler]
) -> dict[int, Capture | None]:
    answers: dict[int, Capture | None] = {}
    for side, compiler in compilers.items():
        asked = [index for index, one in questions.items() if one.side == side]
        requests = [
            graft_request(
                _taker(rows[index], side),
                questions[index].stage,
                questions[index].text,
                compiler.asked,
                last_stage=questions[index].last_stage,
                snapshots=questions[index].snapshots,
                off=questions[index].off,
                resumed=questions[index].resumed,
            )
            for index in asked
        ]
        for place, made in compiler.compile(requests):
            index = asked[place]
            asked_one = questions[index]
            if isinstance(made, str):
                answers[index] = None
            else:
                answers[index] = with_what_came_before(made, asked_one.giver, asked_one.stage)
    return answers


def _taker(row: Row, side: Side) -> Capture:
    capture = row.before if side == "before" else row.after
    if capture is None:
        raise ValueError("a row without a pair is not grafted")
    return capture
