"""The results of many variants as text: of passes left out, and of options that were swept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from os.path import basename
from typing import Any

from irscope.analysis.findings.model import KINDS
from irscope.analysis.sweep import COMPILES_FOR_TIME, CRITERIA, Summary
from irscope.analysis.variants.merges import Merge, remaining
from irscope.analysis.variants.site import Site
from irscope.model.plain import picked
from irscope.render.text.tables import number_text, table

_BAR = 40


def render_summary(summary: Summary, *, width: int | None, color: bool) -> str:
    """What was compiled, the best of each kernel, what fails where, and a histogram."""
    parts = [f"{summary.rows} compiles: {summary.ok} ok, {summary.rows - summary.ok} failed.\n"]
    if summary.foreign:
        parts.append(
            f"{summary.foreign} were compiled by another Triton version than the front end that made the IR.\n"
        )
    for columns, rows in _tables(summary):
        if rows:
            parts.append(table(columns, rows, width=width, color=color))
        if rows and columns[0] == "kernel" and summary.spread is not None:
            parts.append(
                f"The shortest of {COMPILES_FOR_TIME} compiles counts; the longest takes {summary.spread[0]:.2f} times "
                f"its processor time in the median, {summary.spread[1]:.2f} times at most.\n"
            )
        if rows and columns[0] == "kernel":
            parts.append("Nothing was run: the figures are the compiler's. irscope bench times them on a GPU.\n")
    return "\n".join(parts)


def _tables(summary: Summary) -> Iterator[tuple[Sequence[str], Sequence[Sequence[object]]]]:
    title = f"{'most' if CRITERIA[summary.by] else 'fewest'} {summary.by}"
    yield (
        ("kernel", "target", "constants", title, "with", "as it was", "as good", "of"),
        [
            (
                one.row.kernel,
                one.row.target,
                one.row.constants,
                number_text(getattr(one.row, summary.by)),
                one.row.vs or "the capture's own options",
                number_text(one.own),
                one.tied,
                one.compiles,
            )
            for one in summary.best
        ],
    )
    yield (
        ("failure", "target", "with", "failed", "of", "kernels", "message"),
        [
            (one.failure, one.target, one.vs or "–", one.count, one.of, " ".join(one.kernels), one.message)
            for one in summary.failures
        ],
    )
    yield (
        ("finding", "name", "compiles"),
        [(code, KINDS[code].name if code in KINDS else "", count) for code, count in summary.findings],
    )
    most = max((count for _, _, count in summary.bins), default=1)
    yield (
        (summary.by, "compiles", ""),
        [
            (f"{number_text(low)} to {number_text(high)}", count, "█" * round(_BAR * count / most))
            for low, high, count in summary.bins
        ],
    )


def summary_json(summary: Summary) -> dict[str, Any]:
    names = (
        "kernel=row.kernel file=row.file target=row.target capture=row.capture id=row.id vs=row.vs own tied compiles"
    )
    return picked(
        summary,
        "by rows ok foreign",
        best=[picked(one, names, value=getattr(one.row, summary.by)) for one in summary.best],
        failures=[asdict(one) | {"kernels": list(one.kernels)} for one in summary.failures],
        bins=[{"least": low, "greatest": high, "compiles": count} for low, high, count in summary.bins],
        findings=dict(summary.findings),
        spread=None if summary.spread is None else dict(zip(("median", "most"), summary.spread, strict=True)),
    )


_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def render_variants(site: Site, merges: Sequence[Merge], *, width: int | None, color: bool) -> str:
    """A table of the variants, and for each parameter that tells them apart why, and what to do."""
    bold, plain = (_BOLD, _PLAIN) if color else ("", "")
    kernel, count = site.kernel, len(site.variants)
    codes = _codes(site)
    place = f"{basename(kernel.file)}:{kernel.line}" if kernel.line else basename(kernel.file)
    under = f" under {site.plan!r}" if site.plan else ""
    different = len({*codes} - {"–"})
    codes_text = "code" if different == 1 else "codes"
    told = "1 variant" if count == 1 else f"{count} variants, {different} different {codes_text}"
    lines = [f"{bold}{kernel.name}{plain}  {place}  {site.target}{under}: {told}"]
    if count > 1:
        columns = ["id", *(cause.name for cause in site.causes), "code"]
        rows = [
            [one.id[:8], *(cause.states[at] or "–" for cause in site.causes), codes[at]]
            for at, one in enumerate(site.variants)
        ]
        lines += [f"  {line}" for line in table(columns, rows, width=width and width - 2, color=color).splitlines()]
        if not site.causes:
            lines.append(
                "  No specialised argument distinguishes them: the functions or globals that the kernel uses differ."
            )
        for merge in merges:
            lines += _merge_lines(merge, color)
        unneeded = [one for one in merges if one.how == "remove"]
        every = [one for one in merges if one.how != "warm up"]
        if 0 < len(unneeded) < len(every):
            lines.append(f"  Without what the kernel does not need: {count} → {remaining(site, unneeded)} variants.")
        if len(every) > 1:
            lines.append(f"  With all of these changes: {count} → {remaining(site, every)} variants.")
    return "\n".join(lines) + "\n"


def _codes(site: Site) -> list[str]:
    """A letter for each machine code, in the order of the variants; `–` for a variant that has none."""
    letters: dict[str, str] = {}
    for one in site.variants:
        number = len(letters)
        name = _LETTERS[number] if number < len(_LETTERS) else str(number + 1)
        if one.code:
            letters.setdefault(one.code, name)
    return [letters.get(one.code, "–") for one in site.variants]


def _merge_lines(merge: Merge, color: bool) -> Iterator[str]:
    bold, dim, plain = (_BOLD, _DIM, _PLAIN) if color else ("", "", "")
    cause = merge.cause
    names = f"{bold}{', '.join(merge.names)}{plain}"
    together = ", always together" if merge.along else ""
    yield f"  {names}: {', '.join(cause.aspects)}{together} {dim}[{_use_text(merge)}]{plain}"
    yield f"    {_what_to_do(merge)}"
    if cause.pairs:
        same = f"{cause.same_code} the same machine code" if cause.same_code else "none the same machine code"
        yield f"    of {cause.pairs} pair{'s' * (cause.pairs > 1)} that differ in nothing else, {same}"
    yield from _proof_lines(merge)


def _proof_lines(merge: Merge) -> Iterator[str]:
    same = [proof for proof in merge.proofs if proof.same_code]
    if same:
        which = "each" if len(same) == len(merge.proofs) else ", ".join(proof.variant[:8] for proof in same)
        yield f"    compiled with this change: the same machine code as {which}"
    # A failure's other lines quote a file that is gone.
    for failure in dict.fromkeys(proof.failure.partition("\n")[0] for proof in merge.proofs if proof.failure):
        compiled = "compiled as an argument" if merge.as_argument else "compiled with this change"
        yield f"    {compiled}: {failure}"
    for proof in merge.proofs:
        if not proof.failure and not proof.same_code:
            what = "; ".join(proof.effects) or "other machine code"
            yield f"    compiled with this change, compared with {proof.variant[:8]}: {what}"


def _use_text(merge: Merge) -> str:
    cause = merge.cause
    read = sorted({line for one in (cause, *merge.along) for line in one.lines})
    lines = f"line{'s' * (len(read) > 1)} {', '.join(map(str, read))}"
    if cause.is_tuned:
        return "a setting of @triton.autotune"
    return {
        "never read": "never read",
        "not in the IR": f"read on {lines}, but absent from the IR",
        "unknown": "its use is unknown: the capture has no Python text",
        "option": "a compile option",
        "used": f"read on {lines}" if read else "used",
    }[cause.use]


def _what_to_do(merge: Merge) -> str:
    cause = merge.cause
    after = "1 variant remains" if merge.remaining == 1 else f"{merge.remaining} variants remain"
    quoted = json.dumps(merge.names)
    if cause.is_tuned:
        return "its configurations are compiled to be timed: leave some out, or warm them up (--warmup)"
    if merge.how == "remove":
        is_argument = not any(aspect == "constexpr" for aspect in cause.aspects)
        decorated = f"@triton.jit(do_not_specialize={quoted})"
        if cause.use == "not in the IR":
            return f"{decorated}: {after}"
        parameters = "parameters" if merge.along else "parameter"
        return f"remove the {parameters}{f', or {decorated}' * is_argument}: {after}"
    if merge.how in ("do_not_specialize", "do_not_specialize_on_alignment"):
        return f"@triton.jit({merge.how}={quoted}): {after}"
    if merge.how == "runtime":
        return f"drop tl.constexpr, with @triton.jit(do_not_specialize={quoted}): {after}"
    if merge.how == "one value" and cause.same_code == cause.pairs:
        return f"use one value, which gives the same code: {after}"
    unknown = (
        "; whether it can be a plain argument, --tries all compiles" if merge.as_argument and not merge.proofs else ""
    )
    if merge.how == "one value":
        groups = "; ".join(", ".join(one[:8] for one in group.members) for group in merge.groups)
        return f"launch with one value where it makes no difference ({groups}): {after}{unknown}"
    failed = "cannot be a plain argument, and " if any(proof.failure for proof in merge.proofs) else ""
    return f"{failed}each value needs a variant of its own: --warmup prints code that compiles them in advance{unknown}"


def variants_json(site: Site, merges: Sequence[Merge]) -> dict[str, Any]:
    codes = _codes(site)
    names = "name=cause.name aspects=cause.aspects use=cause.use lines=cause.lines autotuned=cause.is_tuned"
    return picked(
        site,
        "kernel=kernel.name file=kernel.file line=kernel.line plan triton=triton_version target",
        remaining=remaining(site, [one for one in merges if one.how != "warm up"]),
        variants=[
            {"id": one.id, "code": codes[at], "states": {cause.name: cause.states[at] for cause in site.causes}}
            for at, one in enumerate(site.variants)
        ],
        causes=[
            picked(
                one,
                names + " pairs=cause.pairs same_code=cause.same_code merge=how remaining",
                along=[other.name for other in one.along],
                proofs=[picked(proof, "id=variant same_code effects failure") for proof in one.proofs],
            )
            for one in merges
        ],
    )
