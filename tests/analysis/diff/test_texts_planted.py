"""The comparison finds one planted change and nothing else, and nothing where only names differ."""

from __future__ import annotations

import random
import re

import pytest

from irscope.analysis.diff.texts import TextDiff, diff_texts
from tests.analysis.patching import check
from tests.analysis.planting import PLANTERS, Plant, plant, renumbered
from tests.analysis.snapshots import KINDS, TEXTS, distinct_modules, stage_text

OPS = {
    "attribute": "changed",
    "type": "changed",
    "swapped": "changed",
    "inserted": "added",
    "removed": "removed",
    "moved": "moved",
}


@pytest.mark.slow
@pytest.mark.parametrize("part", [n if n < 4 else pytest.param(n, marks=pytest.mark.exhaustive) for n in range(10)])
def test_500_renumbered_copies_differ_in_nothing(part: int) -> None:
    rng = random.Random(part)
    modules = distinct_modules()
    for _ in range(50):
        module = rng.choice(modules)
        copy = renumbered(module, rng)
        diff = check(diff_texts(module, copy, "mlir"))
        assert diff.is_empty, diff.unified(0)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in (1, 2))])
@pytest.mark.parametrize("kind", PLANTERS)
def test_500_planted_changes_are_found_and_nothing_else(kind: str, part: int) -> None:
    rng = random.Random(f"{kind} {part}")
    modules = distinct_modules()
    planted = 0
    while planted < 28:
        module = rng.choice(modules)
        change = plant(module, kind, rng)
        if change is None:
            continue
        planted += 1
        diff = check(diff_texts(module, renumbered(change.text, rng), "mlir"))
        assert_shows(diff, change)


def assert_shows(diff: TextDiff, change: Plant) -> None:
    # A layout that is named first or last brings or takes its definition, which no operation is.
    entries = [
        entry
        for entry in diff.entries
        if entry.op != "equal"
        and not all(
            line.startswith("#")
            for line in (*(diff.left_lines[n] for n in entry.left), *(diff.right_lines[n] for n in entry.right))
        )
    ]
    left = [diff.left_lines[line].strip() for entry in entries for line in entry.left]
    right = [line for entry in entries for line in entry.right]
    assert {entry.op for entry in entries} == {OPS[change.kind]}, (change, diff.unified(0))
    assert left == ([change.left] if change.left else []), (change, diff.unified(0))
    assert len(right) == (1 if change.right else 0), (change, diff.unified(0))


def test_a_changed_attribute_is_marked() -> None:
    left = 'module {\n  %0 = "a.make"() : () -> i32\n  %1 = "a.op"(%0) {size = 8 : i32} : (i32) -> i32\n}\n'
    right = 'module {\n  %7 = "a.make"() : () -> i32\n  %8 = "a.op"(%7) {size = 16 : i32} : (i32) -> i32\n}\n'
    diff = check(diff_texts(left, right, "mlir"))
    (entry,) = [entry for entry in diff.entries if entry.op != "equal"]
    assert entry.op == "changed"
    (left_mark,), (right_mark,) = diff.marks(entry)
    assert diff.left_lines[entry.left.start][slice(*left_mark)] == "8"
    assert diff.right_lines[entry.right.start][slice(*right_mark)] == "16"


def _permuted(text: str, pattern: str, rng: random.Random) -> str:
    """The text with the numbers that a pattern finds permuted."""
    numbers = sorted({match[1] for match in re.finditer(pattern, text)})
    fresh = dict(zip(numbers, rng.sample(numbers, len(numbers)), strict=True))

    def replace(match: re.Match[str]) -> str:
        start = match.start(1) - match.start()
        return match[0][:start] + fresh[match[1]] + match[0][start + len(match[1]) :]

    return re.sub(pattern, replace, text)


def _permuted_rows(sass: str, rng: random.Random) -> str:
    """SASS with its registers permuted four by four: a row of registers stays one, and stays aligned."""
    rows = sorted({int(number) // 4 for number in re.findall(r"\bR(\d+)\b", sass)})
    fresh = dict(zip(rows, rng.sample(rows, len(rows)), strict=True))
    return re.sub(r"\bR(\d+)\b", lambda match: f"R{fresh[int(match[1]) // 4] * 4 + int(match[1]) % 4}", sass)


def _shifted(amd: str) -> str:
    """AMDGCN with all vector registers 40 higher but the first ones, which the kernel is given."""
    ranges = [(int(first), int(last)) for first, last in re.findall(r"\bv\[(\d+):(\d+)\]", amd)]
    least = next(n for n in range(1, 40) if not any(first < n <= last for first, last in ranges))

    def shifted(number: str) -> int:
        return int(number) + 40 * (int(number) >= least)

    amd = re.sub(r"\bv(\d+)\b", lambda match: f"v{shifted(match[1])}", amd)
    return re.sub(r"\bv\[(\d+):(\d+)\]", lambda m: f"v[{shifted(m[1])}:{shifted(m[2])}]", amd)


@pytest.mark.parametrize("warps", [4, 8])
def test_renamed_registers_and_labels_differ_in_nothing(warps: int) -> None:
    rng = random.Random(warps)
    ptx = stage_text("softmax.cuda90.ptx", warps)
    renamed = _permuted(_permuted(_permuted(ptx, r"%r(\d+)\b", rng), r"%rd(\d+)\b", rng), r"\$L__BB0_(\d+)", rng)
    assert check(diff_texts(ptx, renamed.replace("%p<", "%p<1"), "ptx")).is_empty
    sass = stage_text("softmax.cuda90.sass", warps)
    assert check(diff_texts(sass, _permuted(_permuted_rows(sass, rng), r"\.L_x_(\d+)", rng), "sass")).is_empty
    amd = stage_text("softmax.hipgfx942.amdgcn", warps)
    assert check(diff_texts(amd, _shifted(amd), "amdgcn")).is_empty
    # v0 holds the thread's number when the kernel begins: another register does not.
    assert not diff_texts(amd, re.sub(r"\bv0\b", "v99", amd), "amdgcn").is_empty
    llir = stage_text("softmax.hipgfx942.llir", warps)
    results = set(re.findall(r"^  %(\d+) = |^(\d+):", llir, re.MULTILINE))
    for number in {first or second for first, second in results}:
        llir = re.sub(rf"%{number}\b", f"%x{number}", llir)
        llir = re.sub(rf"^{number}:", f"x{number}:", llir, flags=re.MULTILINE)
    assert check(diff_texts(stage_text("softmax.hipgfx942.llir", warps), llir, "llvm")).is_empty


@pytest.mark.parametrize("name", TEXTS)
def test_a_planted_instruction_is_found_and_nothing_else(name: str) -> None:
    text, kind = stage_text(name), KINDS[name.rpartition(".")[2]]
    whole = diff_texts(text, text, kind)
    rng = random.Random(name)
    names = {"llvm": r"  %\d+ = ", "ptx": r"    (?!\.)\w.*;$", "sass": r"    [A-Z].*;$", "amdgcn": r"    [sv]_\w+ .*"}
    places = [n for n, line in enumerate(whole.left_lines) if re.match(names[kind], line)]
    for place in rng.sample(places, 20):
        number = whole.left_numbers[place] - 1
        lines = text.split("\n")
        del lines[number]
        diff = check(diff_texts("\n".join(lines), text, kind))
        added = [diff.right_lines[line] for entry in diff.entries if entry.op == "added" for line in entry.right]
        assert whole.left_lines[place].split()[:1] == added[0].split()[:1] or len(added) == 1
        assert len(added) == 1, diff.unified(0)
