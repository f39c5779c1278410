"""`irscope passes --op` and `--value` as a user sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.model.capture import Capture, PassSnapshot
from irscope.store.file import save
from tests.analysis.lives.test_operations import plain_counts
from tests.analysis.trails import eventful, module, through
from tests.cli.product import Run


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "lives.irscope"
    save(eventful(), path)
    return path


def test_an_operation(irscope: Run, stored: Path) -> None:
    code, out, _ = irscope("passes", stored, "--op", "convert_layout", "--at", "p2", "--diff")
    assert code == 0
    table, there, gone, *_ = out.split("\n\n")
    assert [line.split()[:3] for line in table.splitlines()[1:]] == [
        ["ttgir:p1#1", "2", "+2"],
        ["ttgir:p2#1", "1", "-1"],
        ["ttgir:p3#1", "0", "-1"],
        ["total", "0", "+2"],
    ]
    assert "one of several equal operations" in table.splitlines()[2]
    assert there.startswith("Present after ttgir:p2#1: 1\n")
    assert "k.py:7" in there
    assert "ttgir:p1#1" in there
    assert "(now ttg.local_alloc)" in there
    assert "one of 2 equal ones" in gone
    assert "+     %2 = ttg.convert_layout %x" in out
    assert "ttgir:p4#1" in out
    assert "is not known" in out


def test_an_operation_of_one_line(irscope: Run, stored: Path) -> None:
    out = irscope("passes", stored, "--op", "local_alloc", "--line", "9", "--at", "p3")[1]
    assert ["total", "1", "+1"] in [line.split() for line in out.splitlines()]
    every = irscope("passes", stored, "--op", "local_alloc", "--at", "p3")[1]
    assert ["total", "2", "+2"] in [line.split() for line in every.splitlines()]


def test_a_value(irscope: Run, stored: Path) -> None:
    _, out, _ = irscope("passes", stored, "--value", "%1", "--at", "p1")
    rows = out.split("\n\n")[0].splitlines()
    assert [row.split("  ")[0] for row in rows] == ["pass", "the source", "ttgir:p3#1"]
    assert "rewritten (instead of tt.load)" in rows[2]


def told(count: dict[str, Any]) -> tuple[Any, ...]:
    return count["passes"][0], count["count"], count["made"], count["removed"]


@pytest.mark.triton
@pytest.mark.newest
def test_without_any_text_it_is_compiled_again(irscope: Run, product: Capture, tmp_path: Path) -> None:
    """As much is said of a capture without texts as of one with all; the default level names the last pass too."""
    bare = tuple(replace(one, text=None, changed=None) for one in product.snapshots)
    path = tmp_path / "bare.irscope"
    save(replace(product, snapshots=bare), path)
    code, out, err = irscope("passes", path, "--op", "convert_layout", "--json")
    assert code == 0
    assert "compiling it again" in err
    (without,), (kept,) = json.loads(out), json.loads(irscope("passes", "last", "--op", "convert_layout", "--json")[1])
    assert [told(one) for one in without["counts"]] == [told(one) for one in kept["counts"]]
    assert without["counts"][-1]["passes"] == ["llir:to_llvmir#1"]
    there = sum(one["survives"] for one in kept["operations"])
    assert there == plain_counts(product.text("ttgir"))["ttg.convert_layout"] > 0


def test_an_operation_that_was_lowered_with_no_text_kept(irscope: Run, tmp_path: Path) -> None:
    capture = through(module("conv %1 x 7"), None, None, module())
    save(capture, tmp_path / "gap.irscope")
    out = irscope("passes", tmp_path / "gap.irscope", "--op", "convert_layout")[1]
    assert "one of ttgir:p1#1 … ttgir:p3#1" in out
    assert "--snapshots all keeps it" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--op", "load", "--stage", "cuda"), 2, "--stage 'cuda': there is no such stage"),
        (("--op", "convert_layuot", "--at", "p1"), 2, "Did you mean 'convert_layout'"),
        (("--op", "load", "--line", "99", "--at", "p1"), 2, "no load comes from line 99: they come from 7"),
        (("--line", "3"), 2, "--line, --at and --diff go with --op"),
        (("--op", "load", "--changed"), 2, "not for --op"),
        (("--op", "load", "--value", "%1"), 2, "--op and --value do not go together"),
        (("--value", "%nothing", "--at", "p1"), 2, "no value is named '%nothing'"),
        (("--value", "%1", "--line", "3"), 2, "--line goes with --op"),
        (("--value", "%1", "--at", "p1", "--stage", "ttgir"), 2, "--stage and --at both choose a place"),
        (("--value", "%1", "--at", "llvm-opt"), 1, "only MLIR's are followed"),
    ],
)
def test_what_cannot_be_asked(irscope: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    capture = eventful()
    optimiser = PassSnapshot(4, "llir", "llvm-opt", 1)
    save(replace(capture, snapshots=(*capture.snapshots, optimiser)), tmp_path / "lives.irscope")
    answer, _, err = irscope("passes", tmp_path / "lives.irscope", *arguments)
    assert answer == code, err
    assert said in err


def test_a_capture_without_passes(irscope: Run, tmp_path: Path) -> None:
    save(replace(eventful(), snapshots=()), tmp_path / "none.irscope")
    assert "has no passes" in irscope("passes", tmp_path / "none.irscope", "--op", "load")[2]
