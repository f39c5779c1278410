"""Oracle: the maps against the text views that the installed compiler itself prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from irscope.ir.mlir.attributes import parse_encoding
from irscope.layout.maps import MemoryMap, ThreadMap, is_surjective
from irscope.layout.rows import query_type
from irscope.model.capture import Target
from irscope.model.layout import LayoutAnswer, LayoutMap, LinearLayout
from tests.layout.cases import CASES, Case

triton = pytest.importorskip("triton", reason="the oracle is the installed compiler, and Triton is not installed")
pytestmark = pytest.mark.triton

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
VIEWS = Path(__file__).parent / "compiler_views.py"

# "  T12:1", or with CTAs "B1:T12:1"
_OWNER = re.compile(r"(?:B(\d+):)?\s*T(\d+):(\d+)")
# "Offset: 8 -> ( 1, 2)"
_OFFSET = re.compile(r"Offset: (\d+) -> \(([\d, ]+)\)")


def question(index: int, case: Case) -> dict:
    target = Target.parse(case.target)
    return {
        "index": index,
        "type": query_type(case.encoding, case.shape, case.element),
        "shape": list(case.shape),
        "num_warps": case.num_warps,
        "num_ctas": case.num_ctas,
        "target": case.target,
        "warp_size": target.warp_size,
    }


@pytest.fixture(scope="module")
def chosen(request: pytest.FixtureRequest) -> list[int]:
    """The numbers of the cases that are run, and that this version reads."""
    calls = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    numbers = (call.params["index"] for call in calls if call is not None)
    return sorted(index for index in numbers if CASES[index].since <= VERSION)


@pytest.fixture(scope="module")
def views(chosen: list[int]) -> dict[int, dict]:
    """The compiler's own views, by the number of the case."""
    cases = [question(index, CASES[index]) for index in chosen]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    run = subprocess.run(
        [sys.executable, str(VIEWS)], input=text, capture_output=True, text=True, timeout=600, check=True
    )
    return {row["index"]: row for row in map(json.loads, run.stdout.splitlines())}


@pytest.fixture(scope="module")
def answers(chosen: list[int]) -> dict[int, LayoutAnswer]:
    """What irscope's own question to the compiler gave, by the number of the case."""
    from irscope.record.process.annotations import LayoutServer, Module

    found: dict[int, LayoutAnswer] = {}
    with LayoutServer() as server:
        groups: dict[tuple, list[int]] = {}
        for index in chosen:
            case = CASES[index]
            groups.setdefault((case.target, case.num_warps, case.num_ctas), []).append(index)
        for (target, num_warps, num_ctas), indices in groups.items():
            types = [question(index, CASES[index])["type"] for index in indices]
            job = server.wait(server.ask(Module.of(Target.parse(target), num_warps, num_ctas), types=types))
            found.update(zip(indices, job.answered_types(), strict=True))
    return found


# One in three every day, and of these every other one under the older versions.
@pytest.mark.parametrize(
    "index",
    [
        pytest.param(
            index,
            id=case.label,
            marks=[
                *([pytest.mark.exhaustive] if index % 3 and "#ttg.shared_linear" not in case.encoding else []),
                *([pytest.mark.newest] if index % 2 else []),
            ],
        )
        for index, case in enumerate(CASES)
    ],
)
def test_map_is_the_compilers(index: int, views: dict[int, dict], answers: dict[int, LayoutAnswer]) -> None:
    case = CASES[index]
    if case.since > VERSION:
        pytest.skip(
            f"Triton {triton.__version__} cannot parse this text: {'.'.join(map(str, case.since))} and later do"
        )
    answer = answers[index]
    assert isinstance(answer, LayoutMap), answer
    layout = answer.layout
    view = views[index]
    if "tensor" in view:
        assert owners_in(view["tensor"], layout) == our_owners(layout)
    elif "offsets" in view:
        assert offsets_in(view["offsets"]) == our_offsets(layout, case)
    elif case.encoding.startswith("#ttg.generic_linear"):
        assert str([list(vector) for vector in layout.vectors("lane")]) in case.encoding
    else:
        # No view of it in this version: it must at least be a bijection, as every one of these is.
        assert is_surjective(layout)
        assert parse_encoding(case.encoding).space == "shared"
        assert VERSION < (3, 7) or "rotating" in case.encoding, view


def owners_in(view: str, layout: LinearLayout) -> list[set[tuple[int, int, int]]]:
    """For each element in row-major order, (block, thread, register) of each owner, as the compiler prints them."""
    cells = re.split(r",(?=\s*(?:B\d+:)?\s*T)|\n", view.strip())
    rows = [{tuple(int(part or 0) for part in match) for match in _OWNER.findall(cell)} for cell in cells]
    rows = [row for row in rows if row]
    assert len(rows) == 1 << layout.out_bits
    return rows


def our_owners(layout: LinearLayout) -> list[set[tuple[int, int, int]]]:
    threads = ThreadMap.of(layout)
    return [
        {(owner.block, owner.warp * threads.lanes + owner.lane, owner.register) for owner in threads.owners_at(index)}
        for index in range(threads.size)
    ]


def offsets_in(view: str) -> list[tuple[int, ...]]:
    return [tuple(int(part) for part in place.split(",")) for _, place in _OFFSET.findall(view)]


def our_offsets(layout: LinearLayout, case: Case) -> list[tuple[int, ...]]:
    memory = MemoryMap.of(layout, 16)
    return [layout.unflatten(element) for element in memory.elements]


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 200
    assert len({case.label for case in CASES}) == len(CASES)
