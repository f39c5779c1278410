"""`irscope.table`, `findings`, `to_dict` and `recording_session`."""

from __future__ import annotations

import dataclasses
import doctest
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


HOMES = {
    **dict.fromkeys(("diff", "layout", "check", "reproduce", "sweep", "report"), "irscope.api.notebook"),
    **{"record_all": "irscope.api", "why": "irscope.api", "time": "irscope.api.timing", "load": "irscope.store.file"},
}
"""The ten functions of notebooks, with the modules of their docstrings; that of `record` is from `record_all`."""


def run_example(name: str) -> None:
    """Run the example in a function's docstring, with `capture` a matmul."""
    functions = {name: getattr(import_module(home), name) for name, home in HOMES.items()}
    globs = {**functions, "capture": load(MATMUL)}
    (example,) = doctest.DocTestFinder(recurse=False).find(functions[name], name, globs=globs)
    assert example.examples
    for one in example.examples:
        one.options.pop(doctest.SKIP, None)
    assert doctest.DocTestRunner().run(example).failed == 0
    assert getattr(irscope, name).__doc__ == functions[name].__doc__ or name == "layout"


@pytest.mark.parametrize("name", [name for name in HOMES if name not in ("record_all", "sweep")])
def test_the_example_of_a_function_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAYOUTS)
    run_example(name)


@pytest.mark.triton
@pytest.mark.newest
def test_the_example_of_a_recording_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    run_example("record_all")
    assert irscope.record("examples/softmax.py", target="h100").name == "softmax_kernel"


@pytest.mark.triton
def test_the_example_of_a_sweep_runs() -> None:
    pytest.importorskip("distributed")
    run_example("sweep")


def test_each_result_of_a_notebook_is_displayed() -> None:
    """As HTML that is escaped."""
    from irscope.api import notebook

    pytest.importorskip("z3", reason="proofs need z3-solver")
    capture = load(MATMUL)
    results = [
        capture,
        irscope.diff(capture, load(AMD)),
        irscope.layout(capture),
        irscope.layout(capture, "#mma"),
        irscope.check(capture, max_registers=8),
        irscope.reproduce(capture),
        irscope.report([capture, load(AMD)], title="<b>"),
        irscope.why(capture, tries=0),
        irscope.time(capture, grid=(64, 1, 1)),
        irscope.safety(capture),
        irscope.safety_for_all_arguments(capture),
        irscope.meaning(capture),
        irscope.same_bits(capture, capture),
    ]
    for result in results:
        text = result._repr_html_()
        assert text.startswith("<"), result
        assert "<b>" not in text
    assert not results[4].passed
    assert irscope.sweep is notebook.sweep
    assert irscope.layout.described is import_module("irscope.layout.described")
