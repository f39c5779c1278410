"""`irscope bisect`: finds the pass that decides whether a check passes."""

from __future__ import annotations

from irscope.cli import app, options
from irscope.cli.bisect.run import BisectionOptions, run_bisection
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import echo, progress
from irscope.cli.subject.recording import recorded
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.searches.bisection import bisection_json, bisection_text


@app.command(rich_help_panel="Effect of passes")
@recorded(without=("snapshots", "llvm"))
@with_destination
@grouped("wanted", BisectionOptions)
def bisect(
    subject: options.Subject = None, *, wanted: BisectionOptions, to: Destination, record_options: RecordingOptions
) -> int:
    """Find the pass that a result depends on: the one whose absence, or presence, flips a check.

    Passes are switched off by halves, so that few compiles are needed; passes that the compile cannot do without stay
    on. With a plan (--disable-pass, --plan, or the capture's own) the search is among the passes that it switches off;
    those in other stages than --stage names stay off.
    """
    with progress("bisect") as tell:
        found = run_bisection(
            subject, record_options, wanted, tell or (lambda text: None), echo if record_options.verbose else None
        )
    to.emit(
        lambda: bisection_json(found),
        lambda width, color: bisection_text(found, context=wanted.context, width=width, color=color),
    )
    return 0 if found.guilty and found.is_steady else 1
