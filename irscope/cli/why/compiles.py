"""The compiles that `irscope why` needs, in forks of one process that has imported Triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest
    from irscope.record.variants.pool import VariantPool

__all__ = ["Compiles"]


class Compiles:
    """Compiles requests, as a context manager; the process is started for the first of them."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._pool: VariantPool | None = None

    def __enter__(self) -> Compiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def one(self, request: RecordRequest) -> Capture:
        """The capture of a request."""
        return self._started().compile_one(request)

    def all(self, requests: Sequence[RecordRequest]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the request, its capture), each as soon as it is there."""
        return self._started().compile(requests)

    def _started(self) -> VariantPool:
        if self._pool is None:
            from irscope.record.variants.pool import VariantPool

            self._pool = self._held.enter_context(VariantPool(forks=True))
        return self._pool
