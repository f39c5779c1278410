"""Reads what TorchInductor leaves on disk: its cache, the folders of TORCH_COMPILE_DEBUG, the traces of TORCH_TRACE.

The cache has the code of graphs and of kernels as `xy/cxyz….py`, and Triton's own cache in `triton/DEVICE`; a debug
folder has an `output_code.py` and the FX graph for each graph. The code names the file of each kernel after its
contents, which joins a compiled kernel to its graph.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from irscope.ir.logs.cache import read_cache
from irscope.ir.logs.files import FileRefused, inside, read_regular
from irscope.ir.logs.inductor_launch import CallTensor, KernelCall, launch_of_code, note_tensor, split_arguments
from irscope.ir.logs.torch_trace import graphs_of_trace, trace_files
from irscope.model.capture import Capture, Environment, Kernel, SourceFile
from irscope.model.evidence import GraphCall, GraphNode, GraphOrigin, GraphPart

# ── Reads an FX graph as torch prints it, with the line of Python that each of its nodes comes from ─────────────────

# # File: /home/user/model.py:19 in forward, code: hidden = functional.gelu(self.up(x))
_FILE = re.compile(r"# File: ([^\n]{1,4096}?):(\d{1,9}) in ([^\n,]{1,300}), code: (.*)")
# mul_1: "f32[8, 256]" = torch.ops.aten.mul.Tensor(addmm, 0.5)   |   getitem = unbind[0]
_GRAPH_NODE = re.compile(r"([A-Za-z_]\w{0,300})(?:: \"[^\"\n]{0,4096}\")? = ")


def read_graph_lines(text: str) -> Mapping[str, GraphNode]:
    """The nodes of a graph that have a line of Python, by name; none for any other text."""
    found: dict[str, GraphNode] = {}
    place: tuple[str, int, str, str] | None = None
    for row in text.splitlines():
        line = row.strip()
        if line.startswith("#"):
            at = _FILE.match(line)
            place = (at[1], int(at[2]), at[3], at[4]) if at else None
        elif place is not None and (node := _GRAPH_NODE.match(line)):
            found.setdefault(node[1], GraphNode(node[1], "", *place))
    return found


# ── Reads the code that TorchInductor generates for a graph: its Triton kernels, their nodes, and its other calls ───

# # AOT ID: ['0_forward']
_ID = re.compile(r"# AOT ID: \['(\w{1,40})'\]")
# triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
_DEFINED = re.compile(r"(\w{1,300}) = async_compile\.triton\('\w{1,300}', '''")
# # Topologically Sorted Source Nodes: [linear, y], Original ATen: [aten.addmm]
_SORTED = re.compile(r"# (?:(?:Topologically Sorted|Unsorted) )?Source Nodes: \[")
# #   %mul : Tensor "f32[8, 64][64, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = …
_NODE = re.compile(r"#   %(\w{1,300}) :")
_TARGET = "= call_function[target="
# @triton_heuristics.persistent_reduction(
_HEURISTIC = re.compile(r"^@triton_heuristics\.(\w{1,80})\(", re.MULTILINE)
# buf4 = extern_kernels.convolution(buf0, …   |   buf0 = torch.ops.aten.sort.stable(arg0_1, …
_CALL = re.compile(r"(?:\w{1,300} = )?((?:extern_kernels|torch\.ops|aten|inductor_ops)\.[\w.]{1,300})\(")
# triton_poi_fused_add_0.run(buf0, 512, stream=raw_stream0)
_RUN = re.compile(r"(\w{1,300})\.run\(")
_PARTS: dict[str, GraphPart] = {"forward": "forward", "backward": "backward", "inference": "inference"}
_END_OF_KERNEL = "'''"
_PATH = "# kernel path: "
_MAPPING = "# Source node to ATen node mapping:"
_FRAGMENT = "# Graph fragment:"


@dataclass(frozen=True, slots=True)
class _GeneratedKernel:
    name: str
    code: str
    """The text of its module, which defines the kernel under that name."""
    origin: GraphOrigin
    """Without the lines of Python, which the code does not name."""
    path: str = ""
    call: KernelCall | None = None
    """Its first call; None where there is none."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The constants and options of its configuration, where a trace says that."""
    compile_us: int | None = None


def read_output_code(text: str) -> tuple[_GeneratedKernel, ...]:
    """The Triton kernels in the code of one graph; none for any other text."""
    lines = text.splitlines()
    graph, part = _graph_of(lines)
    if not graph:
        return ()
    unsaid = GraphOrigin(graph, part)
    defined: dict[str, tuple[str, str, GraphOrigin]] = {}
    path = ""
    launches: Counter[str] = Counter()
    others: Counter[tuple[str, tuple[str, ...]]] = Counter()
    # What stands above the next kernel or call.
    comment = unsaid
    buffers: dict[str, CallTensor] = {}
    called: dict[str, KernelCall] = {}
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if line.startswith("#"):
            if line.startswith(_PATH):
                path = line.removeprefix(_PATH)
            elif _SORTED.match(line):
                comment, at = _comment(lines, at - 1, unsaid)
        elif found := _DEFINED.match(line):
            closing = (number for number in range(at, len(lines)) if lines[number].startswith(_END_OF_KERNEL))
            end = next(closing, len(lines))
            defined[found[1]] = path, "\n".join(lines[at:end]), comment
            comment, path, at = unsaid, "", end + 1
        elif (found := _RUN.match(line)) and found[1] in defined:
            launches[found[1]] += 1
            called.setdefault(found[1], KernelCall(tuple(split_arguments(line[found.end() :])), dict(buffers)))
            comment = unsaid
        elif found := _CALL.match(line):
            others[found[1], comment.operators] += 1
            comment = unsaid
        else:
            note_tensor(line, buffers)
    calls = tuple(GraphCall(callee, operators, count) for (callee, operators), count in others.items())
    kernels: list[_GeneratedKernel] = []
    for number, (name, (path, code, said)) in enumerate(defined.items(), 1):
        heuristic = _HEURISTIC.search(code)
        origin = replace(
            said,
            kernel=number,
            kernels=len(defined),
            launches=launches[name],
            heuristic=heuristic[1] if heuristic else "",
            others=calls,
        )
        kernels.append(_GeneratedKernel(name, code, origin, path, called.get(name)))
    return tuple(kernels)


def _graph_of(lines: Sequence[str]) -> tuple[str, GraphPart]:
    """The number of the graph, and which part of it the code is; empty for text that names none."""
    for line in lines[:200]:
        if found := _ID.match(line):
            graph, _, part = found[1].rpartition("_")
            return (graph, _PARTS[part]) if part in _PARTS else ("", "")
    return "", ""


def _comment(lines: Sequence[str], at: int, unsaid: GraphOrigin) -> tuple[GraphOrigin, int]:
    sources, _, operators = lines[at].strip().partition("[")[2].partition("], Original ATen: [")
    said = replace(unsaid, source_nodes=_names(sources), operators=_names(operators.removesuffix("]")))
    mapped: list[str] = []
    nodes: dict[str, GraphNode] = {}
    section = ""
    at += 1
    while at < len(lines) and (line := lines[at].strip()).startswith("#") and not _SORTED.match(line):
        at += 1
        if line in (_MAPPING, _FRAGMENT):
            section = line
        elif section == _MAPPING:
            mapped += _names(line.partition(" => ")[2])
        elif section == _FRAGMENT and (found := _NODE.match(line)) and _TARGET in line:
            operator = line.partition(_TARGET)[2].partition("]")[0].removeprefix("torch.ops.")
            nodes[found[1]] = GraphNode(found[1], operator)
    return replace(said, nodes=tuple(nodes.values()) or tuple(map(GraphNode, dict.fromkeys(mapped)))), at


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


_MAX_CODE_BYTES = 1 << 25
_MAX_TRACE_BYTES = 1 << 30
_MAX_FILES = 200_000
_MAX_DEPTH = 8
_OUTPUT = "output_code.py"
_GRAPHS = ("fx_graph_transformed.py", "fx_graph_readable.py")
# cxsyz3x2dzueb4edu6lyxaj2bpbysd4bwnggltrlp3pghknoxnff.py
_CODE = re.compile(r"c[a-z2-7]{20,80}\.py")
_HEAD = "# AOT ID: ["
_CACHED = "Read from TorchInductor's cache: no pass was recorded, and the constants are not there."


@dataclass(frozen=True, slots=True)
class InductorFiles:
    root: Path
    outputs: tuple[Path, ...]
    """Code of graphs in debug folders."""
    code: tuple[Path, ...]
    """Code of graphs and kernels in a cache."""
    caches: tuple[Path, ...]
    """Folders of Triton's own cache."""
    traces: tuple[Path, ...] = ()
    """Traces of TORCH_TRACE."""

    def __bool__(self) -> bool:
        return bool(self.outputs or self.code or self.traces)


def find_inductor_files(folder: Path) -> InductorFiles:
    """What a folder holds of TorchInductor's, at most some levels deep; links are not followed."""
    outputs: list[Path] = []
    code: list[Path] = []
    caches: list[Path] = []
    seen = 0
    for at, folders, files in os.walk(folder):
        here = Path(at)
        depth = len(here.relative_to(folder).parts)
        seen += len(files)
        if depth >= _MAX_DEPTH or seen > _MAX_FILES:
            folders.clear()
        if "triton" in folders:
            caches += sorted(path for path in (here / "triton").iterdir() if path.is_dir() and inside(path, folder))
            folders.remove("triton")
        folders.sort()
        outputs += [here / name for name in sorted(files) if name == _OUTPUT]
        code += [here / name for name in sorted(files) if _CODE.fullmatch(name)]
    return InductorFiles(folder, tuple(outputs), tuple(code), tuple(caches), tuple(trace_files(folder)))


def read_inductor(folders: Sequence[InductorFiles], skipped: Callable[[str], None]) -> Iterator[Capture]:
    """The captures of folders: those of Triton's caches with their graphs, and of kernels that are in no cache."""
    kernels = tuple(kernel for files in folders for kernel in _generated(files, skipped))
    sources = {name: text for files in folders for name, text in _sources(files, skipped).items()}
    caches = (cache for files in folders for cache in files.caches)
    compiled = [capture for cache in caches for capture in read_cache(cache, skipped=skipped)]
    for capture in compiled:
        name = _file_name(capture.launch.kernel.file)
        mine = [kernel for kernel in kernels if (kernel.name, _file_name(kernel.path)) == (capture.name, name)]
        text = sources.get(name, "")
        held = (SourceFile(capture.launch.kernel.file, text),) if text else capture.sources
        notes = (_CACHED, *capture.notes[1:]) if text else capture.notes
        yield replace(capture, graphs=_origins(mine), sources=held, notes=notes)
    known = {(capture.name, _file_name(capture.launch.kernel.file)) for capture in compiled}
    yield from _each_once(kernel for kernel in kernels if (kernel.name, _file_name(kernel.path)) not in known)


def traced_captures(text: str) -> Iterator[Capture]:
    """The captures of a trace of TORCH_TRACE alone."""
    return _each_once(_traced_kernels(text))


def _each_once(kernels: Iterable[_GeneratedKernel]) -> Iterator[Capture]:
    """A capture of each kernel; of one whose configuration a trace says, that."""
    rows: dict[tuple[str, str, str], list[_GeneratedKernel]] = {}
    for kernel in kernels:
        rows.setdefault((kernel.name, kernel.path, kernel.code), []).append(kernel)
    for same in rows.values():
        yield _uncompiled(sorted(same, key=lambda one: one.compile_us is None))


def _origins(kernels: Iterable[_GeneratedKernel]) -> tuple[GraphOrigin, ...]:
    """Each graph once, with lines of Python where one of its texts has them: a cache holds it without."""
    found: dict[tuple[str, str, int], GraphOrigin] = {}
    for kernel in kernels:
        key = kernel.origin.graph, kernel.origin.part, kernel.origin.kernel
        if key not in found or not found[key].lines:
            found[key] = kernel.origin
    return tuple(found.values())


def _uncompiled(kernels: Sequence[_GeneratedKernel]) -> Capture:
    first = kernels[0]
    start = first.code.find("@triton_heuristics")
    line = first.code.count("\n", 0, max(start, 0)) + 1
    kernel = Kernel(first.name, first.path, 0, first.code[max(start, 0) :], line)
    launch, target = launch_of_code(kernel, first.code, first.call, first.config)
    return Capture(
        launch=launch,
        target=target,
        environment=Environment(),
        sources=(SourceFile(first.path, first.code),) if first.path else (),
        notes=(
            "Read from TorchInductor's code: it holds no stage. Its cache (TORCHINDUCTOR_CACHE_DIR, by default "
            "/tmp/torchinductor_USER) holds them: give both folders.",
        ),
        graphs=_origins(kernels),
        snapshot_level="none",
        compile_us=first.compile_us,
    )


def _generated(files: InductorFiles, skipped: Callable[[str], None]) -> Iterator[_GeneratedKernel]:
    for path in (*files.outputs, *files.code):
        text = _text(path, files.root, skipped)
        if _HEAD not in text[:4096]:
            continue
        lines: dict[str, GraphNode] = {}
        for name in _GRAPHS if path.name == _OUTPUT else ():
            beside = path.with_name(name)
            if beside.is_file():
                lines = {**read_graph_lines(_text(beside, files.root, skipped)), **lines}
        yield from _with_lines(text, lines)

    for path in files.traces:
        yield from _traced_kernels(_text(path, files.root, skipped, _MAX_TRACE_BYTES))


def _traced_kernels(text: str) -> Iterator[_GeneratedKernel]:
    for graph in graphs_of_trace(text):
        lines = {name: node for one in graph.graphs for name, node in read_graph_lines(one).items()}
        for kernel in _with_lines(graph.code, lines):
            config = graph.configs.get(kernel.name, {})
            yield replace(kernel, config=config, compile_us=graph.compile_us.get(kernel.name))


def _with_lines(code: str, lines: Mapping[str, GraphNode]) -> Iterator[_GeneratedKernel]:
    """The kernels of a graph's code, their nodes with lines of Python."""
    for kernel in read_output_code(code):
        nodes = tuple(replace(lines.get(one.name, one), operator=one.operator) for one in kernel.origin.nodes)
        yield replace(kernel, origin=replace(kernel.origin, nodes=nodes))


def _sources(files: InductorFiles, skipped: Callable[[str], None]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in files.code:
        text = _text(path, files.root, skipped)
        if "@triton.jit" in text and _HEAD not in text[:4096]:
            found[path.name] = text
    return found


def _text(path: Path, root: Path, skipped: Callable[[str], None], most: int = _MAX_CODE_BYTES) -> str:
    try:
        return read_regular(path, most, root).decode("utf-8", "replace")
    except FileRefused as error:
        skipped(f"{path.name} was skipped: it {error}.")
        return ""


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
