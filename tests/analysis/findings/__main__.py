"""Runs every planted kernel on every target: `python -m tests.analysis.findings [TARGET …]`."""

from __future__ import annotations

import sys

from tests.analysis.findings.test_find import CASES_OF_TARGETS, misfits


def _main(targets: list[str]) -> int:
    wrong = 0
    chosen = [(case, target) for case, target in CASES_OF_TARGETS if not targets or target in targets]
    for case, target in chosen:
        found = misfits(case, target)
        wrong += bool(found)
        print(f"{'wrong' if found else 'right'} {target} {case.name} {'; '.join(found)}".rstrip(), flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
