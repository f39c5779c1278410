"""Running nvdisasm and cuobjdump, and gathering what a kernel takes."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.asm.resources import parse_ptxas_log, read_resources
from irscope.ir.asm.sass import format_sass, parse_sass
from irscope.model.capture import Resources
from irscope.record.process.annotations import Disassembly
from irscope.tools import ToolLimits
from tests.marks import newest_but

DATA = Path(__file__).parents[2] / "data" / "asm"
CUBIN = (DATA / "softmax_90.cubin").read_bytes()
SMALL = ToolLimits(processor_s=0.5, asleep_s=0.5)


def usage_of(text: str) -> dict[str, int]:
    """The last kernel of what `cuobjdump -res-usage` prints: REG, STACK, CONSTANT[0]."""
    return {name: int(value) for name, value in re.findall(r"\b(REG|STACK|CONSTANT\[0\]):(\d+)", text)}


def fake_tool(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def fake_nvdisasm(tmp_path: Path) -> Path:
    """A program that prints the stored listings, as nvdisasm does with the same arguments."""
    body = f"""
name = "live" if "-lrm" in sys.argv else "nvdisasm"
assert open(sys.argv[-1], "rb").read() == open({str(DATA / "softmax_90.cubin")!r}, "rb").read()
print("a warning", file=sys.stderr)
print(open({str(DATA)!r} + "/softmax_90." + name + ".txt").read())
"""
    return fake_tool(tmp_path / "nvdisasm", body)


def test_a_disassembly_is_the_normal_form_with_live_registers(fake_nvdisasm: Path) -> None:
    running = Disassembly(CUBIN, fake_nvdisasm)
    text, _ = running.result()
    assert text is not None
    (function,) = parse_sass(text)
    assert format_sass([function]) == text
    assert len(function.instructions) == 163
    assert not function.opaque
    assert function.padding == 0
    assert all(item.control and item.live for item in function.instructions)
    assert running.result()[0] == "", "it was given once"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit('no such arch')", "nvdisasm failed with exit code 1: no such arch."),
        ("", "nvdisasm printed no function."),
        ("print('nonsense')", "nvdisasm printed no function."),
    ],
)
def test_a_program_that_fails_costs_the_stage_only(tmp_path: Path, body: str, reason: str) -> None:
    running = Disassembly(CUBIN, fake_tool(tmp_path / "nvdisasm", body))
    runs = [*running._runs]
    assert running.result() == ("", reason)
    assert all(run.process.ended for run in runs)


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ("time.sleep(3600)", "did nothing for 0.5 s"),
        ("while True: pass", "took more than 0.5 s of processor time"),
        # What is limited is all that a wrapper starts.
        ("import subprocess; subprocess.run([sys.executable, '-c', 'while True: pass'])", "took more than 0.5 s"),
    ],
    ids=["sleeps", "burns", "starts what burns"],
)
def test_a_program_that_is_too_slow_is_no_missing_one_and_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, limit: str
) -> None:
    tool = fake_tool(tmp_path / "nvdisasm", f"open({str(tmp_path / 'runs')!r}, 'a').write('.')\n{body}")
    running = Disassembly(CUBIN, tool, SMALL)
    runs = [*running._runs]
    listing = running.result()
    assert listing[0] == ""
    assert f"nvdisasm {limit}" in listing[1]
    assert "IRSCOPE_TOOL_SECONDS" in listing[1]
    assert all(run.process.ended for run in runs), "none is left running, however long it would run"

    begun = (tmp_path / "runs").read_text()
    assert Disassembly(CUBIN, tool, SMALL).result() == listing
    assert (tmp_path / "runs").read_text() == begun, "the next command waits for nothing"
    # It is tried again where the cubin, the program, or the limit is another.
    for cubin, limits in ((CUBIN + b" ", SMALL), (CUBIN, replace(SMALL, processor_s=0.4))):
        again = Disassembly(cubin, tool, limits)
        assert again._runs
        again.close()
    monkeypatch.setattr(sys.modules[Disassembly.__module__], "_RETRY_S", -1)
    again = Disassembly(CUBIN, tool, SMALL)
    assert again._runs
    again.close()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="programs cannot be given one processor here")
def test_a_loaded_machine_gives_the_same_listing(tmp_path: Path) -> None:
    """nvdisasm gets a twentieth of one processor: it waits for long, and neither sleeps nor uses much of it."""
    processor = min(os.sched_getaffinity(0))
    body = f"""
import os
os.sched_setaffinity(0, [{processor}])
os.nice(10)
end = time.process_time() + 0.1
while time.process_time() < end:
    pass
print(open({str(DATA)!r} + "/softmax_90." + ("live" if "-lrm" in sys.argv else "nvdisasm") + ".txt").read())
"""
    burn = f"import os; os.sched_setaffinity(0, [{processor}])\nwhile True: pass"
    burning = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(3)]
    try:
        listing = Disassembly(CUBIN, fake_tool(tmp_path / "nvdisasm", body), SMALL).result()
    finally:
        for process in burning:
            process.kill()
            process.wait()
    assert listing[0]
    assert listing[1] == ""


def test_a_failed_count_costs_the_live_registers_only(tmp_path: Path) -> None:
    body = f"""
if "-lrm" in sys.argv:
    sys.exit("unknown option")
print(open({str(DATA / "softmax_90.nvdisasm.txt")!r}).read())
"""
    running = Disassembly(CUBIN, fake_tool(tmp_path / "nvdisasm", body))
    text, _ = running.result()
    assert text is not None
    assert parse_sass(text)[0].instructions[0].live is None


@pytest.mark.parametrize("tool", [None, Path("/nowhere/nvdisasm"), DATA / "README.md"])
def test_a_missing_program_is_no_crash(tool: Path | None) -> None:
    running = Disassembly(CUBIN, tool)
    assert running.done()
    listing = running.result()
    assert listing[0] == ""
    assert ("nvdisasm is not installed" if tool is None else "cannot be run") in listing[1]
    assert Disassembly(CUBIN, tool).result() == listing


def test_closing_ends_the_processes_and_removes_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tool = fake_tool(tmp_path / "nvdisasm", "time.sleep(3600)")
    running = Disassembly(CUBIN, tool)
    assert not running.done()
    processes = [run.process for run in running._runs]
    assert any(path.is_dir() for path in tmp_path.iterdir())
    running.close()
    assert [process.ended for process in processes] == [True, True]
    assert os.listdir(tmp_path) == ["nvdisasm"]
    running.close()


def test_the_log_and_the_usage_of_a_kernel_that_spills() -> None:
    found = parse_ptxas_log((DATA / "spill_80.ptxas.txt").read_text())["matmul_kernel"]
    usage = usage_of((DATA / "spill_80.usage.txt").read_text())
    assert (found.registers, found.spill_store_bytes, found.spill_load_bytes) == (32, 772, 716)
    assert (found.registers, found.stack_bytes, found.constant_bytes) == (
        usage["REG"],
        usage["STACK"],
        usage["CONSTANT[0]"],
    )
    assert found.barriers == 1


def test_spills_counted_in_sass_are_those_of_ptxas() -> None:
    lines = (DATA / "spill_80.local.txt").read_text().splitlines()
    sass = ".section .text.matmul_kernel\n" + "".join(
        f"  {16 * number:04x}  -  {line.rstrip(' ;')}\n" for number, line in enumerate(lines)
    )
    found = read_resources({"sass": sass}, {"name": "matmul_kernel"})
    logged = parse_ptxas_log((DATA / "spill_80.ptxas.txt").read_text())["matmul_kernel"]
    assert found.instruction_count == len(lines)
    assert found.spill_store_bytes == logged.spill_store_bytes
    assert found.spill_load_bytes == logged.spill_load_bytes


def test_a_cubin_says_what_cuobjdump_does() -> None:
    usage = usage_of((DATA / "softmax_90.usage.txt").read_text())
    metadata = {"name": "softmax_kernel", "shared": 16, "tmem_size": 0}
    found = read_resources({"cubin": CUBIN, "ttir": "module {}"}, metadata)
    assert found.registers == usage["REG"] == 22
    assert found.stack_bytes == usage["STACK"] == found.spill_store_bytes == 0
    assert found.constant_bytes == usage["CONSTANT[0]"]
    assert (found.shared_bytes, found.tensor_memory_columns, found.barriers) == (16, None, 1)
    assert (found.code_bytes, found.instruction_count) == (2816, 163)


def test_functions_that_are_called_add_their_spills() -> None:
    log = """ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for helper
    32 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 48 bytes cumulative stack size, 4096 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Used 8 registers
"""
    found = parse_ptxas_log(log)
    assert found["k"] == Resources(
        registers=255, spill_store_bytes=16, spill_load_bytes=24, stack_bytes=48, constant_bytes=400, barriers=2
    )
    assert found["other"] == Resources(registers=8)


def test_amd_resources_come_from_the_assembly() -> None:
    text = (DATA / "matmul_gfx942.amdgcn").read_text()
    found = read_resources({"amdgcn": text, "hsaco": b"\x7fELF"}, {"name": "matmul_kernel", "shared": 8192})
    assert found.accumulator_registers == 0
    assert found.registers is not None
    assert f".vgpr_count:     {found.registers}" in text
    assert f".sgpr_count:     {found.scalar_registers}" in text
    assert f"codeLenInByte = {found.code_bytes}" in text
    assert (found.shared_bytes, found.stack_bytes, found.spill_store_bytes, found.scalar_spills) == (8192, 0, 0, 0)


def test_accumulators_are_not_counted_as_registers() -> None:
    text = (
        '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"\n\t.type\tk,@function\nk:\n\ts_endpgm\n.Lfunc_end0:\n'
        "; NumVgprs: 253\n; NumAgprs: 128\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .agpr_count:     128\n"
        "    .name:           k\n    .sgpr_spill_count: 3\n    .vgpr_count:     384\n    .vgpr_spill_count: 5\n"
        "\t.end_amdgpu_metadata\n"
    )
    found = read_resources({"amdgcn": text}, {})
    assert (found.registers, found.accumulator_registers) == (253, 128)
    assert (found.spill_store_bytes, found.scalar_spills, found.instruction_count) == (20, 3, 1)


@pytest.mark.parametrize(
    "stages",
    [{}, {"cubin": b""}, {"cubin": b"\x7fELF"}, {"sass": ""}, {"amdgcn": ""}, {"cubin": "text"}, {"amdgcn": b"bytes"}],
)
def test_nothing_known_is_none_everywhere(stages: dict[str, Any]) -> None:
    assert read_resources(stages) == Resources()


@given(st.text(max_size=200), st.binary(max_size=80), st.dictionaries(st.sampled_from(["name", "shared"]), st.text()))
def test_any_artifacts_are_read(text: str, data: bytes, metadata: dict[str, Any]) -> None:
    for stages in ({"cubin": b"\x7fELF\x02\x01" + data, "sass": text}, {"amdgcn": text}):
        found = read_resources(stages, metadata, text)
        assert all(value is None or value >= 0 for value in dataclasses.astuple(found))


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("name", newest_but(["add_75"], "add_75", "add_120", "softmax_90"))
def test_the_real_programs_agree_with_the_elf_reader(name: str) -> None:
    backends = pytest.importorskip("triton.backends")
    folder = Path(backends.__file__).parent / "nvidia" / "bin"
    nvdisasm, cuobjdump = folder / "nvdisasm", folder / "cuobjdump"
    if not nvdisasm.exists() or not cuobjdump.exists():
        pytest.skip("this Triton carries no nvdisasm and cuobjdump")
    path = DATA / f"{name}.cubin"
    cubin = path.read_bytes()
    running = Disassembly(cubin, nvdisasm)
    done = subprocess.run([cuobjdump, "-res-usage", path], capture_output=True, text=True, check=True)
    usage = usage_of(done.stdout)
    text, _ = running.result()
    assert text is not None
    (function,) = parse_sass(text)
    found = read_resources({"cubin": cubin, "sass": text}, {"name": function.name})
    assert found.instruction_count == len(function.instructions)
    assert (found.registers, found.stack_bytes, found.constant_bytes) == (
        usage["REG"],
        usage["STACK"],
        usage["CONSTANT[0]"],
    )
