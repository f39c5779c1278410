"""Mends ten slow kernels through the calls of `irscope mcp` alone: `python -m tests.cli.mcp.fixing [NAME…] [--time]`.

A client that knows nothing of Triton: it records a script, asks `why`, sets what the first suggestion says that helped,
or that nothing could try, among the arguments that the script takes, and records it again, until nothing is left to
set. Each kernel is slow for one known reason (`slow_kernels.py`), and counts as mended if its finding went and the
figure that the reason is about is better. With --time, on a GPU, both ways are timed too; the script then compares its
results with torch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("slow_kernels.py")
TARGET = "cuda:90"
Knobs = dict[str, int | str]
Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""(tool, arguments) → its answer."""

# stride divisible by 16    step = 1    num_warps=8
_DIVISIBLE = re.compile(r"(\w+) divisible by (\d+)$")
_SET = re.compile(r"(\w+) ?= ?(\w+)$")
# input_precision="tf32" or "tf32x3", if …
_SAID = re.compile(r'(\w+)="(\w+)"')
_ROUNDS = 3


@dataclass(frozen=True)
class Slow:
    """A kernel, the arguments that make it slow, and what is known of it."""

    name: str
    knobs: Knobs
    code: str
    """The finding that tells of the reason."""
    figure: str
    """What the reason is about; less is better."""


CASES = (
    Slow("row", {"stride": 4099}, "IRS101", "memory instructions"),
    Slow("row_out", {"stride": 4099}, "IRS102", "memory instructions"),
    Slow("view", {"x_begin": 1}, "IRS101", "memory instructions"),
    Slow("stepped", {"step": 2}, "IRS103", "sectors"),
    Slow("counted", {"n": 67108859}, "IRS101", "memory instructions"),
    Slow("product", {"stride": 4097, "num_stages": 3}, "IRS201", "loads waited for"),
    Slow("one_stage", {"num_stages": 1}, "IRS201", "loads waited for"),
    Slow("exact", {"input_precision": "ieee"}, "IRS601", "instructions"),
    Slow("held", {"num_warps": 4}, "IRS501", "spilled bytes"),
    Slow("crowded", {"num_warps": 4}, "IRS502", "registers"),
)


@dataclass(frozen=True)
class Mended:
    """What the client came to."""

    slow: Slow
    knobs: Knobs
    followed: tuple[str, ...]
    """The suggestions, in order."""
    findings: tuple[tuple[str, ...], tuple[str, ...]]
    """Codes before and after."""
    figures: tuple[Mapping[str, int], Mapping[str, int]]

    @property
    def is_better(self) -> bool:
        """Whether the finding went, and its figure is less."""
        before, after = (figures[self.slow.figure] for figures in self.figures)
        return self.slow.code in self.findings[0] and self.slow.code not in self.findings[1] and after < before


async def mend(ask: Ask, slow: Slow) -> Mended:
    """Mend a kernel by what `why` says."""
    knobs, followed, rounds = dict(slow.knobs), list[str](), list[tuple[tuple[str, ...], Mapping[str, int]]]()
    while True:
        arguments = [slow.name, *(f"{name}={value}" for name, value in knobs.items())]
        answer = await ask("record", {"file": str(SCRIPT), "arguments": arguments, "target": TARGET})
        (row,) = answer["captures"]
        found = (await ask("why", {"capture": row["id"], "tries": 4}))["findings"]
        rounds.append((tuple(dict.fromkeys(one["code"] for one in found)), await _figures(ask, row, found)))
        step = next(_steps(found, knobs), None) if len(rounds) <= _ROUNDS else None
        if step is None:
            break
        followed.append(step[0])
        knobs |= step[1]
    (codes, figures), (last_codes, last_figures) = rounds[0], rounds[-1]
    return Mended(slow, knobs, tuple(followed), (codes, last_codes), (figures, last_figures))


def _steps(findings: list[Any], knobs: Knobs) -> Iterator[tuple[str, Knobs]]:
    """(suggestion, what to set) of those that can be followed, of the worst finding first."""
    for finding in findings:
        for one in finding["suggestions"]:
            changes = one["changes"] if one["outcome"] == "better" else []
            chosen = dict(pair for text in changes for pair in _chosen(text, knobs))
            if not one["changes"]:
                chosen = {name: value for name, value in _SAID.findall(one["text"]) if name in knobs}
            if {name: value for name, value in chosen.items() if knobs[name] != value}:
                yield f"{finding['code']}: {', '.join(changes) or one['text']}", chosen


def _chosen(change: str, knobs: Knobs) -> Iterator[tuple[str, int | str]]:
    if (found := _DIVISIBLE.match(change)) is not None:
        for name in (found[1], f"{found[1]}_begin"):
            value = knobs.get(name)
            if isinstance(value, int):
                yield name, -(-value // int(found[2])) * int(found[2])
    elif (found := _SET.match(change)) is not None and found[1] in knobs:
        yield found[1], int(found[2]) if found[2].isdecimal() else found[2]


async def _figures(ask: Ask, row: Mapping[str, Any], findings: list[Any]) -> Mapping[str, int]:
    """What a capture takes: accesses of global memory of the whole launch, code and registers of all its warps."""
    warps = row["options.num_warps"]
    costs = (await ask("costs", {"capture": row["id"]}))["costs"]
    traffic = [one["access"]["launch"] for one in costs if one["kind"] == "global"]
    return {
        "instructions": row["instructions"] * warps,
        "memory instructions": sum(one["instructions"][1] for one in traffic),
        "sectors": sum(one["units"][1] for one in traffic),
        "registers": row["registers"],
        "spilled bytes": row["spilled_bytes"] * warps * 32,
        "loads waited for": sum(one["code"] == "IRS201" for one in findings),
    }


def microseconds(slow: Slow, knobs: Knobs) -> float:
    """The time of a launch on the GPU that is here."""
    words = [f"{name}={value}" for name, value in knobs.items()]
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), slow.name, *words, "--bench"], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{slow.name} {' '.join(words)}: {ended.stderr}")
    return float(ended.stdout)


def told(mended: Mended, times: tuple[float, float] | None) -> str:
    """A row of a Markdown table."""
    before, after = mended.figures
    name = mended.slow.figure
    followed = "; ".join(mended.followed) or "nothing"
    found = [" ".join(codes) or "none" for codes in mended.findings]
    cells = [mended.slow.name, " → ".join(found), followed, f"{name} {before[name]:,} → {after[name]:,}"]
    cells += [] if times is None else [f"{times[0]:.0f} → {times[1]:.0f} µs ({times[0] / times[1]:.2f}×)"]
    return f"| {' | '.join([*cells, 'better' if mended.is_better else 'NOT BETTER'])} |"


async def _over_a_pipe(slow: list[Slow], timed: bool) -> int:
    """Mend each through a server of its own process; returns how many are better."""
    from mcp import Client, StdioServerParameters

    with tempfile.TemporaryDirectory() as home:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "irscope", "serve", "mcp"], env={**os.environ, "IRSCOPE_HOME": home}
        )
        async with Client(server) as client:

            async def ask(tool: str, arguments: dict[str, Any]) -> Any:
                answer = await client.call_tool(tool, arguments)
                if answer.is_error:
                    raise SystemExit(f"{tool}({arguments}): {answer.content[0].text}")
                return json.loads(answer.content[0].text)

            better = 0
            for one in slow:
                mended = await mend(ask, one)
                times = (microseconds(one, one.knobs), microseconds(one, mended.knobs)) if timed else None
                print(told(mended, times), flush=True)
                better += mended.is_better
    return better


def main() -> None:
    """Mend the kernels that are named, or all."""
    import anyio

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--time", action="store_true")
    wanted = parser.parse_args()
    chosen = [one for one in CASES if not wanted.names or one.name in wanted.names]
    better = anyio.run(_over_a_pipe, chosen, wanted.time)
    print(f"{better} of {len(chosen)} better")
    sys.exit(better < len(chosen) * 0.8)


if __name__ == "__main__":
    main()
