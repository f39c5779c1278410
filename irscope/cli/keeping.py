"""Stores the captures of a recording as they are completed, and says how it ended."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from irscope.cli.streams import say
from irscope.errors import CaptureFormatError, UsageError, did_you_mean
from irscope.model.capture import Autotuning, Capture
from irscope.record.variants.completing import tell_not_kept
from irscope.store.file import is_worse, load
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

if TYPE_CHECKING:
    from irscope.record.process.requests import Way
    from irscope.record.process.session import Recording
    from irscope.store.collection import Collection


_LINES_OF_OUTPUT = 15


_incomplete: ContextVar[list[str] | None] = ContextVar("incomplete", default=None)


@contextmanager
def noted_incomplete() -> Generator[list[str]]:
    """The kernels that began in the block, and were not recorded to the end."""
    names: list[str] = []
    token = _incomplete.set(names)
    try:
        yield names
    finally:
        _incomplete.reset(token)


def note_incomplete(*names: str) -> None:
    """Note that something was not recorded to its end: the command's exit code is 1 then."""
    if (noted := _incomplete.get()) is not None:
        noted.extend(names)


def tell_end(file: str, recording: Recording, config: str, *, verbose: bool) -> None:
    """Say how a recording ended, and what its captures lack.

    Args:
        config: the configurations of autotuned kernels that were to be compiled, as `--config` gave them.
        verbose: whether the script's output was shown already.
    """
    tell_stops(file, recording)
    # Tests that failed are named with their errors; of a command that failed only its output says why.
    stopped = [end for end in recording.stopped if not end.of_compile and not (end.complete and end.frames)]
    if stopped and not verbose and recording.output.strip():
        say("It printed last:")
        for line in recording.output.rstrip().splitlines()[-_LINES_OF_OUTPUT:]:
            say(f"  {line}")
    elif not verbose and (count := len(recording.output.split("\n")) - 1 if recording.output.strip() else 0):
        say(f"The script and the compiler printed {count} line{'s' * (count != 1)}: -v shows them.")

    for note in (*recording.notes, *autotuning_notes(recording.captures, config)):
        say(note)


def tell_stops(file: str, recording: Recording) -> None:
    """Say why a script stopped, and for which targets nothing was recorded."""
    kept = sum(file.facts.has_compiled for file in recording.captures.files)
    taken = f"; the {kept} compiled so far {'is' if kept == 1 else 'are'} kept" if kept else ""
    ends = {(end.message, end.frames): end for end in recording.stopped}
    for (message, frames), end in ends.items():
        where = [one.target for one in recording.stopped if (one.message, one.frames) == (message, frames)]
        several = len(recording.script_ends) + len(recording.refusals) > 1
        on = f" on {', '.join(where)}" if several else ""
        if end.of_compile:
            # The capture's own failure message says why.
            say(f"{file} stopped{on} at the launch whose compile failed{taken}.")
        else:
            # Tests that failed did not stop the others.
            say(f"{file}{on}: {message}{taken}." if end.complete else f"{file} stopped{on}: {message}{taken}.")
            if frames:
                say(frames.rstrip())
        note_incomplete(end.message)
    tell_refusals(recording)


def tell_refusals(recording: Recording) -> None:
    """Say for which targets nothing was recorded, and why."""
    for target, error in recording.refusals:
        say(f"nothing was recorded for {target}: {error}")
        note_incomplete(target)


def nothing_recorded(name: str, kernel: str, recording: Recording, way: Way) -> str:
    """Why a recording has no capture. `name`: of the program."""
    if recording.stopped and not recording.stopped[0].complete:
        return f"nothing was recorded: {name} stopped before its first launch."
    which = f"kernel {kernel!r}" if kernel else "any kernel"
    ran = f"{name} ran to its end without launching {which}."
    launched = sorted({other for end in recording.script_ends for other in end.passed_over})
    if launched:
        return f"{ran}{did_you_mean(kernel, launched, or_all=False)} It launched {', '.join(launched)}."
    if way not in ("file", "module"):
        return ran
    return (
        f"{ran} If it only defines kernels, give a signature: "
        f"irscope dump {name}::KERNEL --signature '*fp16:16, i32' --constexpr BLOCK=128"
    )


def autotuning_notes(captures: StoredCaptures, asked: str) -> Iterator[str]:
    """A sentence about each autotuned kernel of which not every configuration was compiled.

    `asked`: the value of `--config`: `first`, `all`, an index, or KEY=VALUE.
    """
    tunings: dict[str, dict[str, Autotuning]] = {}
    for file in captures.files:
        if (tuning := file.facts.autotuning) is not None:
            # By its text: configurations that pruning makes itself all have the index -1.
            tunings.setdefault(file.facts.name, {})[tuning.config] = tuning
    for kernel, compiled in tunings.items():
        # Configurations that do not fit come before the one that is launched.
        *_, one = compiled.values()
        kept = one.count if one.kept is None else one.kept
        if len(compiled) == one.count:
            continue
        left = f"its own pruning (prune_configs_by) leaves {kept} of {one.count} configurations"
        if asked not in ("first", "all") and not any(tuning.is_named(asked) for tuning in compiled.values()):
            choices = f"{left}, and --config {asked} is not one of them"
            if kept == one.count:
                choices = f"--config {asked} is not one of its {one.count} configurations"
            yield (
                f"{kernel} is autotuned: {choices}; configuration {one.index} ({one.config}) was compiled in its place."
            )
            continue
        done = f"{left}; {len(compiled)} compiled"
        if kept == one.count:
            done = f"{len(compiled)} of {one.count} configurations compiled"
        rest = "" if asked == "all" or len(compiled) == kept else "; --config all takes every one"
        yield f"{kernel} is autotuned: {done}{rest}."


class Keeping:
    """Stores each capture it is given; while it exists, nothing that was stored since is dropped from the store.

    If the store cannot be written, a message says so once, and the recording goes on. `collection`: where each is kept
    too; one that cannot be written ends the recording.
    """

    def __init__(self, store: CaptureStore, collection: Collection | None = None, *, becomes_last: bool = True) -> None:
        self._store: CaptureStore | None = store
        self._becomes_last = becomes_last
        self._collection = collection
        self._written: dict[str, Path] = {}
        """The files of this recording's captures, by id."""
        lease = ExitStack()
        lease.enter_context(store.recording())
        finalize(self, lease.close)

    def __call__(self, capture: Capture) -> Path | None:
        """Store a capture, and return its file; one that was stored before keeps its place among the recent ones.

        What is in the collection is stored already: a recording that is killed between the two goes on with `--resume`.
        """
        path = self._stored(capture)
        if self._collection is not None:
            self._collection.add(capture)
        return path

    def _stored(self, capture: Capture) -> Path | None:
        if self._store is None:
            return None
        path = self._store.path_of(capture)
        if is_worse(path, capture):
            # The earlier one of the same compile stays.
            self._written[capture.id] = path
            return None
        try:
            if capture.id not in self._written or not self._store.update(capture):
                self._store.add(capture, is_complete=False)
        except OSError as error:
            self._refused(error)
            return None
        except CaptureFormatError as error:
            say(f"{capture.name} ({capture.target}) was not stored: {error}")
            return None
        self._written[capture.id] = path
        return path

    def _refused(self, error: OSError) -> None:
        tell_not_kept(error, "The recording" if self._collection is None else "A copy in the store")
        is_named = self._becomes_last and self._collection is None and "IRSCOPE_HOME" in os.environ
        if is_named or error.errno in (errno.ENOSPC, errno.EDQUOT):
            # A user who named no place, or asked for a variant, has what the command prints.
            note_incomplete("the store cannot be written")
        self._store = None

    def adopted(self, ids: Iterable[str]) -> StoredCaptures:
        """Stored captures, by id, as part of this recording."""
        files: list[CaptureFile] = []
        shelf, store = Shelf(lease=self), CaptureStore()
        for path in [store.find(id_) for id_ in ids]:
            capture = load(path)
            self._written[capture.id] = path
            files.append(CaptureFile(shelf, capture, path))
        return StoredCaptures(files)

    def put_in_order(self, captures: StoredCaptures) -> None:
        """Give captures that were stored as they were completed the order of their launches."""
        ids = [file.facts.id for file in captures.files]
        self._written = {id_: self._written[id_] for id_ in ids if id_ in self._written}

    def complete(self) -> None:
        """Make this recording the one that `last` names."""
        if self._becomes_last and self._store is not None and self._written:
            try:
                self._store.complete([*self._written.values()])
            except OSError as error:
                self._refused(error)


@contextmanager
def kept_captures(*, becomes_last: bool = True, collection: Collection | None = None) -> Generator[Keeping]:
    """An object that stores captures; none is dropped from the store while it, or a capture's file, is referenced.

    `becomes_last`: whether `last` names them after the block, unless an exception, such as an interruption, ends it.
    `collection`: where each is kept too.
    """
    keep = Keeping(CaptureStore(), collection, becomes_last=becomes_last)
    yield keep
    keep.complete()


def refuse_untrusted(capture: Capture, runs: str, how_to_read: str) -> None:
    """Raise UsageError for a capture whose Python text may not be run.

    `runs`: what would run it. `how_to_read`: what shows the text before --trust is given.
    """
    if not capture.environment.is_trusted:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) was not recorded here, nor derived from one that was, and {runs} its "
            f"Python text: read {how_to_read}, then give --trust too (docs/security.md)."
        )
