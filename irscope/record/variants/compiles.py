"""Compiles of captures with something changed, each made once by a pool, and kept for the next time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irscope import __version__
from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Trial
from irscope.plan import PassPlan
from irscope.store.disk import cannot_write, default_folder
from irscope.store.file import SUFFIX, load, save

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest
    from irscope.record.variants.pool import VariantPool

LIMIT_BYTES = 256 << 20
"""What all kept captures may take before the folders that were used longest ago are dropped."""


class Compiles(ExitStack):
    """Compiles requests, as a context manager; the pool is started for the first that was never done before."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: VariantPool | None = None
        self._capture: Capture | None = None
        self._kept: _KeptCaptures | None = None

    def keep_for(self, capture: Capture) -> None:
        """Keep what is compiled from now on with a capture, and take it from there the next time."""
        self._capture, self._kept = capture, None

    def one(self, request: RecordRequest) -> Capture:
        ((_, capture),) = self.all((request,))
        return capture

    def all(self, requests: Sequence[RecordRequest]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the request, its capture), those that were made before first, then each as it is made."""
        # All that a compile depends on but the compiler.
        keys = [replace(request, log_path="") for request in requests]

        def compiled(missing: list[int]) -> Iterator[tuple[int, Capture]]:
            return self._started().compile([requests[index] for index in missing])

        for index, capture, _ in _kept_or_compiled(self._kept_captures(), keys, compiled):
            yield index, capture

    def fresh(self, requests: Sequence[RecordRequest]) -> Iterator[Capture]:
        yield from (capture for _, capture in self._started().compile(requests))

    def trials(self, capture: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the trial, its capture with what the launch was given), as `all`."""
        from irscope.record.process.requests import request_from_capture, request_resumed

        requests: list[RecordRequest] = []
        for trial in trials:
            asked = RecordingOptions(
                plan=capture.plan, snapshots="none", disassemble=False, options=trial.options, layouts=trial.layouts
            )
            if trial.after is not None:
                request = request_resumed(capture, trial.after, trial.text, asked)
            else:
                request = replace(request_from_capture(capture, asked), text=trial.text)
            requests.append(replace(request, last_stage=trial.last_stage))
        launch = capture.launch
        for index, after in self.all(requests):
            yield index, replace(after, launch=replace(after.launch, grid=launch.grid, record=launch.record))

    def _kept_captures(self) -> _KeptCaptures | None:
        if self._kept is None and self._capture is not None:
            from irscope.record.triton.identity import installed_identity

            if identity := installed_identity():
                self._kept = _KeptCaptures(("why", self._capture.id, identity))
        return self._kept

    def _started(self) -> VariantPool:
        if self._pool is None:
            from irscope.record.variants.pool import VariantPool

            self._pool = self.enter_context(VariantPool())
        return self._pool


class _KeptCaptures:
    """The captures of one identity (of a capture, of the compiler) and of this irscope, each under a key of its own."""

    def __init__(self, identity: Sequence[str], otherwise: Path | None = None, *, fresh: bool = False) -> None:
        """`otherwise`: the folder where the store cannot be written. `fresh`: forget what is kept."""
        self._otherwise = otherwise
        self.not_kept: OSError | None = None
        self.folder = otherwise or Path(os.devnull)
        try:
            everything = default_folder() / "variants"
            self.folder = everything / _digest(json.dumps([*identity, __version__]))
            if fresh:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.folder)
        except OSError as error:
            self._keep_for_now(error)
        else:
            _prune(everything, keep=self.folder)

    def _keep_for_now(self, error: OSError) -> None:
        self.not_kept = error if error.errno is None else cannot_write(error, self.folder.parent)
        self.folder = self._otherwise or self.folder

    def path_of(self, key: object) -> Path:
        return self.folder / f"{_digest(str(key))}{SUFFIX}"

    def load(self, key: object) -> Capture | None:
        try:
            return load(self.path_of(key))
        except (CaptureNotFound, CaptureFormatError):
            return None

    def save(self, key: object, capture: Capture) -> None:
        """Keep a capture, if the next time would give the same."""
        is_lasting = capture.failure is None or capture.failure.lasts
        if not is_lasting or (self.not_kept is not None and self._otherwise is None):
            return
        try:
            save(capture, self.path_of(key))
        except OSError as error:
            if self.not_kept is not None:
                raise
            self._keep_for_now(error)
            if self._otherwise is not None:
                save(capture, self.path_of(key))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _prune(everything: Path, keep: Path) -> None:
    total = 0
    # Another process may drop a folder at the same time.
    with contextlib.suppress(OSError):
        for folder in sorted(everything.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True):
            total += sum(file.stat().st_size for file in folder.glob(f"*{SUFFIX}"))
            if total > LIMIT_BYTES and folder != keep:
                shutil.rmtree(folder, ignore_errors=True)


def _kept_or_compiled(
    kept: _KeptCaptures | None,
    keys: Sequence[object],
    compile_them: Callable[[list[int]], Iterable[tuple[int, Capture]]],
) -> Iterator[tuple[int, Capture, bool]]:
    """(place of the key, its capture, whether it was kept), the kept ones first; `compile_them` makes the others."""
    missing: list[int] = []
    for index, key in enumerate(keys):
        known = kept.load(key) if kept is not None else None
        if known is not None:
            yield index, known, True
        else:
            missing.append(index)
    if not missing:
        return
    for place, capture in compile_them(missing):
        if kept is not None:
            kept.save(keys[missing[place]], capture)
        yield missing[place], capture, False


class Variants(_KeptCaptures):
    """A capture's own source compiled under other plans, or taken from the last time by the same compiler."""

    def __init__(self, pool: VariantPool, capture: Capture, *, fresh: bool = False, lists_llvm: bool = False) -> None:
        self._pool = pool
        self._capture = capture
        self._lists_llvm = lists_llvm
        identity = (capture.id, *pool.compiler, *(["with LLVM's passes"] if lists_llvm else []))
        super().__init__(identity, pool.folder, fresh=fresh)

    def compile(self, plan: PassPlan) -> Capture:
        ((_, capture, _),) = self.compile_all((plan,))
        return capture

    def compile_all(self, plans: Sequence[PassPlan]) -> Iterator[tuple[int, Capture, bool]]:
        """(place of the plan, its capture, whether it was kept), the kept ones first, the others as they end."""
        from irscope.record.variants.pool import variant_request

        def compiled(missing: list[int]) -> Iterator[tuple[int, Capture]]:
            requests = (variant_request(self._capture, plans[index], lists_llvm=self._lists_llvm) for index in missing)
            for place, capture in self._pool.compile(requests):
                launch = replace(capture.launch, grid=self._capture.launch.grid)
                yield place, replace(capture, sources=self._capture.sources, launch=launch)

        return _kept_or_compiled(self, plans, compiled)
