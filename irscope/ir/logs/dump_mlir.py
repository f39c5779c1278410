"""Reads a log of `MLIR_ENABLE_DUMP` into the passes of each compile.

MLIR prints the IR before each pass, and after it only if the pass failed: the output of a pass is the input of the
next. A log does not mark where one compile ends and the next begins; the rules are in `_begins_anew`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from irscope.ir.logs.dump_blocks import DumpBlock, read_blocks
from irscope.ir.logs.dump_names import SCF_TO_CF, TTGIR_BEGINS, builder_name, stages_of
from irscope.ir.logs.launch_text import kernel_of_module, target_of_module
from irscope.model.capture import Failure, PassSnapshot

_WARP_SPECIALIZATION = frozenset((
    "", "cse", "sccp", "tritongpu-normalize-ws-while-loops", "tritongpu-partition-loops",
    "tritongpu-partition-scheduling", "tritongpu-optimize-partition-warps", "tritongpu-schedule-loops",
))  # fmt: skip
_WITHIN: dict[str, tuple[frozenset[str], int]] = {
    "tritongpu-automatic-warp-specialization": (_WARP_SPECIALIZATION, 100),
    "tritongpu-optimize-dot-operands": (frozenset(("canonicalize",)), 1),
    "convert-warp-specialize-to-llvm": (frozenset(("reconcile-unrealized-casts",)), 1),
    "triton-amdgpu-convert-warp-specialize-to-llvm": (frozenset(("reconcile-unrealized-casts",)), 1),
}
"""The passes that some passes run themselves, by MLIR's arguments, and their maximum number; their dumps look like any
other."""

_named = attrgetter("name", "argument", "operation", "symbol")
_INLINERS = ("inline", "gluon-inline")
_MAX_DIAGNOSTICS = 20_000
# the module that Triton prints for a bug report, which ends in "#-}":   #blocked = …   module attributes {
_REPRODUCER = re.compile(r"^(?:#\w+ = |module\b)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DumpedCompile:
    """One compile in a log."""

    kernel: str
    """The name of the kernel; empty if no printed module has one."""
    snapshots: tuple[PassSnapshot, ...]
    first_text: str | None
    """The IR before the first pass; None if the log begins or was cut within it."""
    notes: tuple[str, ...] = ()
    failure: Failure | None = None
    start: int = 0
    """Where its first header begins in the log."""
    end: int = 0
    """Where its last dump ends in the log."""

    def text_after_stage(self, stage: str) -> str | None:
        """The output of a stage: the IR after its last pass; None if the log does not contain it."""
        text, found = self.first_text, None
        for snapshot in self.snapshots:
            if snapshot.text is not None:
                text = snapshot.text
            elif snapshot.changed is not False:
                text = None
            if snapshot.stage == stage:
                found = text if snapshot.outcome == "ran" else None
        return found


@dataclass(slots=True)
class _Pass:
    """A pass of the pipeline, and the dumps before and after it."""

    block: DumpBlock
    text: str | None
    """The IR before it."""
    after: str | None = None
    """The IR after it, if MLIR printed it."""
    failed: bool = False
    within: int = 0
    """The number of passes that it ran itself."""
    said: list[str] = field(default_factory=list[str])
    _kernel: str | None = None

    @property
    def kernel(self) -> str:
        """The kernel of its dump; empty if the dump has none."""
        if self._kernel is None:
            text = self.text or self.after
            self._kernel = kernel_of_module(text) if text is not None and self.block.is_module else ""
        return self._kernel

    @property
    def in_llvm(self) -> bool:
        return self.text is not None and _phase(self.text) == 2


def read_mlir_dump(text: str) -> tuple[DumpedCompile, ...]:
    """Read a log of `MLIR_ENABLE_DUMP`, of one process or of several one after another; never raises.

    Output of other programs is skipped. Passes that a pass runs itself (the inliner's canonicalizer, those of warp
    specialisation) belong to it and are not listed. If the result of a pass was not printed (the last one, or the log
    was cut), its `changed` and `text` are None, and a note says so.

    A pass on functions is listed once per function, with the function as its scope.
    """
    return tuple(_compile(group) for group in _grouped(read_blocks(text)))


def _grouped(blocks: Iterable[DumpBlock]) -> list[list[_Pass]]:
    groups: list[list[_Pass]] = []
    for block in blocks:
        current = groups[-1] if groups else []
        if block.when == "after":
            _note_after(groups, current, block)
            continue
        if current and _is_within(current[-1], block):
            current[-1].within += 1
            current[-1].said.append(block.between)
            continue
        if not current or _begins_anew(current, block):
            groups.append([])
        groups[-1].append(_Pass(block, block.text, said=[block.between]))
    return groups


def _note_after(groups: list[list[_Pass]], current: list[_Pass], block: DumpBlock) -> None:
    last = current[-1] if current else None
    if last is not None and _named(last.block) == _named(block):
        last.after, last.failed = block.text, block.failed
        last.said.append(block.between)
    elif block.failed and last is not None:
        # A pass that the last one ran failed, and the last one with it.
        last.failed = True
        last.said.append(block.between)
    else:
        # A log of --mlir-print-ir-after-all: nothing is printed before a pass.
        if last is None or last.failed or _phase_drops(current, block) or _is_front_end(block):
            groups.append([])
        groups[-1].append(_Pass(block, None, block.text, block.failed, said=[block.between]))


def _is_within(last: _Pass, block: DumpBlock) -> bool:
    if last.failed:
        return False
    argument = last.block.argument
    if argument in _INLINERS:
        return block.argument == "canonicalize" and block.operation not in ("", "builtin.module")
    names, limit = _WITHIN.get(argument, (frozenset[str](), 0))
    return last.within < limit and (block.argument in names or (limit > 1 and block.argument.startswith("nvws-")))


def _begins_anew(passes: Sequence[_Pass], block: DumpBlock) -> bool:
    """Whether a dump begins another compile.

    It does if the previous pass failed; if the inliner runs, the first pass of every pipeline of Triton; if the module
    is of another kernel; or if it is further from LLVM than the previous one (IR files, whose pipelines begin in the
    middle).
    """
    last = passes[-1]
    if last.failed or _is_front_end(block):
        return True
    if block.argument == "gluon-inline" and block.operation == "builtin.module":
        # The first pass of Gluon's pipeline; every pipeline also has it after convert-scf-to-cf.
        return last.block.argument != SCF_TO_CF
    return _phase_drops(passes, block) or _is_of_another_kernel(passes, block)


def _is_front_end(block: DumpBlock) -> bool:
    if block.argument != "inline" and block.name not in ("Inliner", "InlinerPass"):
        return False
    return block.operation in ("", "builtin.module") and (block.text is None or _phase(block.text) == 0)


def _phase_drops(passes: Sequence[_Pass], block: DumpBlock) -> bool:
    before = next((item.text or item.after for item in reversed(passes) if item.text or item.after), None)
    if before is None or block.text is None or not block.is_module:
        return False
    return _phase(block.text) < _phase(before)


def _is_of_another_kernel(passes: Sequence[_Pass], block: DumpBlock) -> bool:
    if block.text is None or not block.is_module:
        return False
    kernel = _kernel_of(passes)
    if not kernel:
        return False
    if _phase(block.text) == 2:
        return f"@{kernel}(" not in block.text and f'@"{kernel}"(' not in block.text
    other = kernel_of_module(block.text)
    return bool(other) and other != kernel


def _kernel_of(passes: Sequence[_Pass]) -> str:
    return next((item.kernel for item in passes if item.kernel), "")


def _phase(text: str) -> int:
    """The progress of a module: 0 without layouts, 1 with layouts and Triton's functions, 2 in the LLVM dialect."""
    if "tt.func" not in text:
        return 2
    head = text[: text.index("tt.func")]
    return 1 if "ttg." in head or "triton_gpu." in head else 0


def _compile(passes: list[_Pass]) -> DumpedCompile:
    first = passes[0].text
    target = next((found for item in passes if item.text and (found := target_of_module(item.text))), None)
    backend = target.backend if target is not None else _backend_of(passes)
    first_stage = "ttir" if passes[0].block.argument == TTGIR_BEGINS or first is None or _phase(first) == 0 else "ttgir"
    stages = stages_of(
        [item.block.argument for item in passes], first_stage, backend, [item.in_llvm for item in passes]
    )
    counts: dict[tuple[str, str], dict[str, int]] = {}
    snapshots: list[PassSnapshot] = []
    for index, (item, stage) in enumerate(zip(passes, stages, strict=True)):
        after = _after(item, passes[index + 1] if index + 1 < len(passes) else None)
        name = builder_name(item.block.argument, item.block.name)
        scope = item.block.symbol if item.block.operation not in ("", "builtin.module") else ""
        changed = None if after is None or item.text is None or item.failed else after != item.text
        snapshots.append(
            PassSnapshot(
                index,
                stage,
                name,
                _occurrence(counts.setdefault((stage, name), {}), scope),
                item.block.argument,
                item.block.options,
                outcome="failed" if item.failed else "ran",
                changed=changed,
                text=None if changed is False else after,
                scope=scope,
            )
        )
    kernel = _kernel_of(passes)
    return DumpedCompile(
        kernel,
        tuple(snapshots),
        first,
        tuple(_notes(passes, snapshots)),
        _failure(passes[-1], snapshots[-1]),
        passes[0].block.start,
        passes[-1].block.end,
    )


def _backend_of(passes: Sequence[_Pass]) -> str:
    amd = any("amdgpu" in item.block.argument for item in passes)
    nvidia = any("nvidia" in item.block.argument or "nvgpu" in item.block.argument for item in passes)
    return "hip" if amd else ("cuda" if nvidia else "")


def _after(item: _Pass, following: _Pass | None) -> str | None:
    if item.after is not None or item.failed:
        return item.after
    if following is None or following.text is None:
        return None
    # Triton before 3.0 printed only the function for a function pass: not the next state of the module.
    return following.text if following.block.is_module == item.block.is_module else None


def _occurrence(counts: dict[str, int], scope: str) -> int:
    if not scope:
        number = max(counts.values(), default=0) + 1
        counts.clear()
        counts[""] = number
        return number
    # A pass over several functions is one occurrence.
    counts[scope] = counts.get(scope, counts.get("", 0)) + 1
    return counts[scope]


def _notes(passes: Sequence[_Pass], snapshots: Sequence[PassSnapshot]) -> list[str]:
    notes: list[str] = []
    unknown = [snapshot.label for snapshot in snapshots if snapshot.text_left_out]
    if unknown and unknown[-1] == snapshots[-1].label and snapshots[-1].text_left_out:
        notes.append(f"The log does not hold what the last pass, {unknown.pop()}, made.")
    if unknown:
        notes.append(f"The log does not hold what {', '.join(unknown[:5])}{' and others' if unknown[5:] else ''} made.")
    if any(item.text is not None and "__elided__" in item.text for item in passes):
        notes.append("MLIR left large constants out of its dumps.")
    if snapshots[-1].stage != "llir" and snapshots[-1].outcome == "ran":
        notes.append(f"The log ends with {snapshots[-1].label}: the compile ended there, or the log was cut.")
    return notes


def _failure(last: _Pass, snapshot: PassSnapshot) -> Failure | None:
    if not last.failed:
        return None
    said = _without_reproducer("\n".join(filter(None, last.said)))[:_MAX_DIAGNOSTICS].strip()
    message = next((line.strip() for line in said.splitlines() if "error:" in line), "the pass failed, says the log.")
    return Failure("pass", message, snapshot.stage, snapshot.label, said)


def _without_reproducer(said: str) -> str:
    begins = _REPRODUCER.search(said)
    ends = said.find("\n#-}", begins.start()) if begins is not None else -1
    return said if begins is None or ends < 0 else said[: begins.start()] + said[ends + len("\n#-}") :].lstrip("\n")


def completed(compile_: DumpedCompile, stage_texts: dict[str, str]) -> DumpedCompile:
    """The compile with the outputs of the last passes filled in from the artifacts of the stages.

    `stage_texts`: the MLIR text of each stage, such as ttir and ttgir.
    """
    snapshots = list(compile_.snapshots)
    for index, snapshot in enumerate(snapshots):
        is_last = index + 1 == len(snapshots) or snapshots[index + 1].stage != snapshot.stage
        if not is_last or not snapshot.text_left_out or snapshot.stage not in stage_texts:
            continue
        after, before = stage_texts[snapshot.stage], _text_before(compile_.first_text, snapshots[:index])
        changed = None if before is None else after != before
        snapshots[index] = replace(snapshot, changed=changed, text=None if changed is False else after)
    if tuple(snapshots) == compile_.snapshots:
        return compile_
    return replace(compile_, snapshots=tuple(snapshots), notes=compile_.notes[1:])


def _text_before(first: str | None, snapshots: Sequence[PassSnapshot]) -> str | None:
    text = first
    for snapshot in snapshots:
        text = snapshot.text if snapshot.text is not None else (None if snapshot.text_left_out else text)
    return text
