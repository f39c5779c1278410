"""`with irscope.capture():` around launches in this process, here on the virtual GPU's driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

SCRIPT = """
import irscope
from irscope.model.capture import Target
from irscope.record.virtual.gpu import virtual_gpu
from triton.runtime.jit import MockTensor, JITFunction
import no_torch, triton

class Float32:
    def __str__(self):
        return "torch.float32"

x = MockTensor(Float32())
with virtual_gpu(Target.parse("cuda:90")):
    launch = lambda: no_torch.axpy.warmup(x, x, 1000, 2.0, BLOCK=256, grid=(4,))
    before = launch()
    with irscope.capture() as recording:
        launch()
        launch()
    assert [capture.name for capture in recording] == ["axpy"], recording
    assert recording[0].status == "ok", recording[0].failure
    assert recording[0].cubin == before.asm["cubin"]
    with irscope.capture(plan="-coalesce") as other:
        without = launch()
    assert [s.outcome for s in other[0].snapshots if s.name == "coalesce"] == ["skipped"]
    after = launch()
    assert after is before, "the kernel compiled before is still the one"
    with irscope.capture() as third:
        launch()
    assert third[0].cubin == recording[0].cubin
    try:
        with irscope.capture():
            raise KeyError("mine")
    except KeyError:
        pass
from triton.compiler import compiler
from triton.backends.nvidia import compiler as nvidia
assert triton.compile is compiler.compile and triton.compile.__module__ == "triton.compiler.compiler"
assert nvidia.ir.__class__.__name__ == "module"
assert "print" not in vars(nvidia)
assert not isinstance(vars(JITFunction).get("compile"), property)
assert "device_caches" not in vars(JITFunction)
assert nvidia.CUDABackend.add_stages.__module__ == "triton.backends.nvidia.compiler"
import os
print("fine", flush=True)
os._exit(0)
"""


@pytest.mark.triton
def test_a_block_records_its_compiles_and_nothing_sticks() -> None:
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parents[1] / "kernels")])
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert answer.stdout.strip() == "fine", answer.stderr
