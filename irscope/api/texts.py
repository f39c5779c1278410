"""The IR around a pass of a capture, and the lines of a text that come from lines of Python."""

from __future__ import annotations

import re

from irscope.errors import PlanError, StageNotFound, UsageError
from irscope.model.capture import Capture, PassSnapshot, StageKind
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.completing import Run, Tell, compiled, warned, with_all_texts

# 31  |  23-31  |  23-31,40
_LINES = re.compile(r"^\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*$")


def one_pass(capture: Capture, text: str, tell: Tell = warned) -> PassSnapshot:
    """The pass that a rule names: the last occurrence, unless #N chooses one.

    Raises PlanError if there is none, or if passes of several stages have the name.
    """
    rule = PassRule.parse(text)
    matching = [snapshot for snapshot in capture.snapshots if rule.matches(snapshot)]
    if not matching:
        PassPlan((rule,)).check(list(capture.snapshots))
        raise PlanError(f"no pass is named {text!r}.")
    if len({snapshot.stage for snapshot in matching}) > 1:
        labels = ", ".join(snapshot.label for snapshot in matching)
        raise PlanError(f"{text!r} names passes of several stages: {labels}. Write one of these.")
    if len(matching) > 1 and rule.occurrence is None:
        tell(f"{text} ran {len(matching)} times; this is {matching[-1].label}.")
    return matching[-1]


def snapshot_text(
    capture: Capture, snapshot: PassSnapshot, *, before: bool, run: Run = compiled, tell: Tell = warned
) -> str:
    """The IR before or after a pass; if the recording left it out, the capture is compiled again."""
    text = capture.text_before(snapshot) if before else capture.text_after(snapshot)
    if text is not None:
        return text
    full = with_all_texts(capture, run=run, tell=tell)
    same = next((item for item in full.passes(snapshot.group) if item.label == snapshot.label), None)
    text = None if same is None else (full.text_before(same) if before else full.text_after(same))
    if text is None:
        raise StageNotFound(f"the IR {'before' if before else 'after'} {snapshot.label} is not in the capture.")
    return text


def parse_lines(text: str) -> frozenset[int]:
    """The line numbers that `23-31,40` names; raises UsageError."""
    if not _LINES.match(text):
        raise UsageError(f"--lines {text!r}: write line numbers of the kernel's file, such as 23-31 or 23-31,40.")
    lines: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise UsageError(f"--lines {text!r}: {part} runs backwards.")
        lines.update(range(int(first), int(last or first) + 1))
    return frozenset(lines)


def selected_lines(capture: Capture, text: str, kind: StageKind, lines: str) -> set[int]:
    """The lines of a text that come from lines of the kernel's file: `23-31,40`."""
    from irscope.ir.locations.stages import capture_locations, lines_selected

    file = capture.launch.kernel.file
    # A capture of an IR file has no path for its kernel: then every file counts.
    return lines_selected(
        capture_locations(capture, text, kind),
        lambda path: path == file or not file.endswith(".py"),
        parse_lines(lines),
    )
