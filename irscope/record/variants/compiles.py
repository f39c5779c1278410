"""Compiles of captures with something changed, in forks of one process that has imported Triton; each is made once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Trial

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest
    from irscope.record.variants.kept import KeptCaptures
    from irscope.record.variants.pool import VariantPool

__all__ = ["Compiles"]


class Compiles:
    """Compiles requests, as a context manager; the process is started for the first that was never done before."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._pool: VariantPool | None = None
        self._capture: Capture | None = None
        self._kept: KeptCaptures | None = None

    def __enter__(self) -> Compiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def keep_for(self, capture: Capture) -> None:
        """Keep what is compiled from now on with a capture, and take it from there the next time."""
        self._capture, self._kept = capture, None

    def one(self, request: RecordRequest) -> Capture:
        """The capture of a request."""
        ((_, capture),) = self.all((request,))
        return capture

    def all(self, requests: Sequence[RecordRequest]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the request, its capture), those that were made before first, then each as it is made."""
        kept = self._kept_captures()
        missing: list[int] = []
        for index, request in enumerate(requests):
            known = kept.load(_key(request)) if kept is not None else None
            if known is not None:
                yield index, known
            else:
                missing.append(index)
        if not missing:
            return
        for place, capture in self._started().compile([requests[index] for index in missing]):
            if kept is not None:
                with suppress(OSError):
                    kept.save(_key(requests[missing[place]]), capture)
            yield missing[place], capture

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

    def _kept_captures(self) -> KeptCaptures | None:
        if self._kept is None and self._capture is not None:
            from irscope.record.variants.installed import installed_identity
            from irscope.record.variants.kept import KeptCaptures

            if identity := installed_identity():
                self._kept = KeptCaptures(("why", self._capture.id, identity), Path(os.devnull))
        return self._kept

    def _started(self) -> VariantPool:
        if self._pool is None:
            from irscope.record.variants.pool import VariantPool

            self._pool = self._held.enter_context(VariantPool())
        return self._pool


def _key(request: RecordRequest) -> str:
    """All that a compile depends on but the compiler."""
    return repr(replace(request, log_path=""))
