"""Watches launches, their data, autotuning and TorchInductor's graphs while a script runs.

Nothing here stays on a launch's path: on a real GPU a kernel's first launch is seen, and the launcher put back.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irscope.errors import UsageError
from irscope.ir.logs.inductor import read_output_code
from irscope.model.capture import Autotuning, Target
from irscope.model.evidence import GraphNode
from irscope.model.launch_record import notes_of, without_largest
from irscope.record.compile.launches import RepeatedLaunches, is_users
from irscope.record.process import events
from irscope.record.process.events import EventSink
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import ConfigPolicy, OnTimed, configuration_set, watched_autotuner
from irscope.record.triton.patches import AfterImport, Patches, replaced
from irscope.record.virtual.arguments import assumptions_under_way, known_values
from irscope.record.virtual.placeholders import current_following

if TYPE_CHECKING:
    from irscope.machine.launch import RunLimits


def launch_contents(
    kernel: Any, values: tuple[Any, ...], most_bytes: int, launch: Callable[[], Any]
) -> tuple[Any, tuple[tuple[str, str, str], ...]]:
    """Make a launch; gives what that gives, and the contents of its tensors as `LaunchRecord.with_contents` takes them.

    None where the arguments are not the parameters of a `@triton.jit` function, and in a CUDA graph's capture. Waits
    for the GPU, before and after.
    """
    names: list[str] = list(getattr(getattr(kernel.src, "fn", None), "arg_names", []))
    torch = sys.modules.get("torch")
    if len(names) != len(values) or torch is None:
        return launch(), ()
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return launch(), ()
    tensors = dict(_tensors(names, values))
    before = without_largest(_packed(tensors, most_bytes))
    result = launch()
    after = _packed({path: tensors[path] for path, data in before.items() if data}, most_bytes)
    changed = without_largest({path: data for path, data in after.items() if data != before[path]})
    # Of one whose result is too large no data are kept: it would seem to be as it was.
    lost = {path for path, data in changed.items() if not data}
    return result, tuple((path, "" if path in lost else data, changed.get(path, "")) for path, data in before.items())


def _tensors(names: list[str], values: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in zip(names, values, strict=False):
        if isinstance(value, (tuple, list)):
            yield from _tensors([f"{name}[{index}]" for index in range(len(value))], tuple(value))
        elif hasattr(value, "data_ptr"):
            yield name, value


def _packed(tensors: dict[str, Any], most_bytes: int) -> dict[str, str]:
    return {path: known_values(tensor, most_bytes).get("data", "") for path, tensor in tensors.items()}


#   File "/home/jo/model.py", line 12, in forward
_FRAME = re.compile(r'\s*File "([^"\n]*)", line (\d{1,9}), in (.*)')

_ATTENTION = (
    "scaled_dot_product_attention was compiled as matmuls and a softmax: with a CUDA build of torch, a GPU may run "
    "its own kernel of flash attention instead, and fewer of TorchInductor's."
)


@contextmanager
def _watched_graphs(sink: EventSink, policy: ConfigPolicy | None = None) -> Iterator[None]:
    """Report each kernel of TorchInductor's with its graph, before it is compiled; `policy` is None on a real GPU."""
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
            nodes = kernel.origin.nodes
            nodes = tuple(replace(lines.get(node.name, node), operator=node.operator) for node in nodes)
            sink(events.KernelGenerated(kernel.name, replace(kernel.origin, nodes=nodes), kernel.code))
            if unsaid and any(name.startswith("scaled_dot_product_attention") for name in kernel.origin.source_nodes):
                sink(events.Note(unsaid.pop()))
        return generated

    patches.set(module.GraphLowering, "codegen", codegen)


def _lines_of(graph: Any) -> Mapping[str, GraphNode]:
    nodes = getattr(getattr(graph, "module", None), "graph", None)
    found: dict[str, GraphNode] = {}
    for node in getattr(nodes, "nodes", ()):
        if (line := _frame_of_trace(node.name, node.stack_trace or "")) is not None:
            found[node.name] = line
    return found


def _frame_of_trace(name: str, trace: str) -> GraphNode | None:
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
            sink(events.Timed(tuner.fn.__name__, -number, str(launcher.config), (float(time_ms),) * 3))
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


@contextmanager
def virtual_launches(
    target: Target,
    configs: str,
    sink: EventSink,
    assume: Mapping[str, str] | None = None,
    limits: RunLimits | None = None,
    data_limit_bytes: int = 0,
) -> Iterator[None]:
    """Run what follows on the virtual GPU for a target, and report its launches and tunings.

    `limits`: tensors hold data, and launches are run on the CPU, within these; `data_limit_bytes`: of each tensor whose
    data after a launch are reported then; 0 for none.
    """
    from irscope.record.virtual.gpu import virtual_gpu

    hashes: set[str] = set()
    launches = RepeatedLaunches(partial(known_values, most_bytes=data_limit_bytes))
    run_hashes: set[str] = set()

    def launched(kernel: Any, grid: tuple[int, int, int], source: Any, arguments: tuple[Any, ...]) -> None:
        assumptions = assumptions_under_way()
        sink(events.Launched(kernel.hash, grid, assumptions))
        if (other := launches.new(kernel.hash, grid, source, arguments)) is not None:
            sink(events.LaunchedAgain(kernel.hash, other))
        # A capture states those of its first launch alone.
        following = current_following()
        if following.is_on and kernel.hash not in hashes:
            hashes.add(kernel.hash)
            following.reported(assumptions)

    def noted(text: str) -> None:
        sink(events.Note(text))

    def run(kernel: Any, arguments: tuple[Any, ...], launch: Callable[[], None]) -> None:
        if not data_limit_bytes or kernel is None or kernel.hash in run_hashes:
            return launch()
        run_hashes.add(kernel.hash)
        _, contents = launch_contents(kernel, arguments, data_limit_bytes, launch)
        if contents:
            sink(events.LaunchLeft(kernel.hash, contents))
        return None

    policy = _config_policy(configs)
    with (
        _watched_graphs(sink, policy),
        virtual_gpu(target, launched, assume, policy, _timed(sink), noted, limits, run) as following,
    ):
        try:
            yield
        finally:
            for note in notes_of(following.unreported()):
                sink(events.Note(note))
            for name in following.unused():
                known = ", ".join(following.names()) or "none was read"
                sink(events.Note(f"--assume {name} had no effect. It can set: {known}."))


@contextmanager
def real_launches(sink: EventSink, data_limit_bytes: int = 0) -> Iterator[None]:
    """Report the launches and tunings of what follows, on the GPU that is there, with data of up to so many bytes."""
    with watched_autotuner(_timed(sink)), _watched_graphs(sink), _watched_first_launches(sink, data_limit_bytes):
        yield


def _config_policy(text: str) -> ConfigPolicy:
    if text == "first" or text == "all":
        return text
    name, equals, _ = text.partition("=")
    if not text.isdigit() and not (name and equals):
        raise UsageError(
            f"--config {text!r}: write all, a configuration's index from 0, or KEY=VALUE such as BLOCK_M=64."
        )
    return lambda index, config: Autotuning(index, 0, str(config)).is_named(text)


def _timed(sink: EventSink) -> OnTimed:
    def timed(kernel: str, tuning: int, configuration: Autotuning, times_ms: list[float]) -> None:
        sink(events.Timed(kernel, tuning, configuration.config, tuple(times_ms)))

    return timed


@contextmanager
def _watched_first_launches(sink: EventSink, data_limit_bytes: int) -> Iterator[None]:
    kernel_class = triton_api.compiled_kernel_class()
    init_handles = kernel_class._init_handles

    def watched_init_handles(kernel: Any) -> None:
        fresh = kernel.module is None
        init_handles(kernel)
        if not fresh:
            return
        launcher = kernel._run

        def first_launch(grid_x: int, grid_y: int, grid_z: int, *rest: Any) -> Any:
            kernel._run = launcher
            sink(events.Launched(kernel.hash, (int(grid_x), int(grid_y), int(grid_z))))
            if not data_limit_bytes:
                return launcher(grid_x, grid_y, grid_z, *rest)
            # As in `irscope.record.gpu.kernels`: stream, function, packed_metadata, launch_metadata, two hooks.
            result, contents = launch_contents(
                kernel, rest[6:], data_limit_bytes, lambda: launcher(grid_x, grid_y, grid_z, *rest)
            )
            if contents:
                sink(events.LaunchLeft(kernel.hash, contents))
            return result

        kernel._run = first_launch

    with replaced(kernel_class, "_init_handles", watched_init_handles):
        yield
