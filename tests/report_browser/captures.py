"""Captures for the report's tests, put together from the real texts of tests/data/diff, with no Triton."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from irscope.model.capture import (
    Artifact,
    Capture,
    Environment,
    Failure,
    Kernel,
    Launch,
    PassSnapshot,
    Resources,
    SourceFile,
    Target,
)
from irscope.model.layout import LayoutRow, LayoutUse, layout_from_json
from irscope.plan import PassPlan
from irscope.store.file import load
from tests.analysis.snapshots import FOLDER, snapshots, stage_text
from tests.memory.test_global_costs import capture as with_launch

KERNELS = (FOLDER / "kernels.py").read_text("utf-8")

BLOCKED_MAP: dict[str, Any] = {
    "alias": "#blocked",
    "encoding": "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
    "shape": [32, 16],
    "elements": ["f32"],
    "buffers": 1,
    "operations": [
        {"name": "tt.load", "lines": [3], "values": ["%x"], "python": ["softmax.py:5"], "chains": [["softmax.py:5"]]}
    ],
    "bases": {
        "register": [[0, 1], [0, 2]],
        "lane": [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]],
        "warp": [[8, 0], [16, 0]],
        "block": [],
    },
    "out_dims": [["dim0", 32], ["dim1", 16]],
}


def _stage(name: str, warps: int) -> str:
    # The samples' paths were cut by the folder they were made in, in some stages more than in others.
    text = stage_text(f"softmax.cuda90.{name}", warps)
    return text.replace("diff/kernels.py", "kernels.py").replace('directory: "diff"', 'directory: ""')


@lru_cache
def softmax(warps: int = 4) -> Capture:
    """A softmax for sm_90, whole: its passes through the LLVM dialect, and every stage's text."""
    modules = snapshots("softmax.cuda90")
    passes: list[PassSnapshot] = []
    seen: dict[str, int] = {}
    stage = "ttir"
    for index, ((title, before), (_, after)) in enumerate(pairwise(modules)):
        if "ConvertTritonToTritonGPU" in title:
            stage = "ttgir"
        if after.count("llvm.func") and stage == "ttgir":
            stage = "llir"
        seen[title] = seen.get(title, 0) + 1
        changed = before != after
        passes.append(
            PassSnapshot(
                index=index,
                stage=stage,
                name=title,
                occurrence=seen[title],
                argument=title.lower(),
                changed=changed,
                text=after if changed else None,
                duration_us=100 + 37 * index,
            )
        )
    ttgir = next(item.text for item in reversed(passes) if item.stage == "ttgir" and item.text)
    ttir = next(item.text for item in reversed(passes) if item.stage == "ttir" and item.text)
    return Capture(
        launch=Launch(
            kernel=Kernel("softmax", "kernels.py", 24, "\n".join(KERNELS.split("\n")[22:34]), 23),
            signature=(("x_ptr", "*fp32"), ("y_ptr", "*fp32"), ("n", "i32"), ("BLOCK", "constexpr")),
            constants=(("BLOCK", "1024"),),
            attributes=(("x_ptr", "tt.divisibility=16"),),
            options=(("num_ctas", 1), ("num_stages", 3), ("num_warps", warps)),
            grid=(16, 1, 1),
        ),
        target=Target("cuda", "90", 32),
        artifacts=(
            Artifact("source", modules[0][1], 10),
            Artifact("ttir", ttir, 500),
            Artifact("ttgir", ttgir, 5000),
            Artifact("llir", _stage("llir", warps), 20000),
            Artifact("ptx", _stage("ptx", warps), 3000),
            Artifact("cubin", b"\x7fELF\x00", 9000),
            Artifact("sass", _stage("sass", warps)),
        ),
        snapshots=tuple(passes),
        layouts=(layout_from_json(BLOCKED_MAP),),
        resources=Resources(registers=168, spill_store_bytes=32, spill_load_bytes=32, shared_bytes=4096, barriers=1),
        environment=Environment(triton_version="3.9.0", command="irscope dump kernels.py"),
        sources=(SourceFile("kernels.py", KERNELS),),
        compile_us=41_000,
        snapshot_level="all",
    )


@lru_cache
def attention(alignment: int = 512, offset: int = 0, width: int = 64, *, recorded: bool = True) -> Capture:
    """Flash attention for sm_90 with its launch, and with the IR after shared memory was allocated.

    Args:
        alignment: bytes, of its tensors.
        offset: elements, of its tensors within their storage.
        width: elements from row to row.
        recorded: whether it holds what its launch was given.
    """
    whole = with_launch(alignment, offset, width)
    launch = whole.launch if recorded else replace(whole.launch, record=None, grid=None)
    total = 0

    def placed(match: re.Match[str]) -> str:
        nonlocal total
        offset, total = total, total + (32768 if "2x128x64" in match[2] else 16384)
        return f"{match[1]} {{allocation.offset = {offset} : i32}} : {match[2]}"

    # Values are renamed between the two.
    text = whole.text("ttgir").replace("%k_", "%key_")
    text = re.sub(r"(ttg\.local_alloc\b[^:]*?) : (.*)", placed, text)
    text = text.replace("module attributes {", f"module attributes {{ttg.shared = {total} : i32, ", 1)
    snapshot = PassSnapshot(0, "llir", "allocate_shared_memory_nv", 1, changed=True, text=text)
    return whole.with_(launch=launch, snapshots=(snapshot,))


@lru_cache
def without_a_pass() -> Capture:
    """The same with other warps, one pass switched off, and one whose text was left out."""
    capture = softmax(8)
    first, second, *rest = capture.snapshots
    off = PassSnapshot(0, first.stage, first.name, 1, first.argument, outcome="skipped")
    unknown = PassSnapshot(1, second.stage, second.name, 1, second.argument, changed=None)
    return capture.with_(snapshots=(off, unknown, *rest), plan=PassPlan.parse(f"-{first.name}"))


@lru_cache
def failed() -> Capture:
    """The same, failed in a pass in the middle."""
    capture = softmax()
    kept = capture.snapshots[:12]
    last = capture.snapshots[12]
    broken = PassSnapshot(12, last.stage, last.name, last.occurrence, last.argument, outcome="failed")
    return capture.with_(
        snapshots=(*kept, broken),
        artifacts=capture.artifacts[:2],
        status="failed",
        failure=Failure("pass", "the pass gave up", last.stage, broken.label, "kernels.py:5:3: error: no such thing"),
        resources=Resources(),
        layouts=(),
    )


HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'`${1}\u2028\u2029\x1b[31m\x00]]>-->"
)


@lru_cache
def predicted() -> Capture:
    """A kernel of a library with its SASS and its launch, whose time is predicted."""
    return load(Path(__file__).parents[1] / "data" / "counters" / "rms_norm_forward_kernel.irscope")


@lru_cache
def hostile() -> Capture:
    """A capture that has markup, quotes, line separators and terminal codes wherever a text can stand."""
    bad = HOSTILE
    text = f'module {{\n  "tt.{bad}"() : () -> () loc("{bad}":1:1)\n  %0 = arith.constant 1 : i32\n}}\n#{bad}\n'
    other = text.replace("1 : i32", f"2 : i32 // {bad}")
    return Capture(
        launch=Launch(
            kernel=Kernel(bad, f"/tmp/{bad}.py", 1, f"def f():\n    '''{bad}'''\n", 1),
            signature=((bad, bad),),
            constants=((bad, bad),),
            attributes=((bad, bad),),
            options=((bad, bad), ("num_warps", 4)),
        ),
        target=Target("cuda", "90", 32),
        artifacts=(Artifact("source", text), Artifact("ttgir", other), Artifact(bad, bad), Artifact("ptx", bad)),
        snapshots=(
            PassSnapshot(0, bad, bad, 1, bad, bad, changed=True, text=other, scope=bad),
            PassSnapshot(1, bad, "lone\udc80surrogate", 1, outcome="failed"),
        ),
        layouts=(LayoutRow(bad, bad, (4,), (bad,), operations=(LayoutUse(bad, (1,), (bad,), (bad,), ((bad,),)),)),),
        environment=Environment(triton_version=bad, command=bad, tools=((bad, bad),)),
        sources=(SourceFile(bad, bad), SourceFile(f"/tmp/{bad}.py", f"x = 1\n# {bad}\n")),
        status="failed",
        failure=Failure("pass", bad, bad, f"{bad}:{bad}#1", bad),
        notes=(bad,),
    )
