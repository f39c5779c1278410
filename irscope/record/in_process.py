"""Records the compiles of one's own process: what `with irscope.capture():` does."""

from __future__ import annotations

import datetime
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import overload

from irscope.capture import Capture
from irscope.plan import PassPlan
from irscope.record import triton_api
from irscope.record.assembly import Assembly
from irscope.record.binary_steps import BinarySteps
from irscope.record.compiles import Watch, watch_compiles
from irscope.record.device_watch import real_launches
from irscope.record.events import Event
from irscope.record.layout_steps import LayoutSteps
from irscope.record.request import RecordRequest, SnapshotLevel
from irscope.record.worker import describe_environment


class Recorded(Sequence[Capture]):
    """The captures of a `with irscope.capture()` block, in the order their compiles began."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Capture]: ...
    def __getitem__(self, index: int | slice) -> Capture | Sequence[Capture]:
        return self._assembly.captures()[index]

    def __len__(self) -> int:
        return self._assembly.count

    def __repr__(self) -> str:
        return f"<Recorded: {', '.join(map(repr, self._assembly.captures())) or 'nothing yet'}>"


@contextmanager
def capture_in_process(plan: PassPlan, snapshots: SnapshotLevel) -> Iterator[Recorded]:
    """Record every compile until the end of the block, kernels that were launched before included.

    Nothing sticks: Triton's caches, on disk and in memory, are for the block alone.
    """
    request = RecordRequest(mode="script", plan=str(plan), snapshots=snapshots)
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    assembly = Assembly(request, " ".join(sys.argv), date)
    triton_api.require_triton()
    target = triton_api.active_target()
    assembly.feed(Event("begin", {**describe_environment(target), "gpu": "", "real": True}))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irscope-")))
        layout_sink = stack.enter_context(LayoutSteps(assembly.feed, fork=False))
        sink = stack.enter_context(BinarySteps(layout_sink, request))
        watch = Watch(sink=sink, plan=plan, snapshots=snapshots)
        stack.enter_context(triton_api.private_cache(folder))
        # What was compiled before is compiled again, and what is compiled here is not found later.
        stack.enter_context(triton_api.fresh_kernels_in_memory())
        stack.enter_context(watch_compiles(watch))
        stack.enter_context(real_launches(watch.emit))
        yield Recorded(assembly)
