"""Why a compile takes long: the causes that multiply its IR, and compiled fixes."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from irscope.analysis.passes.growth import (
    CompileCost,
    CompileFix,
    Factor,
    Growth,
    LineGrowth,
    LongCompile,
    SlowPass,
    growth_of,
)
from irscope.analysis.passes.times import own_times, time_tree
from irscope.analysis.source.map import python_line
from irscope.api.texts import EditPlace
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.compiles import Compiles

_MOST_WARPS, _USUAL_VALUES = 32, 16
_LEAST_SHARE = 0.5
"""Of a compile's time, from which one pass is named."""

_Tried = TypeVar("_Tried", CompileFix, SlowPass)

_COMPILED = RecordingOptions(snapshots="none", disassemble=False, layouts=False)


def long_compile(capture: Capture, compiles: Compiles | None) -> LongCompile:
    """Find why a compile takes long, and try the changes that would make it shorter.

    `compiles`: compiles other options; None to compile nothing.
    """
    growth = growth_of(capture)
    fixes: dict[tuple[str, int], CompileFix] = {}
    for line in growth.lines:
        if line.cause is not None and line.cause.place not in fixes:
            fixes[line.cause.place] = _fix(capture, line, line.cause, compiles)
    return LongCompile(growth, _slow_pass(capture, growth, compiles), tuple(fixes.values()))


def _slow_pass(capture: Capture, growth: Growth, compiles: Compiles | None) -> SlowPass | None:
    """The pass or tool of most of the compile's time, left out if the compile can do without it."""
    from irscope.record.process.requests import request_from_capture

    own = replace(_COMPILED, plan=capture.plan)
    timed = capture
    try:
        if compiles is not None:
            timed = compiles.one(replace(request_from_capture(capture, own), times=True))
        if timed.times is None:
            return None
    except IrscopeError:
        return None
    took = own_times(timed.times)
    name = max(took, key=lambda one: took[one] * (one not in timed.stages), default="")
    share = took.get(name, 0) / max(1, time_tree(timed.times).whole_ns)
    if share < _LEAST_SHARE:
        return None
    slow = SlowPass(name, took[name] // 1000, share)
    if ":" not in name or compiles is None:
        return slow
    slow = replace(slow, without=f"-{name}")
    plan = PassPlan((*capture.plan.disabled, PassRule.parse(name)), capture.plan.only)
    largest = max(growth.stages, key=lambda one: one.operations).stage
    other = replace(own, plan=plan)
    return _tried(slow, largest, lambda: (timed, compiles.one(request_from_capture(capture, other))))


def _fix(capture: Capture, line: LineGrowth, factor: Factor, compiles: Compiles | None) -> CompileFix:
    """The first change that compiles, or the first that there is."""
    from irscope.record.process.requests import request_from_capture

    if factor.kind == "tile":
        warps = int(capture.launch.option("num_warps", 4))
        more = min(_MOST_WARPS, warps * 2 ** max(1, (int(factor.times) // _USUAL_VALUES - 1).bit_length()))
        if more == warps:
            return CompileFix(factor, line, f"a smaller tile: num_warps={warps} is at its limit")
        fix = CompileFix(factor, line, f"num_warps={more} in place of {warps}, or a smaller tile")
        own = replace(_COMPILED, plan=capture.plan)
        other = replace(own, options=(("num_warps", more),))
        if compiles is None:
            return fix
        requests = (request_from_capture(capture, one) for one in (own, other))
        return _tried(fix, line.stage, lambda: map(compiles.one, requests))
    place = EditPlace(capture)
    found: list[CompileFix] = []
    try:
        whole = place.text()
    except IrscopeError as error:
        return CompileFix(factor, line, _WITHOUT_EDIT[factor.kind], failure=str(error))
    for text, edited in _edits(capture, factor, whole):
        fix = CompileFix(factor, line, text)
        both = partial(map, partial(_of_python, place), (whole, edited))
        found.append(fix if compiles is None else _tried(fix, line.stage, both))
        if not found[-1].failure:
            return found[-1]
    return next(iter(found), CompileFix(factor, line, _WITHOUT_EDIT[factor.kind]))


def _edits(capture: Capture, factor: Factor, whole: str) -> Iterator[tuple[str, str]]:
    """(what to do, the kernel's Python text with that done)."""
    file, line = factor.place
    was = python_line(capture, file, line)
    if factor.kind == "unrolled" and "static_range(" in was:
        text = f"tl.range in place of tl.static_range on line {line}, where the loop needs no constant index"
        yield text, whole.replace(was, was.replace("static_range(", "range("))
    if factor.kind == "dot" and (precision := next((one for one in _IEEE if one in was), "")):
        text = f'input_precision="tf32" on line {line}: matrix instructions, which round the operands to 10 bits'
        yield text, whole.replace(was, was.replace(precision, 'input_precision="tf32"'))
    if factor.kind == "inlined":
        decorated = f"@triton.jit\n{was}"
        if decorated in whole:
            text = f"@triton.jit(noinline=True) on line {line}: each call remains one when the kernel runs"
            yield text, whole.replace(decorated, f"@triton.jit(noinline=True)\n{was}")
        edited, count = _with_loops(whole)
        if count:
            yield f"a loop in place of f(f(f(x))), {count} times: for _ in range(N): x = f(x)", edited


_IEEE = ('input_precision="ieee"', "input_precision='ieee'", "allow_tf32=False")
_WITHOUT_EDIT = {
    "dot": "operands, or a tile, for which this target has matrix instructions",
    "inlined": "fewer calls, or a loop around one",
    "unrolled": "a loop in place of the copies",
    "passes": "fewer stages (num_stages), or a smaller unroll factor",
}


def _with_loops(text: str) -> tuple[str, int]:
    """Python with each `f(f(f(x)))` as a loop before its statement, and how many there were."""
    tree = ast.parse(text)
    lines = text.split("\n")
    count = 0
    statements = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.Expr, ast.Return))]
    for statement in sorted(statements, key=lambda node: -node.lineno):
        chain = next((one for one in ast.walk(statement) if _depth(one) > 1), None)
        if chain is None or statement.lineno != statement.end_lineno or not isinstance(chain, ast.Call):
            continue
        count += 1
        inner: ast.expr = chain
        for _ in range(depth := _depth(chain)):
            inner = inner.args[0] if isinstance(inner, ast.Call) else inner
        indent, name = " " * statement.col_offset, ast.unparse(chain.func)
        whole = ast.get_source_segment(text, chain) or ""
        last = lines[statement.lineno - 1].replace(whole, "repeated")
        loop = [f"{indent}for _ in range({depth}):", f"{indent}    repeated = {name}(repeated)"]
        lines[statement.lineno - 1 : statement.lineno] = [f"{indent}repeated = {ast.unparse(inner)}", *loop, last]
    return "\n".join(lines), count


def _depth(node: ast.AST) -> int:
    """How often a call of one argument stands in itself: 3 of `f(f(f(x)))`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return 0
    inner = node.args[0]
    same = isinstance(inner, ast.Call) and ast.unparse(inner.func) == ast.unparse(node.func)
    return 1 + (_depth(inner) if same else 0)


def _of_python(place: EditPlace, text: str) -> Capture:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shorter.py")
        path.write_text(text, "utf-8", "surrogateescape")
        return place.compiled(text, path, _COMPILED)


def _tried(what: _Tried, stage: str, compile_both: Callable[[], Iterable[Capture]]) -> _Tried:
    """A change with what two compiles, without and with it, took."""
    try:
        before, after = compile_both()
    except IrscopeError as error:
        return replace(what, failure=str(error).strip().splitlines()[-1])
    for one in (before, after):
        if one.failure is not None and not one.has_compiled:
            return replace(what, failure=one.failure.headline)
    return replace(what, before=_cost(before, stage), after=_cost(after, stage))


def _cost(capture: Capture, stage: str) -> CompileCost:
    front = sum(one.processor_us or 0 for one in capture.artifacts if one.stage == "source")
    size = next((one.operations for one in growth_of(capture).stages if one.stage == stage), 0)
    return CompileCost((capture.processor_us or 0) + front, size, stage)
