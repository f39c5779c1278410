"""Reads a log of `MLIR_ENABLE_DUMP` into the passes of each compile.

MLIR prints the IR before each pass, and after it only if the pass failed: the output of a pass is the input of the
next. A log does not mark where one compile ends and the next begins; the rules are in `_begins_anew`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Literal, TypedDict

from irscope.ir.logs.launch_text import kernel_of_module, target_of_module
from irscope.model.capture import Failure, PassSnapshot

# ── The Triton name of a pass in an MLIR log, and the stage that ran it ─────────────────────────────────────────────
# A dump names a pass by MLIR's argument (`tritongpu-remove-layout-conversions`); Triton's Python names the builder that
# adds it (`remove_layout_conversions`). Most builder names follow from the argument; `passes.json` holds the
# exceptions, of Triton 3.6 to 3.9 and both backends.


class _PassNames(TypedDict):
    """What `passes.json` holds; backend → arguments of passes in the last two."""

    prefixes: list[str]
    builders: dict[str, str]
    """Argument → builder, where the one does not follow from the other."""
    before_scf_to_cf: dict[str, list[str]]
    """The passes that the llir stage may have before `convert-scf-to-cf`, in their order; none occurs twice there. The
    ttgir stage of Gluon ends with some of the same, which is why each backend has its own."""
    only_in_llir: dict[str, list[str]]
    """Passes of the llir stage alone, for a log that was cut before `convert-scf-to-cf`."""


@cache
def _pass_names() -> _PassNames:
    return json.loads(Path(__file__).with_name("passes.json").read_bytes())


# TritonGPURemoveLayoutConversions  |  CSEPass  |  (anonymous namespace)::TestPass
_CLASS_PREFIX = re.compile(r"^(?:.*::)?(?:TritonAMDGPU|TritonNvidiaGPU|TritonGPU|Triton)?(?=[A-Z])")
# the places between the words of RemoveLayoutConversions, CSEAgain, F32DotTC
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

TTGIR_BEGINS = "convert-triton-to-tritongpu"
"""The first pass of the ttgir stage, in every version and on every backend."""

SCF_TO_CF = "convert-scf-to-cf"
"""A pass near the beginning of the llir stage, in every version."""


def builder_name(argument: str, class_name: str = "") -> str:
    """The name of the builder that adds a pass, without `add_`: of MLIR's argument of it, else from its class."""
    names = _pass_names()
    if not argument:
        bare = _CLASS_PREFIX.sub("", class_name).removesuffix("Pass") or class_name
        name = re.sub(r"\W+", "_", _WORDS.sub("_", bare)).strip("_").lower()
        return names["builders"].get(name.replace("_", "-"), name) or "unnamed"
    if argument in names["builders"]:
        return names["builders"][argument]
    prefix = next((prefix for prefix in names["prefixes"] if argument.startswith(prefix)), "")
    return argument.removeprefix(prefix).replace("-", "_").lower() or argument


def _stages_of(arguments: Sequence[str], first_stage: str, backend: str, in_llvm: Sequence[bool]) -> list[str]:
    """The stage of each pass of one compile: ttir, ttgir or llir.

    Nothing in a dump says where a stage ends: the ttgir stage begins with `convert-triton-to-tritongpu`, the llir stage
    with the passes that its versions have before `convert-scf-to-cf`. A log that was cut there may leave one such pass
    in ttgir. `in_llvm`: for each pass, whether the module before it holds no function of Triton's any more.
    """
    begins = next((index for index, inside in enumerate(in_llvm) if inside), len(arguments))
    if SCF_TO_CF in arguments:
        begins = min(begins, arguments.index(SCF_TO_CF))
    else:
        only = _pass_names()["only_in_llir"].get(backend, ())
        begins = min(begins, next((index for index, name in enumerate(arguments) if name in only), len(arguments)))
    waiting = list(_pass_names()["before_scf_to_cf"].get(backend, ()))
    while 0 < begins < len(arguments) and arguments[begins - 1] in waiting:
        begins -= 1
        del waiting[waiting.index(arguments[begins]) :]
    # A compile that starts from ttgir (an IR file) begins in the llir stage; all of it was walked back over then.
    stages: list[str] = []
    stage = first_stage
    for argument in arguments[:begins]:
        stage = "ttgir" if argument == TTGIR_BEGINS else stage
        stages.append(stage)
    return stages + ["llir"] * (len(arguments) - begins)


# ── The blocks of an MLIR dump: a header that names a pass, and the IR printed under it ─────────────────────────────

# // -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //
# // -----// IR Dump After CSEPass: cse Failed ('tt.func' operation: @matmul) //----- //
# // -----// SoftwarePipeliner internal IR Dump After: LowerLoops
_HEADER = re.compile(r"// -----// (?P<inner>[^\n]{1,80}? internal )?IR Dump (?P<when>Before|After):? (?P<rest>[^\n]*)")
# ('tt.func' operation: @matmul) //----- //  |  ('builtin.module' operation)  |  //----- //
_TAIL = re.compile(
    r"(?:(?<!\s)\s*\('(?P<operation>[\w.]+)' operation(?:: @(?P<symbol>[^']*))?\))?"
    r"(?P<ends>(?<!\s)\s*//----- //)?(?<!\s)\s*$"
)
# InlinerPass: inline{default-pipeline=canonicalize max-iterations=4 }
_WITH_OPTIONS = re.compile(r"^(?P<name>[^{]*?): (?P<argument>[\w.-]+)(?:\{(?P<options>.*)\})?$")
# Inliner Failed (inline)  |  InlinerPass Failed: inline{…}  |  Inliner Failed
_FAILED = re.compile(r" Failed(?=$|: | \()")
# Inliner (inline)
_WITH_ARGUMENT = re.compile(r"^(?P<name>(?:.*\S)?)\s*\((?P<argument>[\w.-]+)\)$")
# module attributes {"ttg.num-warps" = 4 : i32} {  |  "builtin.module"() ({
_OPENING = re.compile(r'^(?:module\b|"?builtin\.module"?)', re.MULTILINE)
# a line that may stand before or after the module: #loc1 = loc(unknown)   !t = i32
_ALIAS_LINES = re.compile(r"(?:[#!][^\n]*(?:\n|\Z))*")
_CLOSING = re.compile(r"^\}[^\n]*(?:\n|\Z)", re.MULTILINE)

_MAX_HEADER = 10_000


@dataclass(frozen=True, slots=True)
class _DumpBlock:
    when: Literal["before", "after"]
    name: str
    """The name of the pass's C++ class, as MLIR prints it."""
    argument: str
    options: str
    operation: str
    """The kind of operation the pass ran on: `builtin.module`, `tt.func`; empty if the header has none."""
    symbol: str
    """The name of that operation, for a function."""
    failed: bool
    text: str | None
    """The IR; None if the log was cut within it."""
    between: str
    """The text between the IR and the next header: output of other programs, and MLIR's diagnostics."""
    start: int
    end: int


def _read_blocks(log: str) -> Iterator[_DumpBlock]:
    """The blocks of a log, in order, without those that passes print of their inner steps.

    Never raises: a header that cannot be read is a block with an empty name; text that is not IR is in no block.
    """
    headers = list(_HEADER.finditer(log))
    for number, header in enumerate(headers):
        if header["inner"] or header.end() == len(log):
            # A header that ends the log may be cut itself.
            continue
        limit = headers[number + 1].start() if number + 1 < len(headers) else len(log)
        # The inner dumps of the pass are skipped, but the text behind them may be a diagnostic.
        last = number + 1
        while last < len(headers) and headers[last]["inner"]:
            last += 1
        behind = headers[last].start() if last < len(headers) else len(log)
        text, end = _module_within(log, header.end(), limit)
        said_from = end if last == number + 1 else _module_within(log, headers[last - 1].end(), behind)[1]
        name, argument, options, operation, symbol, failed = _read_header(header["rest"])
        yield _DumpBlock(
            "before" if header["when"] == "Before" else "after",
            name,
            argument,
            options,
            operation,
            symbol,
            failed,
            text,
            log[said_from:behind].strip(),
            header.start(),
            end,
        )


def _read_header(rest: str) -> tuple[str, str, str, str, str, bool]:
    rest = rest[:_MAX_HEADER]
    tail = _TAIL.search(rest)
    operation, symbol = (tail["operation"] or "", tail["symbol"] or "") if tail else ("", "")
    head = (rest[: tail.start()] if tail else rest).strip()
    failed = _FAILED.search(head) is not None
    head = _FAILED.sub("", head, count=1).partition(": unknown<")[0]
    match = _WITH_OPTIONS.match(head) or _WITH_ARGUMENT.match(head)
    if match is None:
        return head, "", "", operation, symbol, failed
    options = match.groupdict().get("options") or ""
    return match["name"], match["argument"], " ".join(options.split()), operation, symbol, failed


def _module_within(log: str, start: int, limit: int) -> tuple[str | None, int]:
    """The IR between two positions of a log and its end; None if it was cut."""
    opening = _OPENING.search(log, start, limit)
    if opening is None:
        return None, start
    line = log.find("\n", opening.start(), limit)
    first_line = log[opening.start() : line if line >= 0 else limit].rstrip()
    # An empty module, or a declaration, may end on the line it begins on.
    if line >= 0 and first_line.endswith("{}"):
        closed = line + 1
    else:
        closing = _CLOSING.search(log, opening.end(), limit)
        if closing is None:
            return None, limit
        closed = closing.end()
    aliases = _ALIAS_LINES.match(log, closed, limit)
    end = aliases.end() if aliases is not None else closed
    head = _start_of_aliases(log, start, opening.start())
    text = log[head:end]
    if limit == len(log) and not log.startswith("\n", end):
        # MLIR prints a blank line behind a module: if it is missing, lines of the module may be missing too.
        return None, limit
    return text, end


def _start_of_aliases(log: str, start: int, opening: int) -> int:
    head = opening
    while True:
        line = log.rfind("\n", start, head - 1) + 1
        if line <= start and log[start : start + 1] == "\n":
            line = start + 1
        if line >= head or line <= start or log[line] not in "#!":
            return head
        head = line


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
        last = max((index for index, one in enumerate(self.snapshots) if one.stage == stage), default=-1)
        if last < 0 or self.snapshots[last].outcome == "failed":
            return None
        return _text_before(self.first_text, self.snapshots[: last + 1])


@dataclass(slots=True)
class _Pass:
    """A pass of the pipeline, and the dumps before and after it."""

    block: _DumpBlock
    text: str | None
    after: str | None = None
    """The IR after it, if MLIR printed it."""
    failed: bool = False
    within: int = 0
    """The number of passes that it ran itself."""
    said: list[str] = field(default_factory=list[str])
    _kernel: str | None = None

    @property
    def kernel(self) -> str:
        if self._kernel is None:
            text = self.text or self.after
            self._kernel = kernel_of_module(text) if text is not None else ""
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
    return tuple(_compile(group) for group in _grouped(_read_blocks(text)))


def _grouped(blocks: Iterable[_DumpBlock]) -> list[list[_Pass]]:
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


def _note_after(groups: list[list[_Pass]], current: list[_Pass], block: _DumpBlock) -> None:
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


def _is_within(last: _Pass, block: _DumpBlock) -> bool:
    if last.failed:
        return False
    argument = last.block.argument
    if argument in _INLINERS:
        return block.argument == "canonicalize" and block.operation not in ("", "builtin.module")
    names, limit = _WITHIN.get(argument, (frozenset[str](), 0))
    return last.within < limit and (block.argument in names or (limit > 1 and block.argument.startswith("nvws-")))


def _begins_anew(passes: Sequence[_Pass], block: _DumpBlock) -> bool:
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


def _is_front_end(block: _DumpBlock) -> bool:
    if block.argument != "inline" and block.name not in ("Inliner", "InlinerPass"):
        return False
    return block.operation in ("", "builtin.module") and (block.text is None or _phase(block.text) == 0)


def _phase_drops(passes: Sequence[_Pass], block: _DumpBlock) -> bool:
    before = next((item.text or item.after for item in reversed(passes) if item.text or item.after), None)
    if before is None or block.text is None:
        return False
    return _phase(block.text) < _phase(before)


def _is_of_another_kernel(passes: Sequence[_Pass], block: _DumpBlock) -> bool:
    if block.text is None:
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
    return 1 if "ttg." in head else 0


def _compile(passes: list[_Pass]) -> DumpedCompile:
    first = passes[0].text
    target = next((found for item in passes if item.text and (found := target_of_module(item.text))), None)
    backend = target.backend if target is not None else _backend_of(passes)
    first_stage = "ttir" if passes[0].block.argument == TTGIR_BEGINS or first is None or _phase(first) == 0 else "ttgir"
    stages = _stages_of(
        [item.block.argument for item in passes], first_stage, backend, [item.in_llvm for item in passes]
    )
    counts: dict[tuple[str, str], dict[str, int]] = {}
    snapshots: list[PassSnapshot] = []
    for index, (item, stage) in enumerate(zip(passes, stages, strict=True)):
        following = passes[index + 1].text if index + 1 < len(passes) else None
        after = item.after if item.after is not None or item.failed else following
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
    message = next(
        (line.strip() for line in said.splitlines() if "error:" in line), "the pass failed, according to the log."
    )
    return Failure("pass", message, snapshot.stage, snapshot.label, said)


def _without_reproducer(said: str) -> str:
    begins = _REPRODUCER.search(said)
    ends = said.find("\n#-}", begins.start()) if begins is not None else -1
    return said if begins is None or ends < 0 else said[: begins.start()] + said[ends + len("\n#-}") :].lstrip("\n")


def completed(compile_: DumpedCompile, stage_texts: dict[str, str]) -> DumpedCompile:
    """The compile with the outputs of the last passes filled in from the MLIR texts of the stages."""
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
