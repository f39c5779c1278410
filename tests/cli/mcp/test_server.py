"""`irscope mcp`, called by a client of the package `mcp`: what tools may do, answers and their next calls, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irscope.cli.mcp.answers import MOST_BYTES, ToolAnswer, call_text
from irscope.model.capture import Capture, PassSnapshot
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.cli.product import KERNELS, ROOT, Run

anyio = pytest.importorskip("anyio", reason="the extra irscope[mcp] is not installed")
pytest.importorskip("mcp.server.mcpserver", reason="the extra irscope[mcp] is not installed")

FLASH = ROOT / "tests" / "data" / "layouts" / "flash_attention-cuda-90.irscope"
WITH_PASSES = ROOT / "tests" / "data" / "hostile" / "matmul-hip-gfx942.irscope"
STRIDED = ROOT / "tests" / "data" / "layouts" / "matrix_transpose-cuda-90.irscope"
SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 16"

MOST_LISTED_BYTES = 8192

Call = Callable[..., Any]


class Refused(Exception):
    """A tool answered that it failed."""


async def _answers(server: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    from mcp import Client

    async with Client(server) as client:
        answers = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [*answers, await client.list_tools()]


def _told(answer: Any) -> Any:
    (content,) = answer.content
    assert len(content.text.encode()) <= MOST_BYTES
    if answer.is_error:
        raise Refused(content.text)
    return json.loads(content.text)


@pytest.fixture(scope="module")
def server() -> Any:
    """A server in this process; the schemas of its tools take a third of a second."""
    from irscope.cli.mcp.server import mcp_server

    return mcp_server()


@pytest.fixture
def call(server: Any) -> Call:
    """Calls one tool."""

    def called(name: str, **arguments: Any) -> Any:
        return _told(anyio.run(_answers, server, [(name, arguments)])[0])

    return called


def every(call: Call, key: str, name: str, **arguments: Any) -> list[Any]:
    """The rows of all pages, each page asked for as the one before says."""
    rows: list[Any] = []
    for _ in range(60):
        answer = call(name, **arguments)
        assert answer[key], "a page with nothing on it would never end"
        rows += answer[key]
        if "next" not in (left := answer.get("left_out", {})):
            return rows
        name, arguments = left["next"]["tool"], left["next"]["arguments"]
    raise AssertionError(f"{name} does not end")


@pytest.fixture
def flash() -> str:
    """The id of a large capture that is stored."""
    capture = load(FLASH)
    CaptureStore().add(capture)
    return capture.id


def test_what_tools_may_do_is_marked(server: Any) -> None:
    tools = {tool.name: tool for tool in anyio.run(_answers, server, [])[-1].tools}
    # The defaults of the protocol: a tool may write, destroy, and reach the world.
    hints = {name: one.annotations and one.annotations.model_dump(exclude_none=True) for name, one in tools.items()}
    assert {name for name, one in hints.items() if not one} == {
        *("record", "edit_python", "run", "verdict", "bench", "profile", "upgrade"),
    }
    compiles = {"destructive_hint": False, "open_world_hint": False}
    assert {name for name, one in hints.items() if one == compiles} == {
        *("recompile", "edit", "ablate", "tune", "reduce"),
    }
    reads = {"list", "stages", "passes", "diff", "why", "verify", "layouts", "costs", "check", "time"}
    assert {name for name, one in hints.items() if one == {"read_only_hint": True, "open_world_hint": False}} == reads


def test_what_a_name_does_not_say_is_described(server: Any) -> None:
    """Each tool, and each argument but those whose name and type tell all, or that another tool describes."""
    tools = {tool.name: tool.input_schema["properties"] for tool in anyio.run(_answers, server, [])[-1].tools}
    assert all(tool.description for tool in anyio.run(_answers, server, [])[-1].tools)
    bare = {(tool, name) for tool, rows in tools.items() for name, row in rows.items() if "description" not in row}
    described = {name for rows in tools.values() for name, row in rows.items() if "description" in row}
    assert {name for _, name in bare} - described == {
        *("all_programs", "arguments", "before", "capture", "changed", "constexprs", "file", "finding", "first_line"),
        *("kernel", "last_line", "left", "line", "max_regs", "meaning", "no_spills", "passes", "pipelined", "right"),
        "text",
    }


def test_the_descriptions_of_all_tools_are_short(server: Any) -> None:
    """They stand in every conversation: the answer to tools/list, as JSON."""
    listed = anyio.run(_answers, server, [])[-1].model_dump_json(by_alias=True, exclude_none=True)
    assert len(listed.encode()) <= MOST_LISTED_BYTES


def test_every_answer_names_the_next_call(call: Call) -> None:
    assert call("list")["next"] == {"tool": "record", "arguments": {"file": "FILE.py"}}
    CaptureStore().add(load(STRIDED))
    for name, key in (
        ("list", "captures"),
        ("stages", "captures"),
        ("passes", "passes"),
        ("costs", "costs"),
        ("check", "assertions"),
        ("verify", "violations"),
    ):
        answer = call(name, **({} if name == "list" else {"capture": str(STRIDED)}))
        following = answer.get("next") or answer[key][0]["next"]
        assert following["arguments"], name


def test_pages_hold_all_that_there_is(call: Call, flash: str, irscope: Run) -> None:
    """Against the text that the capture holds, and what the commands print."""
    capture = load(FLASH)
    assert [row["id"] for row in call("list")["captures"]] == [flash]
    lines = every(call, "lines", "stages", capture=flash, stage="ttgir", locations=True)
    assert lines == [f"{number}: {line}" for number, line in enumerate(capture.text("ttgir").splitlines(), 1)]
    layouts = json.loads(irscope("layout", flash, "--json")[1])
    assert [row["encoding"] for row in every(call, "layouts", "layouts", capture=flash)] == [
        row["encoding"] for row in layouts
    ]
    for file, key, name, words, same in (
        (WITH_PASSES, "passes", "passes", (), "plan_name"),
        (
            STRIDED,
            "findings",
            "why",
            (
                "--tries",
                "0",
            ),
            "text",
        ),
    ):
        printed = json.loads(irscope(name, file, *words, "--json")[1])[0][key]
        assert printed
        asked = {"capture": str(file), **({"tries": 0} if words else {})}
        assert [row[same] for row in every(call, key, name, **asked)] == [row[same] for row in printed]
    costs = json.loads(irscope("layout", STRIDED, "--costs", "--json")[1])
    assert [row["line"] for row in every(call, "costs", "costs", capture=str(STRIDED))] == [
        row["line"] for row in costs
    ]


def test_a_stages_lines_keep_their_numbers(call: Call, flash: str) -> None:
    """Without locations, and of one line of Python alone: the numbers are those that findings and layouts give."""
    text = load(FLASH).text("ttgir").splitlines()
    for row in every(call, "lines", "stages", capture=flash, stage="ttgir"):
        number, _, line = row.partition(": ")
        assert text[int(number) - 1].startswith(line[:20]), row
    text = load(STRIDED).text("ttgir").splitlines()
    (cost, *_) = call("costs", capture=str(STRIDED))["costs"]
    place = cost["place"].rpartition(":")[2]
    chosen = every(call, "lines", "stages", capture=str(STRIDED), stage="ttgir", source_lines=place)
    assert str(cost["line"]) in {row.partition(":")[0] for row in chosen}
    assert len(chosen) < len(text) / 2


def test_a_program_is_run_by_record_alone(call: Call, tmp_path: Path, flash: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    others = {"recompile": {"plan": "-cse"}, "edit": {"at": "ttgir", "text": "x"}, "edit_python": {"text": "x"}}
    for name in ("stages", "passes", "why", "verify", "layouts", "costs", "check", "ablate", *others):
        arguments = others.get(name, {})
        with pytest.raises(Refused, match=r"Next: record\(file="):
            call(name, capture=str(script), **arguments)
    for sides in ({"left": str(script), "one_pass": "cse"}, {"left": flash, "right": str(script)}):
        with pytest.raises(Refused, match=r"Next: record\(file="):
            call("diff", **sides)
    for name in ("--help", "-o", "-"):
        with pytest.raises(Refused, match="is not a capture"):
            call("passes", capture=name)
        with pytest.raises(Refused, match="is not a file"):
            call("record", file=name)
    assert not (tmp_path / "ran").exists()


def test_what_a_foreign_capture_lacks_is_not_compiled(call: Call, tmp_path: Path) -> None:
    save(load(FLASH).with_(snapshots=(PassSnapshot(0, "ttgir", "coalesce", 1),)), path := tmp_path / "foreign.irscope")
    for name, arguments in {"stages": {"capture": str(path), "after": "coalesce"}, "diff": {"left": str(path)}}.items():
        with pytest.raises(Refused, match="was not recorded here"):
            call(name, **arguments, **({"one_pass": "coalesce"} if name == "diff" else {}))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("stages", {"stage": "ttgri"}, r"Did you mean 'ttgir'\? Next: stages\(capture="),
        ("stages", {"after": "nope"}, r"Next: passes\(capture="),
        ("stages", {"stage": "ttgir", "source_lines": "x"}, "write line numbers"),
        ("stages", {"stge": "ttgir"}, r"stge: .*stages takes capture, stage, .*Next: stages\(capture=…\)"),
        ("passes", {"stage": "nope"}, r"Next: stages\(capture="),
        ("why", {"grid": "x"}, "is not a grid"),
        ("why", {"tries": "many"}, r"tries: .*why takes"),
        ("recompile", {}, r"Next: recompile\("),
        (
            "edit",
            {"at": "ttgir"},
            r'nothing is to be changed\. Next, for the text: stages\(capture=".*", stage="ttgir"',
        ),
        ("edit", {"at": "source", "text": "x"}, r"Next: edit_python\("),
        ("edit", {"at": "nope", "text": "x"}, r"Next: (passes|stages)\("),
        ("edit", {"at": "ttgir", "lines": {"0": "x"}}, "'0' is not a line of the text, which has"),
        ("edit", {"at": "ttgir", "replace": {"arith": "x"}}, "times in the text, and must be there once"),
        ("edit", {"at": "ttgir", "text": "x", "lines": {"1": ""}}, "give one of lines, replace and text"),
        ("edit", {"at": "sass", "text": "x"}, r"--at sass: no compile can resume|has no stage"),
        ("diff", {}, "left: Field required"),
    ],
)
def test_errors_name_the_next_call(call: Call, flash: str, name: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        call(name, **({"capture": flash} if name != "diff" else {}), **arguments)


def test_without_a_launch_one_is_to_be_recorded(call: Call) -> None:
    CaptureStore().add(load(STRIDED))
    with pytest.raises(Refused, match=r"holds no launch.*Next: record\(file="):
        call("time", capture=str(STRIDED))


def test_an_unknown_capture_leads_to_the_list(call: Call) -> None:
    with pytest.raises(Refused, match=r"Next: list\(\)"):
        call("why", capture="ffff")


@pytest.mark.triton
@pytest.mark.newest
def test_from_a_file_to_what_a_change_is_worth(call: Call, product: Capture) -> None:
    """The captures are those that the command line and `irscope.diff` give."""
    import irscope

    (row,) = call("record", file=str(KERNELS), kernel="tile_product", signature=SIGNATURE)["captures"]
    assert (row["id"], row["registers"]) == (product.id, product.resources.registers)
    assert row["next"] == {"tool": "why", "arguments": {"capture": product.id}}
    (wide,) = call("recompile", capture=row["id"], options={"num_warps": 8})["captures"]
    (plain,) = call("recompile", capture=row["id"], plan="-ttgir:coalesce")["captures"]
    store = CaptureStore()
    assert store.load(wide["id"]).launch.option("num_warps") == 8
    assert str(store.load(plain["id"]).plan) == "-ttgir:coalesce"
    lines = every(call, "diff", "diff", left=row["id"], right=wide["id"], stage="ttgir")
    found = irscope.diff(store.load(row["id"]), store.load(wide["id"]), stages=["ttgir"]).diff("ttgir")
    assert found is not None
    assert lines == found.unified().splitlines()
    assert call("diff", left=row["id"], one_pass="coalesce")["counts"]["added"] > 0
    (off,) = call("ablate", capture=row["id"], passes=["coalesce"])["variants"]
    assert off["counts"]["registers"] == plain["registers"]
    checked = call("check", capture=row["id"], max_regs=row["registers"] - 1, uses=["wgmma"])
    assert [one["holds"] for one in checked["assertions"]] == [True, False, True]
    with pytest.raises(Refused, match="nope"):
        call("run", file=str(KERNELS), plan="-nope")
    with pytest.raises(Refused, match="takes 6"):
        call("record", file=str(KERNELS), kernel="tile_product", signature="*fp16")


@pytest.mark.triton
@pytest.mark.newest
def test_an_edited_text_becomes_a_capture_with_a_name(call: Call, product: Capture) -> None:
    """Of the IR by line and by part, and of the Python text; what fails says where, and how to read the text."""
    (row, *_) = [
        row for row in every(call, "lines", "stages", capture=product.id, after="coalesce") if "dense<0" in row
    ]
    number, _, line = row.partition(": ")
    made = call(
        "edit", capture=product.id, at="coalesce", lines={number: line.replace("dense<0", "dense<1")}, variant="ones"
    )
    assert (made["at"], made["name"], made["error"]) == ("ttgir:coalesce#1", "ones", "")
    variant = CaptureStore().load("ones")
    assert (made["variant"], made["next"]) == (variant.id, {"tool": "why", "arguments": {"capture": variant.id}})
    assert "edited" in variant.stages
    assert variant.text("ptx") != product.text("ptx")
    assert any(one.startswith(("+", "-")) for one in made["diff"])
    assert call("passes", capture="ones")["id"] == variant.id
    with pytest.raises(Refused, match=r"is taken by"):
        call("edit", capture=product.id, at="coalesce", lines={number: line}, variant="ones")
    with pytest.raises(
        Refused, match=r'(?s)ttgir:\d+:\d+: error: .*Next, for the text: stages\(capture=".*", stage="ttgir"'
    ):
        call("edit", capture=product.id, at="ttgir", replace={"tt.return": "tt.retrun"})
    text = "\n".join(row.partition(": ")[2] for row in every(call, "lines", "edit_python", capture=product.id))
    assert text.count("def tile_product") == 1
    made = call("edit_python", capture=product.id, replace={"tl.zeros": "1 + tl.zeros"})
    assert CaptureStore().load(made["variant"]).text("ttir") != product.text("ttir")
    with pytest.raises(Refused, match=r"Next, for the text: edit_python\(capture="):
        call("edit_python", capture=product.id, text="def tile_product(")


@pytest.mark.triton
@pytest.mark.newest
def test_what_runs_elsewhere_is_asked_of_a_client(call: Call, product: Capture) -> None:
    """`reduce` and `upgrade` need no GPU; `bench` and `profile` say so where there is none."""
    with pytest.raises(Refused, match=r"nothing to reduce.*Next: why\(capture="):
        call("reduce", capture=product.id, meaning="coalesce")
    (failed,) = call("recompile", capture=product.id, plan="-convert_to_ttgpuir")["captures"]
    reduced = call("reduce", capture=failed["id"])
    assert any("tt.load" in line for line in reduced["lines"])
    assert reduced["ir"]["after"]["operations"] < reduced["ir"]["before"]["operations"] / 4
    upgraded = call("upgrade", capture=product.id, to=sys.executable)
    assert [row["kernel"] for row in upgraded["rows"]] == ["tile_product"]
    # Where there is a GPU, this file launches nothing, and the capture holds no profile.
    with pytest.raises(Refused, match=r"(no GPU|launch).*Next"):
        call("bench", file=str(KERNELS), kernel="tile_product")
    with pytest.raises(Refused, match=r"holds no profile.*Next, for predicted times: time\(capture="):
        call("profile", capture=product.id)
    with pytest.raises(Refused, match=r"did not fail: .*Next: reduce\(capture=.*, finding="):
        call("reduce", capture=product.id)


def test_the_python_text_of_others_is_not_run(call: Call, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"runs no Python of others\. Next: edit\("):
        call("edit_python", capture=str(WITH_PASSES), text="import os")


def test_a_process_serves_over_its_standard_streams(flash: str) -> None:
    from mcp import StdioServerParameters

    kept = {name: os.environ[name] for name in ("IRSCOPE_HOME", "PATH")} | {"PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=sys.executable, args=["-m", "irscope", "serve", "mcp"], env=kept)
    listed, shown, refused, _ = anyio.run(
        _answers, server, [("list", {}), ("stages", {"capture": flash}), ("passes", {"capture": "kernel.py"})]
    )
    assert [row["id"] for row in _told(listed)["captures"]] == [flash]
    assert _told(shown)["captures"][0]["kernel"] == load(FLASH).name
    assert refused.is_error


def test_without_the_package_the_extra_is_named() -> None:
    code = "import sys; sys.modules['mcp'] = None; from irscope.__main__ import run; sys.exit(run(['serve', 'mcp']))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "[mcp]" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_no_answer_is_longer_than_8_kb(size: int) -> None:
    """Whatever its parts are: one that had to be cut says so, and how to see it whole."""
    text, rows = "é" * size, [{"text": "x" * size, "list": list(range(size))}] * 3
    answers = [
        ToolAnswer({"head": text}, "rows", rows, "irscope show ID --json", notes=[text]).text(),
        ToolAnswer({"head": dict.fromkeys(map(str, range(size)), 1)}, "rows", [text], "irscope show ID").text(),
        ToolAnswer({}, "rows", [[[[text]] * 9] * 9], "irscope show ID").text(),
    ]
    for answer in answers:
        assert len(answer.encode()) <= MOST_BYTES
        said = json.loads(answer).get("left_out", {})
        assert ("whole" in said) == ("…" in answer)
    assert ("left_out" in json.loads(answers[0])) == (size > 100)


def test_a_call_is_written_without_what_is_not_given() -> None:
    given = {"capture": "1a", "line": None, "ignore": [], "start": 3}
    assert call_text("why", given) == 'why(capture="1a", start=3)'
