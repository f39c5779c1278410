"""Operand widths and destinations of SASS and AMDGCN: against nvdisasm's live registers, and against the texts' own."""

from __future__ import annotations

import lzma
import random
import re
from pathlib import Path

import pytest

from irscope.analysis.diff.texts import diff_texts
from irscope.ir.asm.amdgcn_opcodes import amdgcn_access
from irscope.ir.asm.operands import register_templates
from irscope.ir.asm.sass_opcodes import sass_access
from irscope.ir.columns import read_body
from irscope.ir.syntax import shape_of
from irscope.model.capture import StageKind
from tests.hostile.originals import texts
from tests.ir.live_ranges import disagreements, read_live_ranges
from tests.work import MEASURES, Measure

DATA = Path(__file__).parents[2] / "data" / "asm"
LISTINGS = sorted(path.name for path in DATA.glob("*.plr.txt.xz"))


@pytest.mark.parametrize("name", LISTINGS)
def test_live_ranges_agree_with_nvdisasm(name: str) -> None:
    (rows,) = read_live_ranges(lzma.decompress((DATA / name).read_bytes()).decode())
    compared, found, examples = disagreements(rows)
    assert compared > 100
    assert not found, examples


# What `nvdisasm -plr` showed of instructions in kernels of examples for sm_75 to sm_120.
@pytest.mark.parametrize(
    ("template", "holes"),
    [
        ("LDG.E.128 \x01R, desc[\x01UR][\x01R.64+0x10]", [(4, "w"), (2, "r"), (2, "r")]),
        ("STG.E.64 desc[\x01UR][\x01R.64], \x01R", [(2, "r"), (2, "r"), (2, "r")]),
        ("HGMMA.64x128x16.F32 \x01R, gdesc[\x01UR], \x01R, gsb0", [(64, "w"), (4, "r"), (64, "r")]),
        ("HGMMA.64x64x16.F32 \x01R, \x01R, gdesc[\x01UR].tnspB, \x01R", [(32, "w"), (4, "r"), (4, "r"), (32, "r")]),
        ("HMMA.16816.F32 \x01R, \x01R, \x01R, \x01R", [(4, "w"), (4, "r"), (2, "r"), (4, "r")]),
        ("HMMA.1688.F16 \x01R, \x01R, \x01R, RZ", [(2, "w"), (2, "r"), (1, "r")]),
        ("DMMA.8x8x4 \x01R, \x01R, \x01R, \x01R", [(4, "w"), (2, "r"), (2, "r"), (4, "r")]),
        ("IADD3 \x01R, \x01P, PT, \x01R, \x01UR, RZ", [(1, "w"), (1, "w"), (1, "r"), (1, "r")]),
        ("@!\x01P IMAD.WIDE.U32 \x01R, \x01R, 0x4, \x01R", [(1, "r"), (2, "w"), (1, "r"), (2, "r")]),
        ("SHFL.BFLY PT, \x01R, \x01R, 0x10, 0x1f", [(1, "w"), (1, "r")]),
        ("ISETP.GE.S64.AND \x01P, PT, \x01R, \x01R, PT", [(1, "w"), (2, "r"), (2, "r")]),
        ("F2F.F64.F32 \x01R, \x01R", [(2, "w"), (1, "r")]),
        ("UTMALDG.2D [\x01UR], [\x01UR]", [(4, "r"), (2, "r")]),
        ("LDTM.16dp32bit_t0_t15.x32 \x01R, tmem[\x01UR]", [(32, "w"), (1, "r")]),
    ],
)
def test_sass_operands_have_these_widths(template: str, holes: list[tuple[int, str]]) -> None:
    access = sass_access(template)
    assert access is not None
    assert list(access.holes) == holes
    assert not access.is_unknown


@pytest.mark.parametrize(
    ("template", "modes", "implicit"),
    [
        ("v_fmac_f32_e32 \x01v, \x01v, \x01v", "mrr", {"exec_lo r", "exec_hi r"}),
        ("s_addc_u32 \x01s, \x01s, \x01s", "wrr", {"scc r", "scc w"}),
        ("v_div_fmas_f32 \x01v, \x01v, \x01v, \x01v", "wrrr", {"vcc_lo r", "vcc_hi r", "exec_lo r", "exec_hi r"}),
        ("v_div_scale_f32 \x01v, vcc, \x01v, \x01v, \x01v", "wrrr", {"vcc_lo w", "vcc_hi w", "exec_lo r", "exec_hi r"}),
        ("s_and_saveexec_b64 \x01s2, vcc", "w", {"vcc_lo r", "vcc_hi r", "scc w", "exec_lo m", "exec_hi m"}),
        ("global_atomic_add_f32 \x01v2, \x01v, off", "rr", {"exec_lo r", "exec_hi r"}),
        ("buffer_atomic_add \x01v, \x01v, \x01s4, 0 offen sc0", "mrr", {"exec_lo r", "exec_hi r"}),
        ("v_mfma_f32_32x32x8_f16 \x01a16, \x01v2, \x01v2, \x01a16", "wrrr", {"exec_lo r", "exec_hi r"}),
        ("v_permlane32_swap_b32_e32 \x01v, \x01v", "mm", {"exec_lo r", "exec_hi r"}),
        ("s_cbranch_vccnz \x02", "r", {"vcc_lo r", "vcc_hi r"}),
    ],
)
def test_amd_operands_are_used_so(template: str, modes: str, implicit: set[str]) -> None:
    access = amdgcn_access(template)
    assert access is not None
    assert "".join(mode for _, mode in access.holes) == modes
    assert {f"{name} {mode}" for name, mode in access.implicit} == implicit


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.glob("*.amdgcn")))
def test_what_amd_code_reads_was_written_or_is_given(name: str) -> None:
    text = (DATA / name).read_text()
    body = read_body(text, "amdgcn", frozenset({"locations"}))
    given = {body.names[value] for used in body.uses for value in used if body.definers[value] < 0}
    # The kernel's arguments, numbers of its group and threads; masks; what is held by no register of the program.
    allowed = re.compile(r"exec_\w+|m0|\.L\w+|v0|s(?:\d|1\d)|ttmp\w+|vcc_hi|\w*:?")
    assert not {one for one in given if not allowed.fullmatch(one)}
    used = [int(one[1:]) for one in body.names if re.fullmatch(r"v\d+", one)]
    (count,) = {int(number) for number in re.findall(r"\.vgpr_count:\s+(\d+)", text)}
    agpr = max([int(number) for number in re.findall(r"\.agpr_count:\s+(\d+)", text)], default=0)
    assert max(used) + 1 <= count - agpr or max(used) + 1 <= count


@pytest.mark.parametrize("kind", ["sass", "amdgcn"])
def test_an_unknown_instruction_hides_nothing(kind: str) -> None:
    sass = "        /*0000*/  MOV R6, 0x1 ;\n        /*0010*/  NEWOP R4, R9 ;\n        /*0020*/  EXIT ;\n"
    amd = "f:\n\tv_mov_b32_e32 v6, 1\n\tnew_op v4, v6\n\ts_endpgm\n"
    left, old = (sass, "R") if kind == "sass" else (amd, "v")
    for number in ("6", "4", "9" if kind == "sass" else "6"):
        for place in [match.start() for match in re.finditer(rf"\b{old}{number}\b", left)]:
            right = left[:place] + f"{old}77" + left[place + len(number) + 1 :]
            assert not diff_texts(left, right, "sass" if kind == "sass" else "amdgcn").is_empty


@pytest.mark.parametrize("kind", ["sass", "amdgcn"])
def test_every_hole_of_a_damaged_line_is_read(kind: StageKind) -> None:
    lines = sorted({line.strip() for text in texts(kind)[:6] for line in text.split("\n")})
    draw = random.Random(kind)
    damages = ("R4", "v1", "s[2:3]", " ", ",", "$", "=", "(", "[", "{", ";", " :: ", "x<", ".", "/*", '"', "@", "")
    for _ in range(4000):
        line = draw.choice(lines)
        for _ in range(draw.randint(1, 2)):
            at = draw.randrange(len(line) + 1)
            line = line[:at] + draw.choice(damages) + line[at + draw.randint(0, 2) :]
        shape = shape_of(register_templates(line, kind), kind)
        assert shape.access is None or len(shape.access.holes) == shape.holes, line


@pytest.mark.parametrize(
    ("kind", "line"), [("amdgcn", "\tfoo v1, v2\n"), ("sass", "FOO R1, R2\n"), ("sass", "    @P0 MOV R1, R2 ;\n")]
)
@pytest.mark.parametrize("work", MEASURES)
def test_writes_that_hide_nothing_take_linear_work(kind: StageKind, line: str, work: Measure) -> None:
    assert work.is_linear(lambda lines: read_body(line * lines, kind, frozenset()), len(line))
