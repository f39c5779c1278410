"""The options of a recording reach a command as one value, and Typer as options of the command's own."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest
import typer

import irscope
from irscope.cli import script_arguments
from irscope.cli.subject.recording import recorded, recording_options
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.messages import MessageReader, frame_of
from irscope.record.process.requests import RecordRequest

OTHER = {
    "arguments": ("x", "-y"),
    "module": "package.module",
    "tests": ("tests", "other.py::test_one"),
    "test_filter": "one and not two",
    "dry": True,
    "targets": ("cuda:80",),
    "launch": 2,
    "virtual": True,
    "signature": "*fp16",
    "constexprs": (("B", "1"),),
    "options": (("num_warps", 8), ("list", ("a", 1.5, None))),
    "config": "all",
    "assume": (("n", "4"),),
    "into": "ttgir",
    "data_limit_bytes": 4096,
    "plan": PassPlan.parse("-ttgir:coalesce#2 +ttir:cse"),
    "snapshots": "all",
    "llvm_passes": True,
    "jobs": 3,
    "resume": True,
    "timeout_s": 9.0,
    "verbose": True,
    "interpreter": "/usr/bin/python3",
    "constants": (("B", "2"),),
    "disassemble": False,
    "layouts": False,
}
"""A value for each option that is not its default."""


def asked_by(arguments: list[str], *, without: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> RecordingOptions:
    app = typer.Typer()
    given: list[RecordingOptions] = []

    @app.command()
    @recorded(without=without, only=only)
    def command(subject: str = typer.Argument("last"), *, record_options: RecordingOptions, last: bool = False) -> int:
        given.append(record_options)
        return 0

    own, _, rest = " ".join(arguments).partition(" -- ")
    token = script_arguments.set(tuple(rest.split()))
    try:
        app(own.split(), standalone_mode=False)
    finally:
        script_arguments.reset(token)
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
    assert asked == RecordingOptions(
        targets=("cuda:80", "hip:gfx942"),
        launch=2,
        virtual=True,
        signature="*fp16",
        constexprs=(("B", "1"),),
        options=(("maxnreg", 64), ("num_warps", 8), ("num_stages", 0), ("num_ctas", 2)),
        config="all",
        plan=asked.plan,
        snapshots="all",
        llvm_passes=True,
        timeout_s=9.0,
        verbose=True,
        arguments=("x", "--y"),
    )


def test_a_second_subject_is_no_argument_of_the_script() -> None:
    with pytest.raises(UsageError, match=r"'b.py' is one argument too many.*-- b.py"):
        asked_by(["a.py", "b.py"])


def test_the_defaults_are_those_of_the_value() -> None:
    assert asked_by([]) == recording_options() == RecordingOptions()


def test_they_stand_where_the_command_has_them() -> None:
    @recorded(only=("timeout", "launch"))
    def command(first: int = 1, *, record_options: RecordingOptions, last: int = 2) -> int:
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


def test_the_keywords_of_the_python_interface_are_those_of_the_fields() -> None:
    keywords = dict(inspect.signature(irscope.record_all).parameters)
    del keywords["source"], keywords["kernel"]
    fields = {item.metadata["keyword"]: item for item in dataclasses.fields(RecordingOptions)}
    fields.pop("")
    assert keywords.keys() == fields.keys()
    for name, field in fields.items():
        # None and an empty text or tuple stand for the default, whatever its type.
        default = keywords[name].default
        assert (default or None) == (field.default or None), name


def test_values_as_programs_give_them() -> None:
    values = {
        "plan": "-combine",
        "targets": irscope.Target.parse("h100"),
        "options": {"num_warps": 8},
        "assume": {"n": 2},
    }
    assert RecordingOptions.of(
        {**values, "constexprs": {"B": 64, "T": "tl.float16"}, "signature": None}
    ) == RecordingOptions(
        plan=PassPlan.parse("-combine"),
        targets=("cuda:90",),
        options=(("num_warps", 8),),
        assume=(("n", "2"),),
        constexprs=(("B", "64"), ("T", "tl.float16")),
    )
    assert RecordingOptions.of({"targets": ["cuda:80", "hip:gfx942"]}).targets == ("cuda:80", "hip:gfx942")


def test_every_option_reaches_the_recording_process() -> None:
    asked = RecordingOptions(**OTHER)
    request = RecordRequest.of_options(asked, mode="script", path="kernels.py")
    (arrived,) = MessageReader((RecordRequest,)).feed(frame_of(request))
    assert arrived == request
    for item in dataclasses.fields(RecordingOptions):
        assert getattr(arrived, item.name) != item.default, item.name
