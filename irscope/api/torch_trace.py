"""Findings and the page of a recording, as artifacts of the trace that torch wrote of the recorded program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from irscope.api.explain import Explainer
from irscope.errors import IrscopeError
from irscope.ir.logs.torch_trace import (
    TracedGraph,
    artifact_event,
    graphs_of_trace,
    is_torch_trace,
    link_event,
    trace_files,
)
from irscope.model.capture import Capture
from irscope.record.variants.completing import tell
from irscope.render.report.page import render_report
from irscope.render.text.findings import render_explanation

_MOST_CAPTURES = 100
_MOST_BYTES = 1 << 30


def traces_since(folder: Path, began_ns: int) -> list[Path]:
    """The traces of a folder that were written to after a time in nanoseconds since the epoch."""
    try:
        return [path for path in trace_files(folder) if path.stat().st_mtime_ns >= began_ns]
    except OSError:
        return []


def add_to_traces(traces: Sequence[Path], captures: Sequence[Capture]) -> Path | None:
    """Add what irscope finds of each kernel to the traces, which tlparse shows with the kernel's graph.

    A kernel of TorchInductor's goes to the trace that has its code, any other to the first. Each trace also has a link
    to the page of all captures, which is written beside it. Nothing is compiled.

    Args:
        traces: at least one; those that are none are passed over.
        captures: those after the first hundred are left out.

    Returns the page, or None where there is no trace. Raises OSError where one cannot be written.
    """
    texts = {path: _text_of(path) for path in traces}
    known = {path: graphs_of_trace(text) for path, text in texts.items() if is_torch_trace(text)}
    if not known or not captures:
        return None
    kept = captures[:_MOST_CAPTURES]
    if len(captures) > len(kept):
        tell(f"The trace has the findings of {len(kept)} of {len(captures)} captures.")
    added: dict[Path, list[str]] = {path: [] for path in known}
    for capture, text in _explained(kept):
        path, compile_ = _place(capture, known)
        added[path].append(artifact_event(f"irscope_{capture.name}", text, texts[path], compile_))
    page = next(iter(known)).resolve().with_name("irscope-report.html")
    page.write_text(render_report(kept), "utf-8", "surrogateescape")
    for path, events in added.items():
        events.append(link_event("irscope: every pass, stage and layout", page.as_uri(), texts[path]))
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(("" if texts[path].endswith("\n") else "\n") + "".join(events))
    return page


def _text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.stat().st_size <= _MOST_BYTES else ""


def _explained(captures: Iterable[Capture]) -> Iterator[tuple[Capture, str]]:
    explainer = Explainer()
    for capture in captures:
        try:
            answer = explainer.explain(capture)
        except IrscopeError as error:
            yield capture, str(error)
            continue
        text = render_explanation(answer.findings, capture, answer.time, width=None, color=False, every=True)
        yield capture, f"{text}\nirscope why {capture.id[:8]}"


def _place(capture: Capture, known: Mapping[Path, Sequence[TracedGraph]]) -> tuple[Path, Mapping[str, Any]]:
    """The trace that a capture belongs to, and which compile of it."""
    kernel = capture.launch.kernel
    # Many graphs have a kernel of one name; what Triton's cache holds names the file alone.
    mark = kernel.source.strip() or kernel.file.rpartition("/")[2]
    for path, graphs in known.items():
        for graph in graphs:
            if mark and f"{capture.name} = async_compile.triton(" in graph.code and mark in graph.code:
                return path, graph.compile
    return next(iter(known)), {}
