"""Why compiles take long, as text and as JSON: stages, passes, lines with their factors and fixes; variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os.path import basename
from typing import Any

from irscope.analysis.passes.growth import CompileCost, CompileFix, LongCompile, NeededCompiles, SlowPass
from irscope.analysis.source.map import python_line
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.render.text.tables import counted, milliseconds, percent, table

_MOST_PASSES = 4


def render_growth(capture: Capture, found: LongCompile, *, width: int | None, color: bool) -> str:
    """The sizes and times of the stages, the passes that made the IR longer, the lines to blame with their fixes."""
    used = capture.processor_us
    known = f"{_ms(used)} of processor time" if used is not None else "processor time not recorded"
    clock = f", {_ms(capture.compile_us)} by the clock" if capture.compile_us is not None else ""
    lines = [f"{capture.name} ({capture.target}): {known} in its stages{clock}"]
    rows = [[one.stage, f"{one.operations:,}", _ms(one.processor_us)] for one in found.growth.stages]
    lines += [f"  {line}" for line in table(["stage", "operations", "processor"], rows, width=width).splitlines()]
    if grown := found.growth.passes[:_MOST_PASSES]:
        told = ", ".join(f"{one.label} {one.before:,} → {one.after:,}" for one in grown)
        lines.append(f"  passes that add operations: {told}")
    if found.slow is not None:
        lines += [f"  {line}" for line in _slow_lines(found.slow)]
    fixes = {(one.line.file, one.line.line): one for one in found.fixes}
    for one in found.growth.lines:
        if one.cause is None:
            continue
        lines.append(f"  {basename(one.file)}:{one.line}  {python_line(capture, one.file, one.line).strip()}")
        as_written = counted(one.written, "operation")
        share = f"{percent(one.share)} of it, {one.times:.0f} times as many"
        lines.append(f"    {as_written} as written → {one.operations:,} of {one.stage} ({share})")
        lines += [f"    ×{factor.times:.4g}  {factor.text}" for factor in one.factors]
        if (fix := fixes.get((one.file, one.line))) is not None and fix.text:
            lines += [f"    {line}" for line in _fix_lines(fix)]
    if not any(one.cause for one in found.growth.lines) and found.slow is None:
        lines.append("  no line is multiplied more than is usual: irscope passes --time shows where the time goes")
    return "\n".join(lines) + "\n"


def _slow_lines(slow: SlowPass) -> Iterator[str]:
    yield f"{slow.name} takes {_ms(slow.duration_us)}, {percent(slow.share)} of the compile by the clock"
    if slow.without:
        yield f"  without it (-d {slow.name}):"
        yield f"    {_compiled(slow)}"


def _fix_lines(fix: CompileFix) -> Iterator[str]:
    yield f"fix: {fix.text}"
    yield f"  {_compiled(fix)}"


def _compiled(tried: CompileFix | SlowPass) -> str:
    if tried.failure:
        return f"compiled: it fails: {tried.failure}"
    before, after = tried.before, tried.after
    if before is None or after is None:
        return "not compiled"
    sizes = f"{before.operations:,} → {after.operations:,} operations of {before.stage}"
    return f"compiled: {_ms(before.processor_us)} → {_ms(after.processor_us)} of processor time, {sizes}"


def _ms(duration_us: int | None) -> str:
    return "–" if duration_us is None else f"{milliseconds(duration_us)} ms"


def growth_json(capture: Capture, found: LongCompile) -> dict[str, Any]:
    fixes = {(one.line.file, one.line.line): one for one in found.fixes}
    return picked(
        capture,
        "id kernel=name target processor_us compile_us",
        stages=[picked(one, "stage operations processor_us") for one in found.growth.stages],
        passes=[picked(one, "label before after") for one in found.growth.passes],
        slow=_slow_json(found.slow),
        lines=[
            picked(
                one,
                "file line written stage operations share",
                cause=one.cause.kind if one.cause is not None else None,
                factors=[picked(factor, "kind times text") | {"line": factor.place[1]} for factor in one.factors],
                fix=_fix_json(fixes.get((one.file, one.line))),
            )
            for one in found.growth.lines
        ],
    )


def _slow_json(slow: SlowPass | None) -> dict[str, Any] | None:
    if slow is None:
        return None
    picks = picked(slow, "name duration_us share without failure")
    return picks | {"before": _cost(slow.before), "after": _cost(slow.after)}


def _fix_json(fix: CompileFix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {"text": fix.text, "failure": fix.failure, "before": _cost(fix.before), "after": _cost(fix.after)}


def _cost(cost: CompileCost | None) -> dict[str, Any] | None:
    return None if cost is None else picked(cost, "processor_us operations stage")


def render_needed(rows: Sequence[NeededCompiles], *, width: int | None, color: bool) -> str:
    """A table of kernels: the time of their compiles, and the part that different machine code needs."""
    cells = [
        [
            row.site.kernel.name,
            str(row.site.target),
            len(row.site.variants),
            row.codes,
            milliseconds(row.processor_us),
            milliseconds(row.needed_us),
            ", ".join(cause.name for cause in row.site.causes) or "–",
        ]
        for row in rows
    ]
    total, needed = sum(row.processor_us for row in rows), sum(row.needed_us for row in rows)
    variants = sum(len(row.site.variants) for row in rows)
    columns = ["kernel", "target", "compiles", "codes", "ms", "needed ms", "differ in"]
    share = percent(needed / total) if total else "–"
    told = (
        f"{counted(variants, 'compile')}: {_ms(total)} of processor time, of which {share} were needed: the shortest "
        "compile of each different machine code.\n"
    )
    more = "irscope why --variants: which arguments to merge; --warmup: Python that compiles every variant ahead.\n"
    return told + table(columns, cells, width=width, color=color) + (more if variants > len(rows) else "")


def needed_json(rows: Sequence[NeededCompiles]) -> list[dict[str, Any]]:
    """The same as plain values, with what distinguishes each variant: the warm-up list."""
    return [
        picked(
            row,
            "kernel=site.kernel.name file=site.kernel.file target=site.target codes processor_us needed_us",
            variants=[
                {"id": one.id, "states": {cause.name: cause.states[at] for cause in row.site.causes}}
                for at, one in enumerate(row.site.variants)
            ],
        )
        for row in rows
    ]
