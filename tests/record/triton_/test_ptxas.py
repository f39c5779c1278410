"""The command line of ptxas as steps: Triton's commands, and options that a program adds."""

from __future__ import annotations

import pytest

from irscope.record.triton.ptxas import is_assembler, steps, without

PLAIN = ["bin/ptxas", "-lineinfo", "-v", "--gpu-name=sm_90a", "x.ptx", "-o", "x.ptx.o"]
DEFAULTS = ("expensive-optimizations", "fmad", "optimizer-constants", "merge-basicblocks")


def with_options(*words: str) -> list[str]:
    return [*PLAIN[:3], *words, *PLAIN[3:]]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ("O3", "O2", "O1", *DEFAULTS)),
        (("--opt-level", "1"), ("O1", *DEFAULTS)),
        (("-O2",), ("O2", "O1", *DEFAULTS)),
        (("--opt-level", "0"), ()),
        (("--fmad=false",), ("O3", "O2", "O1", DEFAULTS[0], *DEFAULTS[2:])),
        (("--maxrregcount", "64", "--x=1"), ("O3", "O2", "O1", *DEFAULTS, "maxrregcount", "x")),
    ],
)
def test_steps_of_a_command(words: tuple[str, ...], names: tuple[str, ...]) -> None:
    command = with_options(*words)
    assert is_assembler(command)
    assert steps(command) == names
    assert without(command, ()) == command


@pytest.mark.parametrize(
    ("words", "off", "left"),
    [
        ((), {"O3"}, (*PLAIN[1:], "--opt-level", "2")),
        ((), {"O3", "O1"}, (*PLAIN[1:], "--opt-level", "0")),
        (("--opt-level", "2"), {"O2"}, (*PLAIN[1:], "--opt-level", "1")),
        ((), {"fmad"}, (*PLAIN[1:], "--fmad=false")),
        (("--maxrregcount", "64"), {"maxrregcount"}, PLAIN[1:]),
    ],
)
def test_a_command_without_steps(words: tuple[str, ...], off: set[str], left: list[str]) -> None:
    assert without(with_options(*words), off) == [PLAIN[0], *left]


def test_other_commands_are_left_alone() -> None:
    assert not is_assembler("ptxas --version")
    assert not is_assembler(["bin/ptxas", "--version"])
    assert not is_assembler(["ld.lld", "-o", "x"])
