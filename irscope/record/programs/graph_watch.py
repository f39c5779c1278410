"""Watches TorchInductor: the graphs that it generates kernels for, and the configurations that it chooses among."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from types import ModuleType
from typing import Any

from irscope.ir.logs.inductor.output_code import read_output_code
from irscope.model.capture import Autotuning
from irscope.model.evidence import GraphNode
from irscope.record.compile.launches import is_users
from irscope.record.process.events import EventSink, KernelGenerated, Note, Timed
from irscope.record.triton.autotuner import ConfigPolicy, configuration_set
from irscope.record.triton.patches import Patches
from irscope.record.virtual.after_import import AfterImport

__all__ = ["frame_of_trace", "watched_graphs"]

#   File "/home/jo/model.py", line 12, in forward
_FRAME = re.compile(r'\s*File "([^"\n]*)", line (\d{1,9}), in (.*)')

_ATTENTION = (
    "scaled_dot_product_attention was compiled as matmuls and a softmax: with a CUDA build of torch, a GPU may run "
    "its own kernel of flash attention instead, and fewer of TorchInductor's."
)


@contextmanager
def watched_graphs(sink: EventSink, policy: ConfigPolicy | None = None) -> Iterator[None]:
    """Report each kernel of TorchInductor's with its graph, before it is compiled, until the end of the block.

    `policy`: which of its configurations are compiled where nothing can be timed; None on a real GPU.
    """
    with ExitStack() as stack:
        patches = stack.enter_context(Patches())

        def watch(name: str, action: Callable[[ModuleType], None]) -> None:
            stack.enter_context(AfterImport(name, action))

        watch("torch._inductor.graph", lambda module: _watch_code(module, patches, sink, policy is None))
        watch(
            "torch._inductor.runtime.triton_heuristics",
            lambda module: _watch_configurations(module, patches, sink, policy),
        )
        yield


def _watch_code(module: Any, patches: Patches, sink: EventSink, real: bool) -> None:
    unsaid = set[str]() if real else {_ATTENTION}
    generate = module.GraphLowering.codegen

    def codegen(graph: Any) -> Any:
        generated = generate(graph)
        code = generated[0] if isinstance(generated, tuple) else generated
        lines = _lines_of(graph)
        for kernel in read_output_code(str(getattr(code, "value", code))):
            nodes = tuple(lines.get(node.name, node) for node in kernel.origin.nodes)
            nodes = tuple(
                replace(found, operator=node.operator) for found, node in zip(nodes, kernel.origin.nodes, strict=True)
            )
            sink(KernelGenerated(kernel.name, replace(kernel.origin, nodes=nodes), kernel.code))
            if unsaid and any(name.startswith("scaled_dot_product_attention") for name in kernel.origin.source_nodes):
                sink(Note(unsaid.pop()))
        return generated

    patches.set(module.GraphLowering, "codegen", codegen)


def _lines_of(graph: Any) -> Mapping[str, GraphNode]:
    """The nodes of a graph that have a stack trace, with the line of Python of each, by name."""
    nodes = getattr(getattr(graph, "module", None), "graph", None)
    found: dict[str, GraphNode] = {}
    for node in getattr(nodes, "nodes", ()):
        if (line := frame_of_trace(node.name, node.stack_trace or "")) is not None:
            found[node.name] = line
    return found


def frame_of_trace(name: str, trace: str) -> GraphNode | None:
    """A node with the innermost frame of its stack trace outside of libraries; None if there is no such frame."""
    lines = trace.splitlines()
    for at in range(len(lines) - 1, -1, -1):
        frame = _FRAME.match(lines[at])
        if frame is None or not is_users(frame[1]):
            continue
        code = lines[at + 1].strip() if at + 1 < len(lines) and not _FRAME.match(lines[at + 1]) else ""
        return GraphNode(name, "", frame[1], int(frame[2]), frame[3].strip(), code)
    return None


def _watch_configurations(module: Any, patches: Patches, sink: EventSink, policy: ConfigPolicy | None) -> None:
    kind = module.CachingAutotuner
    compile_one, compile_all = kind._precompile_config, kind._precompile_worker
    numbers = count(1)

    def precompile_config(tuner: Any, config: Any) -> Any:
        candidates = vars(tuner).get("irscope_candidates") or [config]
        # What is tried beyond them, with smaller blocks, comes after them.
        index = next((at for at, one in enumerate(candidates) if one is config), len(candidates))
        tuning = Autotuning(index, len(candidates), str(config), candidates=tuple(map(str, candidates)))
        with configuration_set(tuner.fn.__name__, tuning):
            return compile_one(tuner, config)

    def precompile_worker(tuner: Any) -> None:
        if not tuner.configs:
            return compile_all(tuner)
        candidates = tuner.irscope_candidates = list(tuner.configs)
        if callable(policy):
            picked = [config for index, config in enumerate(candidates) if policy(index, config)]
            tuner.configs = picked or candidates[:1]
        if policy != "first":
            return compile_all(tuner)
        for config in candidates:
            tuner.configs = [config]
            try:
                return compile_all(tuner)
            except module.NoTritonConfigsError:
                # It does not fit: as where they are timed, the next one may.
                if config is candidates[-1]:
                    raise

    def benchmark_all_configs(tuner: Any, *args: Any, **keywords: Any) -> Any:
        timings = benchmark(tuner, *args, **keywords)
        number = next(numbers)
        for launcher, time_ms in timings.items():
            sink(Timed(tuner.fn.__name__, -number, str(launcher.config), (float(time_ms),) * 3))
        return timings

    benchmark = kind.benchmark_all_configs
    patches.set_known(
        kind,
        {
            "_precompile_config": precompile_config,
            "_precompile_worker": precompile_worker,
            "benchmark_all_configs": benchmark_all_configs,
        },
    )
