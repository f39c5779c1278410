"""`irscope.listen`: the captures of what a process compiles, beside others' hooks, against recordings of the same."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import irscope
from irscope.errors import PlanError, UsageError

pytestmark = [pytest.mark.triton, pytest.mark.newest]

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def add(x, y, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o, mask=o < n) + 1, mask=o < n)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNEL)
    return tmp_path / "kernels.py"


@pytest.fixture
def knobs() -> Iterator[Any]:
    from triton import knobs

    with knobs.compilation.scope(), knobs.runtime.scope():
        yield knobs


def compiled(path: Path, size: int) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "B": "constexpr"}
    source = ASTSource(module.add, signature, {"B": size}, {(0,): [["tt.divisibility", 16]]})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))


def compiled_and_written(path: Path, listening: Any) -> None:
    assert compiled(path, 32).asm["cubin"]
    listening.wait()


def test_a_compile_is_recorded_beside_other_listeners(kernel: Path, tmp_path: Path, knobs: Any) -> None:
    others: list[bool] = []
    other = knobs.compilation.listener = lambda **said: others.append(said["cache_hit"])
    with irscope.listen(tmp_path / "seen") as listening:
        made = compiled(kernel, 128)
        listening.wait()
        (path,) = (tmp_path / "seen").glob("*.irscope")
        first = irscope.load(path)
        compiled(kernel, 128)
        listening.wait()
        assert (listening.count, listening.problem) == (1, "")
        # Another sets itself before this one, as this one did, and stays.
        ours = knobs.compilation.listener
        later = knobs.compilation.listener = lambda **said: ours(**said)
    assert knobs.compilation.listener is later
    compiled(kernel, 64)
    assert (listening.count, others) == (1, [False, True, False])
    knobs.compilation.listener = other
    listening.close()
    recorded = irscope.record(kernel, kernel="add", signature="*fp32:16, *fp32, i32, 128", target="cuda:90")
    assert first.id == recorded.id
    for artifact in first.artifacts:
        assert artifact.data == next(one.data for one in recorded.artifacts if one.stage == artifact.stage)
        assert artifact.data == made.asm[artifact.stage]
    assert (first.resources.registers, first.sources) == (recorded.resources.registers, recorded.sources)


def test_a_plan_a_bound_and_a_full_disk(kernel: Path, tmp_path: Path, knobs: Any) -> None:
    hooked: list[int] = []

    def hook(*given: Any) -> Any:
        hooked.append(len(given))
        return ("other", "other")

    knobs.runtime.add_stages_inspection_hook = hook
    plain = compiled(kernel, 512)
    with irscope.listen(tmp_path / "planned", plan="-ttgir:coalesce", max_bytes=1) as listening:
        planned = compiled(kernel, 512)
        listening.wait()
        (path,) = (tmp_path / "planned").glob("*.irscope")
        capture = irscope.load(path)
        compiled(kernel, 64)
        listening.wait()
        # The oldest goes first, and what is being written never.
        (left,) = (tmp_path / "planned").glob("*.irscope")
        assert (left != path, listening.count) == (True, 2)
        shutil.rmtree(tmp_path / "planned")
        (tmp_path / "planned").touch()
        with pytest.warns(UserWarning, match="a compile was not recorded"):
            compiled_and_written(kernel, listening)
        assert listening.problem
    assert knobs.runtime.add_stages_inspection_hook is hook
    assert 5 in hooked
    skipped = [one.label for one in capture.snapshots if one.outcome == "skipped"]
    assert skipped == ["ttgir:coalesce#1"]
    assert planned.asm["ttgir"] == capture.text("ttgir") != plain.asm["ttgir"]
    signature = "*fp32:16, *fp32, i32, 512"
    recorded = irscope.record(kernel, kernel="add", signature=signature, target="cuda:90", plan="-ttgir:coalesce")
    assert (capture.id, capture.texts["ptx"]) == (recorded.id, recorded.texts["ptx"])
    # Neither is taken for the other from Triton's cache.
    assert compiled(kernel, 512).asm["ttgir"] == plain.asm["ttgir"]
    with pytest.raises(UsageError, match="max_bytes"):
        irscope.listen(tmp_path, max_bytes=0)
    with pytest.raises(PlanError):
        irscope.listen(tmp_path, plan="canonicalizer")
