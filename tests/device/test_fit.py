"""What a block asks for beyond what it can have."""

from __future__ import annotations

from itertools import product

from irscope.device.fit import excesses_of, with_fit
from irscope.device.limits import CUDA_LIMITS, HIP_LIMITS
from irscope.device.occupancy import occupancy_of
from irscope.device.parts import DEVICE_PARTS
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources, Target


def compiled(target: str, warps: int = 4, ctas: int = 1, **resources: int) -> Capture:
    backend, _, arch = target.partition(":")
    warp_size = DEVICE_PARTS[target].warp_size if target in DEVICE_PARTS else 32
    return Capture(
        Launch(Kernel("k")),
        Target(backend, arch, warp_size),
        artifacts=(Artifact("cubin" if backend == "cuda" else "hsaco", b"\x7fELF"),),
        resources=Resources(**{"registers": 32, **resources}),
        metadata=(("num_ctas", ctas), ("num_warps", warps)),
    )


def test_the_limit_of_shared_memory_is_the_parts() -> None:
    """The table of parts has the vendor's limit; one byte more does not fit."""
    for name, part in DEVICE_PARTS.items():
        arch = name.partition(":")[2]
        if arch not in CUDA_LIMITS and arch not in HIP_LIMITS:
            continue
        most = part.shared_bytes_per_block
        assert excesses_of(compiled(name, shared_bytes=most)) == ()
        (excess,) = excesses_of(compiled(name, shared_bytes=most + 1))
        assert (excess.resource, excess.needed, excess.limit) == ("shared memory", most + 1, most)
        warps = part.threads_per_block // part.warp_size
        assert excesses_of(compiled(name, warps=warps)) == ()
        (excess,) = excesses_of(compiled(name, warps=2 * warps))
        assert (excess.resource, excess.needed, excess.limit) == (
            "threads",
            2 * part.threads_per_block,
            part.threads_per_block,
        )


def test_what_fits_is_what_has_an_occupancy() -> None:
    archs = [f"cuda:{arch}" for arch in CUDA_LIMITS] + [f"hip:{arch}" for arch in HIP_LIMITS]
    sizes = product(archs, (1, 4, 8, 16, 32), (16, 128, 255), (0, 48 << 10, 100 << 10, 1 << 20))
    for target, warps, registers, shared in sizes:
        capture = compiled(target, warps, registers=registers, shared_bytes=shared)
        found = occupancy_of(capture)
        assert found is not None
        excesses = excesses_of(capture)
        assert (found.blocks_per_sm > 0) == (not excesses)
        assert all(excess.needed > excess.limit for excess in excesses), excesses


def test_tensor_memory_and_clusters() -> None:
    (excess,) = excesses_of(compiled("cuda:100", tensor_memory_columns=1024))
    assert str(excess) == "tensor memory: 1024 columns per block needed, 512 available on cuda:100: 512 too many"
    assert excesses_of(compiled("cuda:90", ctas=16)) == ()
    (excess,) = excesses_of(compiled("cuda:90", ctas=32))
    assert (excess.resource, excess.needed, excess.limit) == ("cluster", 32, 16)


def test_only_what_has_a_binary_is_judged() -> None:
    capture = compiled("cuda:90", shared_bytes=1 << 20)
    failed = with_fit(capture)
    assert (failed.status, failed.artifacts) == ("failed", capture.artifacts)
    assert failed.failure is not None
    assert failed.failure.kind == "fit"
    assert with_fit(failed) is failed
    assert with_fit(capture.with_(artifacts=())).status == "ok"
    unknown = compiled("cuda:90").with_(target=Target("cuda", "999", 32))
    assert with_fit(unknown).status == "ok"
