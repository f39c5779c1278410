"""A capture as a page of text, with its launch, resources, stages, graphs and partitions; and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from html import escape
from typing import TYPE_CHECKING, Any

from irscope.analysis.resources import resource_rows
from irscope.device.occupancy import excesses_of, occupancy_of
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.model.telling import parts_of
from irscope.render.text.tables import (
    masked,
    milliseconds,
    percent,
    resource_title,
    resource_value,
    shorten,
    table,
    visible,
    wrapped,
)

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding
    from irscope.analysis.flow.partitions import WarpPartition, WarpRing, WarpRingUse, WarpSpecialization
    from irscope.model.evidence import GraphCall, GraphNode, GraphOrigin
    from irscope.model.launch_record import Argument, Autotuning


# What stands behind torch's own functions, by the backend of the target.
_LIBRARIES = {
    **{name: {"cuda": "cuBLAS", "hip": "hipBLAS"} for name in ("addmm", "mm", "bmm", "baddbmm", "_int_mm")},
    "convolution": {"cuda": "cuDNN", "hip": "MIOpen"},
}
_MOST_NODES = 12
_SHORT = 96


def graph_texts(captures: Iterable[tuple[str, Capture]], *, detailed: bool) -> str:
    """For each graph, its kernels with the lines of Python that each comes from; empty where there is no graph.

    `detailed` adds the nodes of each, and the configurations that it was chosen among.
    """
    groups: dict[tuple[str, ...], list[tuple[GraphOrigin, str, Capture]]] = {}
    for id_, capture in captures:
        for origin in capture.graphs:
            environment = capture.environment
            key = (environment.date, environment.command, str(capture.target), origin.graph, origin.part)
            groups.setdefault(key, []).append((origin, id_, capture))
    parts: list[str] = []
    for members in groups.values():
        first, _, one = members[0]
        lines = [_title(first, one)]
        for origin, id_, capture in sorted(members, key=lambda member: member[0].kernel):
            lines += _kernel(origin, id_, capture, detailed=detailed)
        parts.append("\n".join(map(masked, lines)))
    return "\n\n".join(parts)


def _title(origin: GraphOrigin, capture: Capture) -> str:
    kernels = "1 Triton kernel" if origin.kernels == 1 else f"{origin.kernels} Triton kernels"
    others = ", ".join(_call(call, capture.target.backend) for call in _summed(origin.others))
    return f"{origin.title}: {kernels}" + (f"; no Triton kernels: {others}" if others else "")


def _summed(calls: Sequence[GraphCall]) -> list[GraphCall]:
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.callee] = counts.get(call.callee, 0) + call.count
    from irscope.model.evidence import GraphCall

    return [GraphCall(callee, count=count) for callee, count in counts.items()]


def _call(call: GraphCall, backend: str) -> str:
    known = _LIBRARIES.get(call.callee.removeprefix("extern_kernels."))
    library = "ATen" if known is None else known.get(backend) or " or ".join(known.values())
    times = f" ×{call.count}" if call.count > 1 else ""
    return f"{call.callee}{times} ({library})"


def _kernel(origin: GraphOrigin, id_: str, capture: Capture, *, detailed: bool) -> list[str]:
    number = f"{origin.kernel}/{origin.kernels}" if origin.kernels else "–"
    nodes = _listed(origin.source_nodes, None if detailed else _MOST_NODES)
    tuning = capture.launch.autotuning
    heuristic = f" · {origin.heuristic}" if origin.heuristic else ""
    lines = [f"  {number}  {id_[:8]}  {capture.name}{heuristic}", f"       of {nodes}"]
    lines += [f"       {_place_text(node)}  {shorten(node.code, _SHORT)}".rstrip() for node in origin.lines]
    if not origin.lines:
        lines.append("       its lines of Python are not known")
    if not detailed:
        return lines
    lines += [f"       %{node.name} = {node.operator}{_at(node)}" for node in origin.nodes]
    return [*lines, *(f"       {line}" for line in _choice_text(tuning))]


def _place_text(node: GraphNode) -> str:
    return f"{node.file.replace(chr(92), '/').rpartition('/')[2]}:{node.line}"


def _at(node: GraphNode) -> str:
    return f"  ({_place_text(node)})" if node.file else ""


def _listed(names: Sequence[str], most: int | None) -> str:
    left_out = len(names) - most if most is not None else 0
    shown = ", ".join(names[:most])
    return (f"{shown}, and {left_out} more" if left_out > 0 else shown) or "nodes that are not known"


def _choice_text(tuning: Autotuning | None) -> list[str]:
    """The configurations that TorchInductor chose among, which this one is, and why; empty for any other kernel."""
    if tuning is None or not tuning.candidates:
        return []
    if tuning.count == 1:
        why = "the only configuration of its heuristic"
    elif tuning.winner:
        why = "the fastest of those that were timed"
    elif tuning.winner is False:
        why = "timed, and not the fastest"
    else:
        why = "compiled without a GPU, where nothing is timed: by default the first that fits (--config all: each)"
    lines = [f"configuration {tuning.number_text}: {why}"]
    for index, config in enumerate(tuning.candidates):
        lines.append(f"{'*' if index == tuning.index else ' '} {index}  {config}")
    if tuning.index >= len(tuning.candidates):
        lines.append(f"* {tuning.index}  {tuning.config} (TorchInductor's own change of one of these)")
    return lines


_PARTITIONS = ("partition", "warps", "registers", "ttgir", "operations")
_BUFFERS = ("buffer", "ttgir", "slots", "of", "written by", "read by")
_BARRIERS = ("barrier", "ttgir", "slots", "arrivals", "arrived at by", "waited for by", "phase")
_OUTSIDE = "before or after"


def partition_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    for one in found:
        for partition in one.partitions:
            operations = ", ".join(f"{name} ×{count}" for name, count in partition.operations)
            registers = "–" if partition.registers is None else partition.registers
            yield partition.name, _warps(partition), registers, partition.line, operations


def _warps(partition: WarpPartition) -> str:
    """`4`, or `4 (4–7)` where the text says which."""
    if partition.warps is None:
        return "?"
    first = partition.first_warp
    return f"{partition.warps}" + ("" if first is None else f" ({first}–{first + partition.warps - 1})")


def buffer_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    for ring in (ring for one in found for ring in one.buffers):
        yield ring.value, ring.line, ring.slots, ring.what, _users(ring.by("writes")), _users(ring.by("reads"))


def barrier_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    for ring in (ring for one in found for ring in one.barriers):
        waits = ring.by("waits")
        phases = ", ".join(dict.fromkeys(use.phase for use in waits))
        yield ring.value, ring.line, ring.slots, ring.what, _users(ring.by("arrives")), _users(waits), phases


def _users(uses: Sequence[WarpRingUse]) -> str:
    """`partition0: ttng.tc_gen5_mma (line 111); …`."""
    lines: dict[tuple[str, str], list[int]] = {}
    for use in uses:
        lines.setdefault((use.partition or _OUTSIDE, use.operation), []).append(use.line)
    return "; ".join(
        f"{partition}: {operation} ({', '.join(map(str, where))})" for (partition, operation), where in lines.items()
    )


def waits_in_vain(found: Sequence[WarpSpecialization]) -> list[str]:
    """A sentence for each barrier that is waited for and that nothing arrives at."""
    rings: list[WarpRing] = [
        ring for one in found if one.is_traced for ring in one.barriers if ring.by("waits") and not ring.by("arrives")
    ]
    return [
        f"{ring.value} (line {ring.line}) has a wait, but no operation of this text arrives at it." for ring in rings
    ]


def partitions_json(found: Sequence[WarpSpecialization]) -> list[dict[str, Any]]:
    return [asdict(one) | {"partitions": [_partition_json(part) for part in one.partitions]} for one in found]


def _partition_json(partition: WarpPartition) -> dict[str, Any]:
    return asdict(partition) | {"operations": dict(partition.operations)}


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
        page.lines("Findings without their cost, which irscope why predicts", _findings(findings)),
        page.rows("Launch", _launch(capture)),
        page.rows("", _parameters(capture), ["parameter", "compiled for", "launched with"]),
        page.rows("Options", _options(capture)),
        page.rows("Resources", _resources(capture)),
        page.rows("Stages", _stages(capture), ["stage", "ms", "size"]),
        *_warps_of_page(page, capture),
        page.lines("Graphs", graph_texts([(capture.id, capture)], detailed=True).splitlines()),
        page.lines("Notes", dict.fromkeys((*capture.launch.assumption_notes, *capture.notes))),
        page.rows("Environment", _environment(capture)),
    ]
    hint = (
        f"irscope show {capture.id[:8]} --stage ttgir prints a stage, irscope why {capture.id[:8]} reports what is slow"
    )
    return "\n".join([head, *filter(None, sections), "\n".join(wrapped(f"{hint}.", width or len(hint) + 1)) + "\n"])


def summary_html(capture: Capture) -> str:
    """A capture's page as HTML with no script; whatever stands in the capture is escaped."""
    # No style of its own: the report's policy refuses what stands in an attribute.
    source = f"<pre>{escape(capture.launch.kernel.source)}</pre>"
    python = f"<details><summary>Source</summary>{source}</details>" if capture.launch.kernel.source else ""
    return f'<div class="irscope-summary"><pre>{escape(render_capture(capture, ()))}</pre>{python}</div>'


def occupancy_text(capture: Capture) -> str:
    """`50 % (32 of 64 warps per SM, limited by registers)`, or an empty string if it is not known."""
    if excesses := excesses_of(capture):
        return f"none (it does not fit: {'; '.join(map(str, excesses))})"
    occupancy = occupancy_of(capture)
    if occupancy is None:
        return ""
    return f"{percent(occupancy.fraction)} ({occupancy})"


def _findings(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return []
    from irscope.render.text.findings import render_findings

    return render_findings(findings, color=False).splitlines()


class _Page:
    def __init__(self, width: int | None, color: bool) -> None:
        self._width = width and width - 2
        self._color = color

    def title(self, text: str) -> str:
        text = masked(text)
        return (_TITLE.format(text) if self._color else text) + "\n"

    def lines(self, title: str, texts: Iterable[str]) -> str:
        shown = [line for text in texts for line in self._wrapped(visible(text))]
        head = self.title(title) if title else ""
        return head + "".join(f"  {line}".rstrip() + "\n" for line in shown) if shown else ""

    def _wrapped(self, text: str) -> Iterator[str]:
        words = text.lstrip()
        indent = len(text) - len(words)
        width = self._width - indent - len(_HANGING) if self._width else len(text)
        for number, line in enumerate(wrapped(words, width)):
            yield f"{' ' * indent}{_HANGING if number else ''}{line}"

    def rows(self, title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ("", "")) -> str:
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


def _warps_of_page(page: _Page, capture: Capture) -> Iterator[str]:
    text = capture.texts.get("ttgir", "")
    if "warp_specialize" not in text:
        return
    from irscope.analysis.flow.partitions import read_partitions

    if found := read_partitions(text):
        yield page.rows("Warp specialisation", partition_rows(found), _PARTITIONS)
        yield page.rows("Buffers between partitions", buffer_rows(found), _BUFFERS)
        yield page.rows("Barriers", barrier_rows(found), _BARRIERS)
        yield page.lines("", waits_in_vain(found))


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


def capture_json(capture: Capture, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """A capture as JSON, with the texts of the given stages only."""
    from irscope.analysis.findings.quick import quick_findings
    from irscope.analysis.flow.partitions import read_partitions
    from irscope.render.text.findings import findings_json

    names = capture.stages if list(wanted) == ["all"] else wanted
    occupancy, launch = occupancy_of(capture), capture.launch
    return picked(
        capture,
        "id kernel=name file=launch.kernel.file line=launch.kernel.line target plan status grid=launch.grid notes "
        "compile_us processor_us",
        failure=asdict(capture.failure) if capture.failure else None,
        signature=dict(launch.signature),
        constants=dict(launch.constants),
        attributes=dict(launch.attributes),
        options=dict(launch.options),
        autotuning=asdict(launch.autotuning) if launch.autotuning else None,
        resources=asdict(capture.resources),
        occupancy=occupancy and occupancy.as_json(),
        environment=asdict(capture.environment),
        metadata=dict(capture.metadata),
        assumptions=[asdict(item) for item in launch.assumptions],
        graphs=[asdict(origin) for origin in capture.graphs],
        stages=[
            picked(item, "stage duration_us processor_us", bytes=len(item.data))
            | ({"text": item.data} if item.stage in names and isinstance(item.data, str) else {})
            for item in capture.artifacts
        ],
        passes=len(list(capture.passes())),
        findings=findings_json(quick_findings(capture)),
        warp_specialization=partitions_json(read_partitions(capture.texts.get("ttgir", ""))),
    )
