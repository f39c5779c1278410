"""`irscope roofline`: what a launch computes and moves, against the peaks of its target, without a GPU."""

from __future__ import annotations

from typing import Annotated

from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.output import Destination, under_titles
from irscope.cli.parameters import Option, Subject
from irscope.model.recording_options import RecordingOptions

Part = Annotated[
    str | None,
    Option(
        "--part",
        metavar="PART",
        help="Whose peaks: h100, h100-pcie, h200, … Default: the GPU that doctor --gpu measured, or the first.",
    ),
]


def roofline(subject: Subject = None, part: Part = None, *, to: Destination, record_options: RecordingOptions) -> int:
    """Count what a launch computes and the bytes that it must move, and the minimum time at its target's peaks.

    Nothing is run: the counts come from the IR and the arguments of the launch. irscope draw roofline draws the chart.
    """
    from irscope.api.rooflines import counted_roofline
    from irscope.render.roofline import roofline_json, roofline_text

    captures = captures_of(subject, record_options)
    to.emit(
        lambda: [roofline_json(counted_roofline(one, part)) for one in captures if one.failure is None],
        lambda width, color: under_titles(
            captures,
            lambda one: roofline_text(counted_roofline(one, part), width=width, color=color) if not one.failure else "",
        ),
    )
    return tell_incomplete(captures)
