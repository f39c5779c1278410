"""`irscope layout --memory`: shared and tensor memory over time, and for a kernel that does not fit what would."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from irscope.cli.layout.fitting import attempts, attempts_text, does_not_fit
from irscope.cli.output.destination import emit, emit_json, table_width
from irscope.cli.output.page import emit_report
from irscope.cli.output.pictures import Looks, write_picture
from irscope.cli.output.talk import say
from irscope.errors import UsageError
from irscope.memory.allocation import allocations_of
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions


def show_memory(
    capture: Capture,
    form: str,
    output: Path | None,
    looks: Looks,
    paint: bool,
    subject: str | None,
    record_options: RecordingOptions,
) -> int:
    """Print or write a capture's memory over time; returns the exit code, 1 if the kernel does not fit."""
    from irscope.render.layout.timeline import memory_json, memory_text

    allocations = allocations_of(capture)
    if not allocations:
        raise UsageError(
            f"{capture.name} ({capture.target}) does not hold the IR after shared memory was allocated: "
            "record it again, with --snapshots triton."
        )
    title = f"{capture.name} {capture.target}"
    tried = attempts(capture, subject, record_options) if does_not_fit(allocations) else None
    notes = attempts_text(tried) if tried is not None else ""
    if form == "json":
        rows = None if tried is None else [asdict(one) for one in tried]
        emit_json({"id": capture.id, "memories": memory_json(allocations), "tried": rows}, output)
    elif form == "terminal":
        text = memory_text(title, allocations, width=table_width(output), color=paint)
        emit(text + (f"\n{notes}" if notes else ""), output, painted=paint)
    elif form == "html":
        emit_report([capture], {"tab": "memory"}, output)
        if notes:
            say(notes)
    else:
        from irscope.render.layout.timeline import timeline_svg

        write_picture(timeline_svg(title, allocations, looks.theme), form, output, looks)
    return 0 if tried is None else 1
