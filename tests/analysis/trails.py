"""Captures for the tests of lives: planted texts, stored dumps, and compiles with one location for each operation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import irscope
from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target
from tests.analysis.snapshots import snapshots
from tests.recording import record_without_sass

_SAMPLE = Path(irscope.__file__).parent / "record" / "triton" / "sample_kernel.py"


def through(*texts: str | None, stage: str = "ttgir") -> Capture:
    """A capture whose passes `p1`, `p2`, … left these texts; None for one that was not kept."""
    made = tuple(
        PassSnapshot(
            index, stage, f"p{index + 1}", 1, f"p{index + 1}", changed=None if text is None else True, text=text
        )
        for index, text in enumerate(texts[1:])
    )
    source = (Artifact("source", texts[0] or ""),)
    return Capture(Launch(Kernel("kernel", "k.py")), Target.parse("cuda:90"), artifacts=source, snapshots=made)


@cache
def dumped(name: str) -> Capture:
    """A stored pass dump as a capture."""
    return through(*(text for _, text in snapshots(name)))


@cache
def sample(target: str) -> Capture:
    """The sample matmul with all its texts; needs Triton, not torch."""
    types = "*fp16:16, *fp16:16, *fp32:16, i32:16"
    how = {"kernel": "sample_matmul", "signature": types, "constexprs": {"BLOCK": 64}, "snapshots": "all"}
    return record_without_sass(_SAMPLE, target=target, layouts=False, **how)


MODULE = """#loc = loc("k.py":1:0)
#a = #ttg.blocked<{{sizePerThread = [1]}}>
#b = #ttg.blocked<{{sizePerThread = [2]}}>
module {{
  tt.func public @kernel(%x: tensor<8xf32, #a>, %y: tensor<8xf32, #a>, %p: tensor<8x!tt.ptr<f32>, #b>) {{
{body}
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""


def module(*lines: str) -> str:
    """A kernel of such lines. `conv %1 x 7` is a convert_layout of %x on line 7 of the Python; `0` is no known line."""
    return MODULE.format(body="\n".join(map(_line, lines)))


def _line(text: str) -> str:
    words = text.split()
    location = "unknown" if words[-1] == "0" else f'"k.py":{words[-1]}:5'
    if words[0] == "conv":
        _, result, operand, _ = words
        return f"    {result} = ttg.convert_layout %{operand} : tensor<8xf32, #a> -> tensor<8xf32, #b> loc({location})"
    return f"    {' '.join(words[:-1])} loc({location})"


def store(value: str, line: int = 9) -> str:
    """A line that reads a value."""
    return f"tt.store %p, {value} : tensor<8x!tt.ptr<f32>, #b> {line}"


def _read(value: str) -> str:
    return f"tt.print {value} : tensor<8xf32, #b> 10"


_LOAD = "%1 = tt.load %p : tensor<8x!tt.ptr<f32>, #b> 7"
_COPY = (
    "%a = ttg.local_alloc : () -> !ttg.memdesc<8xf32> 9",
    "%t = ttg.async_copy_global_to_local %p, %a : tensor<8x!tt.ptr<f32>, #b> 7",
    "%9 = ttg.local_load %a token %t : !ttg.memdesc<8xf32> -> tensor<8xf32, #b> 7",
)
LOAD = module(_LOAD, store("%1"))
COPY = module(*_COPY, store("%9"))


def eventful() -> Capture:
    """Lives of every kind: two equal conversions made beside a load, one of them removed, the load rewritten."""
    return through(
        LOAD,
        module(_LOAD, "conv %2 x 7", "conv %3 x 7", store("%1"), _read("%2"), _read("%3")),
        module(_LOAD, "conv %2 x 7", store("%1"), _read("%2"), _read("%2")),
        module(*_COPY, "%b = ttg.local_alloc %x : (tensor<8xf32, #a>) -> !ttg.memdesc<8xf32> 7", store("%9")),
        None,
    )
