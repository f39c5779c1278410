"""What would fit of a kernel that asks for too much: other options and smaller tiles, each tried by compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from irscope.errors import IrscopeError
from irscope.memory.allocation import AllocatedMemory
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import Recording
from irscope.record.variants.completing import Tell, tell_origin

_TILE = "BLOCK"
"""How the names of constants begin that are the sizes of a tile."""
_LEAST_TILE = 16
_Asked = TypeVar("_Asked", bound=RecordingOptions)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One compile that was tried."""

    change: str
    """`num_stages=2`, `BLOCK_M=64`."""
    shared_bytes: int | None = None
    tensor_memory_columns: int | None = None
    fits: bool = False
    problem: str = ""
    """Why it does not fit, or does not compile."""


def does_not_fit(allocations: Sequence[AllocatedMemory]) -> bool:
    """Whether a memory asks for more than a block can have."""
    return any(one.limit is not None and one.total > one.limit for one in allocations)


def attempts(
    capture: Capture,
    request: RecordRequest | None,
    record_options: RecordingOptions,
    *,
    record: Callable[[RecordRequest], Recording],
    tell: Tell,
) -> list[Attempt]:
    """A capture with fewer stages, and each tile halved.

    Args:
        capture: it does not fit.
        request: of the script that launches it, which runs again for a tile; None if there is none.
        record_options: of the recording.
        record: runs a request.
        tell: is given messages.
    """
    tried = [*_fewer_stages(capture, record_options, tell)]
    return tried if request is None else [*tried, *_smaller_tiles(capture, request, record)]


def _fewer_stages(capture: Capture, record_options: RecordingOptions, tell: Tell) -> Iterator[Attempt]:
    from irscope.record.variants.pool import VariantPool

    stages = capture.launch.option("num_stages")
    if not isinstance(stages, int) or stages < 2:
        return
    tell_origin(capture, tell)
    counts = range(stages - 1, 0, -1)
    less = replace(_quick(record_options), targets=(str(capture.target),), plan=capture.plan)
    requests = (request_from_capture(capture, replace(less, options=(("num_stages", count),))) for count in counts)
    with VariantPool(timeout_s=record_options.timeout_s) as pool:
        found = dict(pool.compile(requests))
    yield from (_attempt(f"num_stages={count}", found[index]) for index, count in enumerate(counts))


def _smaller_tiles(
    capture: Capture, request: RecordRequest, record: Callable[[RecordRequest], Recording]
) -> Iterator[Attempt]:
    for name, text in capture.launch.constants:
        if not name.startswith(_TILE) or not text.isdecimal() or int(text) < 2 * _LEAST_TILE:
            continue
        smaller = str(int(text) // 2)
        change = f"{name}={smaller}"
        asked = replace(_quick(request), targets=(str(capture.target),), constants=((name, smaller),))
        try:
            recording = record(replace(asked, kernel=capture.name))
        except IrscopeError as error:
            yield Attempt(change, problem=str(error).splitlines()[0])
            continue
        same = [one for one in recording.captures if _is_same(one, capture, name)]
        yield _attempt(change, same[0]) if same else Attempt(change, problem="the script made no such launch")


def _is_same(one: Capture, other: Capture, but: str) -> bool:
    """Whether two captures are of one launch, but for a constant."""
    ours, theirs = ([row for row in item.launch.constants if row[0] != but] for item in (one, other))
    return ours == theirs and one.launch.signature == other.launch.signature


def _quick(record_options: _Asked) -> _Asked:
    return replace(record_options, snapshots="none", disassemble=False, layouts=False, launch=None, options=())


def _attempt(change: str, capture: Capture) -> Attempt:
    failure, resources = capture.failure, capture.resources
    if failure is not None and failure.kind != "fit":
        return Attempt(change, problem=failure.why_not_run)
    problem = failure.headline if failure is not None else ""
    return Attempt(change, resources.shared_bytes, resources.tensor_memory_columns, failure is None, problem)


def attempts_text(tried: Sequence[Attempt]) -> str:
    """A table of what was tried."""
    from irscope.render.text.tables import table

    if not tried:
        return "Nothing was tried: num_stages is 1 already, and smaller tiles need the script itself.\n"
    rows = [[one.change, one.shared_bytes, "fits" if one.fits else one.problem or "does not fit"] for one in tried]
    return "Tried by compiling:\n" + table(["change", "shared bytes", ""], rows)
