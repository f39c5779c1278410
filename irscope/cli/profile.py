"""`irscope profile`: the hardware's counters of a launch, joined to its operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.analysis.counters.operations import counted_launch, kernel_of_page
from irscope.api.gpu import Variant
from irscope.cli.bench import compiled, variants_of
from irscope.cli.captures import captures_of, is_capture, only_one, split_subject
from irscope.cli.command import Subject
from irscope.cli.launches import one_capture, script_of
from irscope.cli.output import Destination
from irscope.cli.streams import echo, progress
from irscope.errors import NoDevice, RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.model.evidence import Profile
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import request_for
from irscope.record.variants.completing import tell_not_kept, with_operations
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.timing.predict import Prediction

_Profiled = list[tuple[str, Capture]]
"""What makes each a variant, an empty string for the launch as it is, and its capture with a profile."""


def profile(
    subject: Subject = None,
    source: Path | None = None,
    versus: list[str] | None = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Show hardware counters per operation: stalls, sectors, cache lines, bank conflicts.

    The script runs under Nsight Compute up to one launch, its first or the one that --launch chooses; a capture shows
    the profile that it holds. irscope's predictions stand next to the counters. The profile is kept in the
    capture, whose report shows it too.

    Options:
        source = --counters REPORT: Read a profile that was made elsewhere: a .ncu-rep, with Nsight Compute installed
            here, or what 'ncu -i REPORT.ncu-rep --page source --csv --print-source sass' printed, anywhere.
        versus = --vs VARIANT: Profile a variant too: a plan (-combine), compile options (num_warps=8, several separated
            by commas), or a capture of the same launch; repeatable.
    """
    from irscope.render.text.profile import profile_json, render_profile, render_side_by_side

    variants = variants_of(record_options.plan, versus or [])
    record_options = replace(record_options, plan=PassPlan())
    is_stored = is_capture(split_subject(subject, record_options)[0])
    if variants and (is_stored or source is not None):
        raise UsageError("--vs and --disable-pass need the launch itself: give the FILE, on a machine with a GPU.")
    if source is not None:
        profiled: _Profiled = [("", _with_report(captures_of(subject, record_options), source))]
    elif is_stored:
        profiled = [("", _with_own_profile(only_one(captures_of(subject, record_options, of_one=True), subject)))]
    else:
        profiled = _measured(subject, variants, record_options)
    rows = [(name, capture, counted_launch(capture), _predicted(capture)) for name, capture in profiled]

    def text(width: int | None, color: bool) -> str:
        parts = [
            render_profile(capture, counted, title=name, prediction=prediction, width=width, color=color)
            for name, capture, counted, prediction in rows
        ]
        if len(rows) > 1:
            named = [(name or "baseline", counted) for name, _, counted, _ in rows]
            parts.append(render_side_by_side(named, width=width, color=color))
        return "\n".join(parts)

    to.emit(
        lambda: [profile_json(capture, counted, name, prediction) for name, capture, counted, prediction in rows], text
    )
    return 0


def _predicted(capture: Capture) -> Prediction | None:
    from irscope.api.timing import predicted_for

    return predicted_for(capture, capture.profile.device) if capture.profile is not None else None


def _with_report(captures: StoredCaptures, source: Path) -> Capture:
    """The capture whose code a report is of, with its profile; raises UsageError if it is of other code."""
    from irscope.record.gpu.nsight import find_nsight

    if not source.is_file():
        raise UsageError(f"--counters {str(source)!r} is not a file: give a .ncu-rep, or the CSV of its source page.")
    tool = ""
    if source.suffix == ".ncu-rep":
        nsight = find_nsight()
        page, tool = nsight.export(source), nsight.name
    else:
        page = source.read_text("utf-8", "replace")
    reasons: list[str] = []
    for capture in captures:
        _check_backend(capture)
        try:
            return _kept(capture, Profile(kernel_of_page(capture, page).page, tool=tool))
        except UsageError as error:
            reasons.append(str(error))
    raise UsageError(f"--counters {str(source)!r}: {reasons[0]}")


def _with_own_profile(capture: Capture) -> Capture:
    if capture.profile is None:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) holds no profile. To make one, the launch needs the inputs that a "
            "script makes: irscope profile FILE.py on a machine with a GPU. --counters reads one from elsewhere."
        )
    return with_operations(capture)


def _measured(subject: str | None, variants: Sequence[Variant], record_options: RecordingOptions) -> _Profiled:
    """The script's launch, and variants of it, launched under Nsight Compute."""
    from irscope.record.gpu.nsight import find_nsight, profile_launch
    from irscope.record.gpu.session import require_variant, why_not_runnable

    file, kernel = script_of(subject, record_options, "profile")
    nsight = find_nsight()
    capture, number = one_capture(subject, record_options)
    _check_backend(capture)
    if not capture.environment.gpu:
        raise NoDevice("Triton's driver finds no GPU on this machine, and profiling a launch needs one.")
    named = [("", capture)]
    with progress() as tell:
        named += [(variant.name, compiled(capture, variant, record_options, tell)) for variant in variants]
        for _, one in named:
            if (why := why_not_runnable(one)) is not None:
                raise RecordingError(f"{one!r} cannot be profiled: {why}")
            require_variant(one, capture, number)
        request = request_for(
            file, replace(record_options, snapshots="none", layouts=False, disassemble=False), kernel=kernel
        )
        captures = [one for _, one in named]
        shown = echo if record_options.verbose else None
        profiles = profile_launch(nsight, request, number, captures, progress=tell, echo=shown)
    return [(name, _kept(one, profile)) for (name, one), profile in zip(named, profiles, strict=True)]


def _check_backend(capture: Capture) -> None:
    if capture.target.backend != "cuda":
        raise UsageError(
            f"{capture.name} was compiled for {capture.target}: Nsight Compute reads the counters of NVIDIA GPUs "
            "only. AMD's own tool is rocprofv3."
        )


def _kept(capture: Capture, profile: Profile) -> Capture:
    """The capture with a profile and the operations of its instructions, stored."""
    store = CaptureStore()
    full = replace(capture, profile=profile)
    try:
        if not store.update(full):
            store.add(full)
    except OSError as error:
        tell_not_kept(error)
    return with_operations(full)
