"""What a command line names: a program and a kernel of it, or captures that are there already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.keeping import note_incomplete
from irscope.cli.streams import say
from irscope.errors import CaptureFormatError, CaptureNotFound, RecordingError, UsageError, did_you_mean
from irscope.model.capture import STAGE_NAMES, Capture, stage_named
from irscope.plan import PassPlan, PassRule
from irscope.store.file import SUFFIX, is_packed
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures, StoredRow, chosen, differences
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.model.recording_options import RecordingOptions
    from irscope.store.collection import Collection, PackedCollection


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


def is_ambiguous(captures: Sequence[Capture], subject: str | None) -> bool:
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
        held = {stage for one in stored_captures(subject).files for stage in one.stages} if stages else set[str]()
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
