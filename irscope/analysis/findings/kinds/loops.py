"""IRS201: loads of a loop with a dot that are not pipelined, so that each iteration waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import NUM_STAGES
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.target import architecture_rank

__all__ = ["LOADS", "loads_of_dot", "loop_findings", "loops_with_dots", "stages_of_loop", "unexplained_loads"]

LOADS = ("load", "buffer_load")
"""Loads to registers through pointers, by their opcodes."""
_COPIES = ("async_copy_global_to_local", "async_tma_copy_global_to_local")
_LEAST_ARCH = "80"
"""From here on NVIDIA's GPUs copy from global to shared memory past the registers, which pipelining needs."""
_STAGES = 3


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
    """The loads in loops with dots that are still loads, where only the compiler's log says why."""
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
                # It is waited for in the iterations of the inner loop, which says why.
                continue
            is_waited_for = load.first_line in feeding
            if target.backend != "cuda" and not is_waited_for:
                # AMD's pipeliner may leave a load to registers, which the next iteration writes to shared memory.
                continue
            yield load, plain or (structural if is_waited_for else None)


def _of_every_load(studied: Studied, loop: Operation) -> tuple[Cause, Suggestion] | None:
    """Why no load of a loop is pipelined: its form, or that it was not asked for."""
    if loop.name == "scf.while":
        cause = studied.in_ir("it is a while loop, and the pipeliner takes for loops only", loop.first_line)
        return cause, Suggestion("write the loop as `for … in range(…)`, if the number of iterations is known")
    own = _own_stages(studied, loop)
    if own is not None and own < 2:
        cause = studied.in_ir(f"num_stages of its loop is {own}", loop.first_line)
        return cause, Suggestion(f"tl.range(…, num_stages={_STAGES})")
    stages = studied.capture.launch.option("num_stages")
    if isinstance(stages, int) and stages < 2 and own is None:
        cause = Cause(f"num_stages is {stages}", "launch", "the options of the launch")
        count = _STAGES if studied.capture.target.backend == "cuda" else _STAGES - 1
        return cause, Suggestion(f"num_stages={count}", (Change("option", "num_stages", count),))
    return None


def _of_loop(studied: Studied, loop: Operation) -> tuple[Cause, Suggestion] | None:
    """What the pipeliner takes no loop with: a barrier, a loop inside, values that skip an iteration."""
    operations = [one for one in loop.walk() if one is not loop]
    if any(one.opcode in _COPIES for one in operations):
        return None
    for one in operations:
        if one.opcode == "barrier":
            cause = studied.in_ir("a barrier is in the loop: nothing may move past it", one.first_line)
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
                text = f"it hands {value.name} on as it got it: a value that is two iterations old"
                cause = studied.in_ir(text, end.first_line, stage=stage)
                return cause, Suggestion("carry no value through an iteration unchanged")
    return None


def loads_of_dot(studied: Studied, dot: Operation) -> Iterator[Operation]:
    """The loads that a dot's operands come from, within one iteration."""
    for operand in dot.operands[:2]:
        made = studied.module.maker_of(operand)
        for _ in range(8):
            if made is None or made.opcode in LOADS or not made.operands:
                break
            made = studied.module.maker_of(made.operands[0])
        if made is not None and made.opcode in LOADS:
            yield made


def _own_stages(studied: Studied, loop: Operation) -> int | None:
    """What the kernel says of the stages of a loop: in its TTIR, where Triton 3.6 has it alone; None if nothing."""
    given = (stages_of_loop(one) for one in (loop, *_written(studied, loop)))
    return next((one for one in given if one is not None), None)


def stages_of_loop(loop: Operation) -> int | None:
    """What `tl.range(…, num_stages=…)` asks for; None without it."""
    stages = loop.attribute(NUM_STAGES)
    return stages if isinstance(stages, int) else None


def _written(studied: Studied, loop: Operation) -> list[Operation]:
    """A loop as the TTIR has it, before the pipeliner: the loops of its place; none if that is not known."""
    ttir, chain = studied.capture.texts.get("ttir", ""), studied.chain_at(loop.first_line)
    locations = read_locations(ttir, "mlir")
    loops = [one for one in parse_mlir(ttir).walk() if one.name == loop.name]
    alike = [one for one in loops if chain and locations.chain_at(one.first_line) == chain]
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
    loops = [operation for operation, _ in studied.operations.values() if operation.kind == "loop"]
    for operation in loops:
        chain = studied.chain_at(operation.first_line)
        if chain and _is_remainder(operation, [one for one in loops if studied.chain_at(one.first_line) == chain]):
            continue
        inner = [one for one in operation.walk() if one is not operation and one.kind == "loop"]
        nested = {one.first_line for loop in inner for one in loop.walk()}
        if any(one.kind == "dot" and one.first_line not in nested for one in operation.walk()):
            yield operation


def _refused(studied: Studied, load: Operation, accesses: Sequence[Finding]) -> Iterator[Finding]:
    """Where the pipeliner says why it refuses a load."""
    if not studied.decisions.all:
        return
    from irscope.ir.logs.decisions import LoadPipelining, ThreadWidth

    said = [
        one
        for one in studied.decisions.about(studied.chain_at(load.first_line))
        if isinstance(one, LoadPipelining) and one.reason
    ]
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
        widths = studied.decisions.about(studied.chain_at(load.first_line)) if is_narrow else ()
        causes += [studied.logged(one) for one in widths if isinstance(one, ThreadWidth)][:1]
    yield _finding(studied, load, causes, suggestions)


def _finding(studied: Studied, load: Operation, causes: Sequence[Cause], suggestions: Sequence[Suggestion]) -> Finding:
    layout = studied.layout_of(load)
    bits = studied.limits.element_bits(load)
    size = layout.threads.size * bits // 8 if layout is not None and layout.threads is not None else 0
    return studied.finding(
        "IRS201",
        load.first_line,
        "is not pipelined: each iteration of its loop waits for it",
        f"{size} bytes waited for in each iteration" if size else "a wait in each iteration",
        max(1, size // 128),
        [studied.in_ir("it is still a load from global memory, inside the loop of the dot", load.first_line), *causes],
        suggestions,
    )
