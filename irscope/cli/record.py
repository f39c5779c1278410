"""`irscope record -- COMMAND`: records what the Python processes of any command launch."""

from __future__ import annotations

from dataclasses import replace

from irscope.cli import app
from irscope.cli.dump.view import View, show_captures
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.subject.captures import captures_of_command, tell_failures
from irscope.cli.subject.recording import recorded
from irscope.model.recording_options import RecordingOptions

_OF_A_SUBJECT = ("signature", "constexpr", "num_warps", "num_stages", "num_ctas", "option", "launch")
_OTHER_PROGRAMS = ("module", "pytest", "k")


@app.command("record", rich_help_panel="Record and read")
@recorded(without=(*_OF_A_SUBJECT, *_OTHER_PROGRAMS))
@with_destination
def record_command(*, to: Destination, record_options: RecordingOptions) -> int:
    """Record what the Python processes of a command launch, those that it starts and forks included.

    irscope record -- torchrun --nproc-per-node=1 train.py: the command runs as it stands, with no standard input. The
    exit code is 1 if the command failed, or a compile.
    """
    if to.path is None and not to.as_json:
        record_options = replace(record_options, disassemble=False)
    captures = captures_of_command(record_options)
    code = show_captures(captures, View(), to)
    return tell_failures(captures) or code
