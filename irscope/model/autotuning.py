"""Where a launch stands among the configurations of its `@triton.autotune`, or of TorchInductor's heuristic."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Autotuning"]


@dataclass(frozen=True, slots=True)
class Autotuning:
    """Where a launch stands among the configurations of its `@triton.autotune`, or of TorchInductor's heuristic."""

    index: int
    """0-based among all configurations, in the order they were given."""
    count: int
    config: str
    """The configuration, as Triton prints it."""
    winner: bool | None = None
    """Whether it was the fastest; None where nothing was timed (on the virtual GPU)."""
    median_ms: float | None = None
    """The time Triton took for it."""
    kept: int | None = None
    """How many configurations the script's own pruning (`prune_configs_by`) left; None where that is not known."""

    candidates: tuple[str, ...] = ()
    """All configurations of a heuristic of TorchInductor's; empty for `@triton.autotune`, whose script has them."""

    def is_named(self, text: str) -> bool:
        """Whether `--config TEXT` means this configuration: its index, or KEY=VALUE, one of its settings."""
        if text.isdecimal() and len(text) < 10:
            return self.index == int(text)
        # BLOCK_M: 64, num_warps: 4, num_ctas: 1, …
        name, _, value = text.partition("=")
        return f"{name}: {value}" in self.config.split(", ")
