"""Reads logs of `MLIR_ENABLE_DUMP` and `LLVM_IR_ENABLE_DUMP` as captures.

Both are printed to standard error, MLIR's to a file if `MLIR_DUMP_PATH` is set; a log may contain many compiles, output
of other programs, and may be cut anywhere.
"""

from __future__ import annotations

import re
from dataclasses import replace

from irscope.ir.logs.dump_llvm import first_llvm_kernel, has_llvm_dump, read_llvm_dump, split_at_code_generator
from irscope.ir.logs.dump_mlir import DumpedCompile, completed, read_mlir_dump
from irscope.ir.logs.dump_names import SCF_TO_CF, TTGIR_BEGINS
from irscope.ir.logs.launch_text import UNKNOWN_TARGET, launch_of_module, target_named, target_of_module
from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target

__all__ = ["DumpedCompile", "captures_from_log", "completed", "read_llvm_dump", "read_mlir_dump"]

# num-stages=3   target=cuda:90   threads-per-warp=32
_OPTION = re.compile(
    r"(?P<name>num-stages|num-warps|num-ctas|threads-per-warp)=(?P<value>\d{1,9})\b|target=(?P<target>[\w:.-]+)"
)
_STAGES = ("ttir", "ttgir")


def captures_from_log(text: str, path: str = "") -> tuple[Capture, ...]:
    """A capture for each compile of a log, in order.

    `path` is for the captures' notes. What a log does not contain (constants, the Python source, times, the binary)
    stays unknown; nothing is raised for a log that is cut or damaged.
    """
    compiles = read_mlir_dump(text)
    if not compiles:
        return _from_llvm_alone(text, path)
    captures: list[Capture] = []
    for number, item in enumerate(compiles):
        limit = compiles[number + 1].start if number + 1 < len(compiles) else len(text)
        amd = any("amdgpu" in snapshot.argument for snapshot in item.snapshots)
        captures.append(_capture(item, _llvm_snapshots(text[item.end : limit], amd), path))
    return tuple(captures)


def _capture(item: DumpedCompile, llvm: list[PassSnapshot], path: str) -> Capture:
    texts = [item.first_text, *(snapshot.text for snapshot in item.snapshots)]
    known = [text for text in texts if text is not None]
    said = _options_of_headers(item)
    target = next((found for text in known if (found := target_of_module(text))), None)
    if target is None and "target" in said:
        target = target_named(said["target"], int(said.get("threads-per-warp", "0")))
    where = f" ({path})" if path else ""
    notes = [f"Read from a log{where}: constants, times and binaries are not in it.", *item.notes]
    if target is None:
        notes.append("The log does not say what was compiled for.")
    if item.first_text is not None and not _stage_before(item):
        notes.append(f"The log begins with {item.snapshots[0].label}, within the pipeline.")
    return Capture(
        launch=_launch(item, known, said),
        target=target or UNKNOWN_TARGET,
        artifacts=_artifacts(item),
        snapshots=(*item.snapshots, *llvm),
        status="failed" if item.failure else "ok",
        failure=item.failure,
        notes=tuple(notes),
        snapshot_level="all",
    )


def _launch(item: DumpedCompile, known: list[str], said: dict[str, str]) -> Launch:
    names = ("num-warps", "num-ctas", "num-stages")
    options: dict[str, object] = {name.replace("-", "_"): int(said[name]) for name in names if name in said}
    if not known:
        return Launch(Kernel(item.kernel), options=tuple(sorted(options.items())))
    # The first text has the parameters; later ones have the number of warps.
    launch = launch_of_module(known[0], options)
    for text in known[1:]:
        if (later := launch_of_module(text, options)).option("num_warps"):
            return replace(launch, options=later.options)
    return launch


def _options_of_headers(item: DumpedCompile) -> dict[str, str]:
    said: dict[str, str] = {}
    for snapshot in item.snapshots:
        for match in _OPTION.finditer(snapshot.options):
            said.setdefault(match["name"] or "target", match["value"] or match["target"])
    return said


def _artifacts(item: DumpedCompile) -> tuple[Artifact, ...]:
    artifacts: list[Artifact] = []
    starts = _stage_before(item)
    if item.first_text is not None and starts:
        artifacts.append(Artifact(starts, item.first_text))
    stages_with_end = {snapshot.stage for snapshot in item.snapshots}
    last = item.snapshots[-1].stage
    for stage in _STAGES:
        text = item.text_after_stage(stage) if stage in stages_with_end and stage != last else None
        if text is not None and all(artifact.stage != stage for artifact in artifacts):
            artifacts.append(Artifact(stage, text))
    return tuple(artifacts)


def _stage_before(item: DumpedCompile) -> str:
    """The stage of the first text; empty if the log begins within a stage."""
    first = item.snapshots[0]
    if first.name == "inliner":
        return "source"
    if first.argument == TTGIR_BEGINS:
        return "ttir"
    # The pipeline of an IR file: the input of its first pass is the module of the file.
    return "ttgir" if first.stage == "llir" and SCF_TO_CF in (each.argument for each in item.snapshots) else ""


def _llvm_snapshots(text: str, amd: bool) -> list[PassSnapshot]:
    optimiser, generator = split_at_code_generator(text)
    snapshots = read_llvm_dump(optimiser, "llir")
    return [*snapshots, *read_llvm_dump(generator, "amdgcn" if amd else "ptx", len(snapshots))]


def _from_llvm_alone(text: str, path: str) -> tuple[Capture, ...]:
    """Captures of a log with only LLVM's passes; each start of the optimiser is another compile."""
    captures: list[Capture] = []
    for part in _llvm_parts(text):
        snapshots = _llvm_snapshots(part, "amdgcn-amd" in part)
        if not snapshots:
            continue
        module = next((snapshot.text for snapshot in snapshots if not snapshot.scope and snapshot.text), None)
        captures.append(
            Capture(
                Launch(Kernel(first_llvm_kernel(part))),
                _target_of_llvm(part),
                artifacts=(Artifact("llir", module),) if module else (),
                snapshots=tuple(snapshots),
                notes=(
                    f"Read from a log{f' ({path})' if path else ''} of LLVM's passes alone: its llir is the module "
                    "after the first pass of LLVM's, not the stage's end.",
                ),
                snapshot_level="all",
            )
        )
    return tuple(captures)


# ; *** IR Dump After Annotation2MetadataPass on [module] ***
_MODULE_PASS = re.compile(r"^; \*\*\* IR Dump After (?P<name>[^\n]*) on \[module\] \*\*\*", re.MULTILINE)
# target triple = "nvptx64-nvidia-cuda"      "target-cpu"="sm_90a"      "target-cpu"="gfx942"
_CPU = re.compile(r'"target-cpu"="(?P<cpu>sm_\d+|gfx\w+)')


def _llvm_parts(text: str) -> list[str]:
    matches = list(_MODULE_PASS.finditer(text))
    if not matches:
        return [text] if has_llvm_dump(text) else []
    starts = [match.start() for match in matches if match["name"] == matches[0]["name"]]
    starts[0] = 0
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _target_of_llvm(text: str) -> Target:
    cpu = _CPU.search(text)
    if cpu is not None:
        return Target.parse(cpu["cpu"])
    if "nvptx64" in text:
        return Target("cuda", "unknown", 32)
    return Target("hip", "unknown", 64) if "amdgcn-amd" in text else UNKNOWN_TARGET
