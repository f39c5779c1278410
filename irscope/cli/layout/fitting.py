"""What would fit of a kernel that asks for too much: other options and smaller tiles, each tried by compiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from irscope.cli.output.talk import say
from irscope.cli.subject.captures import run_request
from irscope.cli.subject.named import is_script, split_subject
from irscope.errors import IrscopeError
from irscope.memory.allocation import Allocation
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import tell_origin
from irscope.render.text.tables import table

_TILE = "BLOCK"
"""How the names of constants begin that are the sizes of a tile."""
_LEAST_TILE = 16


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


def does_not_fit(allocations: Sequence[Allocation]) -> bool:
    """Whether a memory asks for more than a block can have."""
    return any(one.limit is not None and one.total > one.limit for one in allocations)


def attempts(capture: Capture, subject: str | None, record_options: RecordingOptions) -> list[Attempt]:
    """A capture with fewer stages, and each tile halved; for a tile the script runs again, so it must be there."""
    return [*_fewer_stages(capture, record_options), *_smaller_tiles(capture, subject, record_options)]


def _fewer_stages(capture: Capture, record_options: RecordingOptions) -> Iterator[Attempt]:
    from irscope.record.process.requests import request_from_capture
    from irscope.record.variants.pool import VariantPool

    stages = capture.launch.option("num_stages")
    if not isinstance(stages, int) or stages < 2:
        return
    tell_origin(capture, say)
    counts = range(stages - 1, 0, -1)
    less = replace(_quick(record_options), targets=(str(capture.target),), plan=capture.plan)
    requests = (request_from_capture(capture, replace(less, options=(("num_stages", count),))) for count in counts)
    with VariantPool(timeout_s=record_options.timeout_s) as pool:
        found = dict(pool.compile(requests))
    yield from (_attempt(f"num_stages={count}", found[index]) for index, count in enumerate(counts))


def _smaller_tiles(capture: Capture, subject: str | None, record_options: RecordingOptions) -> Iterator[Attempt]:
    file, _ = split_subject(subject, record_options)
    if not is_script(subject, record_options):
        return
    from irscope.record.process.requests import request_for

    for name, text in capture.launch.constants:
        if not name.startswith(_TILE) or not text.isdecimal() or int(text) < 2 * _LEAST_TILE:
            continue
        change = f"{name}={int(text) // 2}"
        wanted = replace(
            _quick(record_options), targets=(str(capture.target),), constants=((name, str(int(text) // 2)),)
        )
        try:
            recording = run_request(request_for(file, wanted, kernel=capture.name))
        except IrscopeError as error:
            yield Attempt(change, problem=str(error).splitlines()[0])
            continue
        same = [one for one in recording.captures if _is_same(one, capture, name)]
        yield _attempt(change, same[0]) if same else Attempt(change, problem="the script made no such launch")


def _is_same(one: Capture, other: Capture, but: str) -> bool:
    """Whether two captures are of one launch, but for a constant."""
    ours, theirs = ([row for row in item.launch.constants if row[0] != but] for item in (one, other))
    return ours == theirs and one.launch.signature == other.launch.signature


def _quick(record_options: RecordingOptions) -> RecordingOptions:
    return replace(record_options, snapshots="none", disassemble=False, layouts=False, launch=None, options=())


def _attempt(change: str, capture: Capture) -> Attempt:
    failure, resources = capture.failure, capture.resources
    if failure is not None and failure.kind != "fit":
        return Attempt(change, problem=failure.why_not_run)
    problem = failure.headline if failure is not None else ""
    return Attempt(change, resources.shared_bytes, resources.tensor_memory_columns, failure is None, problem)


def attempts_text(found: Sequence[Attempt]) -> str:
    """A table of what was tried."""
    if not found:
        return "Nothing was tried: num_stages is 1 already, and smaller tiles need the script itself.\n"
    rows = [[one.change, one.shared_bytes, "fits" if one.fits else one.problem or "does not fit"] for one in found]
    return "Tried by compiling:\n" + table(["change", "shared bytes", ""], rows)
