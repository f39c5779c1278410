"""Adds to a capture what it lacks: SASS, layouts, operations of instructions, the compiler's log, the IR of every pass.

The results are stored with a capture of the store. By default notes are Python warnings and recordings show no
progress; `reporting` gives both to a command line.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from irscope.errors import CaptureFormatError, IrscopeError, StageNotFound
from irscope.model.capture import Capture
from irscope.store.recent import CaptureStore
from irscope.store.shelf import CaptureFile

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest
    from irscope.record.process.session import Recording

_told: set[tuple[str, str]] = set()
_FOUND_LATER = ("snapshots", "layouts", "operations", "log", "times")
"""Fields that a capture may lack, and get when something needs them."""
Run = Callable[["RecordRequest"], Capture]


def _warned(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def _recorded_unseen(request: RecordRequest) -> Recording:
    from irscope.record.process.session import record_request

    return record_request(request).whole()


_reporting: ContextVar[tuple[Callable[[str], None], Callable[[RecordRequest], Recording]]] = ContextVar(
    "_reporting", default=(_warned, _recorded_unseen)
)
"""(takes notes, runs recordings)."""


@contextmanager
def reporting(
    tell: Callable[[str], None], record: Callable[[RecordRequest], Recording] = _recorded_unseen
) -> Iterator[None]:
    """Pass each note of the block to `tell`, and each of its recordings to `record`."""
    token = _reporting.set((tell, record))
    try:
        yield
    finally:
        _reporting.reset(token)


def tell(text: str) -> None:
    _reporting.get()[0](text)


def recorded(request: RecordRequest) -> Recording:
    return _reporting.get()[1](request)


def compiled(request: RecordRequest) -> Capture:
    return recorded(request).captures[0]


def with_sass(capture: Capture, file: CaptureFile | None = None) -> Capture:
    """A capture with SASS, disassembled now if need be, and stored: in `file`, from which it was read, or the store."""
    if "cubin" not in capture.stages or "sass" in capture.stages:
        return capture
    from irscope.record.process.annotations import with_listing

    full, reason = with_listing(capture)
    if full is capture:
        tell(f"{capture.name} has no SASS: {reason}")
        return capture
    # Read often, made once.
    return full if file is not None and file.save(full) else update_stored(capture, full)


def with_layouts(capture: Capture) -> Capture:
    """The capture with the layouts of its TTGIR, asked of the installed compiler if it holds none."""
    if capture.layouts or "ttgir" not in capture.stages:
        return capture
    # It imports all events of a recording, which a capture that holds its layouts does not need.
    from irscope.record.layouts.questions import layouts_of_text

    return capture.with_(layouts=layouts_of_text(capture.text("ttgir"), capture.target))


def with_operations(capture: Capture, *, sass: bool = True, run: Run = compiled) -> Capture:
    """A capture with the operations of its instructions; its TTGIR is compiled again for that once, and this is kept.

    Without `sass` it stops at PTX. Of a capture of another Triton or machine nothing is compiled unasked.
    """
    from irscope.record.compile.second import STAGES_OF_OPERATIONS, find_operations
    from irscope.record.triton.versions import triton_version

    missing = {stage for stage in STAGES_OF_OPERATIONS if stage in capture.stages and (sass or stage != "sass")}
    missing -= {row.stage for row in capture.operations}
    if not missing or "ttgir" not in capture.stages:
        return capture
    if capture.environment.triton_version != triton_version() or not capture.environment.is_trusted:
        return capture
    try:
        rows = find_operations(capture, run, missing)
        full = replace(capture, operations=(*capture.operations, *rows))
    except IrscopeError as error:
        tell(f"The operations of the instructions could not be determined: {error}")
        return capture
    for reason in dict.fromkeys(row.reason for row in rows if row.reason):
        tell(f"The operations of the instructions are unknown: {reason}.")
    return update_stored(capture, full)


def with_log(capture: Capture, *, run: Run = compiled) -> Capture:
    """A capture with the compiler's log, compiled again for that once and kept; raises RecordingError."""
    if capture.log is not None:
        return capture
    from irscope.record.compile.second import find_log

    tell_origin(capture)
    log = find_log(capture, run)
    if log.differing:
        tell(f"Compiled again for its log, {capture.name} compiled differently: {', '.join(log.differing)}.")
    return update_stored(capture, replace(capture, log=log))


def with_times(capture: Capture) -> Capture:
    """A capture with the times of another compile of its own source, which are kept; raises RecordingError."""
    from irscope.model.recording_options import RecordingOptions
    from irscope.record.process.requests import request_from_capture

    tell_origin(capture)
    asked = RecordingOptions(plan=capture.plan, snapshots="none", disassemble=False, layouts=False, times=True)
    times = compiled(request_from_capture(capture, asked)).times
    if times is not None:
        note = f"Compiled again from the capture's {capture.begun_from}: the front end is not among the parts."
        times = replace(times, notes=(note, *times.notes))
    return update_stored(capture, replace(capture, times=times))


def with_all_texts(capture: Capture) -> Capture:
    """The same compile with the IR after every pass; raises StageNotFound if it cannot be compiled here."""
    from irscope.record.process.requests import request_from_capture

    tell("The recording left this IR out (--snapshots all keeps it); compiling it again from the capture's source.")
    tell_origin(capture)
    try:
        again = compiled(request_from_capture(capture, plan=capture.plan, snapshots="all"))
    except IrscopeError as error:
        raise StageNotFound(f"the recording left this IR out, and it cannot be compiled here: {error}") from error
    versions = again.environment.triton_version, capture.environment.triton_version
    if versions[0] != versions[1]:
        tell(f"Made by Triton {versions[0]}; the capture is of {versions[1]}: they may differ.")
    return again


def with_llvm_passes(capture: Capture) -> Capture:
    """The capture with the IR after each of LLVM's passes, of another compile; not stored. Raises StageNotFound."""
    from irscope.record.process.requests import request_from_capture

    if any(one.text is not None for one in capture.passes("llvm")):
        return capture
    tell("The recording left the IR of LLVM's passes out (--llvm keeps it); compiling it again from its source.")
    tell_origin(capture)
    try:
        again = compiled(request_from_capture(capture, plan=capture.plan, snapshots="none", llvm_passes=True))
    except IrscopeError as error:
        raise StageNotFound(f"LLVM's passes cannot be listed, as it cannot be compiled here: {error}") from error
    last = next((stage for stage in ("ptx", "amdgcn") if stage in capture.stages), "")
    if last and again.texts.get(last) != capture.text(last):
        tell(f"Compiled again, its {last} compiled differently: Triton {again.environment.triton_version} made it.")
    return replace(capture, snapshots=(*capture.passes(), *again.passes("llvm")))


def tell_origin(capture: Capture) -> None:
    """Warn, once per process, before compiling a capture again that was not recorded here."""
    if not capture.environment.is_trusted:
        _tell_foreign(capture.name, capture.id[:8])


@cache
def _tell_foreign(name: str, id_: str) -> None:
    tell(
        f"{name} ({id_}) was not recorded here, nor derived from one that was: compiling it again runs Triton, LLVM "
        "and the assembler on text that somebody else may have written (docs/security.md)."
    )


def update_stored(before: Capture, full: Capture) -> Capture:
    """Write a capture of the store again, of which more is known, and return it; a note says if that fails.

    A file from elsewhere may bear the id of a stored capture, and differ from it: it is not stored in its place.
    """
    try:
        if _is_stored(before):
            CaptureStore().update(full)
    except OSError as error:
        tell_not_kept(error)
    except CaptureFormatError as error:
        tell(f"Results for {before.name} ({before.target}) were not stored: {error}")
    return full


def _is_stored(capture: Capture) -> bool:
    """Whether the store holds all of a capture: its id tells neither its artifacts, nor its Python text."""
    store = CaptureStore()
    try:
        stored = store.load(str(store.path_of(capture)))
    except IrscopeError:
        return False
    held = {item.stage: item.data for item in stored.artifacts}
    return (
        (stored.launch, stored.sources) == (capture.launch, capture.sources)
        and stored.environment.is_trusted == capture.environment.is_trusted
        and all(held.get(item.stage) == item.data for item in capture.artifacts)
        and all(getattr(capture, name) in ((), None, getattr(stored, name)) for name in _FOUND_LATER)
    )


def tell_not_kept(error: OSError, what: str = "The recording") -> None:
    """Tell why something could not be stored, once per process for each cause in a store."""
    cause, file = str(error.strerror or error), error.filename or ""
    if (key := (os.path.dirname(file), cause)) not in _told:
        _told.add(key)
        tell(f"{what} was not stored: {': '.join(filter(None, [file, cause]))}")
