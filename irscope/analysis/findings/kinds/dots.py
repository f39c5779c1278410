"""IRS301, IRS302, IRS303, IRS601, IRS603: dots that are no matrix instructions, are waited for, or round to TF32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irscope.analysis.findings.kinds.loops import loads_of_dot
from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.opcodes import rounds_to_tf32
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.uses import OperationUse
from irscope.model.capture import stage_named
from irscope.target import architecture_rank

if TYPE_CHECKING:
    from irscope.ir.logs.decisions import PtxasAdvice

__all__ = ["dot_findings", "may_be_refused", "may_round", "precision_findings", "waits_in_loops"]


_NO_BUFFERS = "shmem operands aren't multi-buffered"
_SERIALISED = "C7510"
_ASYNC_DOT = "warp_group_dot"
_LEAST_ARCH = {"f16": "80", "i8": "80", "bf16": "80", "f32": "80"}
"""The least architecture on which Triton takes matrix instructions for an element type, of those it can."""


def dot_findings(studied: Studied, loops: Sequence[Finding]) -> Iterator[Finding]:
    """The findings of each dot; `loops`: those of the loads of the same loops, which may say why."""
    for use in studied.uses.operations:
        if use.opcode == "dot" and use.result_types:
            yield from _by_fma(studied, use)
        elif use.opcode == _ASYNC_DOT:
            yield from _waited_for(studied, use, loops)
    if not studied.decisions.all:
        return
    from irscope.ir.logs.decisions import PtxasAdvice

    for advice in studied.decisions.all:
        if isinstance(advice, PtxasAdvice) and advice.code == _SERIALISED:
            yield _serialised(studied, advice)


def _by_fma(studied: Studied, use: OperationUse) -> Iterator[Finding]:
    result, target = use.result_types[0], studied.capture.target
    if target.backend != "cuda" or len(result.shape) != 2:
        return
    if not read_encoding(studied.uses.module.resolve(result.encoding)).is_blocked:
        return
    dot = studied.dot_as_written(use)
    kinds = [kind.element for kind in dot.operand_types if kind.form == "tensor"] if dot is not None else []
    element = str(kinds[0]) if kinds else ""
    code, text, causes = "IRS301", "", list[Cause]()
    if architecture_rank(target.arch) < architecture_rank(_LEAST_ARCH.get(element, "0")):
        causes.append(Cause(f"Triton takes no matrix instructions of {target} for {element}", "launch", "the target"))
    elif dot is not None and element == "f32" and dot.attribute("inputPrecision") == "ieee":
        said = 'its operands are f32, and its input_precision is "ieee": matrix units would round them'
        causes.append(studied.in_ir(said, dot.first_line, stage="ttir"))
        code, text = "IRS601", 'input_precision="tf32" or "tf32x3", if their rounding is allowed; or 16-bit operands'
    if decisions := studied.decisions.about(studied.chain_at(use.line)):
        from irscope.ir.logs.decisions import Remark

        causes += [studied.logged(one) for one in decisions if isinstance(one, Remark)][:1]
    size = result.shape[0] * result.shape[1] * use.types[0].shape[1]
    yield studied.finding(
        code,
        use.line,
        "is computed by fused multiply-adds, not by matrix instructions",
        f"{size} multiply-adds, without matrix instructions",
        size >> 8,
        [
            studied.in_ir(f"its result has a blocked layout, {result.encoding}, for fused multiply-adds", use.line),
            *causes,
        ],
        [Suggestion(text)] if text else [],
    )


def _waited_for(studied: Studied, use: OperationUse, loops: Sequence[Finding]) -> Iterator[Finding]:
    if not studied.decisions.all:
        return
    from irscope.ir.logs.decisions import AsyncDot

    said = [
        one for one in studied.decisions.about(studied.chain_at(use.line)) if isinstance(one, AsyncDot) and one.reason
    ]
    if not said or not use.loops:
        return
    causes, suggestions = [studied.logged(said[0])], list[Suggestion]()
    if said[0].reason == _NO_BUFFERS:
        operation, _ = studied.operations[use.line]
        lines = {load.first_line for load in loads_of_dot(studied, operation)}
        for one in loops:
            if one.line in lines:
                causes += [
                    Cause(
                        f"its operand is the {one.operation} of line {one.line} of ttgir, which is not pipelined",
                        "ir",
                        f"line {use.line} of ttgir",
                    ),
                    *one.causes[1:],
                ]
                suggestions = list(one.suggestions)
                break
    yield studied.finding(
        "IRS302",
        use.line,
        "is waited for in each iteration: it does not run on beside the next one",
        "a wait for the tensor cores in each iteration",
        1,
        causes,
        suggestions,
    )


def _serialised(studied: Studied, advice: PtxasAdvice) -> Finding:
    ptx = studied.capture.texts.get("ptx", "")
    dots = [use for use in studied.uses.operations if use.opcode == _ASYNC_DOT]
    line = dots[0].line if len(dots) == 1 else 0
    chain = studied.chain_at(line) if line else ()
    if not chain and advice.ptx_line is not None:
        chain = read_locations(ptx, "ptx").chain_at(advice.ptx_line)
    return Finding(
        "IRS303",
        dots[0].name if line else "",
        line,
        tuple(one.name for one in dots[0].results) if line else (),
        chain,
        place_of(chain, studied.capture.launch.kernel.file),
        "wgmma is serialised: each instruction waits for the one before",
        "a wait for each wgmma instruction",
        1 << 8,
        (studied.logged(advice),),
    )


def may_be_refused(studied: Studied) -> bool:
    """Whether a loop waits at once for a dot that it has begun, so that the log may say why."""
    for one, loops in studied.operations.values():
        if loops and _waits_for_all(one) and one.operands:
            made = studied.module.maker_of(one.operands[0])
            if made is not None and made.opcode == _ASYNC_DOT:
                return True
    return False


def waits_in_loops(operations: Sequence[tuple[Operation, int]]) -> int:
    """How many dots are waited for at once in a loop."""
    return sum(loops > 0 and _waits_for_all(one) for one, loops in operations)


def _waits_for_all(one: Operation) -> bool:
    return one.opcode == "warp_group_dot_wait" and one.attribute("pendings") == 0


_DOTS = ("dot", "warp_group_dot", "tc_gen5_mma")
_WIDENED = ("arith.extf", "fp_to_fp")
_EXACT_BITS = 8
"""Of an integer that TF32 holds."""
_CONVERTED = ("arith.sitofp", "arith.uitofp")
_SAME_VALUES = ("trans", "reshape", "broadcast", "expand_dims", "splat", "arith.negf", "math.absf")


def may_round(studied: Studied) -> bool:
    """Whether a dot is a finding if its instructions are known: others of its place are dots too."""
    stage = studied.machine.text_stage
    if not stage or not any(map(_is_asked, studied.written.walk())):
        return False
    code = read_instructions(studied.capture.texts[stage], stage_named(stage).kind)
    return any(rounds_to_tf32(item.kind, item.opcode) for item in code) and any(
        use.opcode in _DOTS and not studied.instructions_of(use.line) for use in studied.uses.operations
    )


def _is_asked(dot: Operation) -> bool:
    # `tf32` is a type of MLIR as well as this attribute's word, and is read as one.
    return dot.kind == "dot" and str(dot.attribute("inputPrecision")) == "tf32"


def precision_findings(studied: Studied) -> Iterator[Finding]:
    """The dots that were asked to be TF32, or not asked not to be, and are, with an operand that TF32 cannot hold."""
    for use in studied.uses.operations:
        if use.opcode not in _DOTS:
            continue
        rounded = sum(rounds_to_tf32(item.kind, item.opcode) for item in studied.instructions_of(use.line))
        dot = studied.dot_as_written(use) if rounded else None
        if dot is None or not _is_asked(dot):
            continue
        widened = [_widening(studied.written, value) for value in dot.operands[:2]]
        if all(widened):
            continue
        causes = [
            studied.in_ir(f"its instructions: {rounded} of TF32", use.line, "assembly"),
            studied.in_ir('its input_precision is "tf32", which is the default', dot.first_line, stage="ttir"),
        ]
        for number, one in enumerate(widened):
            if one is not None:
                said = f"operand {number} is exact: {one.name} made it, of a type that TF32 holds"
                causes.append(studied.in_ir(said, one.first_line, stage="ttir"))
        where = "each operand" if not any(widened) else f"operand {widened.index(None)}"
        yield studied.finding(
            "IRS603",
            use.line,
            "rounds its f32 operands to TF32, which has 10 bits of mantissa in place of 23",
            # NVIDIA's matrix instructions cut the other bits off: PTX has no `cvt.rna.tf32` before them.
            f"a relative error of less than 2⁻¹⁰ in {where}",
            1,
            causes,
            [Suggestion('input_precision="tf32x3" or "ieee", if that is not enough: both are slower')],
        )


def _widening(module: MlirModule, value: Value) -> Operation | None:
    """The operation that made an f32 value of 16 bits or fewer, which TF32 holds; None if it may have more."""
    made = module.maker_of(value)
    while made is not None and made.opcode in _SAME_VALUES and made.operands:
        made = module.maker_of(made.operands[0])
    if made is None or made.opcode in _WIDENED:
        return made
    kind = made.operand_types[0] if made.opcode in _CONVERTED else None
    element = kind.element or kind if kind is not None else None
    return made if element is not None and element.bits <= _EXACT_BITS else None
