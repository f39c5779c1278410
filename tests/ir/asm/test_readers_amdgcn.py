"""AMDGCN: functions, kernel info and metadata."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ir.asm.readers import parse_amdgcn
from irscope.ir.asm.resources import parse_elf

DATA = Path(__file__).parents[2] / "data" / "asm"
TEXTS = sorted(path.name for path in DATA.glob("*.amdgcn"))


@pytest.mark.parametrize("name", TEXTS)
def test_every_instruction_is_read(name: str) -> None:
    """A second, naive count: lines between the kernel's label and its end that begin with a tab and a letter."""
    text = (DATA / name).read_text()
    kernel = re.search(r"^\w+_kernel:", text, re.MULTILINE)
    assert kernel is not None
    body = text[kernel.end() : text.index(".Lfunc_end0:")]
    expected = [line.split(";")[0].split() for line in body.split("\n") if re.match(r"\t[a-z]", line)]
    (function,) = parse_amdgcn(text)
    assert [item.text.split() for item in function.instructions] == expected
    assert function.instructions[-1].opcode == "s_endpgm"
    lines = text.split("\n")
    assert all(lines[item.line - 1].split()[0] == item.opcode for item in function.instructions)


@pytest.mark.parametrize("name", TEXTS)
def test_branches_go_to_labels_that_are_there(name: str) -> None:
    (function,) = parse_amdgcn((DATA / name).read_text())
    targets = {item.operands[0] for item in function.instructions if item.opcode.startswith(("s_branch", "s_cbranch"))}
    assert targets <= {label.name for label in function.labels}


def test_what_a_kernel_takes() -> None:
    (function,) = parse_amdgcn((DATA / "matmul_gfx942.amdgcn").read_text())
    assert dict(function.info)["NumVgprs"] == function.number("num_vgpr") == function.number("vgpr_count")
    assert function.number("vgpr_spill_count") == function.number("private_segment_fixed_size") == 0
    assert function.number("wavefront_size") == 64
    assert dict(function.metadata)["name"] == "matmul_kernel"
    assert "offset" not in dict(function.metadata), "that is a field of an argument"
    assert function.number("nothing") is None


def test_code_size_is_the_binary_s() -> None:
    code = parse_elf((DATA / "add_gfx942.hsaco").read_bytes()).function("add_kernel")
    assert code is not None
    (function,) = parse_amdgcn((DATA / "add_gfx90a.amdgcn").read_text())
    assert function.number("codeLenInByte") == 396
    assert len(code) % 4 == 0


@pytest.mark.triton
def test_llvm_counts_as_many_instructions(tmp_path: Path) -> None:
    """llvm-mc puts each instruction on a line of its own, and encodes it: as many encodings, as many bytes."""
    mc = next((path for path in (Path("/usr/bin/llvm-mc"), Path("/usr/bin/llvm-mc-14")) if path.exists()), None)
    if mc is None:
        pytest.skip("llvm-mc is not installed")
    text = (DATA / "add_gfx90a.amdgcn").read_text()
    (function,) = parse_amdgcn(text)
    source = tmp_path / "body.s"
    labels: dict[int, list[str]] = {}
    for label in function.labels:
        labels.setdefault(label.index, []).append(f"{label.name}:")
    lines = [line for i, item in enumerate(function.instructions) for line in [*labels.get(i, []), item.text]]
    source.write_text("\n".join(lines + labels.get(len(function.instructions), [])) + "\n")
    done = subprocess.run(
        [mc, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "--show-encoding", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("encoding: [") == len(function.instructions)


def test_several_functions_and_inline_assembly() -> None:
    text = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
\t.type\thelper,@function
helper:
\tv_mov_b32_e32 v0, 1
\t;APP
\ts_nop 0
\t;NO_APP
\ts_setpc_b64 s[30:31]
.Lfunc_end0:
\t.size\thelper, .Lfunc_end0-helper
\t.type\tk,@function
k:
\tv_dual_mov_b32 v1, v2 :: v_dual_add_f32 v3, v4, v5
\t?? nonsense
\ts_endpgm
.Lfunc_end1:
\t.amdhsa_kernel k
\t\t.amdhsa_next_free_vgpr 6
\t.end_amdhsa_kernel
"""
    helper, kernel = parse_amdgcn(text)
    assert [item.opcode for item in helper.instructions] == ["v_mov_b32_e32", "s_nop", "s_setpc_b64"]
    assert [item.opcode for item in kernel.instructions] == ["v_dual_mov_b32", "s_endpgm"]


@settings(deadline=None)
@given(st.sampled_from(TEXTS), st.integers(0, 34000), st.integers(0, 300), st.text(max_size=9))
def test_a_damaged_text_is_still_read(name: str, start: int, length: int, inserted: str) -> None:
    text = (DATA / name).read_text()
    for function in parse_amdgcn(text[:start] + inserted + text[start + length :]):
        assert all(item.opcode for item in function.instructions)
        assert all(0 <= label.index <= len(function.instructions) for label in function.labels)


def test_an_empty_text_has_no_function() -> None:
    assert parse_amdgcn("") == ()
