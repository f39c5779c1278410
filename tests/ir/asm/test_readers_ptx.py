"""PTX: functions, statements, registers; opcode families of every assembly."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ir.asm.instructions import CodeLabel, Instruction
from irscope.ir.asm.opcodes import classify
from irscope.ir.asm.operands import split_operands
from irscope.ir.asm.readers import parse_ptx

DATA = Path(__file__).parents[2] / "data" / "asm"
MODULES = sorted(path.name for path in DATA.glob("*.ptx"))


@pytest.mark.parametrize("name", MODULES)
def test_every_instruction_is_read(name: str) -> None:
    """A second, naive count: what stands before a semicolon, in the function's body, and is no directive."""
    text = (DATA / name).read_text()
    body = text[text.index("\n{") : text.index("-- End function")]
    body = re.sub(r"//[^\n]*|^\t\.loc[^\n]*", "", body, flags=re.MULTILINE)
    statements = [re.sub(r"^[\s{}]*(?:[\w$]+:(?!:)[\s{}]*)*", "", part) for part in body.split(";")]
    expected = [" ".join(part.split()) for part in statements if part.strip(" \t\n{}") and not part.startswith(".")]
    (function,) = parse_ptx(text)
    assert [" ".join(item.text.split()) for item in function.instructions] == expected
    lines = text.split("\n")
    assert all(item.opcode in lines[item.line - 1] for item in function.instructions)


def test_predicates_and_names_are_read() -> None:
    (function,) = parse_ptx((DATA / "softmax_90.ptx").read_text())
    assert function.name == "softmax_kernel"
    loads = [item for item in function.instructions if item.opcode == "ld.global.v4.b32"]
    assert [(item.predicate, len(item.operands)) for item in loads] == [("@%p1", 2), ("@%p2", 2)]


def test_labels_of_debuggers_are_left_out() -> None:
    (function,) = parse_ptx((DATA / "matmul_100.ptx").read_text())
    assert function.labels
    assert not any(label.name.startswith("$L__tmp") for label in function.labels)
    targets = {item.operands[-1] for item in function.instructions if item.opcode in ("bra", "bra.uni")}
    assert targets <= {label.name for label in function.labels}


def test_calls_over_several_lines_devices_functions_and_comments() -> None:
    text = """
.version 8.0
.target sm_80, texmode_independent
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 func_retval0) helper(
  .param .b32 helper_param_0
) // a comment with { and ;
{
  .reg .pred p, q;
  .reg .b32 %r<3>;
  /* a comment
     over lines { ; */ mov.u32 %r1, 1;
$L__BB0_1: add.s32 %r2, %r1, 1; .pragma "nounroll";
  @!p bra $L__BB0_1;
  { // callseq 0, 0
  call.uni (retval0),
  vprintf,
  (
  param0,
  param1
  );
  }
  ret;
}
.entry k() .maxnreg 64 { ret; }
"""
    helper, kernel = parse_ptx(text)
    assert [item.text for item in helper.instructions] == [
        "mov.u32 %r1, 1",
        "add.s32 %r2, %r1, 1",
        "@!p bra $L__BB0_1",
        "call.uni (retval0), vprintf, ( param0, param1 )",
        "ret",
    ]
    assert helper.labels == (CodeLabel("$L__BB0_1", 1),)
    assert kernel.name == "k"
    assert [item.opcode for item in kernel.instructions] == ["ret"]


def test_an_unknown_statement_is_left_out() -> None:
    (function,) = parse_ptx(".entry k()\n{\n ret;\n <<what>> is this;\n ret;\n}\n")
    assert [(item.opcode, item.line) for item in function.instructions] == [("ret", 3), ("ret", 5)]


@settings(deadline=None)
@given(st.sampled_from(MODULES), st.integers(0, 25000), st.integers(0, 300), st.text(max_size=9))
def test_a_damaged_module_is_still_read(name: str, start: int, length: int, inserted: str) -> None:
    text = (DATA / name).read_text()
    for function in parse_ptx(text[:start] + inserted + text[start + length :]):
        assert all(item.opcode for item in function.instructions)
        assert all(0 <= label.index <= len(function.instructions) for label in function.labels)


operand = st.sampled_from(["%r1", "{%r1, %r2}", "[%rd1 + 0]", "-1", "desc[UR4][R2.64+0x10]", "(a, b)", "0f3F800000"])


@given(st.lists(operand, max_size=6).map(tuple))
def test_operands_split_as_they_were_joined(operands: tuple[str, ...]) -> None:
    text = Instruction("op.b32", operands, "@%p1").text
    assert split_operands(text.removeprefix("@%p1 op.b32")) == operands


@given(st.text(max_size=60))
def test_any_operand_list_is_split(text: str) -> None:
    parts = split_operands(text)
    assert "".join("".join(parts).split()) == "".join(text.split()).replace(",", "") or "," in "".join(parts)


@pytest.mark.parametrize(
    ("opcode", "family"),
    [
        ("HMMA.16816.F32", "mma"),
        ("IMMA.16832.S8.S8", "mma"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma"),
        ("HGMMA.64x64x16.F32", "wgmma"),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", "wgmma"),
        ("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "wgmma"),
        ("UTCHMMA", "tcgen05.mma"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05.mma"),
        ("v_mfma_f32_32x32x8_f16", "mfma"),
        ("v_wmma_f32_16x16x16_f16", "wmma"),
        ("LDSM.16.MT88.4", "ldmatrix"),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix"),
        ("STSM.16.M88.4", "stmatrix"),
        ("LDGSTS.E.BYPASS.LTC128B.128", "cp.async.128"),
        ("global_load_lds_dwordx4", "cp.async.128"),
        ("UTMALDG.2D", "tma.load"),
        ("UBLKCP.S.G", "tma.copy"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", "tma.load"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", "tma.store"),
        ("LDG.E", "ld.global.32"),
        ("LDG.E.U16.CONSTANT", "ld.global.16"),
        ("LDG.E.128.SYS", "ld.global.128"),
        ("STG.E.64", "st.global.64"),
        ("ld.global.v4.b32", "ld.global.128"),
        ("ld.global.L1::evict_last.v2.b64", "ld.global.128"),
        ("ld.global.nc.b16", "ld.global.16"),
        ("st.global.v8.f32", "st.global.256"),
        ("buffer_load_dwordx4", "ld.global.128"),
        ("buffer_load_ushort", "ld.global.16"),
        ("global_load_u16", "ld.global.16"),
        ("global_load_d16_b16", "ld.global.16"),
        ("global_load_b128", "ld.global.128"),
        ("global_store_short", "st.global.16"),
        ("global_store_byte", "st.global.8"),
        ("LDS.U.64", "ld.shared.64"),
        ("STS.U8", "st.shared.8"),
        ("ld.shared::cta.b32", "ld.shared.32"),
        ("ds_read_b128", "ld.shared.128"),
        ("ds_load_b128", "ld.shared.128"),
        ("ds_read2_b32", "ld.shared.64"),
        ("ds_store_2addr_stride64_b64", "st.shared.128"),
        ("ds_read_u16_d16_hi", "ld.shared.16"),
        ("ds_read_b64_tr_b16", "ld.shared.tr.64"),
        ("SHFL.BFLY", "shuffle"),
        ("shfl.sync.bfly.b32", "shuffle"),
        ("ds_bpermute_b32", "shuffle"),
        ("v_permlanex16_b32", "shuffle"),
        ("v_mov_b32_dpp", "shuffle"),
        ("BAR.SYNC.DEFER_BLOCKING", "barrier"),
        ("bar.sync", "barrier"),
        ("s_barrier", "barrier"),
        ("STL.64", "st.local.64"),
        ("LDL.LU", "ld.local.32"),
        ("scratch_load_dwordx2", "ld.local.64"),
        ("st.local.b32", "st.local.32"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic.global"),
        ("atom.global.add.f32", "atomic.global"),
        ("global_atomic_add_f32", "atomic.global"),
        ("ATOMS.ADD", "atomic.shared"),
        ("MUFU.EX2", "special"),
        ("ex2.approx.ftz.f32", "special"),
        ("v_exp_f32_e32", "special"),
        ("LDC.64", "ld.constant.64"),
        ("s_load_dwordx8", "ld.constant.256"),
        ("s_load_b128", "ld.constant.128"),
        ("F2FP.F16.F32.PACK_AB", "convert"),
        ("FFMA.FTZ", "fp32"),
        ("fma.rn.f32", "fp32"),
        ("HFMA2.BF16", "fp16"),
        ("v_pk_fma_f16", "fp16"),
        ("IMAD.MOV.U32", "move"),
        ("IMAD.WIDE", "integer"),
        ("v_add_nc_u32_e32", "integer"),
        ("s_waitcnt", "wait"),
        ("DEPBAR.LE", "cp.async.wait"),
        ("NOP", None),
        ("", None),
        ("frobnicate", None),
    ],
)
def test_family(opcode: str, family: str | None) -> None:
    assert classify(opcode) == family


def test_some_widths_stand_in_the_operands() -> None:
    operands = ("[ %r1 + 0 ]", "[ %rd2 + 0 ]", "0x10", "%r9")
    assert classify("cp.async.cg.shared.global", operands) == "cp.async.128"
    assert classify("cp.async.ca.shared.global", ("[%r1]", "[%rd2]", "4")) == "cp.async.32"
    assert classify("cp.async.cg.shared.global") == "cp.async"
    assert classify("buffer_load_dword", ("v1", "s[0:3]", "0 offen lds")) == "cp.async.32"


def test_a_kernel_has_the_same_families_on_its_way_down() -> None:
    (ptx,) = parse_ptx((DATA / "softmax_90.ptx").read_text())
    counts = Counter(classify(item.opcode, item.operands) for item in ptx.instructions)
    assert (counts["ld.global.128"], counts["st.global.128"], counts["barrier"]) == (2, 2, 3)


@given(st.text(max_size=30), st.lists(st.text(max_size=5), max_size=4))
def test_any_opcode_has_a_family_or_none(opcode: str, operands: list[str]) -> None:
    family = classify(opcode, operands)
    assert family is None or re.fullmatch(r"[a-z0-9.]+", family)
