"""The ways of a sweep: every value with every other, and what is none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from irscope.cli.sweep import points_of, with_constants
from irscope.errors import IrscopeError, PlanError, TargetError, UsageError
from irscope.model.trial import Point, combinations
from irscope.store.file import load
from tests.cli.product import ROOT


def test_all_with_all(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text("-combine\n")
    ways = ["num_warps=2,8", "num_warps=16", "target=cuda:100", "num-stages=4", f"plan={plan},-coalesce"]
    found = points_of(ways)
    assert len(found) == len(set(found)) == 4 * 2 * 2 * 3
    assert found[0] == Point()
    names = {one.name for one in found}
    assert {"", "num_warps=8", "num_warps=16 num_stages=4 target=cuda:100 plan=-combine"} <= names
    assert points_of([]) == (Point(),)


def test_axes_as_python_gives_them() -> None:
    found = combinations({"triton": ["python3"], "target": ["h100"], "num_warps": [8]})
    assert len(found) == 8
    assert found[-1] == Point(target="cuda:90", interpreter="python3", options=(("num_warps", 8),))
    with pytest.raises(PlanError, match="must begin with"):
        combinations({"plan": ["coalesce"]})


def test_another_interpreter(tmp_path: Path) -> None:
    assert points_of([f"triton={sys.executable}"])[1].interpreter == sys.executable
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert points_of([f"triton={tmp_path}"])[1].interpreter == str(tmp_path / "bin" / "python")


@pytest.mark.parametrize(
    ("versus", "error", "message"),
    [
        (["num_warps"], UsageError, "--vs 'num_warps': write KEY=VALUE"),
        (["=8"], UsageError, "write KEY=VALUE"),
        (["config=2"], UsageError, "irscope record --config all"),
        (["target=sparc"], TargetError, "'sparc' is not a target"),
        (["triton=/no/where"], UsageError, "neither a Python nor an environment"),
        (["plan=combine"], PlanError, "neither a file nor a plan, such as -combine"),
    ],
)
def test_what_is_no_way(versus: list[str], error: type[IrscopeError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        points_of(versus)


def test_a_plan_may_be_longer_than_the_name_of_a_file() -> None:
    text = "\n".join(["-combine", *(f"-canonicalizer#{number}" for number in range(1, 400))])
    assert len(points_of([f"plan={text}"])) == 2


def test_a_constant_is_none_of_the_compiler() -> None:
    capture = load(ROOT / "tests" / "data" / "layouts" / "matmul-cuda-80.irscope")
    name = capture.launch.constants[0][0]
    found = with_constants(points_of([f"{name}=64,128", "num_warps=8"]), [capture])
    assert {(one.constants, one.options) for one in found} == {
        (constants, options)
        for constants in ((), ((name, "64"),), ((name, "128"),))
        for options in ((), (("num_warps", 8),))
    }
    assert found[-1].name == f"{name}=128 num_warps=8"
