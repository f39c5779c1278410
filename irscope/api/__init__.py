"""The Python interface: recording, in a child process or in one's own, and results as plain values."""

from __future__ import annotations

import dataclasses
import inspect
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

from irscope.api.notebook import check, diff, display_as_text, layout, report, reproduce, sweep
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture, SnapshotLevel, Target
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.store.file import load, save

if TYPE_CHECKING:
    from irscope.analysis.diff.captures import Comparison
    from irscope.analysis.findings.model import Finding
    from irscope.api.explain import Explanation
    from irscope.record.programs.in_process import Recorded
    from irscope.record.programs.listening import Listening
    from irscope.verify.bits import BitsVerdict
    from irscope.verify.meaning import MeaningVerdict
    from irscope.verify.proof import ArgumentsVerdict
    from irscope.verify.verdict import SafetyVerdict

__all__ = [
    "Capture",
    "SnapshotLevel",
    "Target",
    "capture",
    "check",
    "diff",
    "findings",
    "layout",
    "listen",
    "load",
    "meaning",
    "record",
    "record_all",
    "recording_session",
    "report",
    "reproduce",
    "safety",
    "safety_for_all_arguments",
    "same_bits",
    "save",
    "sweep",
    "to_dict",
    "why",
]

_Parameters = ParamSpec("_Parameters")


def record_all(
    source: str | Path | Any = "",
    *,
    module: str | None = None,
    tests: str | Path | Sequence[str | Path] = (),
    kernel: str = "",
    target: str | Target | Sequence[str | Target] = (),
    plan: str | PassPlan = "",
    signature: str | None = None,
    constexprs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    arguments: Sequence[str] = (),
    config: str = "first",
    snapshots: SnapshotLevel = "triton",
    llvm_passes: bool = False,
    virtual: bool = False,
    values: bool = False,
    values_memory_gib: float = 4.0,
    values_timeout_s: float | None = None,
    jobs: int | None = None,
    timeout_s: float = 300.0,
    interpreter: str | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Sequence[Capture]:
    """Record every launch of a script, a module or tests, or a kernel by its signature, in a child process.

    Args:
        source: the path of a script, a notebook or an IR file (`.ttir`, `.ttgir`, `.llir`, `.ptx`), or a `@triton.jit`
            function. Left out with `module` or `tests`.
        module: `package.module`, run as `python -m` runs it.
        tests: a path of tests that pytest runs, or several: `FILE::TEST` for one test. Each capture's
            `environment.origin` has its test.
        kernel: record only this kernel; required with `signature`.
        target: `cuda:90`, or several, for each of which the script runs. Default: this machine's GPU, or cuda:90.
        plan: passes to switch off, such as `-combine`.
        signature: `*fp16:16, i32, 64`, in the syntax of `triton.tools.compile`; the script is imported, not run.
        constexprs: values of `tl.constexpr` parameters, with `signature`.
        options: compile options such as num_warps, with `signature` or an IR file.
        arguments: command-line arguments for the script.
        config: which configurations of an autotuned kernel: `first`, `all`, an index, or KEY=VALUE.
        snapshots: after which passes to keep the IR: `triton` (while it has Triton's dialects), `all` or `none`.
        llvm_passes: also record the IR after each LLVM pass.
        virtual: use the virtual GPU even if this machine has a real one.
        values: let the virtual GPU compute, on the CPU: tensors hold their data, and launches are run.
        values_memory_gib: a launch whose tensors have more GiB is recorded, and not run.
        values_timeout_s: after this many seconds a launch is ended, and its tensors are unchanged; by default never.
        jobs: how many launches are compiled at a time while the script continues; by default one for each core. With 1,
            one after another, a script stops at the first launch whose compile fails. With `values`, this many threads
            run the programs of a launch.
        timeout_s: time limit for compiling one kernel, in seconds.
        interpreter: path of a Python with another Triton.
        assume: values that the virtual GPU uses for numbers that only a real GPU could compute, by the variable that
            the script assigns them to, FILE:LINE of the read, or the kernel's parameter.

    Returns the captures, failed ones included, those of one target after those of another: a sequence that holds one
    of them in memory, and loads the others from temporary files when they are read. Raises RecordingError if
    nothing was compiled; if that is so for some of several targets, it warns.

    >>> [capture.name for capture in record_all("examples/softmax.py", target="h100")][:1]    # doctest: +SKIP
    ['softmax_kernel']
    """
    return recorded(dict(locals()))


def recorded(keywords: Mapping[str, Any], **others: Any) -> Sequence[Capture]:
    """The captures of a recording; `keywords`: the arguments of `record_all`, `others`: more fields of its options."""
    from irscope.record.process.requests import request_for
    from irscope.record.process.session import record_request

    fields = {item.name: item.name for item in dataclasses.fields(RecordingOptions)}
    fields |= {"target": "targets", "values": "computes"}
    asked = RecordingOptions.of({fields[name]: value for name, value in keywords.items() if name in fields} | others)
    source = keywords["source"]
    program = asked.program or str(source)
    if bool(asked.program) == bool(source):
        given = f"{asked.program} and {source!s} do not go together" if source else "nothing is given to record"
        raise UsageError(f"{given}: give one of a source, module= and tests=.")
    recording = record_request(request_for(source, asked, kernel=keywords.get("kernel", "")))
    if recording.signal_number == signal.SIGINT:
        raise KeyboardInterrupt
    recording.whole()
    if not recording.captures:
        why = f": it stopped: {recording.stopped[0].message}" if recording.stopped else " compiled no kernel"
        raise RecordingError(f"{program}{why}.")
    for name, error in recording.refusals:
        warnings.warn(f"nothing was recorded for {name}: {error}", stacklevel=3)
    return recording.captures


def _first_of(every: Callable[_Parameters, Sequence[Capture]]) -> Callable[_Parameters, Capture]:
    def record(*args: _Parameters.args, **options: _Parameters.kwargs) -> Capture:
        return every(*args, **options)[0]

    record.__signature__ = inspect.signature(every).replace(return_annotation="Capture")  # type: ignore[attr-defined]
    record.__doc__ = (
        "Record one launch: the first capture of `record_all`.\n" + (every.__doc__ or "").partition("\n")[2]
    )
    return record


record = _first_of(record_all)


@contextmanager
def capture(plan: str | PassPlan = "", snapshots: SnapshotLevel = "triton") -> Iterator[Recorded]:
    """Record the compiles of this process until the end of the block, as a sequence of captures.

    Raises PlanError for a text that is not a plan, and UsageError for an unknown level of snapshots.
    """
    from irscope.record.programs.in_process import capture_in_process

    if snapshots not in ("all", "triton", "none"):
        raise UsageError(f"snapshots={snapshots!r}: write 'triton', 'all' or 'none'.")
    with capture_in_process(plan if isinstance(plan, PassPlan) else PassPlan.parse(plan), snapshots) as recorded:
        yield recorded


def listen(folder: str | Path, *, plan: str | PassPlan = "", max_bytes: int = 256 << 20) -> Listening:
    """Record what this process compiles from now on into a collection, until `close()` or the end of a `with` block.

    By Triton's compilation listener, next to other listeners: launches of compiled kernels cost nothing, and a thread
    writes the results of a compile. A capture has the stages, options, signature and source of a compile; its passes
    and layouts are made from these on demand. The launch's arguments and grid are not known: state them
    (`--size`, `--grid`). What other processes compile, such as TorchInductor's workers, is not recorded, and kernels
    from Triton's cache are not either.

    Args:
        folder: of the collection, which may be read, and which other processes may write to, at any time.
        plan: passes to switch off, such as `-combine`, in what is compiled from now on (Triton 3.7 and later); kernels
            that were compiled before are compiled again under it.
        max_bytes: how much this process keeps; the oldest captures go first.

    Returns the recording; its `count` and `problem` are its state. Raises PlanError for a text that is not a
    plan, UsageError for less than one byte, MissingTool for a Triton that cannot, OSError for the folder.
    """
    from irscope.record.programs.listening import Listening

    if max_bytes < 1:
        raise UsageError(f"max_bytes={max_bytes!r}: give how many bytes of captures to keep, at least 1.")
    return Listening(folder, plan if isinstance(plan, PassPlan) else PassPlan.parse(plan), max_bytes)


@contextmanager
def recording_session() -> Iterator[None]:
    """Make the recordings of this thread cheap, until the end of the block: for a loop over variants of a kernel.

    Each recording is still a process of its own, which may crash alone, but it is forked from one that has imported
    Triton, and torch if the script imports it. A recording by another interpreter, or after a change of the
    environment that is read on import, starts as it does outside of a session.
    """
    from irscope.record.process.child import warm_children

    with warm_children():
        yield


def findings(capture: Capture) -> tuple[Finding, ...]:
    """What is slow in a kernel, as far as it is known without another compile; the worst first.

    Of a launch whose capture holds its SASS, with the predicted costs and in their order. `why` also asks for the
    compiler's log, and compiles what it suggests. What a comment in the kernel silences is left out.
    """
    from irscope.analysis.findings.costs import priced, timed
    from irscope.analysis.findings.find import findings_of
    from irscope.analysis.findings.model import is_silenced
    from irscope.analysis.findings.studied import Studied

    studied = Studied(capture)
    found = priced(studied, findings_of(studied), timed(capture))
    return tuple(one for one in found if not is_silenced(one, capture))


def safety(
    capture: Capture,
    *,
    all_programs: bool = False,
    values: Mapping[str, Any] | None = None,
    earlier: Sequence[Capture] = (),
) -> SafetyVerdict:
    """Whether launches are safe: accesses out of bounds, races, order that a pass lost, waits that never end.

    Args:
        capture: of launches that were recorded with their arguments.
        all_programs: execute all programs, however many there are.
        values: name of an argument → a number, or an array of the tensor's shape, for what the capture does not hold of
            its first launch, which is then the only one.
        earlier: captures of the same program: what their launches wrote to memory of `torch.empty` is taken as written.

    Returns the verdict: safe, wrong with its violations, or not decided with the reasons. Raises UsageError for values
    that do not fit the launch.
    """
    from irscope.render.text.verdict import render_verdict
    from irscope.verify.launches import verify_launches
    from irscope.verify.safety import DEFAULT_ELEMENTS
    from irscope.verify.verdict import SafetyVerdict

    display_as_text(SafetyVerdict, render_verdict)
    elements = None if all_programs else DEFAULT_ELEMENTS
    return verify_launches(capture, elements=elements, values=values, earlier=earlier)


def safety_for_all_arguments(capture: Capture) -> ArgumentsVerdict:
    """Whether an access is out of bounds for some integer arguments: proved by z3, or with a counterexample.

    Args:
        capture: of a launch that was recorded with its arguments.

    Returns the verdict, with the assumed roles of its arguments: sizes, strides and the grid.
    Raises MissingTool without z3.
    """
    from irscope.render.text.verdict import render_verdict
    from irscope.verify.proof import ArgumentsVerdict, prove_bounds

    display_as_text(ArgumentsVerdict, render_verdict)
    return prove_bounds(capture)


def meaning(
    capture: Capture,
    other: Capture | None = None,
    *,
    all_programs: bool = False,
    values: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> MeaningVerdict:
    """Whether each pass of TTIR and TTGIR means the same, or two compiles of one launch do.

    Args:
        capture: of a launch that was recorded with its arguments, and with its passes.
        other: another compile of the launch: a pass off, other warps, another target or Triton.
        all_programs: run all programs of the launch, however many there are.
        values: name of an argument → a number, or an array of the tensor's shape, for what the capture does not hold.
        progress: gets the label of the pass that is being compared.

    Returns the verdict: same, changed with the first pass and its witness, or not decided with the reasons. Raises
    UsageError for captures of different launches.
    """
    from irscope.render.text.verdict import render_meaning
    from irscope.verify.meaning import DEFAULT_PROGRAMS, MeaningVerdict, compare_captures, verify_passes

    display_as_text(MeaningVerdict, render_meaning)
    programs = None if all_programs else DEFAULT_PROGRAMS
    if other is not None:
        return compare_captures(capture, other, programs=programs, values=values)
    return verify_passes(capture, programs=programs, values=values, progress=progress)


def same_bits(capture: Capture, other: Capture, *, all_programs: bool = False) -> BitsVerdict:
    """Whether two compiles of one launch give the same bits: the same operations, and each sum in the same order.

    Args:
        capture: recorded with the launch's arguments.
        other: the other compile, recorded with them too.
        all_programs: run all programs of the launch, however many there are.

    Returns the verdict: yes, no with the first place that sums in another order, or not decided with the reasons.
    Raises UsageError for captures of different launches.
    """
    from irscope.render.text.verdict import render_bits
    from irscope.verify.bits import BitsVerdict, verify_bits
    from irscope.verify.meaning import DEFAULT_PROGRAMS

    display_as_text(BitsVerdict, render_bits)
    return verify_bits(capture, other, programs=None if all_programs else DEFAULT_PROGRAMS)


def why(capture: Capture, *, tries: int | Literal["few"] | None = "few") -> Explanation:
    """Find what is slow in a kernel: the causes, and the effect of each compiled suggestion; the worst first.

    Args:
        capture: a launch; its own source is compiled again, by the Triton that is here.
        tries: at most so many compiles try suggestions, None for all; `few` are those that `irscope why` tries.

    Warns of what is unknown, with the reason.

    >>> why(capture, tries=0).findings
    ()
    """
    from irscope.analysis.findings.tries import Budget
    from irscope.api.explain import Explainer
    from irscope.record.variants.compiles import Compiles

    with Compiles() as compiles:
        return Explainer(compiles, Budget() if tries == "few" else Budget.of(tries)).explain(capture)


def to_dict(result: Capture | Comparison | Finding) -> dict[str, Any]:
    """A result as plain values, of the form that the command line prints with `--json`.

    Args:
        result: a capture (as `irscope show --json`, without texts of stages), what `diff` gave (as `irscope diff`, with
            the differences of every stage), or a finding of `findings` (as `irscope why`).

    Raises UsageError for anything else.
    """
    from irscope.analysis.diff.captures import Comparison
    from irscope.analysis.findings.model import Finding

    if isinstance(result, Capture):
        from irscope.render.capture import capture_json

        return capture_json(result)
    if isinstance(result, Comparison):
        from irscope.render.text.diff import comparison_json

        return comparison_json(result, [stage for stage, _ in result.diffs])
    if isinstance(result, Finding):  # pyright: ignore[reportUnnecessaryIsInstance]
        from irscope.render.text.findings import findings_json

        return findings_json([result])[0]
    raise UsageError(f"{type(result).__name__} has no plain form: to_dict takes a Capture, a Comparison or a Finding.")


def _html_of(self: Capture) -> str:
    from irscope.render.capture import summary_html

    return summary_html(self)


Capture._repr_html_ = _html_of  # pyright: ignore[reportPrivateUsage]


def _run(capture: Capture, values: Mapping[str, Any] | None = None, **keywords: Any) -> dict[str, Any]:
    from irscope.machine.captured import run_capture

    return run_capture(capture, values, **keywords)


Capture.run = _run
