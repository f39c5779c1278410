"""Scores of predictions, the split of the families, and the files of measured times."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.timing import libraries
from benchmarks.timing.scoring import Measured, bound_agreement, kendall, report, score, score_family
from benchmarks.timing.split import split

DATA = Path(__file__).parents[1] / "benchmarks" / "timing" / "data"


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize(
    ("left", "right", "tau"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),
        # One tie of six pairs: 5 / sqrt(5 * 6).
        ([1, 1, 2, 3], [1, 2, 3, 4], 5 / 30**0.5),
        ([1, 1, 1], [1, 2, 3], 0.0),
    ],
)
def test_kendall(left, right, tau):
    assert kendall(left, right) == pytest.approx(tau)


def test_the_first_choice_and_the_error_of_a_family():
    rows = [Measured("f", number, *times) for number, times in enumerate([(100, 80), (50, 90), (10, 100)])]
    found = score_family(rows)
    assert (found.first, found.best_among_three, found.tau) == (10.0, True, -1.0)
    # 10 µs is left out: |80/100 - 1| = 0.2, |90/50 - 1| = 0.8.
    assert found.error == pytest.approx(0.5)


def test_a_bound_is_compared_where_a_unit_is_busy():
    rows = [Measured("f", 0, 1, 1, "DRAM"), Measured("f", 1, 1, 1, "tensor cores"), Measured("f", 2, 1, 1, "L2")]
    profiles = [
        {"family": "f", "number": 0, "dram": 90.0, "l2": 40.0, "l1": 10.0, "sm": 10.0},
        {"family": "f", "number": 1, "dram": 70.0, "l2": 40.0, "l1": 10.0, "sm": 10.0},
        {"family": "f", "number": 2, "dram": 30.0, "l2": 50.0, "l1": 10.0, "sm": 10.0},
    ]
    assert bound_agreement(rows, profiles) == (1, 2)


def test_a_perfect_prediction_scores_best(tmp_path, monkeypatch):
    results = DATA / "h100-tuning.jsonl"
    (tmp_path / "results.jsonl").write_text(results.read_text())
    times = {row["capture"]: row["median_us"] for row in rows_of(results) if row["status"] == "ok"}

    def perfect(capture, *, part):
        assert part == "h100"
        return SimpleNamespace(seconds=times[capture.name] * 1e-6, bound="DRAM", interval=(0.0, 1.0), notes=())

    monkeypatch.setattr("irscope.load", lambda path: SimpleNamespace(name=path.name, compile_us=0))
    monkeypatch.setattr("irscope.time", perfect)
    printed = score(tmp_path, "h100")
    assert "not predicted: 0" in printed
    # embedding 5, rope 4 and nine others, whose middle halves spread by more than a tenth.
    assert "disturbed measurements left out: 11" in printed
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["first"] == scores["best_among_three"] == scores["least_tau"] == pytest.approx(1.0)
    assert scores["error_90"] == pytest.approx(0.0)
    assert scores["in_interval"] == 1.0


def test_a_report_names_every_family():
    text, values = report([Measured(name, number, 30 + number, 30) for name in "ab" for number in range(3)])
    assert [row["family"] for row in values["by_family"]] == ["a", "b"]
    assert text.startswith("family")


@pytest.mark.parametrize("part", ["tuning", "validation"])
def test_measured_families_are_those_of_the_split(part):
    names = {name: {row["family"] for row in rows_of(DATA / f"h100-{name}.jsonl")} for name in ("tuning", "validation")}
    parts = split(names["tuning"] | names["validation"])
    assert {name for name, assigned in parts.items() if assigned == part} == names[part]
    assert split([*parts, "fresh_one"]) == {**parts, "fresh_one": "fresh"}
    assert len(names["validation"]) >= 20
    assert sum(row["status"] == "ok" for row in rows_of(DATA / f"h100-{part}.jsonl")) >= 600


def test_a_kernel_of_a_library_is_taken_with_what_it_uses(tmp_path, monkeypatch):
    package = tmp_path / "made"
    (package / "tools").mkdir(parents=True)
    (package / "tools" / "__init__.py").write_text("from .math import half\n")
    (package / "tools" / "math.py").write_text(
        "import triton\nimport missing\nSTEP = 2\n\n"
        "@triton.jit\ndef half(x):\n    return x / STEP\n\n"
        "@triton.jit\ndef unused(x):\n    return missing(x)\n"
    )
    (package / "kernels.py").write_text(
        "import missing\nimport triton.language as tl\nfrom made.tools import half, math as m\n"
        "from .tools.math import half as divide\n\n"
        "@missing.tuned(STEP=1)\ndef kernel(x, y):\n    tl.store(y, half(m.half(divide(tl.load(x)))))\n"
    )
    monkeypatch.setitem(libraries.RELEASES, "made", "made==1")
    text = libraries.taken(tmp_path, libraries.Source("made", "kernels", "kernel"))
    assert "missing" not in text
    assert "unused" not in text
    # What is used comes first, and once.
    places = [text.index(part) for part in ("STEP = 2", "def half", "m.half = half", "def kernel")]
    assert places == sorted(places)
    assert places[1] < text.index("divide = half") < places[3]
    assert text.count("def half") == 1
    assert "@triton.jit\ndef kernel(x, y):" in text


def test_what_is_used_is_that_of_an_environment_without_variables(tmp_path, monkeypatch):
    package = tmp_path / "made"
    package.mkdir()
    (package / "kernels.py").write_text(
        "import os\nimport triton\n\n"
        "if os.environ.get('MADE_FAST') == '1':\n    STEP = 1\nelse:\n    STEP = 2\n\n"
        "if os.name:\n    STRIDE = 3\nelse:\n    STRIDE = 4\n\n"
        "@triton.jit\ndef kernel(x):\n    return x + STEP * STRIDE\n\n"
        "if __name__ == '__main__':\n    x = kernel(1)\n"
    )
    monkeypatch.setitem(libraries.RELEASES, "made", "made==1")
    text = libraries.taken(tmp_path, libraries.Source("made", "kernels", "kernel"))
    assert [line for line in text.splitlines() if line.startswith(("ST", "x"))] == ["STEP = 2", "STRIDE = 3"]


def test_every_kernel_of_a_library_is_of_a_stated_release():
    import benchmarks.timing.families  # noqa: F401
    from benchmarks.timing.family import FAMILIES

    parts = split(FAMILIES)
    assert {name for name, part in parts.items() if part in ("libraries", "shelf")} == set(libraries.SOURCES)
    assert sum(part == "libraries" for part in parts.values()) == 53
    assert sum(part == "shelf" for part in parts.values()) >= 85
    assert {source.package for source in libraries.SOURCES.values()} == set(libraries.RELEASES)
    assert len({libraries.file_of(source) for source in libraries.SOURCES.values()}) == len(libraries.SOURCES)


@pytest.mark.parametrize(
    ("prefix", "part", "count"),
    [
        ("unseen_", "unseen", 24),
        ("held_", "held_out", 18),
        ("blind_", "blind", 22),
        ("everyday_", "everyday", 20),
        ("review_", "review", 24),
    ],
)
def test_every_later_family_has_a_reference(prefix, part, count):
    import benchmarks.timing.checking_blind
    import benchmarks.timing.checking_everyday
    import benchmarks.timing.checking_held_out
    import benchmarks.timing.checking_review
    import benchmarks.timing.checking_unseen
    import benchmarks.timing.families  # noqa: F401
    from benchmarks.timing.checking import REFERENCES
    from benchmarks.timing.family import FAMILIES

    later = [row for row in FAMILIES.values() if row.name.startswith(prefix)]
    assert {row.name for row in later} == {name for name in REFERENCES if name.startswith(prefix)}
    assert [len(row.configs) for row in later] == [8] * count
    assert {name for name, assigned in split(FAMILIES).items() if assigned == part} == {row.name for row in later}
