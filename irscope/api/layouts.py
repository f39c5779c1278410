"""The layouts of a capture, a pass, a TTGIR file or a text, and the compiler's count of their bank conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.api.texts import one_pass, snapshot_text
from irscope.errors import UsageError
from irscope.ir.mlir.attributes import parse_encoding, read_aliases, resolve_aliases
from irscope.ir.mlir.reader import parse_mlir
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import query_type, type_of_row
from irscope.memory.costs import Cost
from irscope.model.capture import Capture, Target
from irscope.record.variants.completing import with_layouts


@dataclass(frozen=True, slots=True)
class Typed:
    """The answers of the command line about layouts that are given as text."""

    shape: str | None
    """`128x64`, or with the element type `128x64xf32`."""
    file: Path | None
    """A TTGIR file with the aliases that they use."""


def given_layouts(
    texts: Sequence[str], typed: Typed, targets: Sequence[str], options: Mapping[str, object]
) -> list[DescribedLayout]:
    """Layouts given as text: one, or two that are compared, which are named `#A` and `#B` if they are no aliases."""
    from irscope.layout.typed import target_of
    from irscope.record.layouts.questions import ask_layout
    from irscope.record.process.annotations import LayoutServer

    if typed.shape is None:
        raise UsageError("a layout that is given as text needs a shape: --shape 128x64.")
    *parts, dtype = typed.shape.lower().replace("×", "x").split("x")
    if dtype.isdecimal():
        parts, dtype = [*parts, dtype], "f16"
    if (
        not parts
        or not any(map(str.isdecimal, dtype))
        or not all(part.isdecimal() and len(part) < 10 for part in parts)
    ):
        raise UsageError(f"--shape {typed.shape!r} is not a shape: write sizes with x between them, such as 128x64.")
    aliases = read_aliases(_read(typed.file)) if typed.file is not None else {}
    whole = [resolve_aliases(text.strip(), aliases) for text in texts]
    target = Target.parse(targets[0]) if targets else target_of([parse_encoding(text) for text in whole])
    found: list[DescribedLayout] = []
    with LayoutServer() as server:
        for name, text, resolved in zip("AB", texts, whole, strict=False):
            row = ask_layout(
                resolved,
                tuple(map(int, parts)),
                _number(options, "num_warps"),
                target,
                dtype,
                num_ctas=_number(options, "num_ctas"),
                threads_per_warp=_number(options, "threads_per_warp"),
                server=server,
            )
            alias = text.strip() if text.strip() in aliases else (f"#{name}" if len(texts) > 1 else "")
            found.append(DescribedLayout(replace(row, alias=alias), target))
    return found


def _number(options: Mapping[str, object], name: str) -> int | None:
    value = options.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise UsageError(f"--{name.replace('_', '-')} {value!r} is no number.")
    return value


def layouts_of_file(file: Path, targets: Sequence[str]) -> list[DescribedLayout]:
    """The layouts of a TTGIR file, asked of the installed compiler."""
    from irscope.record.layouts.questions import layouts_of_text

    text = _read(file)
    stated = parse_mlir(text).option("target")
    target = Target.parse(targets[0] if targets else stated if isinstance(stated, str) else "cuda:90")
    return [DescribedLayout(row, target) for row in layouts_of_text(text, target)]


def layouts_of_capture(capture: Capture, after: str | None = None) -> list[DescribedLayout]:
    """The layouts of a capture's TTGIR, or of the IR after a pass."""
    if after is not None:
        from irscope.record.layouts.questions import layouts_of_text

        text = snapshot_text(capture, one_pass(capture, after), before=False)
        rows = layouts_of_text(text, capture.target, capture.layouts)
    else:
        rows = with_layouts(capture).layouts
    if not rows:
        held = ", ".join(capture.stages) or "no stage"
        why = f" The compile {capture.failure.verdict}." if capture.failure else ""
        raise UsageError(
            f"{capture.name} ({capture.target}) has no layouts: they stand in TTGIR, and it holds {held}.{why}"
        )
    return [DescribedLayout(row, capture.target) for row in rows]


def _read(file: Path) -> str:
    return file.read_text("utf-8", "replace")


def with_compilers_count(costs: Sequence[Cost], target: Target, num_warps: int) -> list[Cost]:
    """Costs whose shared memory accesses have the installed compiler's count, as far as it can be asked.

    It counts the accesses per wavefront above one for plain loads and stores, not for ldmatrix and stmatrix. The
    figure is `compiler_ways`. Without Triton the costs are returned as they are.
    """
    pairs = list(dict.fromkeys(cost.pair for cost in costs if cost.pair is not None))
    if not pairs:
        return list(costs)
    from irscope.record.layouts.questions import bank_conflicts

    counts = dict(zip(pairs, bank_conflicts(pairs, target, num_warps), strict=True))
    return [_with_count(cost, counts.get(cost.pair) if cost.pair is not None else None) for cost in costs]


def compilers_ways(first: DescribedLayout, second: DescribedLayout) -> int | None:
    """The compiler's conflicts, plus one, of accesses from one layout to the other; None if it can't be asked."""
    registers = next((item for item in (first, second) if item.threads is not None), None)
    shared = next((item for item in (first, second) if item.memory is not None), None)
    if registers is None or shared is None or registers.threads is None or first.shape != second.shape:
        return None
    from irscope.record.layouts.questions import bank_conflicts

    pair = (type_of_row(registers.row), query_type(shared.row.encoding, shared.shape, registers.row.elements[0]))
    (count,) = bank_conflicts([pair], registers.target, registers.threads.warps)
    return None if count is None else count + 1


def _with_count(cost: Cost, conflicts: int | None) -> Cost:
    if conflicts is None:
        return cost
    ways = conflicts + 1
    said = "as the compiler counts" if ways == cost.figures["ways"] else f"the compiler counts {ways}-way conflicts"
    return replace(cost, summary=f"{cost.summary}; {said}", figures={**cost.figures, "compiler_ways": ways})
