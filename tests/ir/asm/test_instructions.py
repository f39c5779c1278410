"""One `Instruction` for every language: its text, registers, branches, memory; against the texts and nvdisasm."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from irscope.ir.asm.control_flow import UNKNOWN, control_flow_of, read_functions, read_instructions
from irscope.ir.asm.instructions import Function, Instruction
from irscope.ir.asm.opcodes import FAMILIES, effect_of, ptx_opcode
from irscope.ir.asm.operands import parse_operand
from irscope.ir.asm.readers import PtxFunction, parse_ptx
from irscope.ir.asm.sass import parse_sass
from irscope.model.capture import StageKind
from tests.hostile.originals import texts
from tests.ir.live_ranges import live_registers

DATA = Path(__file__).parents[2] / "data" / "asm"
KINDS: tuple[StageKind, ...] = ("ptx", "sass", "amdgcn", "llvm")


def opaque_instructions(functions: Iterable[Function]) -> Counter[str]:
    """The opcodes that no table knows."""
    items = [item for function in functions for item in function.instructions]
    return Counter(item.opcode for item in items if not item.is_known)


def texts_of(kind: StageKind) -> tuple[str, ...]:
    listings = [path.read_text() for path in sorted(DATA.glob("*.nvdisasm.txt"))] if kind == "sass" else []
    return (*texts("llir" if kind == "llvm" else kind), *listings)


def written(text: str, kind: StageKind) -> str:
    """A piece of a text without its comments, blanks normalised as `Instruction.text` has them."""
    if kind == "llvm":
        return text
    parts = [re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL) if kind == "ptx" else text]
    return re.sub(r"\s*,\s*", ", ", " ".join(parts[0].split()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_instruction_is_rendered_as_it_is_written(kind: StageKind) -> None:
    count = 0
    for text in texts_of(kind):
        lines = text.split("\n")
        for item in read_instructions(text, kind):
            start, end = item.span
            if item.opcode != "switch":  # its cases stand on lines of their own
                assert written(item.text, kind).strip() == written(text[start:end], kind).strip()
            assert text.count("\n", 0, start) + 1 == item.line, lines[item.line - 1]
            count += 1
    assert count > 500


@pytest.mark.parametrize("kind", KINDS)
def test_branches_go_to_labels_of_the_text(kind: StageKind) -> None:
    count = 0
    for text in texts_of(kind):
        for function in read_functions(text, kind):
            labels = {label.name for label in function.labels}
            targets = {name for item in function.instructions if item.branch for name, _ in item.branch.targets}
            assert targets <= labels
            count += len(targets)
            # A label that nothing jumps to begins a block too: LLVM and nvdisasm write only those that are needed.
            jumps = [jump for jump in control_flow_of(function).jumps if jump.kind == "jumps"]
            assert all(jump.target != UNKNOWN for jump in jumps)
    assert count > 5 or kind == "sass"  # `test_control_flow.py` has loops of SASS


def test_what_ptx_reads_was_written_on_every_way_there() -> None:
    """No register is live where a kernel begins: one wrong operand of one opcode would leave one."""
    for text in texts("ptx"):
        for function in parse_ptx(text):
            flow = control_flow_of(function)
            first = flow.blocks[0].instructions[0]
            entering = {name for name in live_registers(flow)[0] if name not in first.writes}
            entering |= set(first.reads)
            unwritten = {name for name in entering if function.type_of(name)}
            guarded = {name for item in function.instructions if item.predicate for name in item.writes}
            assert unwritten <= guarded, unwritten


def test_every_ptx_register_has_a_type_and_every_opcode_a_row() -> None:
    for text in texts("ptx"):
        functions = parse_ptx(text)
        for function in functions:
            assert isinstance(function, PtxFunction)
            names = {name for item in function.instructions for name in item.writes if name.startswith("%")}
            assert names
            assert all(function.type_of(name) for name in names)
        assert not opaque_instructions(functions)


@pytest.mark.parametrize("kind", ["sass", "amdgcn"])
def test_what_no_table_knows_is_counted(kind: StageKind) -> None:
    sass = "        /*0000*/  MOV R6, 0x1 ;\n        /*0010*/  NEWOP R4, R9 ;\n        /*0020*/  EXIT ;\n"
    head = '\t.section\t.text.f,"ax",@progbits\n'
    amd = "\t.type\tf,@function\nf:\n\tv_mov_b32_e32 v6, 1\n\tnew_op v4, v6\n\ts_endpgm\n"
    found = opaque_instructions(read_functions(head + sass if kind == "sass" else amd, kind))
    assert found == {"NEWOP" if kind == "sass" else "new_op": 1}


def test_live_registers_agree_with_nvdisasm() -> None:
    """The general registers between two instructions, as `nvdisasm -plr` counts them at the second."""
    (function,) = parse_sass((DATA / "softmax_90.live.txt").read_text())
    flow = control_flow_of(function)
    behind = live_registers(flow)
    items = [item for block in flow.blocks for item in block.instructions]
    compared = 0
    for place in range(1, len(items)):
        item, before = items[place], items[place - 1]
        if item.live is None or before.branch is not None:
            continue
        # The stack pointer counts as live, whoever reads it.
        at = {name for name in behind[place - 1] | {*item.reads, *item.writes, "R1"} if re.fullmatch(r"R\d+", name)}
        assert item.live.general in (len(at), len(at - set(item.writes))), item.text
        compared += 1
    assert compared > 30


def test_sass_has_its_control_fields_and_widths() -> None:
    text = lzma.decompress((DATA / "softmax_90.plr.txt.xz").read_bytes()).decode()
    assert parse_sass(text)
    (function,) = parse_sass((DATA / "softmax_90.nvdisasm.txt").read_text())
    loads = [item for item in function.instructions if item.family == "ld.global.128"]
    assert loads
    for load in loads:
        assert load.control is not None
        assert load.control.write_barrier is not None
        assert len([name for name in load.writes if re.fullmatch(r"R\d+", name)]) == 4
        waits = [item for item in function.instructions if set(load.writes) & set(item.reads)]
        assert waits


@pytest.mark.parametrize(
    ("opcode", "operands", "writes", "reads"),
    [
        ("ld.global.v4.b32", ("{%r1, %r2, %r3, %r4}", "[%rd1+16]"), "%r1 %r2 %r3 %r4", "%rd1"),
        ("st.shared.v2.b32", ("[%r1]", "{%r2, %r3}"), "", "%r1 %r2 %r3"),
        ("shfl.sync.bfly.b32", ("%r1|%p1", "%r2", "16", "31", "-1"), "%r1 %p1", "%r2"),
        ("atom.global.add.f32", ("%f1", "[%rd1]", "%f2"), "%f1", "%rd1 %f2"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", ("{%f1, %f2}", "%rd1", "%rd2", "p"), "%f1 %f2",
         "%f1 %f2 %rd1 %rd2 p"),
        ("mbarrier.try_wait.parity.shared.b64", ("p", "[%r1]", "%r2"), "p", "%r1 %r2"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32", ("{%r1, %r2}", "[%r3 + 0]"), "%r1 %r2", "%r3"),
        ("tcgen05.st.sync.aligned.32x32b.x2.b32", ("[%r3 + 0]", "{%r1, %r2}"), "", "%r3 %r1 %r2"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", ("[%rd1, {%r1, %r2}]", "[%r3]"), "",
         "%rd1 %r1 %r2 %r3"),
        ("bra", ("$L__BB0_1",), "", ""),
    ],
)  # fmt: skip
def test_ptx_operands_are_used_so(opcode: str, operands: tuple[str, ...], writes: str, reads: str) -> None:
    item = Instruction(opcode, operands)
    assert (" ".join(item.writes), " ".join(item.reads)) == (writes, reads)


def test_ptx_is_taken_apart() -> None:
    row = ptx_opcode("ld.global.L1::evict_last.v4.b32")
    assert (row.name, row.space, row.vector, row.types, row.bits) == ("ld", "global", 4, ("b32",), 128)
    assert ptx_opcode("cvt.rn.bf16x2.f32").types == ("bf16x2", "f32")
    address = parse_operand("[ %rd1 + -16 ]")
    assert (address.kind, address.name, address.value) == ("address", "%rd1", -16)
    assert parse_operand("0f3F800000").value == 0x3F800000
    assert parse_operand("!%p1").is_negated
    (function,) = parse_ptx((DATA / "softmax_90.ptx").read_text())
    assert function.threads == 128
    assert [kind.split()[0] for _, kind in function.parameters][:2] == [".u64", ".u64"]


def test_every_family_has_an_effect() -> None:
    for family in FAMILIES:
        effect = effect_of(family)
        accesses = family.startswith(
            ("ld.", "st.", "atomic", "cp.async", "tma.load", "tma.store", "ldmatrix", "stmatrix")
        )
        assert bool(effect.reads or effect.writes) or not accesses or family == "cp.async.wait"
    assert effect_of(None).is_unknown
    assert effect_of("ld.global.128").reads == ("global",)
    assert effect_of("st.shared.32").writes == ("shared",)
