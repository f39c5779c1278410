"""What a recording says of `@triton.autotune`d kernels: how many configurations there are, and which were compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irscope.capture import Autotuning, Capture


def autotuning_notes(captures: Iterable[Capture], asked: str) -> Iterator[str]:
    """A sentence on each autotuned kernel of which not every configuration was compiled.

    Args:
        captures: of one recording.
        asked: what `--config` said: `first`, `all`, an index, or KEY=VALUE.
    """
    tunings: dict[str, dict[int, Autotuning]] = {}
    for capture in captures:
        if (tuning := capture.launch.autotuning) is not None:
            tunings.setdefault(capture.name, {})[tuning.index] = tuning
    for kernel, compiled in tunings.items():
        # Those that the part has not the resources for come before the one that is launched.
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
