"""The variants of one capture: each compiled once, kept, and taken from there the next time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Capture
from irscope.plan import PassPlan
from irscope.record.variants.kept import KeptCaptures
from irscope.record.variants.pool import VariantPool, variant_request


class Variants:
    """A capture's own source compiled under other plans, by a pool, or taken from the last time.

    They are kept for the capture and the compiler as it is now (a rebuild is another one); where nothing can be written
    there, in the pool's folder, as long as that lives.
    """

    def __init__(self, pool: VariantPool, capture: Capture, *, fresh: bool = False) -> None:
        """`fresh`: forget what is kept."""
        self._pool = pool
        self._capture = capture
        self._kept = KeptCaptures((capture.id, *pool.compiler), pool.folder, fresh=fresh)

    @property
    def not_kept(self) -> OSError | None:
        """Why they are not kept for the next time."""
        return self._kept.not_kept

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self._kept.folder

    def path_of(self, plan: PassPlan) -> Path:
        """Where the variant of a plan is kept, or would be."""
        return self._kept.path_of(str(plan))

    def kept(self, plan: PassPlan) -> Capture | None:
        """The variant of a plan as the last time left it, or None."""
        return self._kept.load(str(plan))

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
            self._kept.save(str(plans[missing[place]]), capture)
            yield missing[place], capture, False
