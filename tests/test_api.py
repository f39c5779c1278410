"""`irscope.table`, `findings`, `to_dict` and `recording_session`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import irscope
from irscope.errors import UsageError
from irscope.store.file import load
from tests.cli.product import ROOT, Run
from tests.reference import SECTIONS, api_page

LAYOUTS = ROOT / "tests" / "data" / "layouts"
FLASH, MATMUL, AMD = (
    LAYOUTS / f"{name}.irscope" for name in ("flash_attention-cuda-90", "matmul-cuda-80", "matmul-hip-gfx942")
)
STRIDED = ROOT / "tests" / "data" / "layouts" / "matrix_transpose-cuda-90.irscope"
WITHOUT_TORCH = ROOT / "tests" / "record" / "scripts" / "without_torch.py"


def test_a_result_is_what_its_command_prints(irscope_: Run) -> None:
    capture = load(FLASH)
    for result, words in (
        (irscope.to_dict(capture), ("show", FLASH)),
        (irscope.to_dict(irscope.diff(load(MATMUL), load(AMD))), ("diff", MATMUL, AMD, "--stage", "all")),
    ):
        (printed,) = json.loads(irscope_(*words, "--json")[1])
        printed.pop("irscope_json")
        assert json.loads(json.dumps(result)) == printed
    printed = json.loads(irscope_("why", STRIDED, "--tries", "0", "--json")[1])[0]["findings"]
    found = [irscope.to_dict(one) for one in irscope.findings(load(STRIDED))]
    assert found
    assert json.loads(json.dumps(found)) == printed
    with pytest.raises(UsageError, match="list has no plain form"):
        irscope.to_dict([capture])  # type: ignore[arg-type]


@pytest.fixture
def irscope_(capsys: pytest.CaptureFixture[str]) -> Run:
    from irscope.__main__ import run

    def called(*arguments: object) -> tuple[int, str, str]:
        code = run([str(one) for one in arguments])
        answer = capsys.readouterr()
        return code, answer.out, answer.err

    return called


def test_a_table_has_a_row_of_plain_values_for_each_capture() -> None:
    captures = [load(path) for path in (MATMUL, AMD)]
    first, second = irscope.table(captures)
    assert list(first) == list(second)
    assert json.loads(json.dumps([first, second])) == [first, second]
    assert [row["id"] for row in (first, second)] == [one.id for one in captures]
    assert first["registers"] == captures[0].resources.registers
    assert first["constants.BLOCK_M"] == int(dict(captures[0].launch.constants)["BLOCK_M"])
    assert first["options.num_warps"] == captures[0].launch.option("num_warps")
    # They differ in what only one backend has.
    assert (first["options.matrix_instr_nonkdim"], second["options.matrix_instr_nonkdim"]) == (None, 0)
    assert first["findings"] == list(dict.fromkeys(one.code for one in irscope.findings(captures[0])))
    assert irscope.table([]) == []


@pytest.mark.triton
@pytest.mark.newest
def test_recordings_of_a_session_are_forks_of_one_process(tmp_path: Path, new_processes: None) -> None:
    script = tmp_path / "script.py"
    parents = tmp_path / "parents"
    note = f"import os\nwith open({str(parents)!r}, 'a') as file: print(os.getppid(), file=file)\n"
    script.write_text(note + WITHOUT_TORCH.read_text("utf-8"))
    with irscope.recording_session():
        one, other = (irscope.record(script, target="cuda:90", snapshots="none") for _ in range(2))
    alone = irscope.record(script, target="cuda:90", snapshots="none")
    first, second, third = map(int, parents.read_text().split())
    assert first == second != third
    assert os.getpid() not in (first, second)
    assert one.ptx == other.ptx == alone.ptx


def types_reached() -> set[type]:
    """The classes of irscope's that its public functions return, and those of their fields."""
    modules = [import_module(module) for _, _, module, _ in SECTIONS]
    known = {name: one for module in modules for name, one in vars(module).items() if inspect.isclass(one)}
    reached: set[type] = set()
    waiting: list[type] = []

    def take(hint: Any) -> None:
        for part in get_args(hint):
            take(part)
        if inspect.isclass(hint) and hint.__module__.startswith("irscope.") and hint not in reached:
            reached.add(hint)
            waiting.append(hint)

    for name in irscope.__all__:
        function = getattr(import_module("irscope.api"), name, None) or getattr(irscope, name)
        if inspect.isfunction(function):
            function = inspect.unwrap(function)
            take(get_type_hints(function, known | vars(import_module(function.__module__)) | known)["return"])
    while waiting:
        of = waiting.pop()
        if dataclasses.is_dataclass(of):
            for hint in get_type_hints(of, vars(import_module(of.__module__)) | known).values():
                take(hint)
    return reached


def test_the_page_lists_every_type_that_a_function_returns() -> None:
    page = api_page()
    assert {"Capture", "Comparison", "Finding", "Explanation", "LayoutRow"} <= {one.__name__ for one in types_reached()}
    assert [one for one in types_reached() if f"### class `{one.__name__}" not in page] == []


def test_each_function_of_a_notebook_runs_its_example_and_displays_its_result() -> None:
    """The examples in the docstrings, with `capture` a matmul; every result is HTML that is escaped."""
    import doctest

    from irscope.api import notebook

    capture = load(MATMUL)
    functions = {name: getattr(notebook, name) for name in ("diff", "layout", "check", "reproduce", "sweep", "report")}
    for name, function in functions.items():
        (example,) = doctest.DocTestFinder().find(function, name, globs={**functions, "capture": capture})
        assert example.examples, name
        assert doctest.DocTestRunner().run(example).failed == 0, name
        assert getattr(irscope, name).__doc__ == function.__doc__ or name == "layout"
    results = [
        capture,
        irscope.diff(capture, load(AMD)),
        irscope.layout(capture),
        irscope.layout(capture, "#mma"),
        irscope.check(capture, max_registers=8),
        irscope.reproduce(capture),
        irscope.report([capture, load(AMD)], title="<b>"),
    ]
    for result in results:
        text = result._repr_html_()
        assert text.startswith("<"), result
        assert "<b>" not in text
    assert not results[4].passed
    assert irscope.sweep is notebook.sweep
    assert irscope.layout.described is import_module("irscope.layout.described")
