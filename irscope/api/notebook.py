"""The functions of a notebook on captures: diff, layout, check, reproduce, sweep, report. Results display as HTML."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from irscope.model.capture import Capture
from irscope.render.text.tables import preformatted, table

if TYPE_CHECKING:
    from irscope.analysis.checks.results import Report
    from irscope.analysis.diff.captures import Comparison
    from irscope.layout.described import DescribedLayout
    from irscope.model.trial import SweepRow
    from irscope.render.reproduction.program import Reproduction


def display_as_text(kind: type, render: Callable[..., str]) -> None:
    """Display the results of a class in notebooks, as the text that the command line prints."""
    setattr(kind, "_repr_html_", lambda result: preformatted(render(result)))  # noqa: B010 - a class of any result


class LayoutTable(tuple["DescribedLayout", ...]):
    """Layouts in the order of the TTGIR: a table, and of a single one a picture."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from irscope.render.layout.terminal import layout_table

        table = preformatted(layout_table(list(self), width=None))
        if len(self) != 1 or self[0].threads is None:
            return table
        from irscope.render.layout.figure import make_figure
        from irscope.render.layout.svg import render_svg

        return table + render_svg([make_figure(self[0])])


class SweepTable(tuple["SweepRow", ...]):
    """The rows of a sweep, one for each compile."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        names = ("kernel", "target", "vs", "status", "registers", "spilled_bytes", "shared_bytes", "occupancy_percent")
        return preformatted(table(names, [[getattr(row, name) for name in names] for row in self], width=None))


class Page(str):
    """A page of HTML, which a notebook shows in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        frame = 'style="width:100%;height:700px;border:0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{html.escape(self)}"></iframe>'


def diff(
    left: Capture,
    right: Capture,
    *,
    ignore: Iterable[Literal["locations", "names", "attributes"]] = ("locations",),
    stages: Iterable[str] | None = None,
) -> Comparison:
    """Compare two captures.

    Args:
        left: the one before.
        right: the one after.
        ignore: what does not count in texts: `locations`, `names` (of symbols), `attributes`.
        stages: compare the texts of these only; the rest is counted, not aligned. None: all of them.

    >>> diff(capture, capture).is_same_compile
    True
    """
    from irscope.analysis.diff.captures import Comparison
    from irscope.analysis.diff.captures import diff as compare
    from irscope.render.text.diff import render_comparison

    display_as_text(Comparison, partial(render_comparison, stages=()))
    return compare(left, right, ignore=ignore, stages=stages)


def layout(
    capture: Capture, name: str = "", *, value: str = "", operation: str = "", line: int | None = None
) -> LayoutTable:
    """The layouts of a capture's TTGIR, or those that are chosen.

    Args:
        capture: of a recording with layouts.
        name: an alias such as `#mma`, an encoding as text, or a kind such as `nvidia_mma`.
        value: a value of the TTGIR, such as `%acc`.
        operation: such as `tt.dot`.
        line: a line of Python.

    >>> layout(capture, "#mma")[0].threads.registers
    128

    Raises UsageError, with the nearest names, where nothing is chosen.
    """
    from irscope.api.layouts import layouts_of_capture
    from irscope.layout.described import choose_layouts

    every = layouts_of_capture(capture)
    names = [name] if name else []
    return LayoutTable(choose_layouts(every, names=names, value=value or None, operation=operation or None, line=line))


def check(
    captures: Capture | Sequence[Capture],
    *,
    max_registers: int | None = None,
    max_shared_bytes: int | None = None,
    no_spills: bool = False,
    pipelined: bool = False,
    uses: Sequence[str] = (),
    min_width: Mapping[str, int] | None = None,
    no_finding: Sequence[str] = (),
) -> Report:
    """Check assertions on captures, as `irscope check` does; that each compiled is always asserted.

    Args:
        captures: one or more.
        max_registers: of a thread.
        max_shared_bytes: of a CTA.
        no_spills: no register is spilled.
        pipelined: every loop with a dot and loads is software-pipelined.
        uses: instructions that must occur, such as `wgmma`.
        min_width: operation → bits of each access of a thread: `{"tl.load": 128}`.
        no_finding: codes or names of findings that must not occur; `any` for all.

    >>> check(capture, max_registers=255, no_spills=True).passed
    True
    """
    from irscope.analysis.checks.assertions import assertions_of
    from irscope.analysis.checks.results import Report, check_subject
    from irscope.analysis.checks.subject import Subject
    from irscope.render.checks import render_report

    asserted = assertions_of(
        max_registers=max_registers,
        max_shared_bytes=max_shared_bytes,
        no_spills=no_spills,
        pipelined=pipelined,
        uses=uses,
        min_width=[f"{name}={bits}" for name, bits in (min_width or {}).items()],
        no_finding=no_finding,
    )
    display_as_text(Report, partial(render_report, color=False))
    return Report(tuple(check_subject(Subject(one), asserted) for one in _several(captures)))


def reproduce(capture: Capture) -> Reproduction:
    """The program that compiles a capture again with Triton alone: its `text`, and `notes` on what it leaves out.

    >>> compile(reproduce(capture).text, "reproduction.py", "exec") is not None
    True

    Raises RecordingError where none can be made.
    """
    from irscope.render.reproduction.program import render_reproduction

    return render_reproduction(capture)


def sweep(
    captures: Capture | Sequence[Capture],
    axes: Mapping[str, Sequence[Any]],
    *,
    jobs: int | None = None,
    timeout_s: float = 300.0,
) -> SweepTable:
    """Compile captures in every combination of options, targets and plans, on all cores.

    Args:
        captures: one or more; their own source is compiled.
        axes: `target`, `plan`, `triton` (a Python) or a compile option → its values, next to the capture's own.
        jobs: compiles at a time; by default one for each core.
        timeout_s: limit of one compile.

    >>> [row.vs for row in sweep(capture, {"num_warps": [2]})]    # doctest: +SKIP
    ['', 'num_warps=2']

    Raises MissingTool without dask, which `pip install -e '.[sweep]'` adds.
    """
    from irscope.api.sweeping import client_of
    from irscope.api.sweeping import sweep as run_sweep
    from irscope.model.trial import combinations
    from irscope.store.table import Journal

    with TemporaryDirectory() as folder, client_of("", jobs) as client:
        rows = run_sweep(
            client, {(): _several(captures)}, combinations(axes), Journal(Path(folder, "sweep.json")), (),
            timeout_s=timeout_s, progress=lambda *_: None,
        )  # fmt: skip
    return SweepTable(rows)


def report(captures: Capture | Sequence[Capture], path: str | Path | None = None, *, title: str = "") -> Page:
    """The page of one or more captures, which needs no network; written to `path` if that is given.

    >>> "</html>" in report(capture)
    True
    """
    from irscope.render.report.page import render_report

    page = Page(render_report(_several(captures), title=title))
    if path is not None:
        Path(path).write_text(page, "utf-8", "surrogateescape")
    return page


def _several(captures: Capture | Sequence[Capture]) -> Sequence[Capture]:
    return [captures] if isinstance(captures, Capture) else captures
