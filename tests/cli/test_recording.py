"""The options of a recording reach a command as one value, and the command line as options."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated

import click
import pytest

import irscope
from irscope.cli.command import Command
from irscope.cli.recording import refuse_options
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
    "computes": True,
    "values_memory_gib": 2.5,
    "values_timeout_s": 30.0,
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
    "times": True,
    "layouts": False,
}
"""A value for each option that is not its default."""


def asked_by(arguments: list[str]) -> RecordingOptions:
    given: list[RecordingOptions] = []

    def command(
        subject: Annotated[str, "subject = FILE: A file."] = "last", *, record_options: RecordingOptions
    ) -> int:
        given.append(record_options)
        return 0

    made = Command("command", command)
    with made.make_context("command", list(arguments)) as context:
        made.invoke(context)
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
    assert asked_by([]) == RecordingOptions()


def test_only_record_lists_them() -> None:
    def record(*, record_options: RecordingOptions) -> int:
        return 0

    def other(*, record_options: RecordingOptions) -> int:
        return 0

    shown, hidden = (
        one.get_help(click.Context(one, info_name=one.name)) for one in (Command("record", record), Command("x", other))
    )
    flags = [flag for item in dataclasses.fields(RecordingOptions) for _, flag in item.metadata["flags"] if flag.names]
    assert [flag.names[0] for flag in flags if flag.names[0] not in shown] == []
    assert [flag.names[0] for flag in flags if f"{flag.names[0]} " in hidden] == []
    assert "irscope record --help" in hidden


def test_options_that_mean_nothing_to_a_command_are_refused() -> None:
    asked = RecordingOptions(targets=("cuda:80",), launch=2)
    with pytest.raises(UsageError, match="it runs on the GPU that is there: leave out --target"):
        refuse_options(asked, "it runs on the GPU that is there", "targets", "virtual")
    refuse_options(asked, "nothing", "plan")


def test_the_keywords_of_the_python_interface_are_those_of_the_fields() -> None:
    keywords = dict(inspect.signature(irscope.record_all).parameters)
    del keywords["source"], keywords["kernel"]
    names = {"target": "targets", "values": "computes"}
    fields = {item.name: item for item in dataclasses.fields(RecordingOptions)}
    for keyword, parameter in keywords.items():
        # None and an empty text or tuple stand for the default, whatever its type.
        assert (parameter.default or None) == (fields[names.get(keyword, keyword)].default or None), keyword
    # What only commands and irscope itself ask for.
    others = fields.keys() - {names.get(keyword, keyword) for keyword in keywords}
    assert others == {
        *(
            "constants",
            "data_limit_bytes",
            "disassemble",
            "dry",
            "into",
            "launch",
            "layouts",
            "resume",
            "test_filter",
            "times",
        ),
        "verbose",
    }


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
    (arrived,) = MessageReader().feed(frame_of(request))
    assert arrived == request
    for item in dataclasses.fields(RecordingOptions):
        assert getattr(arrived, item.name) != item.default, item.name
