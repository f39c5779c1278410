"""`irscope dump`: record a kernel and show any stage, or the IR around any pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from irscope.capture import Capture
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json
from irscope.cli.recording import recorded
from irscope.cli.subject import How, captures_of, tell_failures
from irscope.cli.talk import say
from irscope.errors import StageNotFound, UsageError

_SHOW = "Output"


@app.command(rich_help_panel="Record and read")
@recorded()
def dump(
    subject: options.Subject = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE[,STAGE]",
            help="source, ttir, ttgir, llir, ptx, cubin, sass, amdgcn, hsaco, or all; repeatable.",
            rich_help_panel=_SHOW,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="PASS[#N]", help="The IR after a pass.", rich_help_panel=_SHOW)
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="PASS[#N]", help="The IR before a pass.", rich_help_panel=_SHOW)
    ] = None,
    each: Annotated[
        Path | None,
        typer.Option(
            "--each",
            metavar="DIR",
            help="One numbered file a changed pass, so that diff -r reads well.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            "--lines",
            metavar="23-31",
            help="Only what comes from these lines of the kernel's file.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
    loc: Annotated[bool, typer.Option("--loc", help="Show locations.", rich_help_panel=_SHOW)] = False,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    asked: How,
    from_pass: Annotated[
        str | None,
        typer.Option(
            "--from-pass",
            metavar="PASS[#N]",
            help="Resume a capture after this pass, on --edited FILE.",
            rich_help_panel="Passes",
        ),
    ] = None,
    edited: Annotated[
        Path | None,
        typer.Option("--edited", metavar="FILE", help="The edited IR to resume from.", rich_help_panel="Passes"),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            "--via",
            metavar="mlir-dump",
            help="Record what MLIR_ENABLE_DUMP prints, in place of the tap.",
            rich_help_panel="Passes",
        ),
    ] = None,
) -> int:
    """Record any Triton kernel on any machine, and show any stage of its compile.

    With no --stage it prints what was recorded. A capture can be dumped again with other passes, options or targets.
    """
    wanted = wanted_stages(stage)
    if output is None and not as_json and needs_no_sass(wanted, after or before or each):
        asked = replace(asked, disassemble=False)
    _check(wanted, after, before, each, from_pass, edited, via)
    if from_pass is not None and edited is not None:
        captures = [_resumed(subject, asked, from_pass, edited)]
    elif via is not None:
        from irscope.cli.via import captures_via_mlir_dump

        captures = captures_via_mlir_dump(subject, asked)
    else:
        captures = captures_of(subject, asked)
    code = show_captures(
        captures,
        wanted,
        after=after,
        before=before,
        each=each,
        lines=lines,
        loc=loc,
        output=output,
        as_json=as_json,
        color=color,
    )
    return tell_failures(captures) or code


def wanted_stages(texts: list[str] | None) -> list[str]:
    """The stages that `--stage` names, in order; `all` for every one."""
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def needs_no_sass(wanted: list[str], around: object) -> bool:
    """Whether what is asked for can be shown without disassembling the cubin."""
    return bool(around) or (bool(wanted) and not {"sass", "all"} & set(wanted))


def show_captures(
    captures: list[Capture],
    wanted: list[str],
    *,
    after: str | None = None,
    before: str | None = None,
    each: Path | None = None,
    lines: str | None = None,
    loc: bool = False,
    output: Path | None = None,
    as_json: bool = False,
    color: bool | None = None,
) -> int:
    """Print or write what is asked for of each capture; returns the exit code."""
    from irscope.cli import stages

    if each is not None:
        stages.write_each(captures, each)
        return 0
    if as_json:
        emit_json([stages.as_json(capture, wanted) for capture in captures], output)
        return 0
    if output is not None and stages.is_folder(output):
        stages.write_folder(captures, output, wanted)
        return 0
    if after is not None or before is not None:
        emit(
            stages.snapshot_texts(captures, after, before, loc, lines, color if output is None else False),
            output,
            painted=output is None and colored(color),
        )
        return 0
    if output is not None and output.suffix == ".irscope":
        return stages.save_captures(captures, output)
    if not wanted:
        emit(stages.summary(captures, color), output, painted=colored(color))
        return 0
    return _show_stages(captures, wanted, loc, lines, output, color)


def _show_stages(
    captures: list[Capture], wanted: list[str], loc: bool, lines: str | None, output: Path | None, color: bool | None
) -> int:
    from irscope.cli import stages

    parts: list[str] = []
    missing: list[str] = []
    for capture in captures:
        for name in capture.stages if wanted == ["all"] else wanted:
            try:
                artifact = capture.artifact(name)
            except StageNotFound as error:
                missing.append(str(error))
                continue
            if output is not None and isinstance(artifact.data, bytes):
                if len(captures) > 1 or len(wanted) > 1:
                    raise UsageError("one file holds one binary: choose --launch N and one --stage, or -o DIR/.")
                stages.write_binary(artifact, output)
                return 0
            head = len(captures) > 1 or len(wanted) > 1 or wanted == ["all"]
            parts.append(stages.stage_text(capture, artifact, loc, lines, color if output is None else False, head))
    if parts or not missing:
        emit("\n".join(part.rstrip("\n") for part in parts), output, exact=not colored(color), painted=colored(color))
    for message in missing:
        say(f"irscope: {message}")
    return 1 if missing else 0


def _check(
    wanted: list[str],
    after: str | None,
    before: str | None,
    each: Path | None,
    from_pass: str | None,
    edited: Path | None,
    via: str | None,
) -> None:
    chosen = [
        name
        for name, value in (("--stage", wanted), ("--after", after), ("--before", before), ("--each", each))
        if value
    ]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} do not go together: ask for one.")
    if (from_pass is None) != (edited is None):
        raise UsageError(
            "--from-pass PASS and --edited FILE go together: the pass to resume after, and the IR as edited."
        )
    if via not in (None, "mlir-dump"):
        raise UsageError(f"--via {via!r}: the one other way to record is mlir-dump.")


def _resumed(subject: str | None, asked: How, from_pass: str, edited: Path) -> Capture:
    from irscope.cli.stages import one_pass
    from irscope.cli.subject import run_request
    from irscope.recent import CaptureStore
    from irscope.record.requests import request_resumed

    (capture, *others) = captures_of(subject, replace(asked, options={}, targets=()))
    if others:
        raise UsageError(f"{subject} made {len(others) + 1} launches: choose one with --launch N.")
    snapshot = one_pass(capture, from_pass)
    request = request_resumed(
        capture,
        snapshot,
        edited.read_text("utf-8"),
        plan=str(asked.plan),
        options=asked.options,
        targets=asked.targets[:1],
    )
    (fresh,) = run_request(request, asked).captures
    note = f"Resumed after {snapshot.label} of capture {capture.id}, on an edited IR ({edited.name})."
    fresh = replace(fresh, sources=capture.sources, notes=(*fresh.notes, note))
    CaptureStore().add(fresh)
    return fresh
