"""A baseline's file: the same facts give the same bytes, and what is no baseline is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import ParseError
from irscope.model.evidence import Baseline, Ceilings
from irscope.model.facts import CaptureFacts
from irscope.store.baseline import (
    baseline_text,
    load_baseline,
    load_ceilings,
    save_baseline,
    save_ceilings,
    variant_names,
)
from irscope.store.file import load
from tests.conftest import DATA

FACTS = {"registers": 4, "findings": ("IRS101",), "failure": "", "matrix_unit": "", "load_bits": 12.5}


def test_it_is_read_as_it_was_written_sorted_and_a_line_a_variant(tmp_path: Path) -> None:
    held = Baseline({"b cuda:90": {"N=2": FACTS, "N=1": FACTS}, "a cuda:90": {"": {}}}, ("registers=4",), ("3.9.0",))
    save_baseline(held, tmp_path / "b.json")
    again = load_baseline(tmp_path / "b.json")
    assert again.tolerances == ("registers=4",)
    assert again.kernels["b cuda:90"]["N=1"] == {name: value for name, value in FACTS.items() if name != "failure"}
    text = (tmp_path / "b.json").read_text()
    assert text == baseline_text(again)
    assert list(json.loads(text)["kernels"]) == ["a cuda:90", "b cuda:90"]
    assert [line.split(":")[0].strip() for line in text.splitlines() if "registers" in line][1:] == ['"N=1"', '"N=2"']


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"irscope_baseline": 9, "kernels": {}}', '{"irscope_baseline": 1, "kernels": {"a": 3}}',
             '{"irscope_baseline": 1, "kernels": {"a": {"b": {"registers": null}}}}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(ParseError, match=r"b\.json"):
        load_baseline(tmp_path / "b.json")


def test_variants_have_names_of_their_own_that_the_source_does_not_change() -> None:
    captures = [load(path) for path in sorted((DATA / "counters").glob("*.irscope"))]
    facts = [CaptureFacts.of(one) for one in captures]
    names = variant_names(facts)
    assert len(set(names)) == len(names)
    edited = [
        replace(one, launch=replace(one.launch, kernel=replace(one.launch.kernel, source="# edited", line=99)))
        for one in captures
    ]
    assert variant_names([CaptureFacts.of(one) for one in edited]) == names
    twice = variant_names([facts[0], facts[0]])
    assert len(set(twice)) == 2


MEASURED = (
    Ceilings("NVIDIA H200", "cuda:90", 4.1e12, (("float16", 7.5e14), ("float32", 3.9e14)), "2026-01-01"),
    Ceilings("AMD Instinct MI300X", "hip:gfx942", 4.2e12),
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load_ceilings(tmp_path / "none") == ()
    save_ceilings(MEASURED, tmp_path / "folder")
    assert load_ceilings(tmp_path / "folder") == MEASURED
    save_ceilings(MEASURED[:1], tmp_path / "folder")
    assert load_ceilings(tmp_path / "folder") == MEASURED[:1]


@pytest.mark.parametrize(
    "text", ["", "{", "[]x", '{"a": 1}', '[{"device": "x"}]', '[{"device": 1, "target": 2, "bytes_per_s": "x"}]', "[1]"]
)
def test_a_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    (save_ceilings(MEASURED, tmp_path)).write_text(text)
    assert load_ceilings(tmp_path) == ()
