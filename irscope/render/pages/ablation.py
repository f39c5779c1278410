"""Renders an Ablation as one page of HTML: a table that reads without a script, and sorts with one."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from irscope.analysis.passes.ablation import Ablation, SortKey, Variant
from irscope.render.pages.page import render_page
from irscope.render.text.ablation import Cell, about, cell, column_title, columns, idle, measured, outcome

_UNIT = "\x1f"


def render_ablation_html(ablation: Ablation, *, sort: SortKey | None = None) -> str:
    """The page. What comes from a capture is escaped text; a policy allows its own script, and no request."""
    body = _body(ablation, sort)
    title = f"irscope ablate: {ablation.kernel}"
    return render_page(title, body, styles=("compare.css", "ablation.css"), script="ablation.js")


def _body(ablation: Ablation, sort: SortKey | None) -> str:
    sentences = [what for what, _ in idle(ablation)]
    sentences += [f"{ablation.missing} more were not compiled"] if ablation.missing else []
    counted = f" Of {len(ablation.variants)} variants, {'; '.join(sentences)}." if sentences else ""
    return "\n".join(
        [
            f"<h1>{escape(ablation.kernel)} <small>{escape(ablation.target)} · {ablation.capture[:8]}</small></h1>",
            f"<p>{escape(about(ablation))}.{counted}</p>",
            f'<div class="scroll">{_table(ablation, sort)}</div>',
            _failures(ablation),
            "<p><small>Each row is the compile without that pass, behind each number its difference to the first "
            "row. Converts are the ttg.convert_layout operations at the end of the ttgir stage. "
            f"irscope diff {ablation.capture[:8]} --disable-pass PASS shows what a row changes.</small></p>",
        ]
    )


def _table(ablation: Ablation, sort: SortKey | None) -> str:
    names = columns(ablation)
    moving = {name for name in names if any(ablation.difference(one, name) for one in ablation.variants)}
    on_gpu = any(one.agreement or one.timing for one in (ablation.baseline, *ablation.variants))
    heads = ["<th>off</th>", "<th>artifacts</th>", *(["<th>result</th>", "<th>time</th>"] if on_gpu else [])]
    for name in names:
        kind = "value moving" if name in moving else "value"
        heads.append(f'<th class="{kind}">{escape(column_title(ablation, name))}</th>')

    def row(variant: Variant) -> str:
        cells = [
            f"<td>{escape(variant.name or 'every pass on')}</td>",
            f"<td>{escape(outcome(ablation, variant))}</td>",
        ]
        if on_gpu:
            result, time = measured(variant)
            cells += [f'<td class="result">{escape(result)}</td>', f"<td{_judged(variant)}>{escape(time)}</td>"]
        cells += [_count(cell(ablation, variant, name), name in moving) for name in names]
        keys = _UNIT.join(_keys(ablation, variant, names, on_gpu))
        return f'<tr class="{_kind(ablation, variant)}" data-keys="{escape(keys)}">{"".join(cells)}</tr>'

    rows = "\n".join(map(row, ablation.sorted(sort)))
    return (
        f'<table class="ablation"><thead><tr>{"".join(heads)}</tr></thead>\n'
        f'<tbody class="baseline">{row(ablation.baseline)}</tbody>\n<tbody>\n{rows}\n</tbody></table>'
    )


def _kind(ablation: Ablation, variant: Variant) -> str:
    if not variant.compiles:
        return "fails"
    if variant.is_wrong:
        return "wrong"
    return "" if not variant.off or ablation.changes(variant) else "idle"


def _judged(variant: Variant) -> str:
    """The colour of a time that was measured, and lies beyond the noise; none for what computes something else."""
    ratio = variant.ratio
    if not variant.off or ratio is None or not ratio.different or variant.is_wrong:
        return ""
    return f' class="{"worse" if ratio.value > 1 else "better"}"'


def _count(one: Cell, moving: bool) -> str:
    change = ""
    if one.difference:
        # Without a colour: fewer instructions are not a gain by themselves, only a shorter time is.
        change = f"<span>{escape(one.difference)}</span>"
    room = f'<span class="change">{change}</span>' if moving else ""
    return f'<td class="value">{escape(one.value)}{room}</td>'


def _keys(ablation: Ablation, variant: Variant, names: list[str], on_gpu: bool) -> Iterator[str]:
    """What a row is sorted by, column by column."""
    yield variant.name
    yield outcome(ablation, variant)
    if on_gpu:
        yield variant.agreement.verdict if variant.agreement else ""
        yield str(variant.ratio.value) if variant.ratio else ""
    for name in names:
        value = getattr(variant.counts, name)
        yield "" if value is None else str(value)


def _failures(ablation: Ablation) -> str:
    failed = [variant for variant in ablation.variants if variant.message]
    rows = "".join(f"<dt>{escape(one.name)}</dt><dd>{escape(one.message)}</dd>" for one in failed)
    return f"<h2>What failed</h2><dl>{rows}</dl>" if rows else ""
