"""The texts of a capture: the IR around a pass, lines that come from lines of Python, and compiles of edited ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.errors import PlanError, RecordingError, StageNotFound, UsageError
from irscope.model.capture import Capture, PassSnapshot, StageKind, stage_named, stage_rank
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan, PassRule
from irscope.record.variants.completing import recorded, tell, tell_origin, with_all_texts

# 31  |  23-31  |  23-31,40
_LINES = re.compile(r"^\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*$")


def one_pass(capture: Capture, text: str) -> PassSnapshot:
    """The pass that a rule names: the last occurrence, unless #N chooses one.

    Raises PlanError if there is none, or if passes of several stages have the name.
    """
    rule = PassRule.parse(text)
    matching = [snapshot for snapshot in capture.snapshots if rule.matches(snapshot)]
    if not matching:
        PassPlan((rule,)).check(list(capture.snapshots))
        raise PlanError(f"no pass is named {text!r}.")
    if len({snapshot.stage for snapshot in matching}) > 1:
        labels = ", ".join(snapshot.label for snapshot in matching)
        raise PlanError(f"{text!r} names passes of several stages: {labels}. Write one of these.")
    if len(matching) > 1 and rule.occurrence is None:
        tell(f"{text} ran {len(matching)} times; this is {matching[-1].label}.")
    return matching[-1]


def snapshot_text(capture: Capture, snapshot: PassSnapshot, *, before: bool) -> str:
    """The IR before or after a pass; if the recording left it out, the capture is compiled again."""
    text = capture.text_before(snapshot) if before else capture.text_after(snapshot)
    if text is not None:
        return text
    full = with_all_texts(capture)
    same = next((item for item in full.passes(snapshot.group) if item.label == snapshot.label), None)
    text = None if same is None else (full.text_before(same) if before else full.text_after(same))
    if text is None:
        raise StageNotFound(f"the IR {'before' if before else 'after'} {snapshot.label} is not in the capture.")
    return text


def parse_lines(text: str) -> frozenset[int]:
    """The line numbers that `23-31,40` names; raises UsageError."""
    if not _LINES.match(text):
        raise UsageError(f"--lines {text!r}: write line numbers of the kernel's file, such as 23-31 or 23-31,40.")
    lines: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise UsageError(f"--lines {text!r}: {part} runs backwards.")
        lines.update(range(int(first), int(last or first) + 1))
    return frozenset(lines)


def selected_lines(capture: Capture, text: str, kind: StageKind, lines: str) -> set[int]:
    """The lines of a text that come from lines of the kernel's file: `23-31,40`."""
    from irscope.ir.locations.stages import capture_locations, lines_selected

    file = capture.launch.kernel.file
    # A capture of an IR file has no path for its kernel: then every file counts.
    return lines_selected(
        capture_locations(capture, text, kind),
        lambda path: path == file or not file.endswith(".py"),
        parse_lines(lines),
    )


def with_texts(capture: Capture, otherwise: str, group: StageKind | None = None) -> Capture:
    """The capture, compiled again if it holds the IR of no pass.

    `otherwise`: what cannot be done without passes. `group`: of which language; None for the passes of the pipeline.
    Raises StageNotFound if it has no passes.
    """
    passes = [*(capture.passes() if group is None else capture.passes(group))]
    if any(snapshot.text is not None for snapshot in passes):
        return capture
    if not passes:
        why = f" The compile {capture.failure.verdict}." if capture.failure else ""
        raise StageNotFound(f"{capture.name} has no passes{' of MLIR' if group == 'mlir' else ''}: {otherwise}.{why}")
    return with_all_texts(capture)


PYTHON = "source"
"""The place that is the kernel's Python text."""


@dataclass(frozen=True, slots=True)
class EditPlace:
    """One text of a capture: the IR after a pass, what a stage made, or without both the kernel's Python text."""

    capture: Capture
    snapshot: PassSnapshot | None = None
    """The pass that the IR is after."""
    stage: str = ""
    """The stage that made the text."""

    @property
    def is_python(self) -> bool:
        """Whether it is the kernel's Python text, with the functions and constants that it uses."""
        return self.snapshot is None and not self.stage

    @property
    def is_above_llvm(self) -> bool:
        """Whether the TTGIR is made of it."""
        stage = self.snapshot.stage if self.snapshot is not None else self.stage
        return stage in ("", "source", "ttir", "ttgir")

    @property
    def label(self) -> str:
        """What messages call it: `ttgir:coalesce#1`, `ptx`, `source`."""
        return self.snapshot.label if self.snapshot is not None else self.stage or PYTHON

    @property
    def short(self) -> str:
        """What the names of variants begin with: the pass's name, or the label."""
        if self.snapshot is None:
            return self.label
        return self.snapshot.name + (f"#{self.snapshot.occurrence}" if self.snapshot.occurrence > 1 else "")

    @property
    def suffix(self) -> str:
        """Of a file with the text."""
        if self.is_python:
            return ".py"
        return f".{self.stage or 'mlir'}"

    def text(self) -> str:
        """The text as it is: from the capture, or if a recording left it out from another compile.

        Raises RecordingError where the capture's files do not hold enough of the Python text to compile it.
        """
        if self.stage:
            return self.capture.text(self.stage)
        if self.snapshot is None:
            from irscope.render.reproduction.program import python_text

            return python_text(self.capture)
        return snapshot_text(self.capture, self.snapshot, before=False)

    def compiled(self, text: str, path: Path, asked: RecordingOptions) -> Capture:
        """The capture of a compile of the edited text, which `path` holds; not stored. Raises what recording raises.

        It has the launch record, and of IR the passes before the text, which are the capture's own. Raises UsageError
        for the text of another kernel.
        """
        if self.is_python:
            fresh = self._compiled_python(text, path, asked)
            note = f"The Python text of capture {self.capture.id}, edited ({path.name})."
            more = {"set_options": self.capture.launch.set_options}
        else:
            fresh = self._compiled_ir(text, path, asked)
            since = f"from stage {self.stage}" if self.stage else f"after {self.label}"
            note = f"Resumed {since} of capture {self.capture.id}, on an edited text ({path.name})."
            more = {"assumptions": self.capture.launch.assumptions}
        known = {"grid": self.capture.launch.grid, "record": self.capture.launch.record, **more}
        return replace(fresh, launch=replace(fresh.launch, **known), notes=(*fresh.notes, note))

    # ── IR ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _compiled_ir(self, text: str, path: Path, asked: RecordingOptions) -> Capture:
        from irscope.record.process.requests import request_from_capture, request_resumed
        from irscope.record.variants.pool import with_what_came_before

        self._require_same_kernel(text, path)
        tell_origin(self.capture)
        if self.snapshot is not None:
            request = request_resumed(self.capture, self.snapshot, text, asked)
        else:
            request = replace(request_from_capture(self.capture, asked), stage=self.stage, text=text)
        (fresh,) = recorded(request).captures
        compiled_name, name = (dict(one.metadata).get("name") for one in (fresh, self.capture))
        if compiled_name and name and compiled_name != name:
            raise self._other_kernel(path, compiled_name)
        done = fresh
        if self.stage:
            # What its compile could not know; the texts of the stages before it are not those of the edited text.
            done = replace(with_what_came_before(fresh, self.capture, self.stage), artifacts=fresh.artifacts)
        return replace(done, snapshots=self._snapshots(fresh, text), sources=self.capture.sources)

    def _require_same_kernel(self, text: str, path: Path) -> None:
        """Raise UsageError where there is no text, or one of a kernel with another name, or with other parameters."""
        from irscope.ir.logs.launch_text import launch_of_module

        if not text.strip():
            raise UsageError(f"{str(path)!r} is empty: give an edited text of {self.label}.")
        edited, own = launch_of_module(text), launch_of_module(self.text())
        if not edited.kernel.name or not own.kernel.name:
            # What cannot be read here, the compiler's parser refuses.
            return
        if edited.kernel.name != own.kernel.name:
            raise self._other_kernel(path, edited.kernel.name)
        types, own_types = ([kind for _, kind in one.signature] for one in (edited, own))
        if types != own_types:
            raise UsageError(
                f"{str(path)!r}: the parameters of {own.kernel.name} are ({', '.join(types)}), and those of "
                f"{self.label} of {self.capture.id[:8]} are ({', '.join(own_types)}): the launch would not fit. "
                "Compile the file by itself: irscope dump FILE."
            )

    def _other_kernel(self, path: Path, name: str) -> UsageError:
        return UsageError(
            f"{str(path)!r} holds the kernel {name!r}, and {self.capture.id[:8]} is a capture of "
            f"{self.capture.name!r}: give an edited text of {self.label}, or compile the file by itself: "
            "irscope dump FILE."
        )

    def _snapshots(self, fresh: Capture, text: str) -> tuple[PassSnapshot, ...]:
        """The capture's passes before the text, and those of the compile that began with it."""
        if self.snapshot is None:
            rank = stage_rank(self.stage)
            before = [one for one in self.capture.snapshots if stage_rank(one.stage) <= rank]
            return _renumbered((*before, *(one for one in fresh.snapshots if stage_rank(one.stage) > rank)))
        before = [one for one in self.capture.passes() if one.index < self.snapshot.index]
        before.append(replace(self.snapshot, text=text, changed=True))
        labels = {one.label for one in before}
        return _renumbered((*before, *(one for one in fresh.snapshots if one.label not in labels)))

    # ── Python ────────────────────────────────────────────────────────────────────────────────────────────────

    def _compiled_python(self, text: str, path: Path, asked: RecordingOptions) -> Capture:
        from irscope.record.process.own_folder import own_folder
        from irscope.record.process.requests import request_for
        from irscope.render.reproduction.program import driver_of

        try:
            compile(text, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            raise RecordingError(f"{path}{f':{line}' if line else ''}: {error.args[0]}.") from error
        with own_folder() as folder:
            driver = folder / f"{self.capture.name}.py"
            driver.write_text(driver_of(self.capture, path.absolute()), "utf-8", "surrogateescape")
            request = request_for(driver, replace(asked, virtual=True, jobs=1))
            recording = recorded(replace(request, is_trusted=self.capture.environment.is_trusted))
        if not recording.captures:
            said = [f"{end.message}\n{end.frames}".rstrip() for end in recording.stopped]
            raise RecordingError("\n".join([f"{path} does not compile as the launch did.", *said]))
        return recording.captures[-1]


def _renumbered(snapshots: Iterable[PassSnapshot]) -> tuple[PassSnapshot, ...]:
    counts: Counter[str] = Counter()
    numbered: list[PassSnapshot] = []
    for snapshot in snapshots:
        numbered.append(replace(snapshot, index=counts[snapshot.group]))
        counts[snapshot.group] += 1
    return tuple(numbered)


def place_at(capture: Capture, at: str) -> EditPlace:
    """The place that `--at` names: `source`, a stage, or a pass; raises UsageError, PlanError and StageNotFound."""
    if at == PYTHON:
        return EditPlace(capture)
    if at in capture.stages or stage_named(at).backends:
        if not isinstance(capture.artifact(at).data, str) or at in ("edited", "sass"):
            raise UsageError(f"--at {at}: no compile can resume from it. Give a pass, a stage before it, or {PYTHON}.")
        return EditPlace(capture, stage=at)
    snapshot = one_pass(capture, at)
    if snapshot.group == "llvm" or not snapshot.argument:
        raise UsageError(f"--at {snapshot.label} is not a pass of MLIR: give the stage to resume from, such as llir.")
    if snapshot.outcome != "ran":
        how = "was switched off" if snapshot.outcome == "skipped" else "failed"
        raise StageNotFound(f"{snapshot.label} {how} in {capture!r}: there is no IR after it. Name another pass.")
    return EditPlace(capture, snapshot)
