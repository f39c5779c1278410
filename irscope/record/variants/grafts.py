"""One Triton of two: it compiles captures by its own defaults, and grafts, the texts of the other compiled on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from irscope.errors import IrscopeError
from irscope.model.capture import Capture, Failure, stage_rank
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Graft
from irscope.plan import PassPlan, PassRule
from irscope.record.process.annotations import disassembled
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.variants.pool import VariantPool


def own_request(capture: Capture, asked: RecordingOptions, version: str) -> RecordRequest:
    """The request to compile a capture's own source by the Triton of a version, with that version's defaults."""
    request = request_from_capture(capture, replace(asked, plan=capture.plan.joined(asked.plan)))
    chosen = capture.launch.set_options
    if capture.environment.triton_version == version or chosen is None:
        return request
    return replace(request, compiled_launch=replace(capture.launch, options=chosen))


@dataclass(slots=True)
class Compiler:
    """One Triton: a pool of workers of it, and how it compiles besides what a capture holds; a context manager.

    It is the `Compiler` that `irscope.analysis.upgrade` asks for compiles.
    """

    interpreter: str | None
    asked: RecordingOptions
    """The plan and the options here come on top of a capture's."""
    jobs: int | None = None
    _pool: VariantPool | None = None
    _stack: ExitStack | None = None

    def __enter__(self) -> Compiler:
        with ExitStack() as stack:
            pool = VariantPool(jobs=self.jobs, timeout_s=self.asked.timeout_s, interpreter=self.interpreter)
            self._pool = stack.enter_context(pool)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._stack is not None:
            self._stack.close()

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

    def compile(self, captures: Sequence[Capture]) -> Iterator[tuple[int, Capture]]:
        """(place, its compile) of the source of each capture, each as soon as it is there.

        Of a capture that cannot be compiled, without its source or for a target that this Triton does not have, it is a
        failed one with the reason.
        """
        requests: dict[int, RecordRequest] = {}
        for place, capture in enumerate(captures):
            try:
                requests[place] = own_request(capture, self.asked, self.version)
            except IrscopeError as error:
                yield place, self._refused(capture, str(error))
        places = [*requests]
        for number, made in self.pool.results([*requests.values()]):
            origin = captures[places[number]]
            yield places[number], self._refused(origin, str(made)) if isinstance(made, IrscopeError) else made

    def graft(self, grafts: Sequence[tuple[Capture, Graft]]) -> Iterator[tuple[int, Capture | None]]:
        """(place, its compile) of each graft, as the capture beside it was compiled; None where this Triton refuses."""
        requests = [self._graft_request(taker, graft) for taker, graft in grafts]
        for place, made in self.pool.results(requests):
            graft = grafts[place][1]
            refused = isinstance(made, IrscopeError)
            yield place, None if refused else with_what_came_before(made, graft.giver, graft.stage)

    def disassemble(self, capture: Capture) -> Capture:
        """A capture with the SASS of its binary; without it where nvdisasm is not here."""
        return disassembled(capture)

    def _graft_request(self, taker: Capture, graft: Graft) -> RecordRequest:
        """The request to compile a text on with the options and the plan of a capture, and with more passes off."""
        plan = taker.plan.joined(PassPlan(tuple(PassRule.parse(label) for label in graft.off)))
        asked = replace(self.asked, plan=plan, snapshots=graft.snapshots, targets=(str(taker.target),), options=())
        return RecordRequest.of_options(
            asked,
            mode="text",
            path=taker.launch.kernel.file,
            kernel=taker.name,
            stage=graft.stage,
            text=graft.text,
            compiled_launch=taker.launch,
            compiled_target=str(taker.target),
            last_stage=graft.last_stage,
            resume_stage=graft.stage if graft.resumed else "",
            resume_after=graft.resumed,
        )

    def _refused(self, capture: Capture, why: str) -> Capture:
        """The capture of a compile that did not begin: the compiler refuses the request."""
        return Capture(
            capture.launch,
            capture.target,
            capture.plan,
            capture.artifacts[:1],
            (),
            status="failed",
            failure=Failure("compile", why),
            environment=replace(capture.environment, triton_version=self.version),
        )


_OF_EARLIER_STAGES = ("name", "shared", "tmem_size", "num_warps", "global_scratch_size")


def with_what_came_before(made: Capture, giver: Capture, stage: str) -> Capture:
    """A graft from a stage on, with what only the stages before it know: their texts, the shared memory of a launch."""
    earlier = tuple(artifact for artifact in giver.artifacts if stage_rank(artifact.stage) < stage_rank(stage))
    own, known = dict(made.metadata), dict(giver.metadata)
    # A text behind the layouts no longer says how many warps it is for, and the compiler notes those of its options.
    is_late = stage_rank(stage) > stage_rank("ttgir")
    missing = {name: known[name] for name in _OF_EARLIER_STAGES if name in known and (is_late or own.get(name) is None)}
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
        metadata=tuple(sorted({**own, **missing}.items())),
        resources=resources,
    )
