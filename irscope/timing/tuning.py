"""Configurations of a kernel by predicted time, and what is printed of them for `@triton.autotune`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from irscope.device.measurement import Timing
from irscope.model.capture import Capture
from irscope.timing.predict import Prediction

__all__ = ["OPTIONS", "Candidate", "Ranked", "Size", "Tuning", "config_text", "perf_model_text"]

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What triton.Config takes beside the tl.constexpr values."""
Size = tuple[tuple[str, int], ...]
"""(argument, value) of one point; empty for the recorded launch."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration: what distinguishes it from the others, and its compile."""

    config: tuple[tuple[str, Any], ...]
    """The tl.constexpr values and options that the configurations differ in."""
    capture: Capture | None
    failure: str = ""
    """Why it cannot be timed: it did not compile, or does not fit."""

    @property
    def name(self) -> str:
        """`BLOCK_M=64 num_warps=4`."""
        return " ".join(f"{key}={value}" for key, value in self.config)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A configuration with its predicted time at each size."""

    candidate: Candidate
    predictions: tuple[Prediction, ...]
    """One for each size; empty where it cannot be timed."""
    measured: Timing | None = None
    """On the GPU, of the launch that the script makes; None where it was not measured."""
    why_not_measured: str = ""

    @property
    def seconds(self) -> float:
        """Of all sizes together."""
        return sum(one.seconds for one in self.predictions) if self.predictions else inf


@dataclass(frozen=True, slots=True)
class Tuning:
    """The configurations of a kernel, the fastest by prediction first."""

    kernel: str
    part: str
    sizes: tuple[Size, ...]
    rows: tuple[Ranked, ...]
    failed: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()

    @property
    def fastest_first(self) -> tuple[Ranked, ...]:
        """Those that were measured by their times, then the others by prediction."""
        timed = [row for row in self.rows if row.measured is not None]
        rest = [row for row in self.rows if row.measured is None]
        return (*sorted(timed, key=lambda row: row.measured.median_us if row.measured else inf), *rest)

    def best(self, number: int) -> Ranked:
        """The configuration that is predicted to be the fastest at one size."""
        return min(self.rows, key=lambda row: row.predictions[number].seconds)


def config_text(one: Candidate) -> str:
    """`triton.Config({'BLOCK_M': 64}, num_warps=4, num_stages=3)`."""
    constants = {name: value for name, value in one.config if name not in OPTIONS}
    options = "".join(f", {name}={value}" for name, value in one.config if name in OPTIONS)
    return f"triton.Config({constants!r}{options})"


def perf_model_text(tuning: Tuning) -> str:
    """Python: the predictions as a `perf_model` for `prune_configs_by`."""
    names = [name for name, _ in tuning.rows[0].candidate.config] if tuning.rows else []
    sizes = [name for name, _ in tuning.sizes[0]] if tuning.sizes else []
    lines = [
        f"# Predicted for {tuning.part}; microseconds by ({', '.join(names)}).",
        "PREDICTED_US = {",
    ]
    for number, size in enumerate(tuning.sizes):
        lines.append(f"    {tuple(value for _, value in size)!r}: {{")
        for row in tuning.rows:
            key = tuple(value for _, value in row.candidate.config)
            lines.append(f"        {key!r}: {row.predictions[number].seconds * 1e6:.2f},")
        lines.append("    },")
    lines += [
        "}", "", "",
        "def perf_model(**arguments):",
        f'    """The predicted time of a configuration, at the nearest size by {", ".join(sizes) or "none"}."""',
        f"    sizes = [arguments[name] for name in {sizes!r}]",
        "    def apart(size):",
        "        return sum(abs((a + 1) / (b + 1) - 1) for a, b in zip(sizes, size))",
        "",
        "    nearest = min(PREDICTED_US, key=apart)",
        f"    config = tuple(arguments[name] for name in {names!r})",
        '    return PREDICTED_US[nearest].get(config, float("inf"))',
        "", "",
        "# @triton.autotune(configs=[…], key=[…], prune_configs_by={\"perf_model\": perf_model, \"top_k\": 3})",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
