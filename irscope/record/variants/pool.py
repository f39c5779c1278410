"""A pool of warm workers that compile variants of a capture, several at once.

Each does one request and ends: what happens to it is that variant's failed capture, and no other's. `Candidates` are
requests that are compiled until the first that is interesting; a `Compiler` is one Triton of two, which compiles
captures by its own defaults, and grafts, the texts of the other.
"""

from __future__ import annotations

import hashlib
import selectors
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from irscope.errors import IrscopeError, RecordingError
from irscope.model.capture import Capture, Failure, SnapshotLevel, stage_rank
from irscope.model.evidence import CompileTimes
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Graft
from irscope.plan import PassPlan, PassRule
from irscope.record.process.annotations import Annotations, LayoutServer, disassembled
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import (
    LONGEST_WAIT_S,
    TRITON,
    Child,
    ForkServer,
    child_process,
    variables_set,
    warm_children,
    warm_server,
)
from irscope.record.process.gathering import RECORDING
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest, default_jobs, request_from_capture
from irscope.record.process.session import Ending, check_end
from irscope.tools import LimitWatch, ToolLimits

_IMPORT_COMPILER = "irscope.record.programs.worker:import_compiler"
"""What the process that workers are forked from does for them."""
_IDLE_TIMEOUT_S = 60.0
_ASLEEP_S = 2.0
"""How long a worker that is out of time by the clock may do nothing at all."""


def variant_request(
    capture: Capture, plan: PassPlan, *, snapshots: SnapshotLevel = "none", lists_llvm: bool = False
) -> RecordRequest:
    """The request for a capture's own source under another plan, with nothing that a comparison can do without."""
    asked = RecordingOptions(plan=plan, snapshots=snapshots, disassemble=False, layouts=False)
    return replace(request_from_capture(capture, asked), lists_llvm=lists_llvm)


@dataclass(slots=True)
class _Job:
    index: int
    request: RecordRequest
    assembly: Assembly
    annotations: Annotations
    child: Child
    resources: ExitStack
    started: float
    ending: Ending = "end"
    watch: LimitWatch | None = None
    """What it has used, once it is out of time by the clock."""

    def feed(self) -> None:
        for event in self.child.read(0):
            self.annotations(event)
        self.annotations.collect()


@dataclass(slots=True)
class _Server:
    """The process that the workers of one Python are forked from, and what is asked for layouts."""

    server: ForkServer
    layouts: LayoutServer
    importing: int
    compiler: tuple[str, str] | None = None

    def imported(self) -> tuple[str, str]:
        if self.compiler is None:
            version, fingerprint = self.server.imported(self.importing)
            self.compiler = version, fingerprint
        return self.compiler


class VariantPool:
    """Compiles requests of mode `text` or `signature`, `jobs` at a time, as a context manager.

    `timeout_s`: of processor time for one compile; one that sleeps may do so for two seconds more. `interpreter`: a
    Python with another Triton, for the requests that name none. `variables`: of the environment of its compiles.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        timeout_s: float = RecordingOptions().timeout_s,
        interpreter: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.jobs = jobs or default_jobs()
        self._variables = variables or {}
        self.timeout_s = timeout_s
        self._interpreter = interpreter
        self._servers: dict[str | None, _Server] = {}

    def __enter__(self) -> VariantPool:
        with ExitStack() as stack:
            self.folder = stack.enter_context(own_folder())
            stack.enter_context(warm_children())
            self._held = stack
            self._server_of(self._interpreter)
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def compiler(self) -> tuple[str, str]:
        """(Triton's version, its fingerprint), once Triton is imported; raises what stood in the way."""
        return self._server_of(self._interpreter).imported()

    @property
    def compilers(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._server_of(interpreter).imported() for interpreter in self._servers)

    def _server_of(self, interpreter: str | None) -> _Server:
        if interpreter not in self._servers:
            server = warm_server(interpreter)
            layouts = self._held.enter_context(LayoutServer(interpreter))
            # Triton is imported while this process does something else.
            importing = server.begin_import((), _IMPORT_COMPILER)
            self._servers[interpreter] = _Server(server, layouts, importing)
        return self._servers[interpreter]

    def results(self, requests: Iterable[RecordRequest]) -> Generator[tuple[int, Capture | IrscopeError]]:
        """(0-based place of the request, its capture, or what its worker refused with), each as soon as it is there."""
        _ = self.compiler
        waiting = enumerate(requests)
        running: list[_Job] = []
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while len(running) < self.jobs and (row := next(waiting, None)) is not None:
                        running.append(job := self._start(*row))
                        selector.register(job.child, selectors.EVENT_READ)
                    if not running:
                        return
                    selector.select(LONGEST_WAIT_S)
                    for job in running:
                        job.feed()
                    for job in [job for job in running if self._is_over(job)]:
                        selector.unregister(job.child)
                        running.remove(job)
                        yield job.index, self._finish(job)
            finally:
                for job in running:
                    job.resources.close()

    def compile(self, requests: Iterable[RecordRequest]) -> Generator[tuple[int, Capture]]:
        """As `results`; raises what a worker refused with (a target that Triton does not take)."""
        with closing(self.results(requests)) as results:
            for index, made in results:
                if isinstance(made, IrscopeError):
                    raise made
                yield index, made

    def compile_one(self, request: RecordRequest) -> Capture:
        ((_, capture),) = self.compile((request,))
        return capture

    def _start(self, index: int, request: RecordRequest) -> _Job:
        if request.mode == "script":
            raise RecordingError(f"a request of mode {request.mode!r} is not for the pool: it runs no script.")
        chosen = self._server_of(request.interpreter or self._interpreter)
        chosen.imported()
        interpreter = request.interpreter or self._interpreter
        with ExitStack() as stack, variables_set(self._variables):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)))
            child = stack.enter_context(child_process(RECORDING, folder, interpreter=interpreter, ahead=TRITON))
            request = replace(request, log_path=str(child.log))
            assembly = Assembly(request)
            annotations = Annotations(assembly.feed, request, chosen.layouts)
            child.send(request)
            return _Job(index, request, assembly, annotations, child, stack.pop_all(), time.monotonic())

    def _is_over(self, job: _Job) -> bool:
        if job.child.at_end:
            return True
        # A worker that has not begun, or is at its end, waits for nothing but the machine.
        limit_s = self.timeout_s if job.assembly.compiling else max(self.timeout_s, _IDLE_TIMEOUT_S)
        if time.monotonic() - job.started <= limit_s:
            return False
        # By the clock it may only wait for a processor: what it has used decides, or that it sleeps.
        if job.watch is None:
            job.watch = LimitWatch(job.child.pid, ToolLimits(limit_s, _ASLEEP_S, 0.0))
        if job.watch.exceeded(LONGEST_WAIT_S):
            job.ending = "timeout"
        return job.ending == "timeout"

    def _finish(self, job: _Job) -> Capture | IrscopeError:
        with job.resources:
            if job.ending == "end":
                # It has sent all that it will.
                job.child.wait(_IDLE_TIMEOUT_S)
            outcome = job.child.end()
            for event in job.child.rest():
                job.annotations(event)
            job.annotations.finish()
            output = job.child.output()
        try:
            check_end(job.assembly, job.ending, outcome, output, self.timeout_s)
        except IrscopeError as error:
            return error
        if not (captures := job.assembly.captures()):
            return RecordingError(f"a worker started no compile.\n{output[-2000:].decode('utf-8', 'replace')}".rstrip())
        return captures[0]


Judge = Callable[[RecordRequest, tuple[Capture, ...]], "RecordRequest | bool"]
"""Whether a request is interesting, by what was compiled for it so far (at first nothing); or what is to be compiled
next to tell. It is asked again once that is there."""


def settled(
    judge: Judge, request: RecordRequest, compile_one: Callable[[RecordRequest], Capture]
) -> tuple[bool, tuple[Capture, ...]]:
    """(whether a request is interesting, what was compiled to tell)."""
    made: tuple[Capture, ...] = ()
    while not isinstance(answer := judge(request, made), bool):
        made = (*made, compile_one(answer))
    return answer, made


@dataclass(slots=True)
class _Candidate:
    place: int
    request: RecordRequest
    wanted: RecordRequest
    made: tuple[Capture, ...] = ()


class Candidates:
    """Judges requests, and keeps the judgements by a digest of the request."""

    def __init__(
        self, pool: VariantPool, judge: Judge, kept: Path | None = None, *, timeouts_last: bool = False
    ) -> None:
        """`kept`: the file of the judgements of earlier runs. `timeouts_last`: whether time-outs are kept there."""
        self._pool = pool
        self._judge = judge
        self._file = kept
        self._timeouts_last = timeouts_last
        self.known: dict[str, bool] = _read(kept)
        self.compiled = 0
        self.repeated = 0

    def first(self, requests: Iterable[RecordRequest]) -> int | None:
        """The place of the first interesting request; None if there is none. Those behind one are given up."""
        left = enumerate(requests)
        under_way: dict[int, _Candidate] = {}
        waiting: deque[_Candidate] = deque()
        """Those under way of which something more is to be compiled."""
        compiled: list[_Candidate] = []
        """By the place of a compile in this round."""
        first: int | None = None

        def missing() -> Iterator[RecordRequest]:
            nonlocal first
            while waiting or first is None:
                if not waiting:
                    if (row := next(left, None)) is None:
                        return
                    if (answer := self._first_of(row[1])) is True:
                        first = row[0]
                    if isinstance(answer, bool):
                        continue
                    waiting.append(under_way.setdefault(row[0], _Candidate(*row, answer)))
                compiled.append(candidate := waiting.popleft())
                yield candidate.wanted

        def judged(candidate: _Candidate, is_interesting: bool) -> None:
            nonlocal first
            del under_way[candidate.place]
            self._keep(candidate, is_interesting)
            if is_interesting and (first is None or candidate.place < first):
                first = candidate.place

        while True:
            compiled.clear()
            with closing(self._pool.results(missing())) as captures:
                for index, capture in captures:
                    candidate = compiled[index]
                    answer: RecordRequest | bool = False
                    if isinstance(capture, Capture):
                        candidate.made = (*candidate.made, capture)
                        answer = self._judge(candidate.request, candidate.made)
                    if isinstance(answer, bool):
                        judged(candidate, answer)
                        if first is not None and all(place > first for place in under_way):
                            return first
                    else:
                        candidate.wanted = answer
                        waiting.append(candidate)
            if not under_way:
                return first

    def _first_of(self, request: RecordRequest) -> RecordRequest | bool:
        before = self.known.get(_digest_of(request))
        if before is None:
            return self._judge(request, ())
        self.repeated += 1
        return before

    def _keep(self, candidate: _Candidate, is_interesting: bool) -> None:
        self.compiled += 1
        digest = _digest_of(candidate.request)
        self.known[digest] = is_interesting
        if self._file is not None and all(self._lasts(capture.failure) for capture in candidate.made):
            with self._file.open("a", encoding="ascii") as file:
                file.write(f"{digest} {int(is_interesting)}\n")

    def _lasts(self, failure: Failure | None) -> bool:
        return failure is None or failure.lasts or (self._timeouts_last and failure.kind == "timeout")


def _digest_of(request: RecordRequest) -> str:
    return hashlib.sha256(repr(request).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(file: Path | None) -> dict[str, bool]:
    if file is None or not file.is_file():
        return {}
    rows = (line.split() for line in file.read_text("ascii", "replace").splitlines())
    return {row[0]: row[1] == "1" for row in rows if len(row) == 2}


def own_request(capture: Capture, asked: RecordingOptions, version: str) -> RecordRequest:
    """The request to compile a capture's own source by the Triton of a version, with that version's defaults."""
    request = request_from_capture(capture, replace(asked, plan=capture.plan.joined(asked.plan)))
    chosen = capture.launch.set_options
    if capture.environment.triton_version == version or chosen is None:
        return request
    return replace(request, compiled_launch=replace(capture.launch, options=chosen))


def ptxas_variables(path: str) -> dict[str, str]:
    """What Triton takes the path of a ptxas from, for every target of NVIDIA's."""
    return dict.fromkeys(("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"), path)


@dataclass(slots=True)
class Compiler:
    """One Triton: a pool of workers of it, and how it compiles besides what a capture holds."""

    interpreter: str | None
    asked: RecordingOptions
    """The plan and the options here come on top of a capture's."""
    jobs: int | None = None
    ptxas: str = ""
    pool: VariantPool = field(init=False)

    def __post_init__(self) -> None:
        self.pool = VariantPool(
            jobs=self.jobs,
            timeout_s=self.asked.timeout_s,
            interpreter=self.interpreter,
            variables=ptxas_variables(self.ptxas) if self.ptxas else None,
        )

    def __enter__(self) -> Compiler:
        self.pool.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.__exit__(*error)

    @property
    def version(self) -> str:
        return self.pool.compiler[0]

    def compile(self, captures: Sequence[Capture]) -> Iterator[tuple[int, Capture]]:
        """(place, its compile) of the source of each capture, as soon as it is there; a failed one if it is refused."""
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

    def timed(self, capture: Capture) -> CompileTimes | None:
        """Where the time of a compile of its source goes; None where this Triton refuses."""
        request = replace(own_request(capture, self.asked, self.version), times=True)
        ((_, made),) = self.pool.results((request,))
        return made.times if isinstance(made, Capture) else None

    def graft(self, grafts: Sequence[tuple[Capture, Graft]]) -> Iterator[tuple[int, Capture | None]]:
        """(place, its compile) of each graft, as the capture beside it was compiled; None where this Triton refuses."""
        requests = [self._graft_request(taker, graft) for taker, graft in grafts]
        for place, made in self.pool.results(requests):
            graft = grafts[place][1]
            refused = isinstance(made, IrscopeError)
            yield place, None if refused else with_what_came_before(made, graft.giver, graft.stage)

    def disassemble(self, capture: Capture) -> Capture:
        return disassembled(capture)

    def _graft_request(self, taker: Capture, graft: Graft) -> RecordRequest:
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
