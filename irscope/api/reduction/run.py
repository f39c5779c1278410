"""Runs a reduction: finds a text of the capture on which it can begin, and searches with a pool of workers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from irscope.analysis.reduce.case import Case
from irscope.analysis.reduce.model import Reduced, Size
from irscope.analysis.reduce.program import Program
from irscope.analysis.reduce.search import Search
from irscope.analysis.reduce.steps.all import STEPS
from irscope.analysis.reduce.text import read_program, write_program
from irscope.api.reduction.kept import Kept, KeptOf, refuse_lost
from irscope.api.reduction.origins import Origin
from irscope.interruption import Interrupted, signal_of
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Capture, Launch
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.candidates import Candidates, settled
from irscope.record.variants.pool import VariantPool
from irscope.store.disk import default_folder

__all__ = ["Reduction", "chosen_options", "versions_of"]

# The module says them.
_LAID_OUT = ("num_warps", "num_ctas")
_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")


_TRIES = 3
"""What a compiler says may depend on the addresses of its objects: where it says the same now and then, it is tried
again."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A text on which what is to be kept is so."""

    origin: Origin
    kept: Kept
    program: Program
    case: Case
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
    _last: Capture | None = field(init=False, default=None)
    """What the text that was tried last is compiled to."""

    def run(self, origins: Iterable[Origin]) -> Reduced:
        """Reduce the first of some texts on which what is to be kept is so; raises RecordingError if it is on none.

        A signal ends the search, and what was found by then is the result.
        """
        started = time.monotonic()
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
                return self._reduced(begun, started)
        raise refuse_lost(self.capture, self.what, tried, unread, self._last)

    def _begun(self, origin: Origin, plain: str, generic: str) -> _Begun | None:
        """The program of a text, and what is to be kept of it, if that is so when it is compiled again.

        `plain`, `generic`: the text as MLIR prints it in its custom and in its generic form.
        """
        program = read_program(generic)
        case = Case(write_program(program), origin.pipeline, self._options(plain))
        request = self._request(case, origin)
        for _ in range(_TRIES):
            self._last = made = self.pool.compile_one(request)
            if (kept := self.kept_of(request, made)) is not None:
                case = replace(case, pipeline=case.pipeline.up_to(kept.last_stage))
                return _Begun(origin, kept, program, case, plain, made)
        return None

    def _reduced(self, begun: _Begun, started: float) -> Reduced:
        origin, kept = begun.origin, begun.kept
        hangs = kept.likeness is not None and kept.likeness.kind == "timeout"
        candidates = Candidates(
            self.pool, kept.judge, self._file(kept, hangs) if kept.lasts else None, timeouts_last=hangs
        )

        def first(cases: Iterable[Case]) -> int | None:
            return candidates.first(self._request(one, origin, kept) for one in cases)

        def told(step: str, best: Case) -> None:
            self.told(f"{search.program.count} operations, {len(best.pipeline.running)} passes  ({step})")

        search = Search(begun.program, begun.case, first, STEPS, told)
        before = Size(begun.program.count, len(begun.plain), len(begun.case.pipeline.running))
        signal = 0
        try:
            search.run()
        except (Interrupted, KeyboardInterrupt) as stop:
            signal = signal_of(stop)
        try:
            text, made, is_steady = self._compiled(search.best, begun)
        except (Interrupted, KeyboardInterrupt) as stop:
            # It was judged, though in MLIR's generic form.
            signal = signal_of(stop)
            text, made, is_steady = search.best.text, replace(begun.capture, snapshots=()), True
        return Reduced(
            capture=self.capture,
            kept=kept.text_of(made),
            origin=origin.name,
            into=origin.into,
            before=before,
            after=Size(search.program.count, len(text), len(search.best.pipeline.running)),
            case=search.best,
            text=text,
            versions=versions_of(made),
            failure=made.failure,
            passes=tuple(one for one in made.passes() if one.outcome != "skipped"),
            taken=tuple(search.taken.items()),
            compiled=candidates.compiled,
            repeated=candidates.repeated,
            seconds=time.monotonic() - started,
            signal=signal,
            goes_on=kept.lasts,
            is_steady=is_steady,
            hangs_after_s=self.pool.timeout_s if hangs else 0.0,
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

    def _request(self, case: Case, origin: Origin, kept: Kept | None = None) -> RecordRequest:
        """The request that `irscope dump FILE --into STAGE` makes of a file with this text."""
        asked = RecordingOptions(
            plan=case.pipeline.plan,
            snapshots="none",
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


def chosen_options(launch: Launch) -> tuple[tuple[str, Any], ...]:
    """The options of a launch that a command line can give: those that its script set, if that is known."""
    chosen = launch.set_options if launch.set_options is not None else launch.options
    return tuple(
        (name, value)
        for name, value in chosen
        if name not in _BACKENDS_OWN and isinstance(value, (bool, int, float, str))
    )


def versions_of(capture: Capture) -> tuple[tuple[str, str], ...]:
    """(program, version) of what compiled a capture."""
    environment = capture.environment
    own = (("irscope", environment.irscope_version), ("triton", environment.triton_version))
    return (*own, *environment.tools)
