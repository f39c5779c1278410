"""What is compiled for: a backend, an architecture, and the threads of a warp."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.errors import TargetError


@dataclass(frozen=True, slots=True)
class Target:
    """What is compiled for: a backend, an architecture and the threads of a warp (of a wave, on AMD)."""

    backend: str
    arch: str
    warp_size: int

    @staticmethod
    def parse(text: str) -> Target:
        """Read `cuda:90` or `hip:gfx942`; `sm_90`, `sm90` and `gfx942` alone are understood too.

        Raises TargetError for any other text.
        """
        backend, colon, arch = text.strip().partition(":")
        if not colon:
            backend, arch = ("hip", backend) if backend.startswith("gfx") else ("cuda", backend)
        arch = arch.removeprefix("sm_").removeprefix("sm").removesuffix("a") if backend == "cuda" else arch
        if backend == "cuda" and arch.isdigit():
            return Target("cuda", arch, 32)
        if backend == "hip" and arch.startswith("gfx") and len(arch) > 5:
            # The CDNA parts (gfx9) run waves of 64 threads, the RDNA ones (gfx10 and up) of 32.
            return Target("hip", arch, 64 if arch.startswith("gfx9") else 32)
        known = ", ".join(str(target) for target in KNOWN_TARGETS)
        raise TargetError(f"{text!r} is not a target. A target is BACKEND:ARCH, one of {known}.")

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"


KNOWN_TARGETS: tuple[Target, ...] = (
    *(Target("cuda", arch, 32) for arch in ("75", "80", "86", "89", "90", "100", "103", "120")),
    *(Target("hip", arch, 64) for arch in ("gfx90a", "gfx942", "gfx950")),
    *(Target("hip", arch, 32) for arch in ("gfx1100", "gfx1201")),
)
"""The targets that irscope is tested on; an installed Triton may take more, or fewer."""
