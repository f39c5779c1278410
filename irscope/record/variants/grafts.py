"""Grafts: the artifact of a stage that one compiler made, compiled on by another; and captures compiled by another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from irscope.errors import IrscopeError
from irscope.model.capture import Capture, Failure, SnapshotLevel, stage_rank
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan, PassRule
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.variants.pool import VariantPool

__all__ = ["Compiler", "graft_request", "own_request", "refused", "with_what_came_before"]


def own_request(capture: Capture, asked: RecordingOptions, version: str) -> RecordRequest:
    """The request to compile a capture's own source by the Triton of a version, with that version's defaults."""
    request = request_from_capture(capture, replace(asked, plan=capture.plan.joined(asked.plan)))
    chosen = capture.launch.set_options
    if capture.environment.triton_version == version or chosen is None:
        return request
    return replace(request, compiled_launch=replace(capture.launch, options=chosen))


def graft_request(
    taker: Capture,
    stage: str,
    text: str,
    asked: RecordingOptions,
    *,
    last_stage: str = "",
    snapshots: SnapshotLevel = "none",
    off: Sequence[str] = (),
    resumed: int = 0,
) -> RecordRequest:
    """The request to compile a text on as a capture was compiled: its options and its plan, and passes off besides.

    `resumed`: how many passes of the stage are behind the text; 0 if it is the artifact of the stage.
    """
    plan = taker.plan.joined(PassPlan(tuple(PassRule.parse(label) for label in off)))
    asked = replace(asked, plan=plan, snapshots=snapshots, targets=(str(taker.target),), options=())
    return RecordRequest.of_options(
        asked,
        mode="text",
        path=taker.launch.kernel.file,
        kernel=taker.name,
        stage=stage,
        text=text,
        compiled_launch=taker.launch,
        compiled_target=str(taker.target),
        last_stage=last_stage,
        resume_stage=stage if resumed else "",
        resume_after=resumed,
    )


_OF_EARLIER_STAGES = ("name", "shared", "tmem_size", "num_warps", "global_scratch_size")


def with_what_came_before(made: Capture, giver: Capture, stage: str) -> Capture:
    """A graft from a stage on, with what only the stages before it know: their texts, the shared memory of a launch."""
    earlier = tuple(one for one in giver.artifacts if stage_rank(one.stage) < stage_rank(stage))
    held, known = dict(made.metadata), dict(giver.metadata)
    # A text behind the layouts no longer says how many warps it is for, and the compiler notes those of its options.
    is_late = stage_rank(stage) > stage_rank("ttgir")
    missing = {
        name: known[name] for name in _OF_EARLIER_STAGES if name in known and (is_late or held.get(name) is None)
    }
    resources = made.resources
    if "shared" in missing:
        resources = replace(resources, shared_bytes=giver.resources.shared_bytes)
    if "tmem_size" in missing:
        resources = replace(resources, tensor_memory_columns=giver.resources.tensor_memory_columns)
    # What a launch asked for before the text was made, such as stages of the pipeline, is the giver's too.
    launch = giver.launch if stage_rank(stage) >= stage_rank("ttgir") else made.launch
    return replace(
        made,
        launch=launch,
        artifacts=(*earlier, *made.artifacts),
        metadata=tuple(sorted({**held, **missing}.items())),
        resources=resources,
    )


@dataclass(slots=True)
class Compiler:
    """One Triton: a pool of workers of it, and how it compiles besides what a capture says; a context manager."""

    interpreter: str | None
    asked: RecordingOptions
    """The plan and the options here come on top of a capture's."""
    jobs: int | None = None
    _pool: VariantPool | None = None
    _held: ExitStack | None = None

    def __enter__(self) -> Compiler:
        with ExitStack() as stack:
            pool = VariantPool(jobs=self.jobs, timeout_s=self.asked.timeout_s, interpreter=self.interpreter)
            self._pool = stack.enter_context(pool)
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.close()

    @property
    def pool(self) -> VariantPool:
        """Its workers; raises RuntimeError outside of the block."""
        if self._pool is None:
            raise RuntimeError("the block of this compiler is not entered")
        return self._pool

    @property
    def version(self) -> str:
        """Its Triton's version; raises what stands in the way of importing that."""
        return self.pool.compiler[0]

    def compile(self, requests: Sequence[RecordRequest]) -> Iterator[tuple[int, Capture | str]]:
        """(place of the request, its capture, or why the compiler refuses), each as soon as it is there."""
        if not requests:
            return
        done: set[int] = set()
        try:
            for place, capture in self.pool.compile(requests):
                done.add(place)
                yield place, capture
        except IrscopeError as error:
            left = [place for place in range(len(requests)) if place not in done]
            if len(requests) == 1:
                yield 0, str(error)
                return
            # Which one is refused shows only alone.
            for place in left:
                for _, found in self.compile(requests[place : place + 1]):
                    yield place, found


def refused(capture: Capture, version: str, why: str) -> Capture:
    """The capture of a compile that did not begin: the compiler refuses the request."""
    failure = Failure("compile", why)
    environment = replace(capture.environment, triton_version=version)
    begun = capture.artifacts[:1]
    return Capture(
        capture.launch,
        capture.target,
        capture.plan,
        begun,
        (),
        status="failed",
        failure=failure,
        environment=environment,
    )
