"""Planted changes of machine code of which the effect is known, each with the verdict that it must get."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from irscope.model.capture import Artifact, Capture
from irscope.store.file import load

__all__ = ["PLANTED", "TWINS", "PlantedCode", "captures"]

_DATA = Path(__file__).parents[2] / "data"
_FILES = {
    "attention": "counters/attention_kernel",
    "atomics": "counters/atomics",
    "loss": "counters/liger_cross_entropy_kernel",
    "mma": "counters/multiplied",
    "norm": "counters/layer_norm_backward_kernel",
    "softmax": "hostile/softmax-cuda-90",
    "amd": "layouts/matmul-hip-gfx942",
    "ampere": "layouts/matmul-cuda-80",
}


@dataclass(frozen=True, slots=True)
class PlantedCode:
    """One change of the text of a stage."""

    name: str
    kernel: str
    stage: str
    pattern: str
    replacement: str
    fact: str = ""
    """The fact that gets worse; empty where nothing does, though the code is other code."""
    occurrence: int = 0
    """Which of the matches is replaced."""

    def planted(self) -> tuple[Capture, Capture]:
        """(before, after)."""
        before = captures(self.kernel, self.stage)
        text = before.text(self.stage)
        match = [*re.finditer(self.pattern, text, re.MULTILINE)][self.occurrence]
        changed = f"{text[: match.start()]}{match.expand(self.replacement)}{text[match.end() :]}"
        assert changed != text
        return before, _with_text(before, self.stage, changed)


@cache
def captures(kernel: str, stage: str) -> Capture:
    """A recorded capture whose lowest stage is the one that is changed."""
    capture = load(_DATA / f"{_FILES[kernel]}.irscope")
    stages = [artifact.stage for artifact in capture.artifacts]
    retained = [
        artifact
        for artifact in capture.artifacts
        if isinstance(artifact.data, str) and stages.index(artifact.stage) <= stages.index(stage)
    ]
    return replace(capture, artifacts=tuple(retained))


def _with_text(capture: Capture, stage: str, text: str) -> Capture:
    made = (Artifact(stage, text) if one.stage == stage else one for one in capture.artifacts)
    return replace(capture, artifacts=tuple(made))


def _sass(name: str, kernel: str, pattern: str, replacement: str, fact: str = "", occurrence: int = 0) -> PlantedCode:
    return PlantedCode(name, kernel, "sass", pattern, replacement, fact, occurrence)


def _ptx(name: str, kernel: str, pattern: str, replacement: str, fact: str = "", occurrence: int = 0) -> PlantedCode:
    return PlantedCode(name, kernel, "ptx", pattern, replacement, fact, occurrence)


def _amd(name: str, pattern: str, replacement: str, fact: str = "") -> PlantedCode:
    return PlantedCode(name, "amd", "amdgcn", pattern, replacement, fact)


# A line of SASS in the normal form, up to its opcode.
_LINE = r"^ +[0-9a-f]{4,}  B\S+ +G\S+ +(?:@!?U?P\w+ )?"

PLANTED = (
    # Arithmetic of SASS: another operation, modifier, rounding, precision or number.
    _sass("maximum that keeps NaN", "softmax", r"\bFMNMX ", "FMNMX.NAN ", "arithmetic"),
    _sass("maximum flushes", "attention", r"\bFMNMX ", "FMNMX.FTZ ", "arithmetic", 7),
    _sass("sum flushes", "norm", r"\bFADD ", "FADD.FTZ ", "arithmetic"),
    _sass("product rounds down", "norm", r"\bFMUL ", "FMUL.RM ", "arithmetic", 3),
    _sass("contraction undone", "norm", rf"({_LINE})FFMA (R\d+), (\S+) (\S+), ", r"\1FMUL \2, \3 \4\n\1FADD \2, \2, ",
          "arithmetic"),
    _sass("contraction made", "norm", r"\bFMUL ", "FFMA ", "arithmetic", 1),
    _sass("exponential in halves", "softmax", r"MUFU\.EX2 ", "MUFU.EX2.F16 ", "arithmetic"),
    _sass("reciprocal square root", "softmax", r"MUFU\.RCP ", "MUFU.RSQ ", "arithmetic"),
    _sass("conversion rounds to zero", "attention", r"F2FP\.F16\.F32", "F2FP.F16.F32.RZ", "arithmetic"),
    _sass("accumulates in halves", "mma", r"HMMA\.16816\.F32", "HMMA.16816.F16", "arithmetic"),
    _sass("wgmma of bfloat16", "attention", r"HGMMA\.64x64x16\.F32 ", "HGMMA.64x64x16.F32.BF16 ", "arithmetic"),
    _sass("sum lost", "softmax", rf"{_LINE}FADD .*\n", "", "arithmetic"),
    _sass("product lost", "loss", rf"{_LINE}FMUL .*\n", "", "arithmetic", 20),
    _sass("comparison with NaN", "softmax", r"FSETP\.GT\.AND", "FSETP.GTU.AND", "arithmetic"),
    _sass("reduction over other lanes", "softmax", r"(SHFL\.BFLY \S+ \S+ \S+ )0x10,", r"\g<1>0x1,", "arithmetic"),
    _sass("atomic of another kind", "atomics", r"ATOMG\.E\.ADD\.F32\.FTZ\.RN", "ATOMG.E.MAX.F32.FTZ.RN", "arithmetic"),
    # Order of SASS: synchronisation that is lost, moved or weaker.
    _sass("barrier lost", "softmax", rf"{_LINE}BAR\.SYNC.*\n", "", "order"),
    _sass("last barrier lost", "loss", rf"{_LINE}BAR\.SYNC.*\n", "", "order", -1),
    _sass("barrier before the store", "softmax", rf"({_LINE}STS .*\n)((?:.*\n)*?)({_LINE}BAR\.SYNC.*\n)", r"\3\1\2",
          "order"),
    _sass("fence lost", "atomics", rf"{_LINE}MEMBAR.*\n", "", "order"),
    _sass("fence of a CTA", "atomics", r"MEMBAR\.ALL\.GPU", "MEMBAR.ALL.CTA", "order"),
    _sass("wait for copies lost", "mma", rf"{_LINE}DEPBAR\.LE.*\n", "", "order"),
    _sass("wait for wgmma lost", "attention", rf"{_LINE}WARPGROUP\.DEPBAR.*\n", "", "order"),
    # Other code of SASS of which nothing shows that results change: never the same.
    _sass("address moved", "softmax", r"(LDG\S* R\d+, desc\[\w+\]\[R\d+\.64)\]", r"\1+0x4]"),
    _sass("another register", "softmax", r"FADD R(\d+), ", "FADD R201, "),
    _sass("predicate inverted", "softmax", r"@(P\d) ", r"@!\1 "),
    _sass("another constant", "softmax", r"0x3fb8aa3b|1\.4426\d*", "0x3fb8aa3c"),
    _sass("another scoreboard", "softmax", r"(  )B------(?=:)", r"\1B0-----"),
    # PTX.
    _ptx("PTX: maximum that keeps NaN", "softmax", r"max\.f32", "max.NaN.f32", "arithmetic"),
    _ptx("PTX: flushes", "softmax", r"add\.f32", "add.ftz.f32", "arithmetic"),
    _ptx("PTX: contraction undone", "norm", r"fma\.rn\.f32 ([^;]*), (%\w+);", r"mul.f32 \1; add.f32 %r9, %r9, \2;",
         "arithmetic"),
    _ptx("PTX: approximate", "softmax", r"div\.full\.f32", "div.approx.f32", "arithmetic"),
    _ptx("PTX: other lanes", "softmax", r"(shfl\.sync\.bfly\.b32\s+[^;]*, )16(, 31)", r"\g<1>8\2", "arithmetic"),
    _ptx("PTX: barrier lost", "softmax", r"^\s*bar\.sync.*\n", "", "order"),
    _ptx("PTX: wait lost", "ampere", r"^\s*cp\.async\.wait_group.*\n", "", "order"),
    _ptx("PTX: mma in halves", "ampere", r"f32\.f16\.f16\.f32", "f16.f16.f16.f16", "arithmetic"),
    _ptx("PTX: address moved", "softmax", r"(ld\.global\S* [^;]*\+ ?)0 ?\]", r"\g<1>4]"),
    # AMD.
    _amd("AMD: matrix instruction of bfloat16", r"v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16", "arithmetic"),
    _amd("AMD: matrix instruction lost", r"^\s*v_mfma_.*\n", "", "arithmetic"),
    _amd("AMD: barrier lost", r"^\s*s_barrier.*\n", "", "order"),
    _amd("AMD: another register", r"v_add_u32_e32 v(\d+)", "v_add_u32_e32 v250"),
)  # fmt: skip

TWINS = (
    _sass("locations", "softmax", r'//## File "[^"]*", line \d+', '//## File "moved.py", line 4711'),
    _sass("a location more", "loss", rf"(?={_LINE}FADD)", '//## File "moved.py", line 1\n'),
    _ptx("PTX: locations", "softmax", r"^\t\.loc\t.*$", "\t.loc\t1 4711 1"),
    _ptx("PTX: a location less", "ampere", r"^\t\.loc\t.*\n", ""),
    _amd("AMD: locations", r"^\t\.loc\t.*$", "\t.loc\t1 4711 1"),
)
"""Changes that are none of the code."""
