"""`irscope serve lsp`, asked by another implementation of the protocol's client side."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import irscope
from irscope.analysis.findings.edits import source_edits
from irscope.analysis.findings.model import FixChange
from tests.marks import sampled

lsp = pytest.importorskip("lsprotocol.types")
SCRIPT = Path(__file__).with_name("kernels") / "one_stage.py"


async def answers(script: Path) -> dict[str, Any]:
    """What an editor is told that opens a script, saves it twice, and goes from a line to its TTGIR and back."""
    from pygls.lsp.client import LanguageClient

    client = LanguageClient("editor", "1")
    published: asyncio.Queue[Any] = asyncio.Queue()
    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda told: published.put_nowait(told))
    await client.start_io(sys.executable, "-m", "irscope", "serve", "lsp")
    await client.initialize_async(
        lsp.InitializeParams(lsp.ClientCapabilities(), initialization_options={"target": "cuda:90"})
    )
    uri, text = script.as_uri(), script.read_text()
    file, line = lsp.TextDocumentIdentifier(uri), lsp.Position(text[: text.index("a = tl.load")].count("\n"), 15)
    gone = lsp.TextDocumentIdentifier(script.with_name("gone.py").as_uri())
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(gone))
    found: dict[str, Any] = {"gone": (await asyncio.wait_for(published.get(), 300)).diagnostics}
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(file))
    found["untried"] = (await asyncio.wait_for(published.get(), 300)).diagnostics
    found["diagnostics"] = (await asyncio.wait_for(published.get(), 300)).diagnostics
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(file))
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(999, 0))
    found["hints"] = await client.text_document_inlay_hint_async(lsp.InlayHintParams(file, whole))
    found["hover"] = await client.text_document_hover_async(lsp.HoverParams(file, line))
    found["ir"] = await client.text_document_definition_async(lsp.DefinitionParams(file, line))
    context = lsp.CodeActionContext(found["diagnostics"])
    found["actions"] = await client.text_document_code_action_async(lsp.CodeActionParams(file, whole, context))
    ir_file, first = lsp.TextDocumentIdentifier(found["ir"][0].uri), found["ir"][0].range.start.line
    ir = Path(ir_file.uri.removeprefix("file://")).read_text()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(ir_file.uri, "mlir", 1, ir)))
    value = lsp.Position(first, ir.split("\n")[first].index("%") + 1)
    found["line"] = line.line
    found["python"] = await client.text_document_definition_async(lsp.DefinitionParams(ir_file, lsp.Position(first, 0)))
    found["type"] = await client.text_document_hover_async(lsp.HoverParams(ir_file, value))
    uses = lsp.ReferenceParams(lsp.ReferenceContext(False), ir_file, value)
    found["uses"] = await client.text_document_references_async(uses)
    found["again"] = published.qsize()
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return found


@pytest.mark.triton
@pytest.mark.newest
def test_an_editor_is_told_of_a_saved_file(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    script = Path(shutil.copy(SCRIPT, tmp_path))
    found = asyncio.run(answers(script))
    assert "gone.py" in found["gone"][0].message
    assert found["again"] == 0, "the same text was recorded again"
    assert {one.code for one in found["diagnostics"]} >= {"IRS201"}
    assert not any("compiled:" in one.message for one in found["untried"])
    assert any("Fix: num_stages=3 (compiled: not pipelined → pipelined" in one.message for one in found["diagnostics"])
    assert all(one.source == "irscope" and "Costs" in one.message for one in found["diagnostics"])
    assert {one.position.line for one in found["hints"]} >= {found["line"], found["line"] + 2}
    assert all("%" in one.label for one in found["hints"])
    hover = found["hover"].contents.value
    assert "instructions: " in hover
    # What the expression under the cursor became stands first.
    assert "= tt.load " in hover.split("\n")[3]
    assert "#blocked" in hover
    # From the line of Python to its operations, and back.
    back = found["python"][0]
    assert (back.uri, back.range.start.line) == (script.as_uri(), found["line"])
    assert "layout `#ttg.blocked<" in found["type"].contents.value
    assert found["uses"][0].range.start.line > found["ir"][0].range.start.line
    edits = [edit for action in found["actions"] for edit in action.edit.changes[script.as_uri()]]
    assert {edit.new_text for edit in edits} >= {"  # irscope: ignore[IRS201]", "3"}
    # The fix, as the editor makes it.
    fix = next(action for action in found["actions"] if action.title.startswith("num_stages=3"))
    (edit,) = fix.edit.changes[script.as_uri()]
    lines = script.read_text().split("\n")
    at, end = edit.range.start, edit.range.end
    lines[at.line] = lines[at.line][: at.character] + edit.new_text + lines[at.line][end.character :]
    assert lines[at.line] == "product[(32, 32)](a, a, c, 2048, BLOCK=64, num_stages=3)"


@pytest.mark.triton
@pytest.mark.newest
def test_a_kernel_that_a_save_did_not_change_is_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what is known of it, and where it is launched with other sizes, its time is predicted anew."""
    pytest.importorskip("pygls")
    from irscope.cli.lsp import _IrscopeServer, _Options  # pyright: ignore[reportPrivateUsage]
    from irscope.record.process import session

    compiled: list[int] = []
    real = session.record_request

    def record(request: Any) -> Any:
        recording = real(request)
        compiled.append(len(recording.captures))
        return recording

    monkeypatch.setattr(session, "record_request", record)
    script = Path(shutil.copy(SCRIPT, tmp_path))
    server = _IrscopeServer()
    server.options = _Options(target="cuda:90")

    def saved(before: str, after: str) -> Any:
        script.write_text(script.read_text().replace(before, after))
        (launch,) = server._recordings(script)  # pyright: ignore[reportPrivateUsage]
        return launch, sum(seconds for _, seconds in launch.shares.values())

    with irscope.recording_session():
        first, first_s = saved("", "")
        assert saved('fp32")', 'fp32")  # A comment.')[0] is first
        other, other_s = saved("2048", "4096")
        assert other.capture.artifacts == first.capture.artifacts
        assert other.capture.launch.record.argument("K").value == 4096
        assert other_s > 1.5 * first_s
        assert compiled == [1, 0, 0]
        edited, _ = saved("acc += tl.dot(a, b)", "acc += tl.dot(a, b) * 2")
        assert edited.capture.id != first.capture.id
    assert compiled == [1, 0, 0, 1]
    server.end()


async def _checked(script: Path, editor: str, checker: Any) -> dict[str, Any]:
    """What a client of pytest-lsp is told, which warns where an answer is not by the protocol for that editor."""
    client = await checker.ClientServerConfig([sys.executable, "-m", "irscope", "serve", "lsp"]).start()
    capabilities = checker.client_capabilities(editor)
    await client.initialize_session(
        lsp.InitializeParams(
            capabilities, initialization_options={"target": "cuda:90"}, root_uri=script.parent.as_uri()
        )
    )
    uri, text = script.as_uri(), script.read_text()
    file, line = lsp.TextDocumentIdentifier(uri), lsp.Position(text[: text.index("a = tl.load")].count("\n"), 15)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(file))
    while not client.diagnostics.get(uri):
        await asyncio.wait_for(client.wait_for_notification("textDocument/publishDiagnostics"), 300)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(999, 0))
    context = lsp.CodeActionContext(client.diagnostics[uri])
    found = {
        "diagnostics": client.diagnostics[uri],
        "hints": await client.text_document_inlay_hint_async(lsp.InlayHintParams(file, whole)),
        "hover": await client.text_document_hover_async(lsp.HoverParams(file, line)),
        "ir": await client.text_document_definition_async(lsp.DefinitionParams(file, line)),
        "actions": await client.text_document_code_action_async(lsp.CodeActionParams(file, whole, context)),
    }
    await client.shutdown_session()
    return found


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("editor", sampled(["visual-studio-code", "neovim"], 2))
def test_answers_are_by_the_protocol(tmp_path: Path, editor: str) -> None:
    checker = pytest.importorskip("pytest_lsp")
    found = asyncio.run(_checked(Path(shutil.copy(SCRIPT, tmp_path)), editor, checker))
    assert {one.code for one in found["diagnostics"]} >= {"IRS201"}
    assert all(found.values())


@pytest.mark.parametrize(
    ("launch", "changes", "fixed"),
    [
        ("k[g](x, num_warps=4)", [FixChange("option", "num_warps", 8)], "k[g](x, num_warps=8)"),
        ("m.k[g](x,\n  B=2 # é\n)", [FixChange("option", "num_warps", 8)], "m.k[g](x,\n  B=2, num_warps=8 # é\n)"),
        ("é = k[g](x, B=2)", [FixChange("constant", "B", 4)], "é = k[g](x, B=4)"),
        ("k[g](x, B=2)\nk[h](x, B=4)", [FixChange("constant", "B", 8)], "k[g](x, B=8)\nk[h](x, B=8)"),
        ("@j(do_not_specialize=['n', 'é'])\ndef k(n): 0", [FixChange("divisible", "n", 16)],
         "@j(do_not_specialize=['é'])\ndef k(n): 0"),
        # What is computed, passed on, of another kernel, or not known to be an edit stays.
        ("k[g](x, num_warps=w)", [FixChange("option", "num_warps", 8)], None),
        ("k[g](x, **options)", [FixChange("option", "num_warps", 8)], None),
        ("k[g](x, B)", [FixChange("constant", "B", 8)], None),
        ("other[g](x, num_warps=4)", [FixChange("option", "num_warps", 8)], None),
        ("k[g](x, num_warps=4)", [FixChange("option", "num_warps", 8), FixChange("hint", "n", 16)], None),
        ("k[g](x", [FixChange("option", "num_warps", 8)], None),
        # Triton refuses what the configurations of an autotuned kernel set.
        ("@t.autotune(c, [])\n@t.jit\ndef k(x): 0\nk[g](x)", [FixChange("option", "num_warps", 8)], None),
    ],
)  # fmt: skip
def test_a_change_is_an_edit(launch: str, changes: list[FixChange], fixed: str | None) -> None:
    edits = source_edits(launch, "k", changes)
    lines = launch.split("\n")
    for edit in reversed(edits):
        assert edit.line == edit.end_line
        text = lines[edit.line - 1]
        lines[edit.line - 1] = text[: edit.column - 1] + edit.text + text[edit.end_column - 1 :]
    assert ("\n".join(lines) if edits else None) == fixed
