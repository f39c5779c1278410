"""`irscope variants`: why a kernel was compiled more than once, and what would merge its variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from irscope.cli import app, options
from irscope.cli.output.destination import Destination, emit, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_failures
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.analysis.variants.merges import Merge
    from irscope.analysis.variants.site import Site


@app.command(rich_help_panel="Compare")
@recorded(without=("launch", "llvm"))
@with_destination
def variants(
    subject: options.Subject = None,
    warmup: Annotated[
        bool, typer.Option("--warmup", help="Print Python that compiles every variant ahead of its first launch.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Also the kernels that were compiled once.")] = False,
    tries: Annotated[
        bool | None,
        typer.Option(
            "--try/--no-try",
            help="Compile what merging would give, and compare. Default: where it was recorded here.",
            show_default=False,
        ),
    ] = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Say why a kernel was compiled more than once: which argument told its variants apart, and what would merge them.

    For each parameter or option that differs: whether the kernel uses it, whether the machine code differs, and what
    to change in Python; what merging gives is compiled.
    """
    from irscope.analysis.variants.merges import warmup_code
    from irscope.analysis.variants.site import sites_of
    from irscope.render.text.variants import render_variants, variants_json

    if warmup and to.as_json:
        raise UsageError("--warmup prints Python, and --json does not: give one.")
    record_options = replace(record_options, disassemble=False, layouts=False)
    captures = captures_of(subject, record_options)
    sites = sites_of(captures)
    code = tell_failures(captures)
    if warmup:
        emit(warmup_code(sites), to.path, exact=True)
        return code
    once = [one for one in sites if len(one.variants) == 1]
    shown = sites if every or to.as_json else [one for one in sites if len(one.variants) > 1]
    rows = _proven(shown, captures, tries)

    def text(width: int | None, color: bool) -> str:
        parts = [render_variants(site, merges, width=width, color=color) for site, merges in rows]
        if once and not every:
            names = ", ".join(dict.fromkeys(one.kernel.name for one in once))
            parts.append(f"Compiled once: {names}\n")
        return "\n".join(parts)

    to.emit(lambda: [variants_json(site, merges) for site, merges in rows], text)
    return code


def _proven(
    sites: Sequence[Site], captures: StoredCaptures, tries: bool | None
) -> Sequence[tuple[Site, Sequence[Merge]]]:
    from irscope.analysis.variants.merges import merges_of
    from irscope.api.merging import proven

    rows = [(one, merges_of(one)) for one in sites]
    if tries is False:
        return rows
    files = {file.facts.id: file for file in captures.files}
    needed = {group.base for _, merges in rows for merge in merges for group in merge.groups if group.base}
    if tries is None and not all(files[one].load().environment.is_trusted for one in needed):
        say("These were not recorded here: nothing is compiled again, to try what merging gives (--try does).")
        return rows
    return proven(rows, files, tell=say)
