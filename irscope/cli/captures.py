"""What a command line names: a program, or captures, recorded, loaded, or compiled again from a capture's source."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.keeping import Keeping, kept_captures, note_incomplete, nothing_recorded, tell_end, tell_refusals
from irscope.cli.streams import echo, progress, say
from irscope.errors import CaptureFormatError, CaptureNotFound, RecordingError, UsageError, did_you_mean
from irscope.model.capture import STAGE_NAMES, Capture, PassSnapshot, stage_named
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.completing import tell_origin, with_sass
from irscope.render.text.failure import failure_text
from irscope.store.file import SUFFIX, is_packed
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures, StoredRow, chosen, differences, passed_over
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.model.recording_options import RecordingOptions
    from irscope.record.process.gathering import Keep
    from irscope.record.process.requests import RecordRequest
    from irscope.record.process.session import Recording
    from irscope.store.collection import Collection, PackedCollection


def captures_of(
    subject: str | None,
    record_options: RecordingOptions,
    *,
    collection: Collection | None = None,
    becomes_last: bool = True,
    of_one: bool = False,
) -> StoredCaptures:
    """The captures that a subject names, at least one; new ones are recorded and stored.

    `collection`: where those that are recorded are kept too. `becomes_last`: whether `last` then names them, which is
    not so for the variant of a comparison. `of_one`: one capture is needed, so several of a collection are refused
    before anything is done.
    """
    file, kernel = split_subject(subject, record_options)
    if is_capture(file):
        captures = stored_captures(subject)
        if of_one and record_options.launch is None and _is_ambiguous(captures, subject):
            only_one(captures, subject)
        if record_options.changes_a_capture:
            with kept_captures(becomes_last=becomes_last, collection=collection) as keep:
                captures = StoredCaptures.of(
                    again for one in captures for again in _compiled_for_each(one, record_options, keep)
                )
        if record_options.launch is not None:
            captures = nth_launch(captures, record_options)
    else:
        from irscope.record.process.requests import request_for

        request = request_for(file, record_options, kernel=kernel)
        captures = _recorded(request, file, record_options, collection, becomes_last)
        names = sorted({one.facts.name for one in captures.files})
        captures = StoredCaptures(one for one in captures.files if kernel in ("", one.facts.name))
        if not captures:
            raise RecordingError(f"{file} launched no kernel {kernel!r}.{did_you_mean(kernel, names)}")
    for one in captures.files if record_options.disassemble else ():
        if "cubin" in one.facts.stages and "sass" not in one.facts.stages and (capture := readable(one)) is not None:
            full = with_sass(capture, one)
            if full is not one.load():
                one.put(full, None)
    return captures


def compiled_again(capture: Capture, record_options: RecordingOptions) -> Capture:
    """A variant: a capture's own source compiled again under other passes, options or one other target; stored."""
    record_options = replace(record_options, targets=record_options.targets[:1])
    with kept_captures(becomes_last=False) as keep:
        return _compiled_for_each(capture, record_options, keep)[0]


def _compiled_for_each(capture: Capture, record_options: RecordingOptions, keep: Keeping) -> list[Capture]:
    from irscope.record.process.requests import request_from_capture

    tell_origin(capture)
    request = request_from_capture(capture, record_options)

    def of_this_launch(fresh: Capture) -> Capture:
        return replace(fresh, sources=capture.sources, launch=replace(fresh.launch, grid=capture.launch.grid))

    # A plan is checked first: one that names no pass leaves nothing behind.
    recording = run_request(request, None if record_options.plan else lambda fresh: keep(of_this_launch(fresh)))
    tell_refusals(recording)
    for note in recording.notes:
        say(note)
    captures = [of_this_launch(fresh) for fresh in recording.captures]
    check_plan(record_options.plan, captures)
    for fresh in captures if record_options.plan else ():
        keep(fresh)
    return captures


def nth_launch(captures: StoredCaptures, record_options: RecordingOptions) -> StoredCaptures:
    """The launch that `--launch` names, for each target; raises UsageError where there is none."""
    number = record_options.launch or 1
    by_target: dict[str, list[CaptureFile]] = {}
    for file in captures.files:
        by_target.setdefault(str(file.facts.target), []).append(file)
    chosen = [rows[number - 1] for rows in by_target.values() if number <= len(rows)]
    missing = {target: len(rows) for target, rows in by_target.items() if number > len(rows)}
    if not chosen:
        raise UsageError(f"--launch {number}: the last launch is number {max(missing.values())}.")
    for target, count in missing.items():
        say(f"--launch {number}: the last launch on {target} is number {count}.")
        note_incomplete(target)
    return StoredCaptures(chosen)


def captures_of_command(record_options: RecordingOptions, collection: Collection | None = None) -> StoredCaptures:
    """The captures, at least one, of the Python processes of the command that the options' arguments are; stored."""
    from irscope.record.process.requests import request_for_command

    request = request_for_command(record_options)
    return _recorded(request, shlex.join(record_options.arguments), record_options, collection)


def _recorded(
    request: RecordRequest,
    name: str,
    record_options: RecordingOptions,
    collection: Collection | None = None,
    becomes_last: bool = True,
) -> StoredCaptures:
    with kept_captures(becomes_last=becomes_last, collection=collection) as keep:
        if record_options.resume:
            request = replace(request, stored=_resumed_ids(record_options))
        began_ns = time.time_ns()
        recording = run_request(request, keep)
        stored = keep.adopted(recording.stored)
        captures = StoredCaptures((*stored.files, *recording.captures.files))
        tell_end(name, recording, request.config, verbose=request.verbose)
        if not captures:
            raise RecordingError(nothing_recorded(name, request.kernel, recording, request.way))
        if stored:
            say(f"{len(stored)} of {len(captures)} captures were stored before, and not compiled again.")
        check_plan(request.plan, captures)
        if record_options.launch is not None:
            captures = nth_launch(captures, record_options)
        keep.put_in_order(captures)
    if folder := os.environ.get("TORCH_TRACE"):
        _add_to_traces(Path(folder), began_ns, captures)
    return captures


def _add_to_traces(folder: Path, began_ns: int, captures: StoredCaptures) -> None:
    """Add findings and a page to the traces that torch wrote of the program, if it wrote any."""
    from irscope.api.torch_trace import add_to_traces, traces_since

    if traces := traces_since(folder, began_ns):
        try:
            page = add_to_traces(traces, captures)
        except OSError as error:
            say(f"The findings could not be added to the trace in {folder}: {error}.")
        else:
            if page is not None:
                say(f"added the findings to {traces[0]}, with a link to {page}: tlparse {traces[0]}")


def _resumed_ids(record_options: RecordingOptions) -> tuple[str, ...]:
    wanted = ("ok", record_options.snapshots, str(record_options.plan))
    return tuple(
        one.id
        for one in (row.facts for row in CaptureStore().rows())
        if (one.status, one.snapshot_level, one.plan) == wanted
    )


def run_request(request: RecordRequest, keep: Keep | None = None) -> Recording:
    """Run a recording process, telling on a terminal what is under way; raises Interrupted where a signal ended it.

    `keep` is given each capture when it is complete, and again when more is known of it.
    """
    from irscope.record.process.session import record_request

    with progress() as tell:
        recording = record_request(request, progress=tell, echo=echo if request.verbose else None, keep=keep)
    kept = sum(file.facts.has_compiled for file in recording.captures.files) if keep is not None else 0
    if recording.interrupted and kept:
        say(f"Compiled so far, and kept: {kept} (irscope ls).")
    return recording.whole()


def check_plan(plan: PassPlan, captures: Sequence[Capture]) -> None:
    """Raise PlanError for a rule that matched no pass of any capture; if all of them failed, only print a message."""
    if not plan:
        return
    compiled = False
    passes: dict[str, PassSnapshot] = {}
    for capture in captures:
        compiled = compiled or capture.has_compiled
        passes |= {snapshot.label: replace(snapshot, text=None) for snapshot in capture.snapshots}
    if compiled:
        plan.check([*passes.values()])
        return
    # No compile was complete: the rule may name a pass that was not reached, and the failure matters more.
    for rule in plan.unmatched([*passes.values()]):
        say(f"no pass '{rule}' was reached before the compile failed.")


def say_failures(captures: Iterable[Capture]) -> None:
    """Print why those of some captures that failed did."""
    for capture in captures:
        if capture.status == "failed":
            say(failure_text(capture))


def tell_failures(captures: StoredCaptures) -> int:
    """Print why compiles failed, and return the exit code.

    Triton's autotuner skips configurations that do not fit: if another configuration of the kernel fits, they do not
    count as failures.
    """
    failed = [place for place, one in enumerate(captures.files) if one.facts.status != "ok"]
    for place in failed:
        say(failure_text(captures.files[place].load()))
    return int(not {*failed} <= passed_over([one.facts for one in captures.files]))


def tell_unknown(capture: Capture) -> None:
    """Print how many operations of a capture's IR have a form that irscope does not know, if there are any."""
    from irscope.ir.mlir.reader import parse_mlir

    texts = capture.texts
    text = next((texts[stage] for stage in ("ttgir", "glir", "ttir", "source") if stage in texts), "")
    unknown = parse_mlir(text).unknown if text else None
    if not unknown:
        return
    names = ", ".join(f"{name or 'unreadable'} ×{count}" for name, count in sorted(unknown.items()))
    count = unknown.total()
    operations = "operation" if count == 1 else "operations"
    say(f"{capture.name} ({capture.target}): {count} {operations} of unknown form, whose effects are left out: {names}")


def tell_incomplete(captures: StoredCaptures) -> int:
    """Print which operations irscope does not know, and why compiles failed; returns the exit code.

    For commands whose answers follow from the operations of the IR: what an unknown one does is missing in them.
    """
    for one in captures.files:
        if one.facts.status == "ok":
            tell_unknown(one.load())
    return tell_failures(captures)


def captures_with_passes(subject: str | None, record_options: RecordingOptions) -> StoredCaptures:
    """As `captures_of`; for targets without a subject, those of a matmul with a loop, on which every pass works."""
    if subject is not None or not record_options.targets:
        return captures_of(subject, record_options)
    from importlib.resources import as_file, files

    from irscope.record.process.requests import request_for

    types = "*fp16:16, *fp16:16, *fp32:16, i32:16"
    record_options = replace(record_options, signature=types, constexprs=(("BLOCK", "64"),), snapshots="none")
    recorded: list[CaptureFile] = []
    with as_file(files("irscope.record.triton") / "sample_kernel.py") as path:
        for target in record_options.targets:
            one = request_for(path, replace(record_options, targets=(target,)), kernel="sample_matmul")
            recorded += run_request(one).captures.files
    captures = StoredCaptures(recorded)
    check_plan(record_options.plan, captures)
    return captures


_MOST_LISTED = 16


def is_capture(file: str) -> bool:
    """Whether a subject is a capture, or several: a .irscope file, an id, `last`, or a collection."""
    path = Path(file)
    if path.suffix == SUFFIX or collection_at(path) is not None:
        return True
    return not path.exists() and not path.suffix and "/" not in file and file[:1] != "-"


def refuse_empty(subject: str | None) -> None:
    """Raise UsageError for an argument that is there, and empty: it is no wish for the capture recorded last."""
    if subject == "":
        raise UsageError("'' names no file and no capture: is a variable unset? Left out, it is the last recording.")


def stored_captures(subject: str | None) -> StoredCaptures:
    """The captures that a subject names without compiling anything, at least one.

    Of a collection, and of `last`, the last complete recording, `::KERNEL` names those of a kernel, of several by a
    pattern, or one by its id. Raises CaptureNotFound, and RecordingError where the kernel is not among them.
    """
    refuse_empty(subject)
    file, _, kernel = (subject or "last").partition("::")
    if (collection := collection_at(file)) is not None:
        return collection.captures(entries_of(collection, file, kernel))
    store = CaptureStore()
    if file == "last" and not Path(file).is_file():
        shelf = Shelf()
        return StoredCaptures(
            CaptureFile.listed(shelf, row.facts, store.folder / row.file)
            for row in _chosen(store.last_recording(), "the last recording", kernel)
        )
    capture = store.load(file)
    if kernel and capture.name != kernel:
        raise RecordingError(f"{file} holds no kernel {kernel!r}.{did_you_mean(kernel, [capture.name])}")
    return StoredCaptures.of([capture])


def readable(file: CaptureFile) -> Capture | None:
    """The capture of one file of many; None for one that cannot be read: it is named, and the exit code is 1."""
    try:
        return file.load()
    except (CaptureFormatError, CaptureNotFound) as error:
        name = f"{file.facts.name} ({file.facts.id[:8]})"
        note_incomplete(name)
        say(f"{name} is left out: {error}")
        return None


def stored_capture(subject: str | None) -> Capture:
    """The one capture that a subject names; raises UsageError where it names several."""
    return only_one(stored_captures(subject), subject)


def only_one(captures: StoredCaptures, subject: str | None) -> Capture:
    """The only one of several captures; raises UsageError that lists them, and what tells them apart."""
    if len(captures) == 1:
        return captures[0]
    file = (subject or "last").partition("::")[0]
    facts = [one.facts for one in captures.files]
    rows = [
        f"  {file}::{one.id}  {one.name} ({one.target}) {how}".rstrip()
        for one, how in zip(facts, differences(facts), strict=True)
    ]
    more = [f"  and {len(rows) - _MOST_LISTED} more"] if len(rows) > _MOST_LISTED else []
    listed = "\n".join([*rows[:_MOST_LISTED], *more])
    raise UsageError(f"{subject} names {len(rows)} captures, and one is needed:\n{listed}")


def _is_ambiguous(captures: Sequence[Capture], subject: str | None) -> bool:
    """Whether one capture is to be chosen from several of a collection, in which no one is the first."""
    return len(captures) > 1 and collection_at((subject or "last").partition("::")[0]) is not None


def collection_at(path: str | Path) -> Collection | PackedCollection | None:
    """The collection that a path names, a folder or a file; None if it is none."""
    # Most subjects are neither, and need nothing of collections.
    if os.path.isdir(path):
        from irscope.store.collection import Collection, is_collection

        return Collection(path) if is_collection(path) else None
    if Path(path).suffix == SUFFIX:
        if not is_packed(path):
            return None
        from irscope.store.collection import PackedCollection

        return PackedCollection(path)
    return None


def entries_of(collection: Collection | PackedCollection, name: str, wanted: str) -> Sequence[StoredRow]:
    """Those of its captures that are wanted, all for an empty text; raises where there is none.

    `name`: of the collection, as it was given.
    """
    entries = collection.entries()
    for problem in collection.unreadable:
        say(f"left out: {problem}")
        note_incomplete(problem)
    if not entries:
        raise CaptureNotFound(f"{name!r} holds no capture. Record some: irscope record SCRIPT -o {name}")
    return _chosen(entries, name, wanted)


def _chosen(rows: Sequence[StoredRow], name: str, wanted: str) -> Sequence[StoredRow]:
    """The rows that are wanted, all for an empty text; raises RecordingError where there is none."""
    if found := chosen(rows, wanted) if wanted else rows:
        return found
    near = did_you_mean(wanted, {one.facts.name for one in rows})
    raise RecordingError(f"{name} holds no kernel {wanted!r}, and no capture whose id begins so.{near}")


_BACKENDS = ("cuda", "hip")


def split_subject(subject: str | None, record_options: RecordingOptions, default: str = "last") -> tuple[str, str]:
    """The file (or `-m MODULE`, `--pytest PATH`) and the kernel that a subject and the options name.

    `default`: what no subject stands for. Raises UsageError for a file beside -m or --pytest.
    """
    refuse_empty(subject)
    program = record_options.program
    file, _, kernel = (subject or ("" if program else default)).partition("::")
    if not program:
        return file, kernel
    if file:
        raise UsageError(f"{program} and {subject!r} do not go together: give one. ::KERNEL chooses a kernel of it.")
    module, _, named = program.partition("::") if record_options.module is not None else (program, "", "")
    return module, kernel or named


def refuse_unknown_names(
    subject: str | None,
    record_options: RecordingOptions,
    *,
    stages: Iterable[str] = (),
    passes: Iterable[str | None] = (),
) -> None:
    """Raise UsageError for a stage, and PlanError for a pass (the plan's too), that a program's captures cannot have.

    Passes of captures that are there already are looked for in them. Stages of a third-party backend are not known.
    """
    file, _ = split_subject(subject, record_options)
    if is_capture(file):
        held = {stage for one in stored_captures(subject).files for stage in one.facts.stages} if stages else set[str]()
        for name in stages:
            if name not in ("all", *STAGE_NAMES, *held):
                raise UsageError(f"--stage {name!r}: there is no such stage.{did_you_mean(name, [*held])}")
        stages, passes = (), ()
    backends = {Target.parse(text).backend for text in record_options.targets} or {*_BACKENDS}
    for name in stages if backends <= {*_BACKENDS} else ():
        if name == "all":
            continue
        if name not in STAGE_NAMES:
            raise UsageError(f"--stage {name!r}: there is no such stage.{did_you_mean(name, STAGE_NAMES)}")
        if not backends & {*stage_named(name).backends} and stage_named(name).backends:
            raise UsageError(f"--stage {name}: a compile for {', '.join(record_options.targets)} has no such stage.")
    rules = tuple(PassRule.parse(text) for text in passes if text is not None)
    plan = record_options.plan.joined(PassPlan(() if record_options.llvm_passes else rules))
    if plan and record_options.interpreter is None:
        from irscope.record.triton.identity import refuse_unknown_passes

        refuse_unknown_passes(plan, backends)


def is_program(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is recorded when it is named: a script, a module, tests, a signature's kernel, an IR file."""
    file, _ = split_subject(subject, record_options)
    return not is_capture(file) and (bool(record_options.program) or file == "-" or Path(file).is_file())


def is_script(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is a program, which makes launches when it is run."""
    file, _ = split_subject(subject, record_options)
    runs = bool(record_options.program) or file == "-" or Path(file).suffix in (".py", ".ipynb")
    return runs and record_options.signature is None and is_program(subject, record_options)
