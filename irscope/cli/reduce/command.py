"""`irscope reduce`: shrinks the IR of a capture while one thing stays true of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from irscope.cli import app, options
from irscope.cli.output.destination import STANDARD_OUTPUT, emit, emit_json, write_output
from irscope.cli.output.talk import progress, say
from irscope.cli.subject.keeping import refuse_untrusted
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions

_kept = options.in_panel("What is kept true (one of; default: the capture's failure)")
_search = options.in_panel("Search")
_OUTPUT = options.in_panel("Output")


@app.command(rich_help_panel="Compare")
@recorded(without=("snapshots", "llvm", "timeout", "into"))
def reduce(
    subject: options.Subject = None,
    *,
    check: Annotated[
        str | None,
        _kept(
            "--check",
            metavar="CMD",
            help="This shell command exits with 0; as of bisect. {capture} and $IRSCOPE_CAPTURE are the candidate's "
            "file: irscope show {capture} --stage ptx | grep -q wgmma",
        ),
    ] = None,
    finding: Annotated[
        str | None, _kept("--finding", metavar="CODE", help="irscope why has this finding: IRS401, spills, …")
    ] = None,
    versus: Annotated[
        list[str] | None,
        _kept(
            "--vs",
            metavar="KEY=VALUE",
            help="It differs from the same text compiled with plan='-coalesce -pipeline', num_warps=8, "
            "target=cuda:80 or triton=PYTHON; repeatable.",
        ),
    ] = None,
    differs: Annotated[
        str,
        _kept(
            "--differs",
            metavar="FIGURE",
            help="--vs: what differs, where both compile: outcome (nothing: one must fail), ttir, ttgir, ptx, amdgcn, "
            "instructions, registers, spills or shared.",
        ),
    ] = "outcome",
    result: Annotated[
        bool,
        _kept("--result", help="--vs: on one side it writes what the launch writes, on the other not (GPU, FILE)."),
    ] = False,
    stage: Annotated[
        str | None,
        _search(
            "--stage",
            "-s",
            metavar="source|ttir|ttgir",
            help="Reduce this stage's IR. Default: the IR before the pass that fails, else the latest from which it "
            "still does.",
        ),
    ] = None,
    before: Annotated[
        str | None, _search("--before", metavar="PASS[#N]", help="Reduce the IR as this pass finds it.")
    ] = None,
    limit: Annotated[
        float | None,
        _search(
            "--limit",
            metavar="SECONDS",
            min=0.1,
            help="Time limit of a candidate. Default: 20; of a hang 2, or ten times what the rest took.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[bool, _search("--fresh", help="Forget what an earlier call found out of candidates.")] = False,
    output: options.Output = None,
    markdown: Annotated[
        Path | None, _OUTPUT("--markdown", metavar="FILE", help="Write a text for an issue: IR, commands, versions.")
    ] = None,
    python: Annotated[
        Path | None,
        _OUTPUT(
            "--python",
            metavar="FILE",
            help="Also reduce the kernel's Python text, by the same rule, and write it here.",
        ),
    ] = None,
    trust: Annotated[
        bool, _OUTPUT("--trust", help="Let --python run the text of a capture that was not recorded here.")
    ] = False,
    as_json: options.AsJson = False,
    record_options: RecordingOptions,
) -> int:
    """Make the smallest IR of which one thing is still true: a failure, a finding, or what a command checks.

    Operations, regions, arguments, attributes and passes go as long as it stays so. Every candidate is verified by
    MLIR, and compiled in a process of its own. With Ctrl-C what was found so far is written.
    """
    from irscope.api.reduction.run import origins_of
    from irscope.cli.dump.stages import one_pass
    from irscope.cli.reduce.wanted import Wanted
    from irscope.cli.subject.variants import one_capture
    from irscope.render.text.searches import (
        python_file,
        reduced_file,
        reduction_json,
        reduction_markdown,
        reduction_text,
    )  # fmt: skip

    if stage is not None and before is not None:
        raise UsageError("--stage and --before do not go together: a stage's IR, or the IR before a pass.")
    wanted = Wanted(check, finding, tuple(versus or ()), differs, result, limit, fresh, python is not None)
    capture, number = one_capture(subject, replace(record_options, disassemble=False))
    if python is not None and not trust:
        refuse_untrusted(capture, "--python runs", "what irscope reproduce writes of it")
    origins = origins_of(capture, stage, one_pass(capture, before) if before is not None else None)
    with progress("reduce") as tell:
        made, text = wanted.reduced(subject, record_options, capture, number, origins, tell or (lambda text: None))
    if python is not None and text is not None:
        write_output(python, python_file(text).encode("utf-8", "surrogateescape"))
    if markdown is not None:
        write_output(markdown, reduction_markdown(made, text).encode("utf-8", "surrogateescape"))
    if as_json:
        emit_json(reduction_json(made, text), output)
    elif output is not None and made is not None:
        write_output(output, reduced_file(made).encode("utf-8", "surrogateescape"))
    elif made is not None and STANDARD_OUTPUT not in (markdown, python):
        emit(reduced_file(made), exact=True)
    for line in reduction_text(made, text):
        say(line)
    if signal := next((one.signal for one in (made, text) if one is not None and one.signal), 0):
        return 128 + signal
    return 0 if made is None or made.is_steady else 1
