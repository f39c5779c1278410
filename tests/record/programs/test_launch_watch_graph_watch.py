"""torch.compile's kernels and the graphs they come from, against TorchInductor's own tracking of provenance."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from irscope.model.capture import Capture
from irscope.model.evidence import GraphOrigin
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.capture import graph_texts

pytestmark = [
    pytest.mark.triton,
    pytest.mark.newest,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch.compile needs torch, which is not installed"),
]
SCRIPTS = Path(__file__).parents[1] / "scripts"
MODELS = SCRIPTS / "compiled_models.py"


class Recorded(NamedTuple):
    """A recording, and what TorchInductor said meanwhile."""

    captures: Sequence[Capture]
    said: list[dict[str, Any]]
    notes: Sequence[str]

    @property
    def origins(self) -> dict[str, GraphOrigin]:
        """The graph of each capture."""
        return {capture.id: capture.graphs[0] for capture in self.captures}


def recorded(folder: Path, *programs: str, config: str = "first") -> Recorded:
    said = folder / "said.json"
    request = request_for(
        SCRIPTS / "compiled_provenance.py", arguments=[str(said), *programs], snapshots="none", config=config
    )
    recording = record_request(replace(request, disassemble=False, layouts=False))
    assert not recording.stopped, recording.stopped
    return Recorded(tuple(recording.captures), json.loads(said.read_text("utf-8")), recording.notes)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("small"), "mlp", "attention", "step", "rotate", "branches")


def check_joined(made: Recorded) -> None:
    """Each Triton kernel that TorchInductor says it made is a capture with its nodes and its lines, and no other is."""
    kernels = [row for row in made.said if not row["extern"]]
    assert len(made.captures) == len(kernels) > 0
    left = [(row["kernel"], frozenset(row["nodes"]), lines_of(row["traces"])) for row in kernels]
    for capture in made.captures:
        (origin,) = capture.graphs
        nodes = frozenset(node.name for node in origin.nodes)
        match = next((row for row in left if row[0] == capture.name and row[1] == nodes), None)
        assert match is not None, (capture.name, sorted(nodes))
        left.remove(match)
        assert {node.line for node in origin.lines} == match[2], capture.name
        assert {node.file for node in origin.lines} == {str(MODELS)}
        assert all(node.code == MODELS.read_text("utf-8").splitlines()[node.line - 1].strip() for node in origin.lines)
        assert origin.launches == 1
        assert capture.launch.grid is not None
    assert not left
    parts = {(origin.graph, origin.part): origin for origin in made.origins.values()}
    called = Counter(call.callee for origin in parts.values() for call in origin.others for _ in range(call.count))
    assert called == Counter(row["kernel"] for row in made.said if row["extern"])


def lines_of(traces: Sequence[str]) -> frozenset[int]:
    """The lines of the program in which the frames of stack traces are innermost."""
    found = (re.findall(rf'File "{re.escape(str(MODELS))}", line (\d+)', trace) for trace in traces)
    return frozenset(int(lines[-1]) for lines in found if lines)


@pytest.mark.exhaustive
def test_each_kernel_says_its_graph_its_nodes_and_its_lines(small: Recorded) -> None:
    check_joined(small)
    parts = {(origin.graph, origin.part) for origin in small.origins.values()}
    trained = {(graph, part) for graph in "01" for part in ("forward", "backward")}
    assert parts == trained | {("2", "inference"), ("3", "inference")}


@pytest.mark.exhaustive
def test_what_is_not_compiled_is_said_with_the_reason(small: Recorded) -> None:
    # Nothing else: tensors of globals and of the host are inputs of the graph.
    (note,) = (note for note in small.notes if "torch.compile" in note)
    assert note.startswith("torch.compile of branches (compiled_models.py:")
    assert "it ran as it is written, not compiled: " in note


@pytest.mark.exhaustive
def test_the_kernels_of_a_graph_are_numbered(small: Recorded) -> None:
    numbers: dict[tuple[str, str], list[int]] = {}
    for origin in small.origins.values():
        numbers.setdefault((origin.graph, origin.part), []).append(origin.kernel)
        assert origin.kernels >= origin.kernel > 0
    assert all(sorted(rows) == [*range(1, len(rows) + 1)] for rows in numbers.values())


@pytest.mark.exhaustive
def test_the_choice_of_a_configuration_is_shown(small: Recorded) -> None:
    gelu = next(capture for capture in small.captures if capture.name == "triton_poi_fused_gelu_0")
    tuning = gelu.launch.autotuning
    assert tuning is not None
    assert (tuning.index, tuning.count, len(tuning.candidates)) == (0, 2, 2)
    assert tuning.config == tuning.candidates[0] != tuning.candidates[1]
    # As compiled: a configuration is its constants and its options.
    assert f"XBLOCK: {dict(gelu.launch.constants)['XBLOCK']}" in tuning.config
    assert f"num_warps: {gelu.launch.option('num_warps')}" in tuning.config
    text = graph_texts([(gelu.id, gelu)], detailed=True)
    assert "graph 0 forward: 2 Triton kernels; no Triton kernels: " in text
    assert "extern_kernels.addmm (cuBLAS)" in text
    assert "hidden = functional.gelu(self.up(x))" in text
    assert "configuration 0 of 2: compiled without a GPU" in text
    assert f"  1  {tuning.candidates[1]}" in text


@pytest.mark.exhaustive
def test_each_kernel_of_larger_models(tmp_path: Path) -> None:
    made = recorded(tmp_path, "block", "convolutions")
    check_joined(made)
    assert any("flash attention" in note for note in made.notes)


@pytest.mark.exhaustive
def test_every_configuration(tmp_path: Path) -> None:
    made = recorded(tmp_path, "mlp", config="all")
    by_kernel: dict[str, list[Capture]] = {}
    for capture in made.captures:
        by_kernel.setdefault(capture.name, []).append(capture)
    for rows in by_kernel.values():
        tunings = [one.launch.autotuning for one in rows]
        assert all(tuning is not None for tuning in tunings)
        assert sorted(tuning.index for tuning in tunings if tuning) == [*range(len(rows))]
        assert all(tuning.count == len(rows) for tuning in tunings if tuning)
    assert len(by_kernel["triton_poi_fused_gelu_0"]) == 2
