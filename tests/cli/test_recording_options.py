"""The options of a recording reach a command as one value, and Typer as options of the command's own."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer

from irscope.cli.recording import how, recorded
from irscope.cli.subject import How


def asked_by(arguments: list[str], *, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> How:
    app = typer.Typer()
    given: list[How] = []

    @app.command()
    @recorded(without=without, only=only)
    def command(subject: str = typer.Argument("last"), *, asked: How, last: bool = False) -> int:
        given.append(asked)
        return 0

    app(arguments, standalone_mode=False)
    return given[0]


def test_every_option_arrives(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("-combine\n")
    asked = asked_by(
        f"file.py --target cuda:80 -t hip:gfx942 --launch 2 --virtual --signature *fp16 --constexpr B=1 --num-warps 8 "
        f"--num-stages 0 --num-ctas 2 --option maxnreg=64 --option num_warps=2 --config all -d ttgir:coalesce "
        f"--enable-only ttir:cse --plan {plan} --snapshots all --llvm --timeout 9 -v -- x --y".split()
    )
    assert str(asked.plan) == "-combine -ttgir:coalesce +ttir:cse"
    assert asked == How(
        targets=("cuda:80", "hip:gfx942"),
        launch=2,
        virtual=True,
        signature="*fp16",
        constexprs=("B=1",),
        options={"maxnreg": 64, "num_warps": 8, "num_stages": 0, "num_ctas": 2},
        config="all",
        plan=asked.plan,
        snapshots="all",
        llvm_passes=True,
        timeout_s=9.0,
        verbose=True,
        arguments=("x", "--y"),
    )


def test_the_defaults_are_those_of_the_value() -> None:
    assert asked_by([]) == how() == How()


def test_they_stand_where_the_command_has_them() -> None:
    @recorded(only=("timeout", "launch"))
    def command(first: int = 1, *, asked: How, last: int = 2) -> int:
        return 0

    assert list(inspect.signature(command).parameters) == ["first", "launch", "timeout", "last"]


@pytest.mark.parametrize("choice", [{"without": ("verbose",)}, {"only": ("launch",)}])
def test_what_a_command_leaves_out_it_does_not_take(choice: dict[str, tuple[str, ...]]) -> None:
    assert asked_by(["--launch", "3"], **choice).launch == 3
    with pytest.raises(Exception, match="No such option: --verbose"):
        asked_by(["--verbose"], **choice)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(TypeError, match="snapshot"):
        recorded(without=("snapshot",))
