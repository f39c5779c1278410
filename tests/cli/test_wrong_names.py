"""A wrong name, of any kind and for any command, is refused with its value and a remedy: nothing is compiled."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irscope.cli.commands import COMMANDS, main_group
from irscope.errors import UsageError
from irscope.model.capture import STAGE_NAMES
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from irscope.target import KNOWN_TARGETS
from tests.cli.product import KERNELS, ROOT
from tests.hostile.viewing import run_quietly

RIGHT = {
    "stage": [name for name in STAGE_NAMES if name != "edited"],
    "pass": [
        "combine",
        "coalesce",
        "triton-combine",
        "tritongpu-pipeline",
        "ttgir:canonicalizer#2",
        "accelerate_matmul",
    ],
    "kernel": ["tile_product"],
    "target": [*map(str, KNOWN_TARGETS), "h100", "mi300x"],
    "file": [str(KERNELS), "last.irscope", "kernel.ttgir"],
    "layout": ["#blocked", "#shared", "#mma"],
    "value": ["%0", "%cst", "%arg0"],
    "operation": ["load", "tt.store", "convert_layout"],
    "lines": ["23-31", "3,9", "12"],
    "config": ["KEY=1"],
}
"""Names of each kind, that wrong ones are made of."""

KINDS = {
    "--stage": "stage", "--after": "pass", "--before": "pass", "--pass": "pass", "--disable-pass": "pass",
    "--at": "pass", "--target": "target", "--layout": "layout", "--lines": "lines", "--value": "value",
}  # fmt: skip
"""The options that take a name, and of which kind."""

NEEDS = {
    "edit": ["--at", "ttgir", "--text"], "reduce": ["--check", "true"], "diff": ["--vs", "num_warps=8"],
    "export": ["--tritonparse"],
}  # fmt: skip
"""What a command cannot do without."""
RUNS_SCRIPTS = ("bench", "run")
OTHERWISE_REFUSED = ("profile", "upgrade")
"""Commands that ask for a GPU, or another environment, before they look at names."""
WITHOUT_SUBJECT = ("doctor", "serve", "import", "ls", *OTHERWISE_REFUSED)
SOFTMAX = ROOT / "tests/data/hostile/softmax-cuda-90.irscope"
REMEDY = re.compile(
    r"did you mean|known:|write |give |there are|there is|lists |holds |choose|possible options|try |record |it has|"
    r"installed|needs|launched|leave|irscope ",
    re.IGNORECASE,
)


@cache
def options_of(command: str) -> frozenset[str]:
    """The long options that a command has."""
    return frozenset(name for one in parameters_of(command) for name in one.opts)


def parameters_of(command: str) -> list[click.Parameter]:
    """The options and arguments of a command."""
    group = main_group()
    loaded = group.get_command(click.Context(group), command)
    assert loaded is not None
    return loaded.params


def wrong_names(kind: str) -> st.SearchStrategy[str]:
    """Names of a kind with a letter too much, too few, or another."""

    def misspelled(name: str, seed: int) -> str:
        chance = random.Random(seed)
        at = chance.randrange(len(name))
        letter = chance.choice("aeiouxyz")
        return chance.choice(
            [name[:at] + letter * 2 + name[at:], name[:at] + letter + "q" + name[at + 1 :], f"no{name}"]
        )

    return st.builds(misspelled, st.sampled_from(RIGHT[kind]), st.integers(0, 1 << 30))


def takes(command: str, subject: str) -> bool:
    """Whether a command takes such a subject, a capture or a program."""
    is_program = subject.startswith(str(KERNELS))
    return is_program or subject == "WRONG" if command in RUNS_SCRIPTS else command != "show" or not is_program


def command_lines(kind: str) -> Iterator[tuple[str, list[str]]]:
    """(command, its words, with WRONG for the name) of every command that takes a name of this kind."""
    capture, script = CaptureStore().paths()[0].as_posix(), str(KERNELS)
    for command in COMMANDS:
        if command in WITHOUT_SUBJECT:
            continue
        needed = NEEDS.get(command, [])
        kinds = ["dataflow"] if command == "draw" else []
        if kind in ("kernel", "file"):
            for subject in ("WRONG",) if kind == "file" else (f"{script}::WRONG", f"{capture}::WRONG"):
                if takes(command, subject):
                    yield command, [*kinds, subject, *needed]
        for option, of in KINDS.items():
            if of != kind or option not in options_of(command) or option in needed:
                continue
            more = ["--op", "load"] if (command, option) == ("passes", "--at") else []
            subjects = [capture] if kind in ("layout", "lines", "value") else [capture, script]
            for subject in subjects:
                if not takes(command, subject):
                    continue
                if kind == "lines" and command in ("dump", "show"):
                    more = ["--stage", "ttgir"]
                yield command, [*kinds, subject, option, "WRONG", *needed, *more]


@pytest.fixture
def nothing_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with a capture, an empty folder to work in, and no process to record with."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    CaptureStore().add(load(SOFTMAX))
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    for name in ("record.process.session.record_request", "record.gpu.session.device_session"):
        monkeypatch.setattr(f"irscope.{name}", refused)
    monkeypatch.setattr("irscope.record.variants.pool.VariantPool.compile", refused)


NAMED = ("stage", "pass", "kernel", "target", "file", "layout", "lines", "value")


def faults_of(command: str, words: list[str], wrong: str) -> str:
    """What is wrong with how a command line with a wrong name ends; empty if it is refused as it should be."""
    given_words = [word.replace("WRONG", wrong) for word in words]
    code, _, err = run_quietly((command, *given_words))
    told = " ".join(err.split())
    faults = [
        *(["exit code"] if code not in (1, 2) else []),
        *(["the value"] if wrong.partition("#")[0].rpartition(":")[2] not in told else []),
        *(["a remedy"] if not REMEDY.search(told) else []),
        *(["a file"] if any(Path.cwd().iterdir()) else []),
        *(["compiled"] if "a process was started" in told or "internal error" in told else []),
    ]
    return f"{', '.join(faults)}: irscope {command} {' '.join(given_words)} → {code}: {told[:300]}" if faults else ""


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("kind", NAMED)
def test_a_wrong_name_is_refused_by_every_command(kind: str, nothing_is_compiled: None) -> None:
    wrong = {"pass": "coalescq", "target": "cuda:9q", "file": "noqfile.py", "lines": "9-xq", "value": "%noqvalue"}
    found = [faults_of(command, words, wrong.get(kind, f"noq{kind}")) for command, words in command_lines(kind)]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.triton
@pytest.mark.newest
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_misspelled_name_is_refused(nothing_is_compiled: None, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(NAMED))
    command, words = data.draw(st.sampled_from(list(command_lines(kind))))
    fault = faults_of(command, words, data.draw(wrong_names(kind)))
    assert not fault, fault


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_option_is_refused(command: str) -> None:
    code, _, err = run_quietly((command, "--nosuch-option", "1"))
    assert code == 2
    assert "--nosuch-option" in err


def test_a_file_that_is_no_subject_starts_no_recording() -> None:
    from irscope.__main__ import FILE_OPTIONS, names_program

    for words in (
        ["ls", "--cache-dir", "x.py"], ["reproduce", "last", "-o", "x.py"], ["show", "x.py"],
        ["dump", "x.py", "--help"],
        ["diff", "a.ttgir", "b.ttgir"], ["edit", "last", "--at", "source", "--edited", "x.py"],
        ["dump", "last", "-ox.py"],
    ):  # fmt: skip
        assert not names_program(words), words
    for words in (
        ["dump", "x.py"],
        ["dump", "-v", "x.py::k"],
        ["diff", "x.py"],
        ["draw", "poster", "x.py"],
        ["record", "a.py", "b.py", "-o", "c/"],
    ):
        assert names_program(words), words
    parameters = [one for command in COMMANDS for one in parameters_of(command)]
    files = {
        name
        for one in parameters
        if one.param_type_name == "option" and re.search(r"\b(FILE|PATH|DIR|TABLE)\b", one.metavar or "")
        for name in one.opts
    }
    assert files <= {*FILE_OPTIONS}, files - {*FILE_OPTIONS}
    assert os.path.isabs(Path(KERNELS))


@pytest.mark.parametrize(
    ("command", "output", "said"),
    [
        ("run", "x.html", ".html means a page. Pages (.html) are written by report, diff, "),
        ("why", "x.svg", "pictures (.svg, .png) by draw, layout, time, passes"),
        ("verify", "x.irscope", "captures (.irscope) by dump, show, import"),
        ("report", "file/x.html", "file' is a file, and no folder"),
        ("record", "file/folder/x", "file' is a file, and no folder"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_script_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, output: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "script.py").write_text("open('ran', 'w')")
    result = CliRunner().invoke(main_group(), [command, "script.py", "-o", output])
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "script.py"]
