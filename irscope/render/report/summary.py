"""The overview of a capture as plain HTML with no script: for a notebook, and for a report before its viewer runs."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from irscope.analysis.resources import resource_rows
from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Capture
from irscope.render.text.figures import milliseconds, resource_title, resource_value


def summary_html(capture: Capture) -> str:
    """A capture's overview as HTML; whatever stands in the capture is escaped."""
    launch = capture.launch
    parts = [f"<h2>{_text(capture.name)} <small>{_text(capture.target)} · {_text(capture.id[:8])}</small></h2>"]
    if capture.failure is not None:
        parts.append(f"<p><strong>The compile {_text(capture.failure.verdict)}:</strong></p>")
        parts.append(f"<pre>{_text(capture.failure.message)}</pre>")
    parts.append(_table("Compiled", _inputs(capture)))
    parts.append(_table("Resources", _resources(capture)))
    parts.append(_table("Stages", _stages(capture)))
    ran = [item for item in capture.passes() if item.outcome == "ran"]
    changed = sum(1 for item in ran if item.changed)
    parts.append(f"<p>{len(ran)} passes ran, {changed} changed the IR.</p>")
    parts += [f"<p>{_text(note)}</p>" for note in capture.notes]
    if launch.kernel.source:
        parts.append(f"<details><summary>Source</summary><pre>{_text(launch.kernel.source)}</pre></details>")
    return f'<div class="irscope-summary">{"".join(parts)}</div>'


def _text(value: object) -> str:
    return escape(str(value))


def _inputs(capture: Capture) -> Iterable[tuple[str, object]]:
    launch = capture.launch
    yield "signature", ", ".join(f"{name}: {kind}" for name, kind in launch.signature)
    yield "constants", ", ".join(f"{name}={value}" for name, value in launch.constants)
    yield "options", ", ".join(f"{name}={launch.option(name)}" for name in ("num_warps", "num_stages", "num_ctas"))
    yield "grid", " × ".join(map(str, launch.grid)) if launch.grid else ""
    yield "plan", str(capture.plan)
    yield "Triton", capture.environment.triton_version
    yield from capture.environment.origin
    yield "compile time", "" if capture.compile_us is None else f"{milliseconds(capture.compile_us)} ms"


def _resources(capture: Capture) -> Iterable[tuple[str, object]]:
    for name, value in resource_rows(capture).items():
        yield resource_title(name), resource_value(name, value)
    if (found := occupancy_of(capture)) is not None:
        yield "limited by", " and ".join(found.limited_by)


def _table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    cells = "".join(
        f"<tr><th scope='row'>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows if value != ""
    )
    return f"<table><caption>{_text(title)}</caption>{cells}</table>" if cells else ""


def _stages(capture: Capture) -> Iterable[tuple[str, object]]:
    for item in capture.artifacts:
        is_text = isinstance(item.data, str)
        yield item.stage, f"{item.text.count(chr(10)):,} lines" if is_text else f"{len(item.data):,} bytes"
