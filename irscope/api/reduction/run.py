"""Runs a reduction: finds a text of the capture on which it can begin, and searches with a pool of workers."""

from __future__ import annotations

import ast
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from irscope.analysis.reduce.model import (
    PYTHON_STEPS,
    Case,
    CaseSize,
    EditableProgram,
    Pipeline,
    PythonCase,
    PythonProgram,
    Reduced,
    ReducedPython,
    Search,
    read_program,
)
from irscope.analysis.reduce.steps import STEPS
from irscope.api.reduction.kept import Kept, KeptOf, refuse_lost
from irscope.errors import RecordingError, UsageError
from irscope.interruption import Interrupted, signal_of
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, Launch, PassSnapshot, SnapshotLevel, stage_named, stage_rank
from irscope.model.recording_options import RecordingOptions
from irscope.model.telling import DIVISIBLE
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import Candidates, VariantPool, settled
from irscope.render.reproduction.needed import needed_source
from irscope.render.reproduction.program import pieces_text
from irscope.store.disk import default_folder

_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")


def python_case(capture: Capture) -> PythonCase:
    """The text that a capture's kernel needs, with its parameters; raises RecordingError where there is none."""
    launch = capture.launch
    needed = needed_source(capture)
    # A name that is missing may be what the front end fails for.
    if needed.obstacles or not launch.kernel.source:
        lost = "; ".join(needed.obstacles) or "the capture has none"
        raise RecordingError(f"no Python text of {capture.name} can be made: {lost}.")
    nested = [name for name, kind in launch.signature if kind.startswith("(")]
    constants, attributes = dict(launch.constants), dict(launch.attributes)
    nested += [name for name, text in constants.items() if not _is_literal(text)]
    if nested:
        raise RecordingError(
            f"--python-output takes kernels whose parameters are numbers, pointers and plain constants, and "
            f"{capture.name} has {', '.join(nested)}."
        )
    rows: list[tuple[str, str, bool]] = []
    for name, kind in launch.signature:
        if name in constants or kind == "constexpr":
            rows.append((name, constants.get(name, "None"), True))
        else:
            rows.append((name, f"{kind}:16" if DIVISIBLE in attributes.get(name, "").split(", ") else kind, False))
    text = "\n".join([*needed.imports, pieces_text(needed)])
    return PythonCase(ast.unparse(ast.parse(text)) + "\n", tuple(rows))


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def python_request(capture: Capture, case: PythonCase, folder: Path) -> RecordRequest:
    """The request that `irscope dump FILE::KERNEL --signature … --constexpr …` makes of a file with a kernel's text."""
    own = folder / hashlib.sha256(case.text.encode()).hexdigest()[:16]
    own.mkdir(exist_ok=True)
    file = own / f"{capture.name}.py"
    file.write_text(case.text, "utf-8")
    asked = RecordingOptions(
        plan=capture.plan,
        snapshots="none",
        disassemble=False,
        targets=(str(capture.target),),
        signature=case.signature,
        constexprs=case.constants,
        options=chosen_options(capture.launch),
    )
    return RecordRequest.of_options(asked, mode="signature", path=str(file), kernel=capture.name)


def chosen_options(launch: Launch) -> tuple[tuple[str, Any], ...]:
    """The options of a launch that a command line can give: those that its script set, if that is known."""
    chosen = launch.set_options if launch.set_options is not None else launch.options
    return tuple(
        (name, value)
        for name, value in chosen
        if name not in _BACKENDS_OWN and isinstance(value, (bool, int, float, str))
    )


_STAGES = ("source", "ttir", "ttgir")


@dataclass(frozen=True, slots=True)
class ReductionOrigin:
    """A text, and the passes that run on it."""

    name: str
    text: str
    into: str
    """The stage whose passes run on it first."""
    pipeline: Pipeline


def origins_of(capture: Capture, stage: str | None, before: PassSnapshot | None) -> tuple[ReductionOrigin, ...]:
    """The texts to try, the best first: the latest are those on which the fewest passes run.

    `stage`: only the artifact of this stage. `before`: only the IR before this pass. Raises UsageError and
    RecordingError where there is no such text.
    """
    if before is not None:
        if (one := _before(capture, before)) is None:
            raise RecordingError(
                f"the recording left out the IR before {before.label}: record it with --snapshots all."
            )
        return (one,)
    if stage is not None and stage not in _STAGES:
        raise UsageError(f"--stage {stage!r}: write {', '.join(_STAGES)}.")
    if stage is not None:
        capture.artifact(stage)
        found = tuple(one for one in _artifacts(capture) if one.name == f"stage {stage}")
        if not found:
            raise UsageError(f"--stage {stage}: no pass runs on it before {_where(capture)}.")
        return found
    failed = next((one for one in capture.passes() if one.outcome == "failed"), None)
    first = _before(capture, failed) if failed is not None else None
    return (*([first] if first is not None else []), *_artifacts(capture))


def _before(capture: Capture, snapshot: PassSnapshot) -> ReductionOrigin | None:
    text = capture.text_before(snapshot)
    if text is None or stage_named(snapshot.stage).kind == "binary" or snapshot.argument == "":
        return None
    stages = _stages_from(capture, snapshot.stage)
    pipeline = Pipeline.of(tuple(capture.passes()), stages, snapshot.label)
    # Gluon's passes of ttgir are other ones than Triton's; its own first stage runs none, and tells them apart.
    is_gluon = capture.launch.language == "gluon" and snapshot.stage == "ttgir"
    return ReductionOrigin(f"before {snapshot.label}", text, "glir" if is_gluon else snapshot.stage, pipeline)


def _artifacts(capture: Capture) -> Iterator[ReductionOrigin]:
    made = [*capture.stages, *([capture.failure.stage] if capture.failure is not None else [])]
    for stage in reversed(_STAGES):
        later = [one for one in made if stage_rank(one) > stage_rank(stage)]
        if stage in capture.stages and later:
            into = min(later, key=stage_rank)
            pipeline = Pipeline.of(tuple(capture.passes()), _stages_from(capture, into))
            yield ReductionOrigin(f"stage {stage}", capture.text(stage), into, pipeline)


def _stages_from(capture: Capture, first: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.stage for one in capture.passes() if stage_rank(one.stage) >= stage_rank(first)))


def _where(capture: Capture) -> str:
    return f"it {capture.failure.verdict}" if capture.failure is not None else "its end"


# The module says them.
_LAID_OUT = ("num_warps", "num_ctas")


_TRIES = 3
"""What a compiler says may depend on the addresses of its objects: where it says the same now and then, it is tried
again."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A text on which what is to be kept is so."""

    origin: ReductionOrigin
    kept: Kept
    program: EditableProgram
    plain: str
    """The text in MLIR's custom form, without locations."""
    capture: Capture
    """What the text is compiled to."""


@dataclass(slots=True)
class Reduction:
    """One reduction: of a capture, keeping one thing true."""

    pool: VariantPool
    capture: Capture
    kept_of: KeptOf
    """What is to be kept, as the first compile of a text shows it."""
    what: str
    """The same in words."""
    told: Callable[[str], None]
    """Gets what is going on, in a line."""
    fresh: bool = False
    """Whether the judgements of an earlier run are forgotten."""
    last_stage: str = ""
    """How far the first compile must go, as what is to be kept does afterwards; empty for the binary."""
    snapshots: SnapshotLevel = "none"
    """Whether what is to be kept is judged by the IR after passes."""
    _started: float = field(init=False, default_factory=time.monotonic)
    _last: Capture | None = field(init=False, default=None)
    """What the text that was tried last is compiled to."""

    def run(self, origins: Iterable[ReductionOrigin]) -> Reduced:
        """Reduce the first of some texts on which what is to be kept is so; raises RecordingError if it is on none.

        A signal ends the search, and what was found by then is the result.
        """
        tried: list[str] = []
        unread: list[str] = []
        for origin in origins:
            self.told(f"compiling {origin.name}")
            plain, generic = self._reprinted(origin.text, "plain"), self._reprinted(origin.text, "generic")
            if plain is None or generic is None:
                unread.append(origin.name)
                continue
            tried.append(origin.name)
            if (begun := self._begun(origin, plain, generic)) is not None:
                return self._reduced(begun)
        raise refuse_lost(self.capture, self.what, tried, unread, self._last)

    def run_python(self) -> ReducedPython:
        """Reduce the Python text of the kernel, of which each candidate is a file that is compiled from a signature."""
        case = python_case(self.capture)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            request = python_request(self.capture, case, folder)
            made = self.pool.compile_one(request)
            kept = self.kept_of(request, made)
            if kept is None:
                raise refuse_lost(self.capture, self.what, ["its Python text"], made=made)
            candidates = Candidates(self.pool, kept.judge)

            def first(cases: Iterable[PythonCase]) -> int | None:
                return candidates.first(python_request(self.capture, one, folder) for one in cases)

            def told(step: str, best: PythonCase) -> None:
                self.told(f"{len(best.text.splitlines())} lines of Python  ({step})")

            program = PythonProgram.of(case, self.capture.name)
            search = Search(program, case, first, PYTHON_STEPS, told)
            signal = _interruption(search.run)
            if not signal:
                made = self.pool.compile_one(python_request(self.capture, search.best, folder))
        lines = [line for line in case.text.splitlines() if line.strip()]
        return ReducedPython(
            case=search.best,
            lines_before=len(lines),
            options=chosen_options(self.capture.launch),
            **self._known(kept, made, search.taken, candidates, signal),
        )

    def _known(
        self, kept: Kept, made: Capture, taken: Mapping[str, int], candidates: Candidates, signal: int
    ) -> dict[str, Any]:
        environment = made.environment
        own = (("irscope", environment.irscope_version), ("triton", environment.triton_version))
        return {
            "capture": self.capture,
            "kept": kept.text_of(made),
            "versions": (*own, *environment.tools),
            "failure": made.failure,
            "taken": tuple(taken.items()),
            "compiled": candidates.compiled,
            "seconds": time.monotonic() - self._started,
            "signal": signal,
        }

    def _begun(self, origin: ReductionOrigin, plain: str, generic: str) -> _Begun | None:
        """The program of a text, and what is to be kept of it, if that is so when it is compiled again.

        `plain`, `generic`: the text as MLIR prints it in its custom and in its generic form.
        """
        program = read_program(generic)
        program.pipeline, program.options = origin.pipeline, self._options(plain)
        request = self._request(program.case(), origin)
        for _ in range(_TRIES):
            self._last = made = self.pool.compile_one(request)
            if (kept := self.kept_of(request, made)) is not None:
                program.pipeline = program.pipeline.up_to(kept.last_stage)
                return _Begun(origin, kept, program, plain, made)
        return None

    def _reduced(self, begun: _Begun) -> Reduced:
        origin, kept, program = begun.origin, begun.kept, begun.program
        hangs = kept.likeness is not None and kept.likeness.kind == "timeout"
        candidates = Candidates(
            self.pool, kept.judge, self._file(kept, hangs) if kept.lasts else None, timeouts_last=hangs
        )

        def first(cases: Iterable[Case]) -> int | None:
            return candidates.first(self._request(one, origin, kept) for one in cases)

        def told(step: str, best: Case) -> None:
            self.told(f"{search.program.count} operations, {len(best.pipeline.running)} passes  ({step})")

        search = Search(program, program.case(), first, STEPS, told)
        signal = _interruption(search.run)
        # It was judged, though in MLIR's generic form.
        text, made, is_steady = search.best.text, replace(begun.capture, snapshots=()), True

        def compile_again() -> None:
            nonlocal text, made, is_steady
            text, made, is_steady = self._compiled(search.best, begun)

        signal = _interruption(compile_again) or signal
        return Reduced(
            origin=origin.name,
            into=origin.into,
            before=CaseSize(program.count, len(begun.plain), len(program.pipeline.running)),
            after=CaseSize(search.program.count, len(text), len(search.best.pipeline.running)),
            case=search.best,
            text=text,
            passes=tuple(one for one in made.passes() if one.outcome != "skipped"),
            repeated=candidates.repeated,
            goes_on=kept.lasts,
            is_steady=is_steady,
            hangs_after_s=self.pool.timeout_s if hangs else 0.0,
            **self._known(kept, made, search.taken, candidates, signal),
        )

    def _compiled(self, best: Case, begun: _Begun) -> tuple[str, Capture, bool]:
        """(the text of the best case, what it is compiled to, whether what is kept is true of that)."""
        plain = self._reprinted(best.text, "plain")
        # The custom form may leave out what the generic one says.
        texts = [best.text] if plain is None else [plain, best.text]
        tried: list[tuple[str, Capture]] = []
        for text in [text for text in texts for _ in range(_TRIES)]:
            request = self._request(replace(best, text=text), begun.origin, begun.kept)
            made = self.pool.compile_one(request)

            def compiled(one: RecordRequest, request: RecordRequest = request, made: Capture = made) -> Capture:
                return made if one == request else self.pool.compile_one(one)

            if settled(begun.kept.judge, request, compiled)[0]:
                return text, made, True
            tried.append((text, made))
        return *tried[0], False

    def _request(self, case: Case, origin: ReductionOrigin, kept: Kept | None = None) -> RecordRequest:
        """The request that `irscope dump FILE --into STAGE` makes of a file with this text."""
        asked = RecordingOptions(
            plan=case.pipeline.plan,
            snapshots=self.snapshots,
            disassemble=False,
            layouts=kept is None or kept.layouts,
            targets=(str(self.capture.target),),
            options=case.options,
        )
        return RecordRequest.of_options(
            asked,
            mode="text",
            path=f"{self.capture.name}.mlir",
            stage=origin.into,
            resume_stage=origin.into,
            text=case.text,
            last_stage=kept.last_stage if kept is not None else self.last_stage,
        )

    def _reprinted(self, text: str, form: Any) -> str | None:
        asked = RecordingOptions(snapshots="none", layouts=False, targets=(str(self.capture.target),))
        path = f"{self.capture.name}.mlir"
        request = RecordRequest.of_options(asked, mode="text", path=path, stage="ttir", text=text, reprinted=form)
        made = self.pool.compile_one(request)
        return made.artifacts[0].text if made.artifacts and made.failure is None else None

    def _options(self, text: str) -> tuple[tuple[str, Any], ...]:
        said = _LAID_OUT if parse_mlir(text).option("num-warps") is not None else ()
        return tuple(row for row in chosen_options(self.capture.launch) if row[0] not in said)

    def _file(self, kept: Kept, hangs: bool) -> Path:
        """Where the judgements are kept: for the capture, what is kept, and the compiler as it is now."""
        identity = repr((self.capture.id, kept.text, self.pool.compilers, self.pool.timeout_s if hangs else None))
        folder = default_folder() / "reductions"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
        if self.fresh:
            file.unlink(missing_ok=True)
        return file


def _interruption(work: Callable[[], None]) -> int:
    try:
        work()
    except (Interrupted, KeyboardInterrupt) as stop:
        return signal_of(stop)
    return 0
