"""Captures for the tests of lives: planted texts, stored dumps, and compiles with one location for each operation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import irscope
from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target
from tests.analysis.snapshots import snapshots

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
    return irscope.record(_SAMPLE, target=target, **how)


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
