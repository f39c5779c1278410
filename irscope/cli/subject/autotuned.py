"""Messages about `@triton.autotune`d kernels: how many configurations there are, and which were compiled."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.model.capture import Autotuning
from irscope.store.shelf import StoredCaptures


def autotuning_notes(captures: StoredCaptures, asked: str) -> Iterator[str]:
    """A sentence about each autotuned kernel of which not every configuration was compiled.

    Args:
        captures: of one recording.
        asked: the value of `--config`: `first`, `all`, an index, or KEY=VALUE.
    """
    tunings: dict[str, dict[int, Autotuning]] = {}
    for file in captures.files:
        if (tuning := file.autotuning) is not None:
            tunings.setdefault(file.name, {})[tuning.index] = tuning
    for kernel, compiled in tunings.items():
        # Configurations that do not fit come before the one that is launched.
        *_, one = compiled.values()
        kept = one.count if one.kept is None else one.kept
        if len(compiled) == one.count:
            continue
        left = f"its own pruning (prune_configs_by) leaves {kept} of {one.count} configurations"
        if asked not in ("first", "all") and not any(tuning.is_named(asked) for tuning in compiled.values()):
            choices = f"{left}, and --config {asked} is none of them"
            if kept == one.count:
                choices = f"--config {asked} is none of its {one.count} configurations"
            yield (
                f"{kernel} is autotuned: {choices}; configuration {one.index} ({one.config}) was compiled in its place."
            )
            continue
        done = f"{left}; {len(compiled)} compiled"
        if kept == one.count:
            done = f"{len(compiled)} of {one.count} configurations compiled"
        rest = "" if asked == "all" or len(compiled) == kept else "; --config all takes every one"
        yield f"{kernel} is autotuned: {done}{rest}."
