"""The lines of a stage's text, or of the IR after a pass, with their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irscope.cli.dump.stages import one_pass, parse_lines, snapshot_text
from irscope.ir.locations.stages import capture_locations, lines_selected
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, stage_named

__all__ = ["numbered_lines"]

# %5 = tt.load %4 : tensor<64xf32> loc(#loc7)      %9 = add i32 %8, 1, !dbg !14
_LOCATION = re.compile(r"\s+loc\(|,? !dbg ")


def numbered_lines(
    capture: Capture, stage: str, after: str, source_lines: str, locations: bool
) -> tuple[list[tuple[int, str]], int]:
    """((number, line) of the chosen lines, how many lines the text has); numbers are those of the text as it is held.

    Raises StageNotFound, PlanError for a pass that is not there, and UsageError for `source_lines` that are none.
    """
    if after:
        snapshot = one_pass(capture, after)
        text, kind = snapshot_text(capture, snapshot, before=False), snapshot.group
    else:
        text, kind = capture.text(stage), stage_named(stage).kind
    lines = text.split("\n")
    if lines[-1:] == [""]:
        lines.pop()
    shown = list(enumerate(lines, 1)) if locations else list(_aligned(lines, strip_locations(text, kind).split("\n")))
    if source_lines:
        file = capture.launch.kernel.file
        selected = lines_selected(
            capture_locations(capture, text, kind),
            lambda path: path == file or not file.endswith(".py"),
            parse_lines(source_lines),
        )
        shown = [(number, line) for number, line in shown if number in selected]
    return shown, len(lines)


def _aligned(lines: Sequence[str], stripped: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of each line that is left when locations are removed, which removes whole lines too."""
    numbered = enumerate(lines, 1)
    for line in stripped:
        for number, whole in numbered:
            begin = _LOCATION.split(whole, maxsplit=1)[0].rstrip()
            if (line.startswith(begin) and begin) or line.strip() == whole.strip():
                yield number, line
                break
