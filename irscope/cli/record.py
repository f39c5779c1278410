"""`irscope record`: records what programs, captures' sources or any command launch, into the store or a collection."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from irscope.cli.captures import (
    captures_of,
    captures_of_command,
    collection_at,
    is_capture,
    readable,
    stored_captures,
    tell_failures,
)
from irscope.cli.command import AsJson, Color, Subjects
from irscope.cli.ls import collection_rows, rows_json, rows_text
from irscope.cli.output import Destination
from irscope.cli.recording import refuse_options
from irscope.cli.show import View, show_captures
from irscope.cli.streams import say
from irscope.errors import IrscopeError, UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_sass
from irscope.render.text.tables import counted
from irscope.store.collection import Collection, pack, unpack, working_folder
from irscope.store.file import SUFFIX, is_packed
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, StoredCaptures

_OF_A_SUBJECT = ("signature", "constexprs", "options", "launch", "test_filter")


def record(
    subjects: Subjects = None,
    folder: Path | None = None,
    without_data: bool = False,
    as_json: AsJson = False,
    color: Color = None,
    *,
    record_options: RecordingOptions,
) -> int:
    """Record every kernel launch of scripts, modules, tests, notebooks or any command; -o makes a collection.

    irscope record FILE.py -- ARGS runs a script; irscope record -- torchrun train.py runs any command as it stands,
    with no standard input, and records the Python processes that it starts and forks. The exit code is 1 if a program
    or a compile failed.

    A collection is a folder of captures with an index, or one file, which every command takes. Its captures
    are kept; a capture of the same compile is replaced, captures named as arguments are copied, and a program that
    fails does not stop the others.

    Options:
        folder = --output, -o FOLDER|FILE.irscope: Record into a collection: a folder, or one file; made where it is
            missing.
        without_data = --no-data: With -o, for sharing: leave out what was read of the elements of integer tensors (data
            and range), such as lengths and block tables. Shapes and scalars are kept.
    """
    programs: list[str | None] = [*(subjects or [])]
    if not programs and record_options.program:
        programs = [None]
    if not programs:
        if not record_options.arguments:
            raise UsageError(
                "there is nothing to record: give a FILE, -m MODULE, --pytest PATH, or a command after --."
            )
        refuse_options(record_options, "a command after -- is recorded as it stands", *_OF_A_SUBJECT)
    to = Destination(None, as_json, color)
    if folder is not None:
        refuse_options(record_options, "-o takes every launch", "launch")
        return _collected(folder, programs, to, record_options, keeps_elements=not without_data)
    if without_data:
        raise UsageError(
            "--no-data is of a collection, which -o FOLDER|FILE.irscope names: irscope's own store keeps data."
        )
    if not as_json:
        record_options = replace(record_options, disassemble=False)
    files: list[CaptureFile] = []
    if not programs:
        files += captures_of_command(record_options).files
    for one in programs:
        files += captures_of(one, record_options).files
    captures = StoredCaptures(files)
    if len(programs) > 1:
        _become_last(captures)
    code = show_captures(captures, View(), to)
    return tell_failures(captures) or code or int(not _is_kept(captures))


def _become_last(captures: StoredCaptures) -> None:
    """Make the captures of several programs one recording: each program's own ended with it."""
    store = CaptureStore()
    paths = [file.path for file in captures.files if file.path is not None and file.path.parent == store.folder]
    if paths:
        with suppress(OSError):
            store.complete([*dict.fromkeys(paths)])


def _is_kept(captures: StoredCaptures) -> bool:
    try:
        ids = {row.facts.id for row in CaptureStore().last_recording()}
    except (IrscopeError, OSError):
        return False
    return any(file.facts.id in ids for file in captures.files)


def _collected(
    path: Path,
    programs: list[str | None],
    to: Destination,
    record_options: RecordingOptions,
    *,
    keeps_elements: bool,
) -> int:
    code, recorded = 0, list[CaptureFile]()
    with _collection_at(path, keeps_elements) as collection:
        with collection.changing():
            if not programs:
                code = _added(None, collection, record_options, recorded, is_command=True)
            for one in programs:
                code = _added(one, collection, record_options, recorded) or code
        added = {entry.facts.id: collection.added.get(entry.file, "") for entry in collection.entries()}
        for problem in collection.unreadable:
            say(problem)
    if len(programs) > 1:
        _become_last(StoredCaptures(recorded))
    made = collection_at(path)
    rows = [] if made is None else collection_rows(made, made.entries())
    to.emit(
        lambda: [row | {"added": added.get(row["id"], "")} for row in rows_json(rows)],
        partial(rows_text, rows) if rows else lambda width, color: "The collection is empty.",
    )
    counts = [list(added.values()).count(what) for what in ("new", "replaced", "kept")]
    kept = f", {counts[2]} interrupted and not replaced" if counts[2] else ""
    say(f"{path}: {counted(len(rows), 'capture')}; {counts[0]} new, {counts[1]} replaced{kept}.")
    return code


@contextmanager
def _collection_at(path: Path, keeps_elements: bool) -> Generator[Collection]:
    """The collection in a folder; or that of one file in a folder next to it, which stays where this is ended."""

    if path.suffix != SUFFIX or path.is_dir():
        if path.exists() and not path.is_dir():
            raise UsageError(f"-o {str(path)!r} is a file: a collection is a folder, or a file that ends in {SUFFIX}.")
        yield Collection(path, keeps_elements=keeps_elements)
        return
    if path.exists() and not is_packed(path):
        raise UsageError(f"-o {str(path)!r} is not a collection: name another file, or a folder.")
    work = working_folder(path)
    if path.exists():
        unpack(path, work)
    collection = Collection(work, keeps_elements=keeps_elements)
    yield collection
    if collection.entries():
        pack(collection, path)
    shutil.rmtree(work, ignore_errors=True)


def _added(
    subject: str | None,
    collection: Collection,
    record_options: RecordingOptions,
    recorded: list[CaptureFile],
    *,
    is_command: bool = False,
) -> int:
    """Record one program, or copy captures that are there; returns the exit code, and prints what went wrong."""
    try:
        if is_command:
            return tell_failures(captures_of_command(record_options, collection))
        is_program = subject is None or not is_capture(subject.partition("::")[0])
        if is_program or record_options.changes_a_capture:
            captures = captures_of(subject, record_options, collection=collection)
            recorded += captures.files
            return tell_failures(captures)
        copied: list[CaptureFile] = []
        for file in stored_captures(subject).files:
            if (capture := readable(file)) is None:
                continue
            # Each is kept at once: to disassemble many takes long.
            collection.add(with_sass(capture, file) if record_options.disassemble else capture)
            copied.append(file)
        return tell_failures(StoredCaptures(copied))
    except IrscopeError as error:
        say(f"{subject or record_options.program or 'the command'}: {error}")
        return error.exit_code
