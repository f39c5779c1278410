"""A capture as a page of text: its findings, launch, options, resources, stages, notes and environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irscope.analysis.findings.model import Finding
from irscope.analysis.resources.metrics import resource_rows
from irscope.device.occupancy import excesses_of, occupancy_of
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument
from irscope.model.telling import parts_of
from irscope.render.text.figures import milliseconds, percent, resource_title, resource_value
from irscope.render.text.findings import render_findings
from irscope.render.text.graphs import graph_texts
from irscope.render.text.tables import masked, table, visible, wrapped

__all__ = ["occupancy_text", "render_capture"]

_TITLE = "\x1b[1m{}\x1b[22m"
_OCCUPANCY = "occupancy_percent"
_HANGING = "    "


def render_capture(
    capture: Capture, findings: Sequence[Finding], *, width: int | None = None, color: bool = False
) -> str:
    """The page; `findings` stand in their order, and sections with nothing in them are left out."""
    page = _Page(width, color)
    head = page.title(f"{capture.id}  {capture.name}  {capture.target}")
    sections = [
        page.lines(f"The compile {capture.failure.verdict}", capture.failure.message.splitlines())
        if capture.failure is not None
        else "",
        page.lines("Findings, the worst first", render_findings(findings, color=False).splitlines()),
        page.rows("Launch", _launch(capture)),
        page.rows("", _parameters(capture), ["parameter", "compiled for", "launched with"]),
        page.rows("Options", _options(capture)),
        page.rows("Resources", _resources(capture)),
        page.rows("Stages", _stages(capture), ["stage", "ms", "size"]),
        *_warps(page, capture),
        page.lines("Graphs", graph_texts([(capture.id, capture)], detailed=True).splitlines()),
        page.lines("Notes", dict.fromkeys((*capture.launch.assumption_notes, *capture.notes))),
        page.rows("Environment", _environment(capture)),
    ]
    hint = f"irscope show {capture.id[:8]} --stage ttgir prints a stage, irscope why {capture.id[:8]} says what is slow"
    return "\n".join([head, *filter(None, sections), "\n".join(wrapped(f"{hint}.", width or len(hint) + 1)) + "\n"])


def occupancy_text(capture: Capture) -> str:
    """`50 % (32 of 64 warps per multiprocessor, limited by registers)`, or an empty string if it is not known."""
    if excesses := excesses_of(capture):
        return f"none (it does not fit: {'; '.join(map(str, excesses))})"
    occupancy = occupancy_of(capture)
    if occupancy is None:
        return ""
    threads = "waves" if capture.target.backend == "hip" else "warps"
    held = f"{occupancy.warps_per_sm} of {occupancy.max_warps} {threads} per {occupancy.unit}"
    return f"{percent(occupancy.fraction)} ({held}, limited by {' and '.join(occupancy.limited_by)})"


class _Page:
    def __init__(self, width: int | None, color: bool) -> None:
        self._width = width and width - 2
        self._color = color

    def title(self, text: str) -> str:
        """A line of its own."""
        text = masked(text)
        return (_TITLE.format(text) if self._color else text) + "\n"

    def lines(self, title: str, texts: Iterable[str]) -> str:
        """A section of sentences, each wrapped; empty without any."""
        shown = [line for text in texts for line in self._wrapped(visible(text))]
        head = self.title(title) if title else ""
        return head + "".join(f"  {line}".rstrip() + "\n" for line in shown) if shown else ""

    def _wrapped(self, text: str) -> Iterator[str]:
        """The lines of a text, those behind the first further in."""
        words = text.lstrip()
        indent = len(text) - len(words)
        width = self._width - indent - len(_HANGING) if self._width else len(text)
        for number, line in enumerate(wrapped(words, width)):
            yield f"{' ' * indent}{_HANGING if number else ''}{line}"

    def rows(self, title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ("", "")) -> str:
        """A section of a table; empty without rows."""
        known = [row for row in rows if row[1] not in ("", None)]
        if not known:
            return ""
        text = table(head, known, width=self._width, color=self._color)
        return (self.title(title) if title else "") + "".join(f"  {line}\n" for line in text.splitlines())


def _launch(capture: Capture) -> Iterator[tuple[str, object]]:
    launch, kernel = capture.launch, capture.launch.kernel
    yield "kernel", f"{kernel.file}:{kernel.line}" if kernel.line else kernel.file
    yield "grid", "×".join(map(str, launch.grid)) if launch.grid else "not launched"
    if (tuning := launch.autotuning) is not None:
        winner = {True: ", the fastest", False: ", not the fastest", None: ""}[tuning.winner]
        yield "configuration", f"{tuning.number_text}{winner}: {tuning.config}"
    yield "plan", str(capture.plan)


def _parameters(capture: Capture) -> Iterator[tuple[str, str, str]]:
    launch = capture.launch
    for path, text in parts_of(replace(launch, options=())).items():
        given = launch.record.argument(path) if launch.record is not None else None
        yield path, text, _given(given) if given is not None else ""


def _given(argument: Argument) -> str:
    if argument.value is not None:
        return str(argument.value)
    strides = ", ".join(map(str, argument.strides))
    block = f", block {list(argument.block_shape)}" if argument.block_shape else ""
    aligned = f", aligned to {argument.alignment_bytes} bytes" if argument.alignment_bytes is not None else ""
    return f"{argument.dtype} {list(argument.shape)}, strides {strides or '–'}{block}{aligned}"


def _options(capture: Capture) -> Iterator[tuple[str, str]]:
    launch = capture.launch
    own = dict(launch.set_options or ())
    title = "others" if own else "all"
    yield "set by the script", " ".join(f"{name}={value}" for name, value in launch.options if name in own)
    yield title, " ".join(f"{name}={value}" for name, value in launch.options if name not in own)


def _resources(capture: Capture) -> Iterator[tuple[str, object]]:
    for name, value in resource_rows(capture).items():
        if name != _OCCUPANCY:
            yield resource_title(name), resource_value(name, value)
    yield "occupancy", occupancy_text(capture)


def _stages(capture: Capture) -> Iterator[tuple[str, str, str]]:
    for item in capture.artifacts:
        time = "–" if item.duration_us is None else milliseconds(item.duration_us)
        is_text = isinstance(item.data, str)
        yield item.stage, time, f"{item.text.count(chr(10)):,} lines" if is_text else f"{len(item.data):,} bytes"
    if capture.compile_us is not None:
        ran = [one for one in capture.passes() if one.outcome == "ran"]
        passes = f"{len(ran)} passes ran, {sum(one.changed is True for one in ran)} changed the IR" if ran else ""
        yield "all", milliseconds(capture.compile_us), passes


def _warps(page: _Page, capture: Capture) -> Iterator[str]:
    """The sections of a warp-specialised kernel."""
    text = capture.texts.get("ttgir", "")
    if "warp_specialize" not in text:
        # What reads partitions is a tenth of all that this command imports.
        return
    from irscope.analysis.flow.partitions import read_partitions
    from irscope.render.capture import partitions

    if found := read_partitions(text):
        yield page.rows("Warp specialisation", partitions.partition_rows(found), partitions.PARTITIONS)
        yield page.rows("Buffers between partitions", partitions.buffer_rows(found), partitions.BUFFERS)
        yield page.rows("Barriers", partitions.barrier_rows(found), partitions.BARRIERS)
        yield page.lines("", partitions.waits_in_vain(found))


def _environment(capture: Capture) -> Iterator[tuple[str, str]]:
    one = capture.environment
    yield "date", one.date
    yield "command", one.command
    yield from one.origin
    yield from (("Triton", one.triton_version), ("torch", one.torch_version), ("Python", one.python_version))
    yield "platform", one.platform
    yield "GPU", one.gpu
    yield from one.tools
    yield from one.variables
    yield "irscope", one.irscope_version
