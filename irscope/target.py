"""Targets of a compile, as objects and as text, and the products that stand for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.errors import TargetError, did_you_mean


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a compile: a backend, an architecture, and the number of threads per warp (per wave on AMD)."""

    backend: str
    arch: str
    warp_size: int

    @staticmethod
    def parse(text: str) -> Target:
        """Read `cuda:90` or `hip:gfx942`, and also `sm_90`, `sm_90a`, `gfx942` and names of parts (`h100`).

        Does not check whether such an architecture exists. Raises TargetError for any other text.
        """
        if (known := part_named(text)) is not None:
            return known
        backend, colon, arch = text.strip().partition(":")
        if not colon:
            backend, arch = ("hip", backend) if backend.startswith("gfx") else ("cuda", backend)
        if backend == "cuda" and (number := _CUDA_ARCH.fullmatch(arch)):
            return Target("cuda", number["number"], 32)
        # gfx942   |   gfx90a   |   gfx1201   |   gfx9-4-generic
        if backend == "hip" and re.fullmatch(r"gfx(\d{2,3}[0-9a-f]|[\d-]+-generic)", arch):
            # CDNA (gfx9) runs waves of 64 threads, RDNA (gfx10 and later) waves of 32.
            return Target("hip", arch, 64 if arch.startswith("gfx9") else 32)
        every = ", ".join(str(target) for target in KNOWN_TARGETS)
        near = did_you_mean(text.strip().lower(), [*map(str, KNOWN_TARGETS), *PARTS], or_all=False)
        raise TargetError(
            f"{text!r} is not a target.{near} A target is BACKEND:ARCH, one of {every}, or a GPU model such as "
            "h100, rtx4090 or mi300x."
        )

    @property
    def warp(self) -> str:
        """What the vendor calls a warp: `warp`, or `wave` on AMD."""
        return "wave" if self.backend == "hip" else "warp"

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"


# 90   sm_90   sm90a   sm_100f
_CUDA_ARCH = re.compile(r"(?:sm_?)?(?P<number>\d+)[af]?")

KNOWN_TARGETS: tuple[Target, ...] = (
    *(Target("cuda", arch, 32) for arch in ("75", "80", "86", "89", "90", "100", "103", "120")),
    *(Target("hip", arch, 64) for arch in ("gfx90a", "gfx942", "gfx950")),
    *(Target("hip", arch, 32) for arch in ("gfx1100", "gfx1201")),
)
"""The targets that irscope is tested with; an installed Triton may support more, or fewer."""

# NVIDIA, CUDA GPU Compute Capability; AMD, ROCm documentation, Accelerator and GPU hardware specifications.
_PARTS_OF = {
    "cuda:70": "v100 titanv",
    "cuda:75": "t4 titanrtx rtx2060 rtx2070 rtx2080 rtx2080ti rtx8000 gtx1650 gtx1660 gtx1660ti",
    "cuda:80": "a30 a100 a800",
    "cuda:86": "a2 a10 a10g a16 a40 rtxa2000 rtxa4000 rtxa5000 rtxa6000 "
    "rtx3050 rtx3060 rtx3060ti rtx3070 rtx3070ti rtx3080 rtx3080ti rtx3090 rtx3090ti",
    "cuda:87": "orin agxorin",
    "cuda:89": "l4 l20 l40 l40s rtx4060 rtx4060ti rtx4070 rtx4070ti rtx4080 rtx4090 rtx4000ada rtx5000ada rtx6000ada",
    "cuda:90": "h20 h100 h200 h800 gh200",
    "cuda:100": "b100 b200 gb200",
    "cuda:103": "b300 gb300",
    "cuda:110": "thor agxthor",
    "cuda:120": "rtx5050 rtx5060 rtx5060ti rtx5070 rtx5070ti rtx5080 rtx5090 rtxpro4000 rtxpro5000 rtxpro6000",
    "cuda:121": "gb10 dgxspark",
    "hip:gfx908": "mi100",
    "hip:gfx90a": "mi210 mi250 mi250x",
    "hip:gfx942": "mi300a mi300x mi308x mi325x",
    "hip:gfx950": "mi350x mi355x",
    "hip:gfx1030": "rx6800 rx6800xt rx6900xt rx6950xt",
    "hip:gfx1100": "rx7900xt rx7900xtx rx7900gre prow7800 prow7900",
    "hip:gfx1101": "rx7700xt rx7800xt",
    "hip:gfx1102": "rx7600 rx7600xt",
    "hip:gfx1200": "rx9060xt",
    "hip:gfx1201": "rx9070 rx9070xt",
}

PARTS: dict[str, str] = {name: target for target, names in _PARTS_OF.items() for name in names.split()}
"""The target of each known part, as text, by the part's name: lower case, without spaces and vendor."""

_MAKERS = ("nvidia", "amd", "geforce", "tesla", "quadro", "jetson", "instinct", "radeon")


def part_named(text: str) -> Target | None:
    """The target of a part such as `h100`, `RTX 4090`, `NVIDIA H100 80GB HBM3` or `MI300X`; None if it is not known."""
    words = [word for word in re.split(r"[\s_-]+", text.strip().lower()) if word and word not in _MAKERS]
    # Words after the name give the size of the memory, or the form factor.
    for end in range(len(words), 0, -1):
        if (target := PARTS.get("".join(words[:end]))) is not None:
            return Target.parse(target)
    return None


def nearest_targets(target: Target) -> tuple[Target, ...]:
    """The known targets of the same backend just below and just above a target."""
    same = [known for known in KNOWN_TARGETS if known.backend == target.backend]
    rank = architecture_rank(target.arch)
    below = [known for known in same if architecture_rank(known.arch) < rank]
    above = [known for known in same if architecture_rank(known.arch) > rank]
    return (*below[-1:], *above[:1])


def architecture_rank(arch: str) -> tuple[int, int]:
    """The major and minor number of an architecture: `90` -> (9, 0), `gfx942` -> (9, 66), `gfx1100` -> (11, 0)."""
    try:
        if arch.startswith("gfx"):
            digits = arch.removeprefix("gfx").partition("-")[0]
            return int(digits[:-2]), int(digits[-2:], 16)
        number = int(arch.rstrip("af"))
        return number // 10, number % 10
    except ValueError:
        return 0, 0
