"""Records the compiles of one's own process: what `with irscope.capture():` does."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import overload

from irscope.model.capture import Capture, SnapshotLevel, Target
from irscope.plan import PassPlan
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.annotations import Annotations
from irscope.record.process.assembly import Assembly
from irscope.record.process.events import Note
from irscope.record.process.layout_server import LayoutServer
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.launch_watch import real_launches, virtual_launches
from irscope.record.programs.recording import SourceFiles, describe_environment
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import require_names, untried_note
from irscope.record.virtual.arguments import assumptions_under_way


class Recorded(Sequence[Capture]):
    """The captures of a `with irscope.capture()` block, in the order their compiles began."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Capture]: ...
    def __getitem__(self, index: int | slice) -> Capture | Sequence[Capture]:
        # Only what is asked for is put together.
        if isinstance(index, slice):
            return [self._assembly.capture(number) for number in self._assembly.numbers[index]]
        return self._assembly.capture(self._assembly.numbers[index])

    def __len__(self) -> int:
        return len(self._assembly.numbers)

    def __repr__(self) -> str:
        return f"<Recorded: {', '.join(map(repr, self._assembly.captures())) or 'nothing yet'}>"


def capture_in_process(plan: PassPlan, snapshots: SnapshotLevel) -> AbstractContextManager[Recorded]:
    """Record every compile until the end of the block, kernels that were launched before included."""
    return captured_launches(RecordRequest(mode="script", plan=plan, snapshots=snapshots))


@contextmanager
def captured_launches(
    request: RecordRequest, virtual: Target | None = None, origin: tuple[tuple[str, str], ...] = ()
) -> Iterator[Recorded]:
    """Record every compile until the end of the block.

    Nothing sticks: Triton's caches, on disk and in memory, are for the block alone.

    Args:
        request: with the options.
        virtual: the target of a virtual GPU for the block; None for the GPU that is there.
        origin: what the captures say of where they are from.
    """
    assembly = Assembly(request, " ".join(sys.argv))
    triton_api.require_triton()
    require_names(virtual=virtual is not None)
    target = virtual or triton_api.active_target()
    begun = describe_environment(target, real=virtual is None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="irscope-")))
        annotated = Annotations(assembly.feed, request, stack.enter_context(LayoutServer()))
        stack.callback(annotated.finish)
        annotated(begun)
        if untried := untried_note():
            annotated(Note(untried))
        watch = Watch(SourceFiles(annotated, request), request, assumptions=assumptions_under_way, origin=origin)
        stack.enter_context(triton_api.private_cache(folder))
        # What was compiled before is compiled again, and what is compiled here is not found later.
        stack.enter_context(triton_api.fresh_kernels_in_memory())
        stack.enter_context(watch_compiles(watch))
        stack.enter_context(
            real_launches(watch.report)
            if virtual is None
            else virtual_launches(target, request.config, watch.report, dict(request.assume))
        )
        yield Recorded(assembly)
