"""Reduces the Python text of a kernel: each candidate is a file that is compiled from a signature."""

from __future__ import annotations

import ast
import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from irscope.analysis.reduce.model import ReducedPython
from irscope.analysis.reduce.python import PythonCase, PythonSearch
from irscope.api.reduction.kept import Kept, KeptOf, refuse_lost
from irscope.api.reduction.run import chosen_options, versions_of
from irscope.errors import RecordingError
from irscope.interruption import Interrupted, signal_of
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.candidates import Candidates
from irscope.record.variants.pool import VariantPool
from irscope.render.reproduction.needed import needed_source
from irscope.render.reproduction.program import pieces_text

__all__ = ["PythonReduction", "python_case", "python_request"]

# tt.divisibility=16
_DIVISIBLE = re.compile(r"\btt\.divisibility=16\b")


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
            f"--python takes kernels whose parameters are numbers, pointers and plain constants, and {capture.name} "
            f"has {', '.join(nested)}."
        )
    rows: list[tuple[str, str, bool]] = []
    for name, kind in launch.signature:
        if name in constants or kind == "constexpr":
            rows.append((name, constants.get(name, "None"), True))
        else:
            rows.append((name, f"{kind}:16" if _DIVISIBLE.search(attributes.get(name, "")) else kind, False))
    text = "\n".join([*needed.imports, pieces_text(needed)])
    return PythonCase(ast.unparse(ast.parse(text)) + "\n", tuple(rows))


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


@dataclass(slots=True)
class PythonReduction:
    """One reduction of the Python text of a capture's kernel, keeping one thing true."""

    pool: VariantPool
    capture: Capture
    kept_of: KeptOf
    what: str
    told: Callable[[str], None]

    def run(self) -> ReducedPython:
        """Reduce it; a signal ends the search, and what was found by then is the result."""
        started = time.monotonic()
        case = python_case(self.capture)
        with tempfile.TemporaryDirectory() as folder:
            request = python_request(self.capture, case, Path(folder))
            first = self.pool.compile_one(request)
            kept = self.kept_of(request, first)
            if kept is None:
                raise refuse_lost(self.capture, self.what, ["its Python text"], made=first)
            return self._search(case, kept, first, Path(folder), started)

    def _search(self, case: PythonCase, kept: Kept, made: Capture, folder: Path, started: float) -> ReducedPython:
        candidates = Candidates(self.pool, kept.judge)

        def first(cases: Iterable[PythonCase]) -> int | None:
            return candidates.first(python_request(self.capture, one, folder) for one in cases)

        def told(step: str, best: PythonCase) -> None:
            self.told(f"{len(best.text.splitlines())} lines of Python  ({step})")

        search = PythonSearch(case, self.capture.name, first, told)
        signal = 0
        try:
            search.run()
            made = self.pool.compile_one(python_request(self.capture, search.best, folder))
        except (Interrupted, KeyboardInterrupt) as stop:
            signal = signal_of(stop)
        return ReducedPython(
            capture=self.capture,
            kept=kept.text_of(made),
            kernel=self.capture.name,
            case=search.best,
            lines_before=len([line for line in case.text.splitlines() if line.strip()]),
            target=str(self.capture.target),
            options=chosen_options(self.capture.launch),
            plan=self.capture.plan,
            versions=versions_of(made),
            failure=made.failure,
            taken=tuple(search.taken.items()),
            compiled=candidates.compiled,
            seconds=time.monotonic() - started,
            signal=signal,
        )


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
