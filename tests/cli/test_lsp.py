"""`irscope serve lsp`, asked by another implementation of the protocol's client side."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

lsp = pytest.importorskip("lsprotocol.types")
SCRIPT = Path(__file__).parents[2] / "docs" / "cases" / "narrow_loads.py"


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
    file, line = lsp.TextDocumentIdentifier(uri), lsp.Position(text[: text.index("x = tl.load")].count("\n"), 4)
    gone = lsp.TextDocumentIdentifier(script.with_name("gone.py").as_uri())
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(gone))
    found: dict[str, Any] = {"gone": (await asyncio.wait_for(published.get(), 300)).diagnostics}
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(file))
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
    pytest.importorskip("torch", reason="the script imports it")
    script = Path(shutil.copy(SCRIPT, tmp_path))
    found = asyncio.run(answers(script))
    assert "gone.py" in found["gone"][0].message
    assert found["again"] == 0, "the same text was recorded again"
    assert {one.code for one in found["diagnostics"]} >= {"IRS508"}
    assert all(one.source == "irscope" and "Costs" in one.message for one in found["diagnostics"])
    assert {one.position.line for one in found["hints"]} >= {found["line"], found["line"] + 1}
    assert all("%" in one.label for one in found["hints"])
    assert "`ld.global.16`" in found["hover"].contents.value
    assert "tt.load" in found["hover"].contents.value
    assert "#blocked" in found["hover"].contents.value
    # From the line of Python to its operations, and back.
    back = found["python"][0]
    assert (back.uri, back.range.start.line) == (script.as_uri(), found["line"])
    assert "ptr<bf16>" in found["type"].contents.value
    assert found["uses"][0].range.start.line > found["ir"][0].range.start.line
    edits = [edit for action in found["actions"] for edit in action.edit.changes[script.as_uri()]]
    assert {edit.new_text for edit in edits} >= {"  # irscope: ignore[IRS508]"}
