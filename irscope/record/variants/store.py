"""The variants of one capture: each compiled once, kept, and taken from there the next time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from irscope import __version__
from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Capture, Failure
from irscope.plan import PassPlan
from irscope.record.variants.pool import VariantPool, variant_request
from irscope.store.file import SUFFIX, load, save
from irscope.store.recent import cannot_write, default_folder

LIMIT_BYTES = 256 << 20
"""What all kept variants may take before those of the kernels ablated longest ago are dropped."""

_LASTING_FAILURES = ("parse", "pass", "compile", "assembler", "fit", "abort")


class Variants:
    """A capture's own source compiled under other plans, by a pool, or taken from the last time.

    They are kept in a folder for the capture, the compiler as it is now (a rebuild is another one) and this irscope.
    Where nothing can be written there, they are kept in the pool's folder, as long as that lives.
    """

    def __init__(self, pool: VariantPool, capture: Capture, *, fresh: bool = False) -> None:
        """`fresh`: forget what is kept."""
        self._pool = pool
        self._capture = capture
        identity = json.dumps([capture.id, *pool.compiler, __version__])
        self.not_kept: OSError | None = None
        """Why they are not kept for the next time."""
        try:
            everything = default_folder() / "variants"
            self.folder = everything / hashlib.sha256(identity.encode()).hexdigest()[:16]
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
        self.folder = self._pool.folder

    def path_of(self, plan: PassPlan) -> Path:
        """Where the variant of a plan is kept, or would be."""
        return self.folder / f"{hashlib.sha256(str(plan).encode()).hexdigest()[:16]}{SUFFIX}"

    def kept(self, plan: PassPlan) -> Capture | None:
        """The variant of a plan as the last time left it, or None."""
        try:
            return load(self.path_of(plan))
        except (CaptureNotFound, CaptureFormatError):
            return None

    def compile(self, plan: PassPlan) -> Capture:
        """One variant."""
        ((_, capture, _),) = self.compile_all((plan,))
        return capture

    def compile_all(self, plans: Sequence[PassPlan]) -> Iterator[tuple[int, Capture, bool]]:
        """(place of the plan, its capture, whether it was kept), the kept ones first, the others as they end."""
        missing: list[int] = []
        for index, plan in enumerate(plans):
            if (capture := self.kept(plan)) is not None:
                yield index, capture, True
            else:
                missing.append(index)
        requests = (variant_request(self._capture, plans[index]) for index in missing)
        for place, capture in self._pool.compile(requests):
            capture = replace(
                capture, sources=self._capture.sources, launch=replace(capture.launch, grid=self._capture.launch.grid)
            )
            if lasts(capture.failure):
                self._save(capture, plans[missing[place]])
            yield missing[place], capture, False

    def _save(self, capture: Capture, plan: PassPlan) -> None:
        try:
            save(capture, self.path_of(plan))
        except OSError as error:
            if self.not_kept is not None:
                raise
            self._keep_for_now(error)
            save(capture, self.path_of(plan))


def lasts(failure: Failure | None) -> bool:
    """Whether the next try would end the same: not where time ran out, or the machine's memory."""
    return failure is None or (failure.kind in _LASTING_FAILURES and "SIGKILL" not in failure.message)


def _prune(everything: Path, keep: Path) -> None:
    total = 0
    # Another process may drop a folder at the same time.
    with contextlib.suppress(OSError):
        for folder in sorted(everything.iterdir(), key=lambda one: one.stat().st_mtime_ns, reverse=True):
            total += sum(file.stat().st_size for file in folder.glob(f"*{SUFFIX}"))
            if total > LIMIT_BYTES and folder != keep:
                shutil.rmtree(folder, ignore_errors=True)
