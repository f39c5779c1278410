"""Programs with the calls put in do what they did, and placeholder values go through."""

from __future__ import annotations

import ast
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from irscope.errors import UsageError
from irscope.model.launch_record import Decision
from irscope.record.virtual.numbers import plain, reads_of
from irscope.record.virtual.placeholders import Following, current_following, follow
from irscope.record.virtual.rewrite import rewrite

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(source: str, tmp_path: Path, one: Following | None = None) -> dict[str, Any]:
    path = tmp_path / "program.py"
    path.write_text(source)
    names: dict[str, Any] = {"read": (lambda value: value) if one is None else one.read}
    exec(compile(rewrite(source, str(path)), str(path), "exec"), names)
    return names


def decided(one: Following) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for item in one.assumptions({}):
        found.setdefault(item.name, []).extend((made.kind, made.place) for made in item.decided)
    return found


PLAIN = '''"""Doc."""
from __future__ import annotations
result = [int("7"), int(2.9), float("1.5"), int(), int("ff", 16), list(range(3)), list(range(5, 1, -2))]
class Own:
    value = int("3")
    def method(self) -> int:
        return int(self.value)
result.append(Own().method())
def check(n):
    if n < 0:
        raise ValueError(n)
    elif n > 5:
        return "large"
    else:
        assert n != 3, "three"
        return "small"
result += [check(1), check(9)]
for wrong in (-1, 3):
    try:
        check(wrong)
    except (ValueError, AssertionError) as error:
        result.append(repr(error))
int = str
result.append(int(5))
'''


def test_without_stand_ins_nothing_is_different(tmp_path: Path) -> None:
    expected: dict[str, Any] = {}
    exec(compile(PLAIN, "plain.py", "exec", dont_inherit=True), expected)
    assert run(PLAIN, tmp_path)["result"] == expected["result"]
    with follow() as one:
        assert run(PLAIN, tmp_path, one)["result"] == expected["result"]
        assert one.assumptions({}) == ()


def test_a_traceback_names_the_same_lines(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="one") as caught:
        run("x = 1\nfor i in range(2):\n    assert int(x) == 2, 'one'\n", tmp_path)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 3


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_place_stays(path: Path) -> None:
    source = path.read_text("utf-8")

    def places(tree: ast.Module) -> set[tuple[str, int, int]]:
        return {
            (type(node).__name__, node.lineno, node.col_offset)
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and not isinstance(node, ast.ImportFrom)
        }

    assert places(rewrite(source, str(path))) == places(ast.parse(source))


def test_int_float_and_range_are_followed(tmp_path: Path) -> None:
    with follow() as one:
        names = run(
            "n = int(read(0.0))\ns = float(n)\nk = int(s * 2) + 1\nfor i in range(k):\n    pass\n", tmp_path, one
        )
        assert decided(one) == {"n": [("loop", "program.py:4")]}
        assert {read.name for read in reads_of(names["k"])} == {"n"}
        assert plain((names["n"], names["k"])) == (0, 1)


def test_checks_pass_and_branches_are_told(tmp_path: Path) -> None:
    source = (
        "n = read(0)\n"
        "assert n > 0, n\n"
        "if n == 0:\n    raise ValueError\n"
        "if not n:\n    import sys\n    sys.exit(1)\n"
        "if n > 3:\n    pass\nelse:\n    raise SystemExit\n"
        "assert n < 0 and 1 / n > 0 or not n\n"
        "went = 'yes' if n < 1 else 'no'\n"
        "assert 1 < 2\n"
    )
    with follow() as one:
        assert run(source, tmp_path, one)["went"] == "yes"
        kinds = decided(one)["n"]
    assert [place for kind, place in kinds if kind == "branch"] == ["program.py:13"]
    checks = ["program.py:2", "program.py:3", "program.py:5", "program.py:8", "program.py:12"]
    assert sorted(place for kind, place in kinds if kind == "check") == sorted(checks)


def test_a_check_is_told_after_any_number_of_questions(tmp_path: Path) -> None:
    with follow() as one:
        run("n = read(0)\ncount = sum(1 for _ in range(25000) if n < 1)\nassert n > 0\n", tmp_path, one)
        assert ("check", "program.py:3") in decided(one)["n"]


def test_an_assertion_without_a_stand_in_still_fails(tmp_path: Path) -> None:
    with follow() as one, pytest.raises(AssertionError):
        run("n = read(0)\nassert n == 0 and True\nassert 1 > 2\n", tmp_path, one)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("n = read(0)", "n"),
        ("n: int = read(0)", "n"),
        ("n = 1 + max(read(0), 2)", "n"),
        ("class C: pass\nc = C(); c.size = read(0)", "size"),
        ("d = {}\nd['key'] = read(0)", "key"),
        ("a, n = 1, read(0)", "n"),
        ("def f(size): return size\nx = f(size=read(0))", "size"),
        ("print(y := read(0))", "y"),
        ("def longest(): return read(0)\nn = longest()", "n"),
        ("print(read(0))", "program.py:1"),
    ],
)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows no columns: some names are not found")
def test_what_a_read_is_called(statement: str, name: str, tmp_path: Path) -> None:
    with follow() as one:
        run(statement, tmp_path, one)
        assert one.names()[0].partition(" ")[0] == name


def test_several_names_for_a_list(tmp_path: Path) -> None:
    with follow({"b": "7"}) as one:
        names = run("a, b = read([0, 0])\n", tmp_path, one)
        assert plain((names["a"], names["b"])) == (0, 7)
        assert [read.given for read in reads_of(names["b"])] == [True]
        assert one.unused() == ()


@pytest.mark.parametrize("key", ["n", "program.py:2"])
def test_assume_sets_a_value(key: str, tmp_path: Path) -> None:
    with follow({key: "3", "m": "4"}) as one:
        names = run("\nn = read(0)\nif n > 2:\n    went = 1\n", tmp_path, one)
        assert plain((names["n"], names["went"])) == (3, 1)
        assert one.unused() == ("m",)
        (assumption,) = one.assumptions({})
    assert assumption.given
    assert assumption.decided == (Decision("branch", "if n > 2", "program.py:3"),)


def test_a_value_that_the_user_set_is_checked(tmp_path: Path) -> None:
    with follow({"n": "0"}) as one, pytest.raises(AssertionError):
        run("n = read(1)\nassert n > 0\n", tmp_path, one)


@pytest.mark.parametrize("value", ["", "x", "None", "'a'", "{1}"])
def test_what_cannot_be_assumed(value: str) -> None:
    with pytest.raises(UsageError, match="--assume n="), follow({"n": value}):
        pass
    assert not current_following().is_on
