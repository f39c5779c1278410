"""`irscope reproduce`: writes one Python file that compiles a capture again with Triton alone."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace

from irscope.cli.captures import captures_of, is_capture, only_one, split_subject
from irscope.cli.command import Output, Subject
from irscope.cli.keeping import refuse_untrusted
from irscope.cli.output import STANDARD_OUTPUT, emit, write_output
from irscope.cli.streams import say
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

_LIMIT_MIB = 64.0


def reproduce(
    subject: Subject = None,
    output: Output = None,
    verify: bool = False,
    data: bool = False,
    data_limit: float | None = None,
    python: str = sys.executable,
    trust: bool = False,
    *,
    record_options: RecordingOptions,
) -> int:
    """Write one Python file that compiles a capture again with Triton alone, and launches it on a GPU.

    It holds the kernel with the functions and constants that it uses, the exact signature, options and target, and the
    passes that were off. With --verify and no -o only the result of the check is printed.

    Options:
        --verify: Compile with the file, and compare every artifact byte by byte: exit 1 if not.
        --data: Store the launch's tensors in it, before and after the launch: the GPU's, or without one the CPU's.
        --data-limit MIB (0.001..): With --data: the largest tensor. Default: 64; all tensors may have 8 when packed.
        --python PATH (default unsaid): The interpreter of --verify. Default: irscope's own.
        --trust: Let --verify run the Python text of a capture that was not recorded here.
    """
    from irscope.render.reproduction.program import render_reproduction

    if data_limit is not None and not data:
        raise UsageError("--data-limit is about the tensors of --data: give that too.")
    limit_mib = _LIMIT_MIB if data_limit is None else data_limit
    asked = record_options
    if data:
        # Without a GPU the virtual one computes, so that its tensors hold data.
        asked = replace(record_options, data_limit_bytes=int(limit_mib * 2**20), computes=True)
    capture = only_one(captures_of(subject, asked, of_one=True), subject)
    if data:
        _tell_data(capture, limit_mib, is_recorded=not is_capture(split_subject(subject, asked)[0]))
    made = render_reproduction(capture)
    if verify and not trust:
        refuse_untrusted(capture, "--verify runs", "the file that -o FILE writes")
    for note in made.notes:
        say(note)
    program = made.text.encode("utf-8", "surrogateescape")
    if output is not None and output != STANDARD_OUTPUT:
        write_output(output, program)
        say(f"wrote {output}")
    elif not verify:
        emit(made.text, output, exact=True)
    return _check(capture, made.text, python, record_options.timeout_s) if verify else 0


def _tell_data(capture: Capture, limit_mib: float, *, is_recorded: bool) -> None:
    """Say which tensors' data are not stored, and why; raises UsageError if none are.

    `is_recorded`: whether this command recorded the capture, so that recording it once more changes nothing.
    """
    record = capture.launch.record
    tensors = [one for one in record.arguments if one.kind == "tensor"] if record is not None else []
    without = [one for one in tensors if not one.data]
    if not is_recorded and len(without) == len(tensors):
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) holds no data of a tensor. Record with it: irscope reproduce FILE.py "
            "--data --launch N, or irscope record FILE.py --values."
        )
    reasons: dict[str, list[str]] = {}
    for one in without:
        match = re.search(r"(\d+)", one.dtype)
        bits = int(match[1]) if match is not None else 8
        size = math.prod(one.shape) * max(bits // 8, 1) / 2**20
        reason = "not known: nothing computed them"
        if size > limit_mib:
            reason = f"larger than --data-limit {limit_mib:g}"
        elif size <= limit_mib and (capture.environment.gpu or is_recorded):
            reason = "too large: packed, those of a launch may have 8 MiB, and as many after it"
        reasons.setdefault(reason, []).append(f"{one.path} ({size:.3g} MiB)")
    told = [f"Without data, {reason}: {', '.join(paths)}." for reason, paths in reasons.items()]
    if len(without) == len(tensors):
        needed = "a smaller launch (--launch N), or a greater --data-limit"
        raise UsageError("\n".join([f"No data of a tensor is there to store; what is needed: {needed}.", *told]))
    for text in told:
        say(text)
    if without:
        say("So the file compares no results: that needs the data of all tensors.")


def _check(capture: Capture, program: str, python: str, timeout_s: float) -> int:
    from irscope.record.variants.reproduced import checked_program

    found = checked_program(program, capture, python, timeout_s)
    if found.is_same:
        failed = f"; it {capture.failure.verdict} as recorded" if capture.failure is not None else ""
        emit(f"identical: {', '.join(found.identical) or 'no stage was made'}{failed}\n")
        return 0
    rows = [
        f"{what}: {', '.join(stages)}\n"
        for what, stages in (
            ("different", found.different), ("not made", found.absent), ("identical", found.identical),
        )
        if stages
    ]  # fmt: skip
    emit("".join(rows) + (f"failure: {found.failure}\n" if found.failure else ""))
    if found.different == ("cubin",) and "ptx" in found.identical:
        say("The PTX is the same. ptxas does not always make the same bytes of one PTX: run --verify again.")
    if found.output:
        say(found.output)
    return 1
