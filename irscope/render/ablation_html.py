"""Renders an Ablation as one page of HTML: a table that reads without a script, and sorts with one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

from irscope.analysis.ablation import Ablation, SortKey, Variant
from irscope.render.ablation import Cell, about, cell, column_title, columns, idle, measured, outcome
from irscope.render.assets import read_asset

_UNIT = "\x1f"


def render_ablation_html(ablation: Ablation, *, sort: SortKey | None = None) -> str:
    """The page. What comes from a capture is escaped text; a policy allows its own script, and no request."""
    style = read_asset("compare.css") + read_asset("ablation.css")
    script = read_asset("ablation.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>irscope ablate: {escape(ablation.kernel)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{_body(ablation, sort)}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
        # In no colour: fewer instructions are no gain by themselves, only a time says so.
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
