"""Every planted kernel, by a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.analysis.findings.cases import CASES, Case
from tests.analysis.findings.families.cases import FAMILIES

__all__ = ["EVERY"]


def _named(cases: Iterable[Case]) -> Iterator[tuple[str, Case]]:
    counted = Counter[str]()
    for case in cases:
        counted[case.name] += 1
        yield f"{case.name}#{number}" if (number := counted[case.name]) > 1 else case.name, case


EVERY = dict(_named((*CASES, *FAMILIES)))
