"""`irscope show`: shows captures, with neither Triton nor torch."""

from __future__ import annotations

from typing import Annotated

import typer

from irscope.cli import app
from irscope.cli.dump.view import View, show_captures, with_view
from irscope.cli.on_machine import Values, show_values, with_values
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.stored import stored_captures
from irscope.record.variants.completing import with_sass
from irscope.render.text.failure import failure_text
from irscope.store.shelf import StoredCaptures


@app.command(rich_help_panel="Record and read")
@with_destination
@with_view
@with_values
def show(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CAPTURE…]",
            help="Files, collections (FOLDER, FOLDER::KERNEL), ids of stored captures, or 'last': the last recording.",
            show_default=False,
        ),
    ] = None,
    *,
    view: View,
    values: Values,
    to: Destination,
) -> int:
    """Show a capture: its summary, a stage, the IR around a pass, or the values of its launch. Runs anywhere."""
    chosen = StoredCaptures(file for text in captures or ["last"] for file in stored_captures(text).files)
    if values.values:
        return show_values(chosen, values, view.stages, to)
    if to.path is not None or to.as_json or view.needs_sass:
        for file in chosen.files:
            if "cubin" in file.stages and "sass" not in file.stages:
                file.put(with_sass(file.load(), tell=say), None)
    code = show_captures(chosen, view, to, has_page=True)
    has_summary = view.is_summary and not to.as_json
    if has_summary and to.path is None and len(chosen) == 1:
        # The failure and the notes are on its page.
        return code
    for file in chosen.files:
        capture = file.outline().head
        if capture.status == "failed":
            say(failure_text(capture))
        summed_up = capture.launch.assumption_notes if has_summary else ()
        for note in capture.notes:
            if note not in summed_up:
                say(note)
    return code
