"""The tools that make captures: of a program, and of a capture with something changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irscope.cli.mcp.answers import Answer, call_of, call_text
from irscope.cli.mcp.calls import capture_subject, program_subject, quiet
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions

__all__ = ["recompile", "record"]


def record(
    file: str,
    kernel: str = "",
    signature: str = "",
    constexprs: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    target: str = "",
    plan: str = "",
    arguments: list[str] | None = None,
    config: str = "first",
    dry: bool = False,
    timeout_s: float = 300.0,
    start: int = 0,
) -> Answer:
    """Run a Python file and record every Triton kernel that it launches; or compile one kernel by its signature.

    This executes the user's code, on a virtual GPU where there is no real one. With a signature the file is imported,
    not run as a program. Each launch becomes a capture, whose id every other tool takes; a compile that fails is one
    too.

    Args:
    file: the path of the Python file or notebook, or of IR (.ttir, .ttgir, .llir, .ptx).
    kernel: record only this kernel; needed with a signature.
    signature: types of the parameters that are no tl.constexpr, as '*fp16:16, *fp16:16, i32': :16 means divisible.
    constexprs: values of tl.constexpr parameters, with a signature.
    options: compile options such as num_warps, with a signature or an IR file.
    target: cuda:90, hip:gfx942, h100, … By default this machine's GPU, or cuda:90.
    plan: passes to switch off, as '-combine -ttgir:coalesce'.
    arguments: command-line arguments of the program.
    config: which configurations of an autotuned kernel: first, all, an index, or KEY=VALUE.
    dry: run in a copy of the working folder, which is removed afterwards.
    timeout_s: time limit for compiling one kernel.
    start: the first row to show.
    """
    given = {"file": file, "kernel": kernel, "signature": signature, "constexprs": constexprs, "options": options}
    given |= {"target": target, "plan": plan, "arguments": arguments, "config": config if config != "first" else ""}
    asked = RecordingOptions.of(
        {
            "signature": signature or None,
            "constexprs": constexprs or (),
            "options": options or (),
            "targets": target or (),
            "plan": plan,
            "arguments": arguments or (),
            "config": config,
            "dry": dry,
            "timeout_s": timeout_s,
        }
    )
    return _captured("record", given, program_subject(file, kernel), asked, start)


def recompile(
    capture: str,
    plan: str = "",
    options: dict[str, Any] | None = None,
    target: str = "",
    timeout_s: float = 300.0,
) -> Answer:
    """Compile a capture's own IR again with passes switched off, other options, or for another target.

    It runs Triton's compiler, and no code of the user's. The result is another capture: compare both with diff. What
    the Python text decides (tl.constexpr values, the kernel itself) needs record.

    Args:
    capture: the id of a capture, a .irscope file, or 'last'.
    plan: passes to switch off, as '-combine -ttgir:coalesce'; '+ttgir:coalesce' switches all others of the stage off.
    options: compile options, as {"num_warps": 8, "num_stages": 2}.
    target: cuda:90, hip:gfx942, h100, …
    timeout_s: time limit.
    """
    given = {"capture": capture, "plan": plan, "options": options, "target": target}
    if not (plan or options or target):
        raise UsageError(f"nothing is to be changed. Next: {call_text('recompile', {**given, 'plan': '-combine'})}")
    asked = {"plan": plan, "options": options or (), "targets": target or (), "timeout_s": timeout_s}
    return _captured("recompile", given, capture_subject(capture), RecordingOptions.of(asked), 0)


def _captured(tool: str, given: dict[str, Any], subject: str, asked: RecordingOptions, start: int) -> Answer:
    """The captures of a subject with these options, as rows of the table."""
    from irscope.analysis.resources import table
    from irscope.cli.subject.captures import captures_of, tell_failures

    with quiet() as said:
        captures = captures_of(subject, replace(asked, disassemble=False))
        tell_failures(captures)
        rows = table(captures)
    # Row by row: what is not known of one is no loss to the others.
    shown = [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]
    for row in shown:
        row["next"] = call_of("why" if row["status"] == "ok" else "stages", {"capture": row["id"]})
    return Answer(tool, given, {}, "captures", shown, "irscope ls --last --json", start, notes=said)
