"""IRS201, IRS202, IRS301 to IRS303, IRS601, IRS603: loads of loops that are not pipelined, and dots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from irscope.analysis.findings.model import Cause, Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.opcodes import rounds_to_tf32
from irscope.ir.locations.stages import read_locations
from irscope.ir.logs.decisions import AsyncDot, LoadPipelining, PtxasAdvice, Remark, ThreadWidth
from irscope.ir.mlir.attributes import NUM_STAGES, read_encoding
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.uses import read_uses
from irscope.ir.reach import reached
from irscope.model.capture import PassSnapshot, stage_named
from irscope.target import architecture_rank

LOADS = ("load", "buffer_load")
"""Loads to registers through pointers, by their opcodes."""
_COPIES = ("async_copy_global_to_local", "async_tma_copy_global_to_local")
_LEAST_ARCH = "80"
"""From here on NVIDIA's GPUs copy from global to shared memory past the registers, which pipelining needs."""
_STAGES = 3
_MOST_MAKERS = 9
"""Operations, from a dot back to a load that it reads."""


def loop_findings(studied: Studied, accesses: Sequence[Finding]) -> Iterator[Finding]:
    """The findings of each load in a loop with a dot; `accesses`: those of the same loads, which may say why."""
    reported: set[object] = set()
    for load, reason in _waited_for(studied):
        # An unrolled loop has several copies of a load: the first stands for them.
        key = studied.chain_at(load.first_line) or load.first_line
        if key in reported:
            continue
        reported.add(key)
        if reason is not None:
            yield _finding(studied, load, [reason[0]], [reason[1]])
        else:
            yield from _refused(studied, load, accesses)


def unexplained_loads(studied: Studied) -> Iterator[Operation]:
    """The loads in loops with dots that are not pipelined for a reason that only the compiler's log has."""
    return (load for load, reason in _waited_for(studied) if reason is None)


def _waited_for(studied: Studied) -> Iterator[tuple[Operation, tuple[Cause, Suggestion] | None]]:
    """(a load in a loop with a dot, the reason that the IR or the launch gives for that, None without one)."""
    target = studied.capture.target
    if target.backend == "cuda" and architecture_rank(target.arch) < architecture_rank(_LEAST_ARCH):
        return
    loops = list(loops_with_dots(studied))
    starts = {loop.first_line for loop in loops}
    for loop in loops:
        inner = {one.first_line for part in loop.walk() if part is not loop and part.first_line in starts
                 for one in part.walk()}  # fmt: skip
        feeding = {load.first_line for one in loop.walk() if one.kind == "dot" for load in loads_of_dot(studied, one)}
        plain = _of_every_load(studied, loop)
        structural = _of_loop(studied, loop) if plain is None else None
        for load in (one for one in loop.walk() if one.opcode in LOADS and one.result_types[0].form == "tensor"):
            if load.first_line in inner:
                # It blocks the iterations of the inner loop, which gives the reason.
                continue
            is_waited_for = load.first_line in feeding
            if target.backend != "cuda" and not is_waited_for:
                # AMD's pipeliner may leave a load to registers, which the next iteration writes to shared memory.
                continue
            yield load, plain or (structural if is_waited_for else None)


def _of_every_load(studied: Studied, loop: Operation) -> tuple[Cause, Suggestion] | None:
    """Why no load of a loop is pipelined: its form, or that it was not asked for."""
    if loop.name == "scf.while":
        cause = studied.in_ir("it is a while loop, and the pipeliner handles only for loops", loop.first_line)
        return cause, Suggestion("write the loop as `for … in range(…)` if its trip count is known")
    # What the kernel says of the stages of a loop: in its TTIR, where Triton 3.6 has it alone; None if nothing.
    given = (_stages_of_loop(one) for one in (loop, *_written(studied, loop)))
    own = next((one for one in given if one is not None), None)
    if own is not None and own < 2:
        cause = studied.in_ir(f"num_stages of its loop is {own}", loop.first_line)
        return cause, Suggestion(f"tl.range(…, num_stages={_STAGES})")
    stages = studied.capture.launch.option("num_stages")
    if isinstance(stages, int) and stages < 2 and own is None:
        cause = Cause(f"num_stages is {stages}", "launch", "the options of the launch")
        count = _STAGES if studied.capture.target.backend == "cuda" else _STAGES - 1
        return cause, Suggestion(f"num_stages={count}", (FixChange("option", "num_stages", count),))
    return None


def _of_loop(studied: Studied, loop: Operation) -> tuple[Cause, Suggestion] | None:
    """The reasons for which the pipeliner refuses a loop: a barrier, a loop inside, values that skip an iteration."""
    operations = [one for one in loop.walk() if one is not loop]
    if any(one.opcode in _COPIES for one in operations):
        return None
    for one in operations:
        if one.opcode == "barrier":
            cause = studied.in_ir("a barrier in the loop blocks code motion", one.first_line)
            return cause, Suggestion("take `tl.debug_barrier()` out of the loop")
        if one.kind == "loop":
            cause = studied.in_ir("another loop is inside, and only innermost loops are pipelined", one.first_line)
            unroll = "unroll the inner loop (`tl.static_range`), or " if one.name == "scf.for" else ""
            return cause, Suggestion(f"{unroll}do the work of the inner loop outside")
    # What the pipeliner itself carries, such as the phase of a barrier, is not in the TTIR.
    written, stage = next(((one, "ttir") for one in _written(studied, loop)), (loop, "ttgir"))
    block = written.regions[0].blocks[-1] if written.regions and written.regions[0].blocks else None
    end = block.operations[-1] if block is not None and block.operations else None
    if block is not None and end is not None and end.name == "scf.yield":
        for value in end.operands:
            if value in block.arguments:
                text = f"the loop yields {value.name} unchanged: a loop-carried distance of two iterations"
                cause = studied.in_ir(text, end.first_line, stage=stage)
                return cause, Suggestion("yield no value of an iteration unchanged")
    return None


def loads_of_dot(studied: Studied, dot: Operation) -> Iterator[Operation]:
    """The loads that a dot's operands come from, within one iteration."""
    for operand in dot.operands[:2]:
        loads = (one for one in islice(makers(studied.module, operand), _MOST_MAKERS) if one.opcode in LOADS)
        yield from islice(loads, 1)


def _stages_of_loop(loop: Operation) -> int | None:
    stages = loop.attribute(NUM_STAGES)
    return stages if isinstance(stages, int) else None


def _written(studied: Studied, loop: Operation) -> list[Operation]:
    """A loop as the TTIR has it, before the pipeliner: the loops of its place; none if that is not known."""
    chain = studied.chain_at(loop.first_line)
    loops = [one for one in studied.written.walk() if one.name == loop.name]
    alike = [one for one in loops if chain and studied.chain_as_written(one.first_line) == chain]
    return [one for one in alike if not _is_remainder(one, alike)]


def _is_remainder(loop: Operation, alike: Sequence[Operation]) -> bool:
    """Whether a loop does the iterations that an unrolled one leaves: it begins where that ends.

    `alike`: the loops of its place in Python. The compiler pipelines no such loop, whatever the kernel asks for.
    """
    if loop.name != "scf.for" or len(loop.operands) < 2:
        return False
    return any(one is not loop and one.name == loop.name and one.operands[1] == loop.operands[0] for one in alike)


def loops_with_dots(studied: Studied) -> Iterator[Operation]:
    """The innermost loops around each dot, in the order of the text, but for the remainders of unrolled loops."""
    loops = [operation for operation in studied.operations.values() if operation.kind == "loop"]
    for operation in loops:
        chain = studied.chain_at(operation.first_line)
        if chain and _is_remainder(operation, [one for one in loops if studied.chain_at(one.first_line) == chain]):
            continue
        inner = [one for one in operation.walk() if one is not operation and one.kind == "loop"]
        nested = {one.first_line for loop in inner for one in loop.walk()}
        if any(one.kind == "dot" and one.first_line not in nested for one in operation.walk()):
            yield operation


def _refused(studied: Studied, load: Operation, accesses: Sequence[Finding]) -> Iterator[Finding]:
    """The log entry with the pipeliner's reason to refuse a load."""
    said = [one for one in studied.said(load.first_line, LoadPipelining) if one.reason]
    if not said:
        return
    causes, suggestions = [studied.logged(said[0])], list[Suggestion]()
    is_narrow = said[0].width_bits is not None and said[0].width_bits < 32
    # Whether a load is pipelined depends on its width: what is said of that comes first.
    for other in sorted(accesses, key=lambda one: one.code == "IRS103"):
        if is_narrow and other.line == load.first_line:
            causes += [one for one in other.causes if one not in causes]
            suggestions = list(other.suggestions)
            break
    else:
        widths = studied.said(load.first_line, ThreadWidth) if is_narrow else []
        causes += [studied.logged(one) for one in widths[:1]]
    yield _finding(studied, load, causes, suggestions)


def _finding(studied: Studied, load: Operation, causes: Sequence[Cause], suggestions: Sequence[Suggestion]) -> Finding:
    layout = studied.layout_of(load)
    bits = studied.limits.element_bits(load)
    size = layout.threads.size * bits // 8 if layout is not None and layout.threads is not None else 0
    return studied.finding(
        "IRS201",
        load.first_line,
        "is not pipelined: its latency is exposed in each iteration",
        f"the latency of {size} bytes in each iteration" if size else "its latency in each iteration",
        max(1, size // 128),
        [studied.in_ir("it is still a load from global memory, inside the loop of the dot", load.first_line), *causes],
        suggestions,
    )


_DEEPEST = 64
_MOST_CHANGES = 4
"""Of the layout, between a load and the buffer."""


def stage_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of each load that a dot of the same loop reads; none without the IR of the passes."""
    snapshot = next((one for one in studied.capture.passes() if one.text and "loop.stage" in one.text), None)
    asked = studied.capture.launch.option("num_stages")
    if snapshot is not None and isinstance(asked, int):
        yield from _Scheduled(studied, snapshot, asked).findings()


class _Scheduled:
    """The IR in which the pipeliner has written down the stage of each operation."""

    def __init__(self, studied: Studied, snapshot: PassSnapshot, asked: int) -> None:
        self._studied = studied
        self._label = snapshot.label
        self._asked = asked
        self._uses = read_uses(snapshot.text or "")
        self._inside: set[int] = set()
        """The lines of the operations of the loop that is read."""

    @cached_property
    def _copies(self) -> dict[object, int]:
        copies = (*LOADS, "async_copy_global_to_local", "buffer_load_to_local")
        found = (one for one in self._studied.operations.values() if one.opcode in copies and one.loops)
        return {self._studied.chain_at(one.first_line): one.first_line for one in found}

    def findings(self) -> Iterator[Finding]:
        for loop in self._uses.module.walk():
            if loop.name != "scf.for":
                continue
            stated = _stages_of_loop(loop)
            asked = stated if stated is not None else self._asked
            self._inside = {one.first_line for one in loop.walk()}
            for dot in (one for one in loop.walk() if one.kind == "dot" and _stage(one) is not None):
                for load in self._loads(dot.operands[:2]):
                    yield from self._fewer(load, dot, asked, stated is not None)

    def _loads(self, values: tuple[Value, ...]) -> list[Operation]:
        def maker_of(value: Value) -> Operation | None:
            made = self._uses.module.maker_of(value)
            return made if made is not None and made.first_line in self._inside else None

        def operands(value: Value) -> tuple[Value, ...]:
            made = maker_of(value)
            return () if made is None or made.opcode in LOADS else made.operands

        makers_ = (maker_of(value) for value in reached(values, operands))
        found = {one.first_line: one for one in makers_ if one is not None and one.opcode in LOADS}
        return [found[line] for line in sorted(found)]

    def _fewer(self, load: Operation, dot: Operation, asked: int, stated: bool) -> Iterator[Finding]:
        first, last = _stage(load) or 0, _stage(dot) or 0
        ahead = last - first
        line = self._copies.get(self._uses.locations.chain_at(load.first_line))
        if not 0 < ahead < asked - 1 or line is None:
            return
        # What its addresses or its mask are loaded from takes stages of its own.
        before = [one for one in self._loads(load.operands) if (_stage(one) or 0) < first]
        if not before:
            return
        levels, deeper = 2, before
        while (deeper := [one for other in deeper for one in self._loads(other.operands)]) and levels < _DEEPEST:
            levels += 1
        causes = [
            self._studied.in_ir(
                f"stage {first} of {last + 1} issues it, stage {last} has the dot", load.first_line, stage=self._label
            )
        ]
        for one in before[:2]:
            what = f"its address comes from another load, {one.results[0].name}, which stage {_stage(one)} issues"
            causes.append(self._studied.in_ir(what, one.first_line, stage=self._label))
        enough = levels * (asked - 2) + 3
        changes = () if stated else (FixChange("option", "num_stages", enough),)
        yield self._studied.finding(
            "IRS202",
            line,
            f"is issued {ahead} iteration{'s' * (ahead > 1)} ahead, where num_stages={asked} requests {asked - 1}",
            f"{asked - 1 - ahead} iterations fewer to hide the memory latency",
            asked - 1 - ahead,
            causes,
            [Suggestion(f"num_stages={enough}", changes)],
        )


def _stage(operation: Operation) -> int | None:
    stage = operation.attribute("loop.stage")
    return stage if isinstance(stage, int) else None


def buffers_of(studied: Studied, copy: Operation) -> int:
    """How many buffers in shared memory a copy or a load of a loop has in turn."""
    written = [*copy.operands]
    for one in studied.operations.values():
        if one.opcode == "local_store" and _comes_from(studied, one.operands[0], copy):
            written += one.operands
    for value in written:
        made = studied.module.maker_of(value)
        if made is not None and made.opcode in ("memdesc_index", "memdesc_subview") and made.operands:
            shape = studied.module.type_of(made.operands[0]).shape
            return shape[0] if len(shape) > 2 else 1
    return 1


def _comes_from(studied: Studied, value: Value, load: Operation) -> bool:
    return any(one is load for one in islice(makers(studied.module, value), _MOST_CHANGES + 1))


_NO_BUFFERS = "shmem operands aren't multi-buffered"
_SERIALISED = "C7510"
_ASYNC_DOT = "warp_group_dot"
_LEAST_MATRIX_ARCH = {"f16": "80", "i8": "80", "bf16": "80", "f32": "80"}
"""The least architecture on which Triton takes matrix instructions for an element type, of those it can."""
_RDNA = ("gfx11", "gfx12")
"""How the names of architectures begin whose matrix instructions are WMMA."""


def dot_findings(studied: Studied, loops: Sequence[Finding]) -> Iterator[Finding]:
    """The findings of each dot; `loops`: those of the loads of the same loops, which may say why."""
    for operation in studied.uses.operations:
        if operation.opcode == "dot" and operation.result_types:
            yield from _by_fma(studied, operation)
        elif operation.opcode == _ASYNC_DOT:
            yield from _dot_waited_for(studied, operation, loops)
    for advice in studied.decisions.all:
        if isinstance(advice, PtxasAdvice) and advice.code == _SERIALISED:
            yield _serialised(studied, advice)


def _by_fma(studied: Studied, operation: Operation) -> Iterator[Finding]:
    result, target = operation.result_types[0], studied.capture.target
    if len(result.shape) != 2:
        return
    if not read_encoding(studied.module.resolve(result.encoding)).is_blocked:
        return
    dot = studied.dot_as_written(operation)
    kinds = [kind.element for kind in dot.operand_types if kind.form == "tensor"] if dot is not None else []
    element = str(kinds[0]) if kinds else ""
    code, text, causes = "IRS301", "", list[Cause]()
    is_amd = target.backend == "hip"
    if is_amd and element == "f32" and str(target.arch).startswith(_RDNA):
        causes.append(Cause(f"WMMA of {target} has no operands of f32", "launch", "the target"))
        text = 'input_precision="bf16x3", if its rounding is allowed; or 16-bit operands'
    elif not is_amd and architecture_rank(target.arch) < architecture_rank(_LEAST_MATRIX_ARCH.get(element, "0")):
        causes.append(Cause(f"Triton selects no matrix instructions of {target} for {element}", "launch", "the target"))
    elif not is_amd and dot is not None and element == "f32" and dot.attribute("inputPrecision") == "ieee":
        said = 'its operands are f32, and its input_precision is "ieee": matrix units would round them'
        causes.append(studied.in_ir(said, dot.first_line, stage="ttir"))
        code, text = "IRS601", 'input_precision="tf32" or "tf32x3", if their rounding is allowed; or 16-bit operands'
        if _is_of_sum(studied):
            causes.append(studied.in_ir(_OF_SUM, dot.first_line, stage="ttir"))
            text = "tl.dot of the two tiles as they are loaded: matrix units take 16-bit operands, or round f32 to TF32"
    causes += [studied.logged(one) for one in studied.said(operation.first_line, Remark)[:1]]
    size = result.shape[0] * result.shape[1] * operation.layout_types[0].shape[1]
    yield studied.finding(
        code,
        operation.first_line,
        "is computed by fused multiply-adds, not by matrix instructions",
        f"{size} multiply-adds, without matrix instructions",
        size >> 8,
        [
            studied.in_ir(
                f"its result has a blocked layout, {result.encoding}, for fused multiply-adds", operation.first_line
            ),
            *causes,
        ],
        [Suggestion(text)] if text else [],
    )


_OF_SUM = "a sum of products, which became a dot"


def _is_of_sum(studied: Studied) -> bool:
    """Whether the kernel as it is written has no dot."""
    return not any(one.kind == "dot" for one in parse_mlir(studied.capture.begun_text).walk())


def _dot_waited_for(studied: Studied, operation: Operation, loops: Sequence[Finding]) -> Iterator[Finding]:
    said = [one for one in studied.said(operation.first_line, AsyncDot) if one.reason]
    if not said or not operation.loops:
        return
    causes, suggestions = [studied.logged(said[0])], list[Suggestion]()
    if said[0].reason == _NO_BUFFERS:
        lines = {load.first_line for load in loads_of_dot(studied, operation)}
        for one in loops:
            if one.line in lines:
                causes += [
                    Cause(
                        f"its operand is the {one.operation} of line {one.line} of ttgir, which is not pipelined",
                        "ir",
                        f"line {operation.first_line} of ttgir",
                    ),
                    *one.causes[1:],
                ]
                suggestions = list(one.suggestions)
                break
    yield studied.finding(
        "IRS302",
        operation.first_line,
        "blocks each iteration: no overlap with the next one",
        "a wait for the tensor cores in each iteration",
        1,
        causes,
        suggestions,
    )


def _serialised(studied: Studied, advice: PtxasAdvice) -> Finding:
    ptx = studied.capture.texts.get("ptx", "")
    dots = [one for one in studied.uses.operations if one.opcode == _ASYNC_DOT]
    line = dots[0].first_line if len(dots) == 1 else 0
    chain = studied.chain_at(line) if line else ()
    if not chain and advice.ptx_line is not None:
        chain = read_locations(ptx, "ptx").chain_at(advice.ptx_line)
    text, cost = "wgmma is serialised: each instruction waits for the previous one", "a wait for each wgmma instruction"
    found = studied.about_kernel("IRS303", text, cost, 1 << 8, [studied.logged(advice)], chain=chain)
    if not line:
        return found
    return replace(found, operation=dots[0].name, line=line, values=tuple(one.name for one in dots[0].results))


def may_be_refused(studied: Studied) -> bool:
    """Whether a loop waits at once for a dot that it has begun, so that the log may say why."""
    for one in studied.operations.values():
        if one.loops and _waits_for_all(one) and one.operands:
            made = studied.module.maker_of(one.operands[0])
            if made is not None and made.opcode == _ASYNC_DOT:
                return True
    return False


def waits_in_loops(studied: Studied) -> int:
    """How many dots are waited for at once in a loop."""
    return sum(one.loops > 0 and _waits_for_all(one) for one in studied.operations.values())


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
        operation.opcode in _DOTS and not studied.instructions_of(operation.first_line)
        for operation in studied.uses.operations
    )


def _is_asked(dot: Operation) -> bool:
    # `tf32` is a type of MLIR as well as this attribute's word, and is read as one.
    return dot.kind == "dot" and str(dot.attribute("inputPrecision")) == "tf32"


def precision_findings(studied: Studied) -> Iterator[Finding]:
    """The dots that were asked to be TF32, or not asked not to be, and are, with an operand that TF32 cannot hold."""
    for operation in studied.uses.operations:
        if operation.opcode not in _DOTS:
            continue
        rounded = sum(rounds_to_tf32(item.kind, item.opcode) for item in studied.instructions_of(operation.first_line))
        dot = studied.dot_as_written(operation) if rounded else None
        if dot is None or not _is_asked(dot):
            continue
        widened = [_widening(studied.written, value) for value in dot.operands[:2]]
        if all(widened):
            continue
        causes = [
            studied.in_ir(f"compiled to: {rounded} of TF32", operation.first_line, "assembly"),
            studied.in_ir('its input_precision is "tf32", which is the default', dot.first_line, stage="ttir"),
        ]
        fix = 'input_precision="tf32x3" or "ieee", if this precision is too low: both are slower'
        if _is_of_sum(studied):
            causes.append(studied.in_ir(_OF_SUM, dot.first_line, stage="ttir"))
            fix = f"tl.dot of the two tiles, with {fix}"
        for number, one in enumerate(widened):
            if one is not None:
                said = f"operand {number} is exact: {one.name} made it, of a type that TF32 holds"
                causes.append(studied.in_ir(said, one.first_line, stage="ttir"))
        where = "each operand" if not any(widened) else f"operand {widened.index(None)}"
        yield studied.finding(
            "IRS603",
            operation.first_line,
            "rounds its f32 operands to TF32, which has 10 bits of mantissa in place of 23",
            # NVIDIA's matrix instructions cut the other bits off: PTX has no `cvt.rna.tf32` before them.
            f"a relative error of less than 2⁻¹⁰ in {where}",
            1,
            causes,
            [Suggestion(fix)],
        )


def _widening(module: MlirModule, value: Value) -> Operation | None:
    """The operation that made an f32 value of 16 bits or fewer, which TF32 holds; None if it may have more."""
    made = next((one for one in makers(module, value) if one.opcode not in _SAME_VALUES), None)
    if made is None or made.opcode in _WIDENED:
        return made
    kind = made.operand_types[0] if made.opcode in _CONVERTED else None
    element = kind.element or kind if kind is not None else None
    return made if element is not None and element.bits <= _EXACT_BITS else None
