"""`irscope collect`: records scripts into a collection."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.cli import app, options
from irscope.cli.output.destination import Destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, tell_failures
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.stored import is_capture, readable, stored_captures
from irscope.errors import IrscopeError, UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_sass
from irscope.store.collection import Added, Collection
from irscope.store.file import SUFFIX
from irscope.store.shelf import CaptureFile, StoredCaptures, StoredRow, differences

if TYPE_CHECKING:
    from irscope.store.collection import PackedCollection

_output = options.in_panel("Output")


@app.command(rich_help_panel="Record and read")
@recorded(without=("arguments", "launch"))
def collect(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE[::KERNEL]|CAPTURE]…",
            help="Python files, IR files, captures or other collections. Without any, the collection is listed.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        _output(
            "--output",
            "-o",
            metavar="FOLDER|FILE.irscope",
            help="The collection: a folder, or one file; made where it is missing.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    record_options: RecordingOptions,
) -> int:
    """Record scripts into a collection: a folder of captures with an index, which every command takes.

    What was collected before stays; the same compile replaces its capture. Each capture is in the folder as soon as it
    is complete, and scripts that fail do not stop the others. -o kernels.irscope makes one file of it at the end.
    """
    if folder is None:
        raise UsageError("-o FOLDER is missing: the collection to record into, such as -o kernels/.")
    if folder.suffix == SUFFIX and not folder.is_dir():
        return _collect_file(folder, subjects or [], Destination(None, as_json, color), record_options)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {str(folder)!r} is a file: a collection is a folder, or a file that ends in {SUFFIX}.")
    return _collect(Collection(folder), folder, subjects or [], Destination(None, as_json, color), record_options)


def _collect_file(path: Path, subjects: list[str], to: Destination, record_options: RecordingOptions) -> int:
    """Collect in a folder beside the file, which is left where this is ended, and make the file of it."""
    from irscope.store.collection import PackedCollection, pack, unpack, working_folder
    from irscope.store.file import is_packed

    work = working_folder(path)
    if path.exists() and not is_packed(path):
        raise UsageError(f"-o {str(path)!r} is no collection: name another file, or a folder.")
    if not subjects and path.exists() and not work.is_dir():
        collection = PackedCollection(path)
        _show(collection, collection.entries(), {}, to)
        return 0
    if path.exists():
        unpack(path, work)
    collection = Collection(work)
    code = _collect(collection, path, subjects, to, record_options)
    if collection.entries():
        pack(collection, path)
    shutil.rmtree(work, ignore_errors=True)
    return code


def _collect(
    collection: Collection, name: Path, subjects: list[str], to: Destination, record_options: RecordingOptions
) -> int:
    code = 0
    if subjects:
        with collection.changing():
            for subject in subjects:
                code = _collected(subject, collection, record_options) or code
    entries = collection.entries()
    for problem in collection.unreadable:
        say(problem)
    _show(collection, entries, collection.added, to)
    if subjects:
        counts = [list(collection.added.values()).count(what) for what in ("new", "replaced", "kept")]
        kept = f", {counts[2]} interrupted and not replaced" if counts[2] else ""
        say(f"{name}: {len(entries)} captures; {counts[0]} new, {counts[1]} replaced{kept}.")
    return code


def _collected(subject: str, collection: Collection, record_options: RecordingOptions) -> int:
    """Record one subject, or copy captures that are there; returns the exit code, and says what went wrong."""
    try:
        if not is_capture(subject.partition("::")[0]) or record_options.changes_a_capture:
            return tell_failures(captures_of(subject, record_options, collection=collection))
        copied: list[CaptureFile] = []
        for file in stored_captures(subject).files:
            if (capture := readable(file)) is None:
                continue
            # Each is kept at once: to disassemble many takes long.
            collection.add(with_sass(capture, file, tell=say) if record_options.disassemble else capture)
            copied.append(file)
        return tell_failures(StoredCaptures(copied))
    except IrscopeError as error:
        say(f"{subject}: {error}")
        return error.exit_code


def _show(
    collection: Collection | PackedCollection,
    entries: tuple[StoredRow, ...],
    added: Mapping[str, Added],
    to: Destination,
) -> None:
    from irscope.render.text.tables import table

    def row(entry: StoredRow) -> dict[str, Any]:
        facts = entry.facts
        return {
            "id": facts.id,
            "kernel": facts.name,
            "target": str(facts.target),
            "status": facts.status,
            "failure": facts.failure,
            "plan": facts.plan,
            "triton": facts.triton_version,
            "date": facts.date,
            "file": collection.place_of(entry),
            "bytes": entry.bytes,
            "added": added.get(entry.file, ""),
        }

    def text(width: int | None, color: bool) -> str:
        cells = [
            [
                entry.facts.id[:8],
                entry.facts.name,
                str(entry.facts.target),
                f"{entry.facts.status} ({entry.facts.failure})" if entry.facts.failure else entry.facts.status,
                entry.bytes // 1024,
                how,
            ]
            for entry, how in zip(entries, differences([one.facts for one in entries]), strict=True)
        ]
        columns = ["id", "kernel", "target", "status", "KiB", "differs in"]
        return table(columns, cells, width=width, color=color) if cells else "The collection is empty."

    to.emit(lambda: [row(entry) for entry in entries], text)
