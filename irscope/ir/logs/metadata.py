"""Reads Triton's own metadata of a compiled kernel, as its cache and others' traces hold it: launch and target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from irscope.ir.logs.launch_text import launch_of_module, options_of_module, target_named
from irscope.model.capture import Kernel, Launch, Target
from irscope.model.plain import tupled

__all__ = ["launch_of_metadata", "number", "shown_metadata", "target_of_metadata"]

# Metadata that Triton adds to the options after a compile, and paths on the compiling machine.
_NOT_OPTIONS = frozenset((
    "cluster_scheduling", "global_scratch_align", "global_scratch_size", "hash", "name", "profile_scratch_align",
    "profile_scratch_size", "shared", "target", "tensordesc_meta", "tmem_size", "triton_version", "extern_libs",
))  # fmt: skip
_HIDDEN = ("hash", "target", "triton_version")


def launch_of_metadata(kernel: str, metadata: Mapping[str, Any], texts: Mapping[str, str]) -> Launch:
    """The launch that a kernel was compiled for, as far as its metadata and the texts of its stages contain it."""
    options = {key: tupled(value) for key, value in metadata.items() if key not in _NOT_OPTIONS and not key.isupper()}
    if not options:
        options = {**options_of_module(texts.get("ttgir") or texts.get("glir") or "")}
    text = texts.get("source") or texts.get("ttir") or texts.get("ttgir") or ""
    launch = launch_of_module(text)
    return replace(
        launch,
        kernel=Kernel(kernel, launch.kernel.file, launch.kernel.line),
        options=tuple(sorted(options.items())),
    )


def shown_metadata(metadata: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The metadata that a capture holds."""
    return tuple(sorted((key, tupled(value)) for key, value in metadata.items() if key not in _HIDDEN))


def target_of_metadata(metadata: Mapping[str, Any]) -> Target | None:
    """The target that metadata names; None if it names none."""
    target = metadata.get("target")
    if isinstance(target, Mapping):
        fields = cast("Mapping[str, Any]", target)
        name = f"{fields.get('backend', '')}:{fields.get('arch', '')}"
        return target_named(name, number(fields.get("warp_size")) or 0)
    if isinstance(target, (list, tuple)) and len(cast("list[Any]", target)) >= 2:
        # Triton 2.2 and before: ["cuda", 90].
        backend, arch = cast("list[Any]", target)[:2]
        return target_named(f"{backend}:{arch}")
    return None


def number(value: Any) -> int | None:
    """An integer that is one; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
