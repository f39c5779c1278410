"""The installed Triton's version, and the versions that irscope was tried with."""

from __future__ import annotations

import contextlib
import re
import sys

TRIED_VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""The releases that the tests run under, the oldest first; irscope records with none before that."""

FUTURE_METHOD = "result"
"""By which 3.6 tells a compile that is under way from a kernel that it launches."""


def triton_version() -> str:
    """The installed Triton's version, without importing it, or an empty string."""
    # The parent of a recording need not know it, and has no other use for the module.
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("triton")
    # Builds that come with PyTorch or for another system have other names: pytorch-triton-rocm, triton-windows.
    for name in importlib.metadata.packages_distributions().get("triton", ()):
        return importlib.metadata.version(name)
    return str(getattr(sys.modules.get("triton"), "__version__", ""))


def untried_note() -> str:
    """What to say of a Triton that is newer than every version that irscope was tried with, or an empty string."""
    version = triton_version()
    if not version or minor_of(version) <= minor_of(TRIED_VERSIONS[-1]):
        return ""
    return f"irscope was not tried with Triton {version}, only with {', '.join(TRIED_VERSIONS)}: check what it shows."


def minor_of(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    # 3.10.0, 3.7.0+git1234abc, 3.10.0.dev20261101, 4.0a1
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
