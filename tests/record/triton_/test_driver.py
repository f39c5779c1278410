"""Registers and spills that loading reports, against cuobjdump and the assembly's own metadata."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from irscope.record.triton.driver import binary_use
from tests.record.process.test_annotations_disassembly import usage_of


@pytest.mark.triton
@pytest.mark.parametrize(
    ("target", "block"), [("cuda:90", 32), pytest.param("cuda:80", 64, marks=pytest.mark.newest), ("hip:gfx942", 32)]
)
def test_against_the_vendors_tools(target: str, block: int, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="the binaries are compiled by Triton, which is not installed")
    from triton.compiler import ASTSource

    from irscope.model.capture import Target
    from irscope.record.triton import api as triton_api
    from irscope.record.triton.sample_kernel import sample_matmul

    triton_api.silence_known_noise()
    signature = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp32") | {"size": "i32", "BLOCK": "constexpr"}
    src = ASTSource(sample_matmul, signature, {"BLOCK": block})
    with triton_api.private_cache(tmp_path):
        kernel = triton_api.compile_function()(
            src, target=triton_api.gpu_target(Target.parse(target)), options={"num_warps": 1}
        )
    binary = kernel.asm["cubin" if "cubin" in kernel.asm else "hsaco"]
    registers, spills = binary_use(binary, kernel.name)
    if "cubin" in kernel.asm:
        path = tmp_path / "sample.cubin"
        path.write_bytes(binary)
        command = [triton_api.nvidia_tools()["cuobjdump"], "-res-usage", path]
        expected = usage_of(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert (registers, spills * 4) == (expected["REG"], expected["STACK"])
        assert (spills > 0) == (block == 64)
    else:
        found = dict(re.findall(r"\.(vgpr_count|vgpr_spill_count): +(\d+)", kernel.asm["amdgcn"]))
        assert (registers, spills) == (int(found["vgpr_count"]), int(found["vgpr_spill_count"]))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(200), b".vgpr_count"])
def test_what_cannot_be_read_gives_stand_ins(data: bytes) -> None:
    assert binary_use(data, "kernel") == (32, 0)
