"""Where a launch stands among the configurations of its `@triton.autotune`, or of TorchInductor's heuristic."""

from __future__ import annotations

from dataclasses import dataclass, field

from irscope.model.plain import ANY_VALUE

__all__ = ["Autotuning"]


@dataclass(frozen=True, slots=True)
class Autotuning:
    """Where a launch stands among the configurations of its `@triton.autotune`, or of TorchInductor's heuristic."""

    index: int = field(metadata=ANY_VALUE)
    """0-based among all configurations, in the order they were given; -1 for one that the script's `prune_configs_by`
    made itself."""
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

    @property
    def number_text(self) -> str:
        """`3 of 8`, or that it is none of these."""
        return f"{self.index} of {self.count}" if self.index >= 0 else f"another than the {self.count} given"

    def is_named(self, text: str) -> bool:
        """Whether `--config TEXT` means this configuration: its index, or KEY=VALUE, one of its settings."""
        if text.isdecimal() and len(text) < 10:
            return self.index == int(text)
        # BLOCK_M: 64, num_warps: 4, num_ctas: 1, …
        name, _, value = text.partition("=")
        return f"{name}: {value}" in self.config.split(", ")
