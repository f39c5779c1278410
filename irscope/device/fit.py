"""Whether a kernel that compiled can run on its target: the resources of which a block needs more than there are.

A launch of such a kernel is refused by the driver (Triton: "out of resource"). The limits are those of occupancy
(`irscope.device.limits`); for clusters, "CUDA C++ Programming Guide", Thread Block Clusters: 8 blocks, or 16 if a
kernel asks for it, which Triton does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from irscope.device import occupancy as causes
from irscope.device.limits import CUDA_LIMITS, HIP_LIMITS, CudaLimits, HipLimits
from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Capture, Failure, stage_named

_MAX_BLOCKS_PER_CLUSTER = 16


@dataclass(frozen=True, slots=True)
class _Excess:
    """One resource of which a block needs more than there is."""

    resource: str
    """`shared memory`, `threads`, `registers`, `tensor memory`, `barriers`, `cluster`."""
    needed: int
    limit: int
    unit: str
    """The unit of both: `bytes per block`."""
    target: str

    def __str__(self) -> str:
        return (
            f"{self.resource}: {self.needed} {self.unit} needed, {self.limit} available on {self.target}: "
            f"{self.needed - self.limit} too many"
        )


def excesses_of(capture: Capture) -> tuple[_Excess, ...]:
    """The resources of which a capture's kernel needs too much; empty if it fits, or its needs are not known."""
    limits = CUDA_LIMITS.get(capture.target.arch) if capture.target.backend == "cuda" else None
    unit = HIP_LIMITS.get(capture.target.arch) if capture.target.backend == "hip" else None
    found = occupancy_of(capture)
    rows: list[tuple[str, int, int, str]] = []
    for cause, blocks in found.limits if found is not None else ():
        if blocks == 0 and (limits is not None or unit is not None):
            rows.append(_of_cuda(capture, limits, cause) if limits is not None else _of_hip(capture, unit, cause))
    blocks = _cluster_of(capture)
    if blocks > _MAX_BLOCKS_PER_CLUSTER:
        rows.append(("cluster", blocks, _MAX_BLOCKS_PER_CLUSTER, "blocks per cluster"))
    return tuple(_Excess(*row, str(capture.target)) for row in rows)


def with_fit(capture: Capture) -> Capture:
    """The capture, marked as failed if its binary cannot run."""
    binary = next((stage for stage in capture.stages if stage_named(stage).is_binary), "")
    if capture.failure is not None or not binary or not (excesses := excesses_of(capture)):
        return capture
    failure = Failure("fit", "\n".join(map(str, excesses)), binary)
    return replace(capture, status="failed", failure=failure)


def _warps(capture: Capture) -> int:
    # As for occupancy: warp specialisation adds warps to those that were asked for.
    warps = dict(capture.metadata).get("num_warps", capture.launch.option("num_warps"))
    return warps if isinstance(warps, int) else 0


def _cluster_of(capture: Capture) -> int:
    blocks = dict(capture.metadata).get("num_ctas", capture.launch.option("num_ctas"))
    return blocks if isinstance(blocks, int) and capture.target.backend == "cuda" else 1


def _of_cuda(capture: Capture, limits: CudaLimits, cause: str) -> tuple[str, int, int, str]:
    resources, warps = capture.resources, _warps(capture)
    if cause == causes.SHARED:
        return cause, resources.shared_bytes or 0, limits.shared_bytes_per_block, "bytes per block"
    if cause == causes.WARPS:
        return "threads", warps * 32, min(limits.max_threads_per_block, limits.max_warps * 32), "per block"
    if cause == causes.TENSOR_MEMORY:
        return cause, resources.tensor_memory_columns or 0, limits.tensor_memory_columns or 0, "columns per block"
    if cause == causes.REGISTERS:
        return cause, causes.registers_of_block(resources.registers or 0, limits, warps), limits.registers, "per block"
    return cause, resources.barriers or 0, limits.barriers or 0, "per block"


def _of_hip(capture: Capture, limits: HipLimits | None, cause: str) -> tuple[str, int, int, str]:
    resources, warps = capture.resources, _warps(capture)
    if limits is None:
        return cause, 0, 0, ""
    if cause == causes.SHARED:
        return cause, resources.shared_bytes or 0, limits.shared_bytes_per_block, "bytes per block"
    if cause == causes.WARPS:
        most = min(limits.max_waves_per_block, limits.max_waves)
        return "threads", warps * capture.target.warp_size, most * capture.target.warp_size, "per block"
    # Per lane, if each SIMD holds its share of the block's waves.
    waves = -(-warps // limits.simds)
    used = (resources.registers or 0) + (resources.accumulator_registers or 0)
    return cause, used * waves, limits.vector_registers, "per lane of a SIMD"
