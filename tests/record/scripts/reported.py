"""Runs programs on the virtual GPU, one after another, and writes what a recording reports: `reported.py JSON FILE...`.

The notes are those of the assumptions of each kernel's first launch, which its capture states, and of the recording.
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from pathlib import Path

from irscope.model.capture import Target
from irscope.model.launch_record import Assumption, joined, notes_of
from irscope.record.process.events import Launched, Note, RecordingEvent
from irscope.record.programs.launch_watch import virtual_launches


def run(path: str) -> dict[str, object]:
    assumptions: list[Assumption] = []
    notes: list[str] = []
    seen: set[str] = set()
    error = ""

    def sink(event: RecordingEvent) -> None:
        if isinstance(event, Launched) and event.hash not in seen:
            seen.add(event.hash)
            assumptions.extend(event.assumptions)
        elif isinstance(event, Note):
            notes.append(event.text)

    with virtual_launches(Target.parse("cuda:90"), "first", sink):
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            error = traceback.format_exc()
    return {"error": error, "notes": [*notes_of(joined(assumptions)), *notes]}


target, *paths = sys.argv[1:]
Path(target).write_text(json.dumps({Path(path).name: run(path) for path in paths}))
