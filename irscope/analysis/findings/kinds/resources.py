"""IRS503: kernels that do not fit on the device."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture

__all__ = ["resource_findings"]


def resource_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of the whole kernel."""
    capture = studied.capture
    if capture.failure is not None and capture.failure.kind == "fit":
        yield _does_not_fit(capture)


def _does_not_fit(capture: Capture) -> Finding:
    from irscope.memory.allocation import allocations_of

    causes = [Cause(capture.failure.headline if capture.failure is not None else "", "binary", "the compile")]
    chain, place = (), ()
    stages = _number(capture.launch.option("num_stages"))
    over, fitting = 0, 1 << 30
    for memory in allocations_of(capture):
        if memory.limit is None or memory.total <= memory.limit:
            continue
        over = memory.total - memory.limit
        fitting = min(fitting, memory.limit * stages // memory.total)
        largest = max(memory.buffers, key=lambda one: one.size, default=None)
        causes.append(
            Cause(
                f"{memory.total} {memory.unit} of {memory.space} memory, {memory.limit} are there",
                "ir",
                "the allocator",
            )
        )
        if largest is not None:
            text = f"the largest buffer: {largest.size} {memory.unit} of {largest.owner}, {largest.what}"
            causes.append(Cause(text, "ir", f"line {largest.line} of the IR after allocation"))
            file, _, line = largest.place.rpartition(":")
            place = ((file, int(line)),) if line.isdecimal() else ()
    suggestions: list[Suggestion] = []
    if stages > 1:
        causes.append(Cause(f"num_stages is {stages}", "launch", "the options of the launch"))
        suggestions = [_option("num_stages", count) for count in range(min(stages - 1, max(fitting, 1)), 0, -1)]
    suggestions.append(Suggestion("smaller tiles: `irscope layout --memory` tries each of them with the script"))
    return Finding(
        "IRS503",
        "",
        0,
        (),
        chain,
        place,
        "does not fit on the device",
        f"{over} more than there is" if over else "it cannot be launched",
        max(1, over),
        tuple(causes),
        tuple(suggestions),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 1


def _option(name: str, value: int) -> Suggestion:
    return Suggestion(f"{name}={value}", (Change("option", name, value),))
