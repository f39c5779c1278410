"""Reads logs of `MLIR_ENABLE_DUMP` and `LLVM_IR_ENABLE_DUMP` as captures.

Both are printed to standard error, MLIR's to a file if `MLIR_DUMP_PATH` is set; a log may contain many compiles, output
of other programs, and may be cut anywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from irscope.ir.logs.dump_mlir import SCF_TO_CF, TTGIR_BEGINS, DumpedCompile, read_mlir_dump
from irscope.ir.logs.launch_text import UNKNOWN_TARGET, launch_of_module, target_named, target_of_module
from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target

# ── Reads a log of `LLVM_IR_ENABLE_DUMP` into the passes of LLVM's optimiser and code generator ─────────────────────
# LLVM prints after each pass what the pass ran on: the module, a function, a loop, or a function's machine code. A pass
# changed something if that differs from the last print of the same function, apart from the numbers of metadata, which
# LLVM assigns anew for each print.

# ; *** IR Dump After SROAPass on matmul ***
# *** IR Dump After Global Value Numbering (gvn) ***
# # *** IR Dump After Finalize ISel and expand pseudo-instructions (finalize-isel) ***:
_HEADER = re.compile(
    r"^(?P<mark>[;#] )?\*\*\* IR Dump After (?P<what>[^\n]*?) \*\*\*(?::|(?P<tail>[^\n]*))?$", re.MULTILINE
)
# SROAPass on add   LICMPass on loop %<unnamed loop> in function add   InlinerPass on (add)   CGProfilePass on [module]
_ON = re.compile(r"^(?P<name>.*?) on (?:loop .{0,200} in function (?P<loop>\S+)|\((?P<group>[^()]*)\)|(?P<scope>\S+))$")
# Global Value Numbering (gvn)
_ARGUMENT = re.compile(r"^.*\((?P<argument>[\w.-]+)\)$")
# Running pass: SROAPass on matmul (30 instructions)   irscope: runs sroa   irscope: skips licm
_TALK = re.compile(
    r"^(?:(?:Running|Skipping|Invalidating|Clearing) [a-z ]*(?:pass|analysis|results)\b[^\n]*"
    r"|irscope: (?P<asked>runs|skips) (?P<name>[^\n]+))$",
    re.MULTILINE,
)
_MACHINE_END = re.compile(r"^# End machine code for function [^\n]*$", re.MULTILINE)
_MACHINE_FUNCTION = re.compile(r"^# Machine code for function (?P<name>[^:\n]+):", re.MULTILINE)
# define ptx_kernel void @matmul(ptr addrspace(1) %0) local_unnamed_addr #0 !dbg !4 {
_DEFINITION = re.compile(r'^define [^\n]*?@(?:"(?P<quoted>[^"\n]*)"|(?P<name>[\w.$-]+))\([^\n]*', re.MULTILINE)
_MODULE = re.compile(r"^(?:; ModuleID = |source_filename = |target (?:datalayout|triple) = )", re.MULTILINE)
# !dbg !12   #0 {   ; preds = %6   ; Loop:   16B (a slot index)   # Machine code for function add: IsSSA, TracksLiveness
_NUMBERING = re.compile(
    r"![0-9]+|(?<= )#[0-9]+|(?<![ \t])[ \t]*; preds = [^\n]*|^; [^\n]*$|^\d+B?\t|^# Machine code for [^\n]*",
    re.MULTILINE,
)
# !12 = !DILocation(line: 18, column: 9, scope: !4)   attributes #0 = { nounwind }
# target triple = "nvptx64-nvidia-cuda" (set between two pipelines, by no pass)
_AROUND = re.compile(r"^(?:!\d+ = |attributes #\d+ = |target |source_filename )[^\n]*$", re.MULTILINE)
# 59:    .lr.ph:    bb.1 (%ir-block.6):
_LABEL = re.compile(r"^[\w.$-]+(?: \([^\n]*\))?:", re.MULTILINE)

_MAX_HEADER = 2_000


@dataclass(frozen=True, slots=True)
class _Dump:
    name: str
    argument: str
    scope: str
    """The function; empty for the module."""
    kind: str
    """`module`, `function`, `machine`, or `part` for a loop or a region of a function."""
    text: str
    """Empty if the pass left nothing to print."""
    is_skipped: bool = False


def read_llvm_dump(
    text: str, stage: str, first_index: int = 0, known: Iterable[PassSnapshot] = ()
) -> list[PassSnapshot]:
    """Read what LLVM printed during one stage of one compile, the output of other programs skipped; never raises.

    Occurrences count from those of `known`, the passes of earlier stages. Returns a snapshot per pass and function, of
    group `llvm`; only those that changed something, or may have, keep the text. A pass over a loop or a region keeps
    only its text.
    """
    state = _State()
    counts = Counter(one.argument or one.name for one in known)
    snapshots: list[PassSnapshot] = []
    for index, dump in enumerate(_dumps(text), first_index):
        name = dump.argument or dump.name
        counts[name] += 1
        scope, changed = ("", False) if dump.is_skipped else state.takes(dump)
        snapshots.append(
            PassSnapshot(
                index,
                stage,
                dump.name,
                counts[name],
                dump.argument,
                outcome="skipped" if dump.is_skipped else "ran",
                changed=changed,
                text=dump.text if changed is not False and dump.text else None,
                group="llvm",
                scope=scope,
            )
        )
    return snapshots


def without_talk(text: str) -> str:
    """What was printed, without LLVM's lines that name each pass and analysis that it runs."""
    return "".join(line for line in text.splitlines(keepends=True) if not _TALK.match(line.rstrip("\n")))


def _dumps(text: str) -> Iterator[_Dump]:
    headers = list(_HEADER.finditer(text))
    asked_for = [line for line in _TALK.finditer(text) if line["asked"]]
    for number, header in enumerate(headers):
        limit = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        # LLVM asks before each pass that may be left out: what it names last is the one that it prints next.
        asked = ""
        while asked_for and asked_for[0].start() < header.start():
            line = asked_for.pop(0)
            asked = line["name"] if line["asked"] == "runs" else ""
            if line["asked"] == "skips":
                yield _Dump(line["name"], line["name"], "", "part", "", is_skipped=True)
        dump = _read(header, text[header.end() : limit].lstrip("\n"))
        yield replace(dump, argument=asked) if asked and not dump.argument else dump


def _read(header: re.Match[str], body: str) -> _Dump:
    what = header["what"][:_MAX_HEADER]
    if (header["tail"] and "omitted" in header["tail"]) or "invalidated" in what:
        body = ""
    talk = _TALK.search(body)
    body = (body[: talk.start()] if talk else body).rstrip()
    on = _ON.match(what) if header["mark"] == "; " else None
    if on is not None:
        name = pass_identifier(on["name"])
        if on["loop"]:
            return _Dump(name, "", on["loop"], "part", _ended(body))
        scope = on["group"] or on["scope"] or ""
        is_module = scope == "[module]"
        return _Dump(name, "", "" if is_module else scope, "module" if is_module else "function", _ended(body))
    # Passes of the code generator have a descriptive name and an argument.
    argument = _ARGUMENT.match(what)
    name = argument["argument"] if argument else pass_identifier(what)
    own = argument["argument"] if argument else ""
    if (machine := _MACHINE_FUNCTION.search(body)) is not None:
        end = _MACHINE_END.search(body)
        return _Dump(name, own, machine["name"], "machine", _ended(body[: end.end()] if end else body))
    if _MODULE.search(body):
        return _Dump(name, own, "", "module", _ended(body))
    for function, _, end in _functions(body):
        return _Dump(name, own, function, "function", _ended(body[:end]))
    return _Dump(name, own, "", "part", _ended(body))


def _functions(text: str) -> Iterator[tuple[str, int, int]]:
    match = _DEFINITION.search(text)
    while match is not None:
        end = text.find("\n}", match.end())
        if end < 0:
            return
        yield match["quoted"] or match["name"] or "", match.start(), end + 2
        match = _DEFINITION.search(text, end + 2)


def _ended(body: str) -> str:
    return body + "\n" if body else ""


def pass_identifier(name: str) -> str:
    """A pass's name as plans write it: `GPU_Load_and_Store_Vectorizer`."""
    # Rules of a plan allow letters, digits, dots, dashes: (anonymous namespace)::ExpandPass, RequireAnalysisPass<…>.
    bare = name.replace("(anonymous namespace)::", "").replace("llvm::", "")
    return re.sub(r"[^\w.-]+", "_", bare).strip("_") or "unnamed"


class _State:
    """The last print of each function, and of the module around them."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], str] = {}
        self._around: str | None = None
        self._parts: dict[str, str] = {}
        """Function → the loop or region printed since the function itself."""
        self._changed_in_part: set[str] = set()
        """The functions that a pass over a part may have changed since they were printed."""
        self._functions_changed = False
        """Whether a function changed since the module was printed, which may add declarations."""
        self._last_scope = ""

    def takes(self, dump: _Dump) -> tuple[str, bool | None]:
        """Add the print of a pass; returns its function, and whether it changed anything (None: unknown)."""
        if dump.kind == "part":
            scope = dump.scope or self._last_scope
            return scope, self._part(scope, _plain(dump.text))
        self._last_scope = dump.scope or self._last_scope
        if not dump.text:
            return dump.scope, None
        if dump.kind == "module":
            return "", self._module(dump.text)
        return dump.scope, self._function(dump)

    def _function(self, dump: _Dump) -> bool | None:
        fresh = _plain(dump.text)
        key = (dump.kind, dump.scope)
        before = self._functions.get(key)
        self._functions[key] = fresh
        in_part = dump.kind == "function" and dump.scope in self._changed_in_part
        if dump.kind == "function":
            self._parts.pop(dump.scope, None)
            self._changed_in_part.discard(dump.scope)
        if before is None:
            # The first machine code of a function is created by the pass that prints it.
            return True if dump.kind == "machine" else None
        self._functions_changed |= fresh != before
        # If a loop pass changed it before, it is unknown which pass made this change.
        return None if in_part and fresh != before else fresh != before

    def _part(self, scope: str, fresh: str) -> bool | None:
        before, whole = self._parts.get(scope), self._functions.get(("function", scope))
        self._parts[scope] = fresh
        if fresh and (fresh == before or (whole is not None and all(block in whole for block in _blocks(fresh)))):
            return False
        known = bool(fresh) and whole is not None and scope not in self._changed_in_part
        self._changed_in_part.add(scope)
        # In a function that changed since it was printed, this may be a different loop.
        return True if known else None

    def _module(self, text: str) -> bool | None:
        functions: dict[tuple[str, str], str] = {}
        rest, done = "", 0
        for name, start, end in _functions(text):
            functions["function", name] = _plain(text[start:end])
            rest, done = rest + text[done:start], end
        around = _plain(_AROUND.sub("", rest + text[done:]))
        known = {key: body for key, body in self._functions.items() if key[0] == "function"}
        first, in_part = self._around is None and not known, bool(self._changed_in_part)
        differs = any(known.get(key, body) != body for key, body in functions.items())
        differs = differs or bool(known.keys() - functions.keys())
        if self._around is not None and not self._functions_changed:
            differs = differs or around != self._around
        self._around = around
        self._functions = {key: body for key, body in self._functions.items() if key[0] != "function"} | functions
        self._parts.clear()
        self._changed_in_part.clear()
        self._functions_changed = False
        return None if first or (in_part and differs) else differs


def _plain(text: str) -> str:
    lines = (line.rstrip() for line in _NUMBERING.sub("", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _blocks(text: str) -> list[str]:
    starts = [match.start() for match in _LABEL.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    return [text[start:end].rstrip("\n") for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


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
    said: dict[str, str] = {}
    for snapshot in item.snapshots:
        for match in _OPTION.finditer(snapshot.options):
            said.setdefault(match["name"] or "target", match["value"] or match["target"])
    target = next((found for text in known if (found := target_of_module(text))), None)
    if target is None and "target" in said:
        target = target_named(said["target"], int(said.get("threads-per-warp", "0")))
    where = f" ({path})" if path else ""
    notes = [f"Read from a log{where}: constants, times and binaries are not in it.", *item.notes]
    if target is None:
        notes.append("The log does not name the target.")
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
    # The headers of the code generator's passes, which follow the optimiser's, have another mark.
    of_generator = (match.start() for match in _HEADER.finditer(text) if match["mark"] != "; ")
    begin = next(of_generator, len(text))
    snapshots = read_llvm_dump(text[:begin], "llir")
    return [*snapshots, *read_llvm_dump(text[begin:], "amdgcn" if amd else "ptx", len(snapshots))]


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
                Launch(Kernel(next((name for name, _, _ in _functions(part)), ""))),
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
        return [text] if _HEADER.search(text) else []
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
