"""The stored pass dumps as captures with the stages of their passes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target
from tests.analysis.snapshots import snapshots


@cache
def staged(name: str) -> Capture:
    """`matmul.cuda90`: every pass, those that changed nothing too."""
    modules = snapshots(name)
    stage, passes = "ttir", list[PassSnapshot]()
    seen: dict[str, int] = {}
    for index, ((title, before), (_, after)) in enumerate(pairwise(modules)):
        if "ConvertTritonToTritonGPU" in title:
            stage = "ttgir"
        if "llvm.func" in after:
            stage = "llir"
        seen[title] = seen.get(title, 0) + 1
        changed = before != after
        text = after if changed else None
        passes.append(PassSnapshot(index, stage, title, seen[title], title.lower(), changed=changed, text=text))
    target = Target.parse("hip:gfx942" if "gfx942" in name else f"cuda:{name.partition('cuda')[2]}")
    source = (Artifact("source", modules[0][1]),)
    return Capture(Launch(Kernel("kernel", "kernels.py")), target, artifacts=source, snapshots=tuple(passes))
