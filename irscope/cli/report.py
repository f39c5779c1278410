"""`irscope report`: writes captures as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from irscope.cli.captures import captures_of, readable
from irscope.cli.command import Subjects
from irscope.cli.output import write_output
from irscope.cli.streams import say
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_operations
from irscope.render.text.failure import failure_text
from irscope.store.shelf import StoredCaptures


def report(
    subjects: Subjects = None,
    output: Path = Path("report.html"),
    show: bool = False,
    operations: bool = False,
    title: str = "",
    *,
    record_options: RecordingOptions,
) -> int:
    """Write one HTML file with every pass, stage and layout; it needs no server and no network.

    irscope report last shows the last recording. A page of several captures compares any two of them.

    Options:
        --output, -o FILE: The page to write.
        show = --open: Open the page in the browser.
        --operations: Compile the TTGIR again to find which operation each instruction is from.
        --title TEXT: The title of the page.
    """
    from irscope.render.report.page import render_report
    from irscope.render.report.results import values_results

    captures = StoredCaptures(
        file for subject in subjects or ["last"] for file in captures_of(subject, record_options).files
    )
    if len(captures) > 1:
        captures = StoredCaptures(file for file in captures.files if readable(file) is not None)
    for file in captures.files if operations else ():
        file.put(with_operations(file.load()), None)
    page = render_report(captures, title=title, results=values_results(captures)).encode("utf-8", "surrogateescape")
    write_output(output, page)
    count = "1 capture" if len(captures) == 1 else f"{len(captures)} captures"
    say(f"wrote {output}: {count}, {len(page) / 1e6:.2f} MB")
    if show:
        click.launch(output.resolve().as_uri())
    for file in captures.files:
        if file.facts.status == "failed":
            say(failure_text(file.load()))
    return 0
