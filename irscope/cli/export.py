"""`irscope export`: writes captures in the form of another tool."""

from __future__ import annotations

import json

from irscope.cli.captures import captures_of
from irscope.cli.command import Output, Subjects
from irscope.cli.output import STANDARD_OUTPUT, write_output
from irscope.cli.streams import say
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions


def export(
    subjects: Subjects = None, tritonparse: bool = False, output: Output = None, *, record_options: RecordingOptions
) -> int:
    """Write captures for another tool: --tritonparse, a trace that tritonparse's parser and viewer read.

    It holds the stages, the kernel's Python, options, grid and arguments; irscope import reads it again. The format has
    no passes, layouts, binaries or findings: a .irscope file keeps them.

    Options:
        --tritonparse: A trace of tritonparse: an event in JSON per line (.ndjson).
    """
    from irscope.ir.logs.tritonparse import trace_of

    if not tritonparse:
        raise UsageError("export writes a trace of tritonparse: irscope export last --tritonparse -o trace.ndjson.")
    if output is not None and output != STANDARD_OUTPUT and output.suffix != ".ndjson":
        raise UsageError(f"-o {str(output)!r}: tritonparse reads files that end in .ndjson.")
    lines: list[str] = []
    count = left_out = 0
    for subject in subjects or ["last"]:
        for capture in captures_of(subject, record_options):
            events = trace_of(capture)
            lines += [json.dumps(event, separators=(",", ":"), default=str) + "\n" for event in events]
            count += bool(events)
            if not events:
                left_out += 1
                say(f"{capture.name} ({capture.id[:8]}) is left out: no stage of it has a text.")
            elif capture.failure is not None:
                say(
                    f"{capture.name} ({capture.id[:8]}) {capture.failure.verdict}: the trace holds what it made before."
                )
    write_output(output or STANDARD_OUTPUT, "".join(lines).encode())
    if output is not None and output != STANDARD_OUTPUT:
        say(f"wrote {output}: {count} compiles, {len(lines) - count} launches")
    return int(bool(left_out))
