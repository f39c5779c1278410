"""Stages and passes of captures as text, for a terminal, a pipe or files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.api.texts import one_pass, selected_lines, snapshot_text
from irscope.cli.output import colored, json_text, paint_text, table_width
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.errors import IrscopeError, UsageError, did_you_mean
from irscope.model.capture import Artifact, Capture, StageKind, stage_named
from irscope.plan import LLVM, PassPlan, PassRule
from irscope.render.capture import capture_json, occupancy_text
from irscope.render.text.tables import resource_title, table
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX, save

if TYPE_CHECKING:
    from irscope.render.text.source import AnnotationColumns, Column


_COMMENT: dict[StageKind, str] = {"mlir": "//", "llvm": ";", "ptx": "//", "sass": "//", "amdgcn": ";", "binary": "#"}


def _shown_text(capture: Capture, text: str, kind: StageKind, loc: bool, lines: str | None) -> str:
    """A text with only the chosen lines, if any were, and without locations unless `loc` is set."""
    from irscope.ir.locations.strip import strip_locations

    if lines is not None:
        from irscope.ir.locations.stages import filter_lines

        chosen = selected_lines(capture, text, kind, lines)
        if not chosen:
            say(
                f"{capture.name} ({capture.target}): no line of this text comes from --lines {lines}: "
                "see irscope source."
            )
        text = filter_lines(text, kind, chosen, without_locations=not loc)
    return text if loc else strip_locations(text, kind)


def stage_text(
    capture: Capture, artifact: Artifact, loc: bool, lines: str | None, color: bool | None, head: bool
) -> str:
    """One stage for printing, under a heading if `head` is set."""
    kind = stage_named(artifact.stage).kind
    title = f"{_COMMENT[kind]} {capture.name} · {capture.target} · {artifact.stage}\n" if head else ""
    if isinstance(artifact.data, bytes):
        return title + _binary_text(capture, artifact)
    text = _shown_text(capture, artifact.data, kind, loc, lines)
    return paint_text(title + text, kind, colored(color))


def _binary_text(capture: Capture, artifact: Artifact) -> str:
    from irscope.ir.asm.resources import parse_elf

    data = artifact.data if isinstance(artifact.data, bytes) else b""
    found = parse_elf(data).sections
    rows = [[item.name, item.type, item.size_bytes, item.offset, item.flag_letters] for item in found]
    sections = table(["section", "type", "bytes", "offset", "flags"], rows, width=table_width())
    hint = f"# {len(data)} bytes; -o FILE writes them"
    return "\n".join([sections.rstrip("\n"), "", _resources_text(capture).rstrip("\n"), hint])


def _resources_text(capture: Capture) -> str:
    known = asdict(capture.resources).items()
    rows = [f"{resource_title(name)}: {value}" for name, value in known if value is not None]
    occupancy = occupancy_text(capture)
    return "\n".join([*rows, *([f"occupancy: {occupancy}"] if occupancy else [])])


def save_captures(captures: Sequence[Capture], output: Path) -> None:
    """Write each capture to an `.irscope` file; several get a number in their names."""
    for number, capture in enumerate(captures, 1):
        path = output if len(captures) == 1 else output.with_name(f"{output.stem}-{number}{SUFFIX}")
        save(capture, path)
        say(f"wrote {path}")


def write_folder(captures: Sequence[Capture], folder: Path, wanted: Sequence[str]) -> None:
    """Write the given stages, or all, and the metadata to files with readable names."""
    names = file_names(captures)
    for capture, name in zip(captures, names, strict=True):
        for artifact in capture.artifacts:
            if wanted and list(wanted) != ["all"] and artifact.stage not in wanted:
                continue
            data = artifact.data
            data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
            write_atomically(folder / f"{name}.{artifact.stage}", data)
        write_atomically(folder / f"{name}.json", json_text(capture_json(capture)).encode())
    say(f"wrote {len(captures)} {'launch' if len(captures) == 1 else 'launches'} to {folder}")


def file_names(captures: Sequence[Capture]) -> list[str]:
    """A readable name for each capture: the kernel, the target if they differ, and a number to tell twins apart."""
    targets = {str(capture.target) for capture in captures}
    names: list[str] = []
    for capture in captures:
        name = capture.name + (f"-{capture.target.backend}{capture.target.arch}" if len(targets) > 1 else "")
        twins = sum(1 for other in names if other == name or other.startswith(f"{name}-"))
        names.append(name if not twins else f"{name}-{twins + 1}")
    return names


def snapshot_texts(
    captures: Sequence[Capture], after: str | None, before: str | None, loc: bool, lines: str | None, color: bool | None
) -> str:
    """The IR of each capture after (or before) a pass."""
    parts: list[str] = []
    for capture in captures:
        capture = with_named_passes(capture, after or before or "")
        snapshot = one_pass(capture, after or before or "")
        text = snapshot_text(capture, snapshot, before=after is None)
        title = f"// {capture.name} · {capture.target} · {'before' if after is None else 'after'} {snapshot.label}\n"
        if after is not None and snapshot.outcome != "ran":
            outcome = "was switched off" if snapshot.outcome == "skipped" else "failed"
            say(f"{snapshot.label} {outcome} in {capture.id}.")
        body = _shown_text(capture, text, snapshot.group, loc, lines)
        parts.append(paint_text((title if len(captures) > 1 else "") + body, snapshot.group, colored(color)))
    return "\n".join(part.rstrip("\n") for part in parts)


def with_named_passes(capture: Capture, *names: str) -> Capture:
    """The capture, with LLVM's own passes where one of the names is of these: `llvm:licm#2`."""
    rules = [rule for rule in map(PassRule.parse, names) if rule.stage == LLVM]
    if not rules:
        return capture
    from irscope.record.triton.identity import refuse_unknown_passes
    from irscope.record.variants.completing import with_llvm_passes

    refuse_unknown_passes(PassPlan(tuple(rules)))
    return with_llvm_passes(capture)


def write_each(captures: Sequence[Capture], folder: Path) -> None:
    """Write a numbered file for each pass that changed the IR, so that `diff -r` can compare two folders."""
    from irscope.ir.locations.strip import strip_locations

    written = 0
    for capture, name in zip(captures, file_names(captures), strict=True):
        home = folder / name if len(captures) > 1 else folder
        per_stage: dict[str, int] = {}
        for snapshot in capture.snapshots:
            # Passes that changed nothing are counted too, so that switching one off does not renumber the others.
            per_stage[snapshot.stage] = per_stage.get(snapshot.stage, 0) + 1
            if snapshot.text is None:
                continue
            number = per_stage[snapshot.stage]
            suffix = "ll" if snapshot.group == "llvm" else "mlir"
            occurrence = f"#{snapshot.occurrence}" if snapshot.occurrence > 1 else ""
            name = re.sub(r"[^\w.-]+", "_", snapshot.name)[:60]
            file = f"{snapshot.stage}-{number:02d}-{name}{occurrence}.{suffix}"
            text = strip_locations(snapshot.text, snapshot.group)
            write_atomically(home / file, text.encode("utf-8", "surrogateescape"))
            written += 1
    if not written:
        raise IrscopeError("no pass's IR was recorded: record with --snapshots triton or all.")
    say(f"wrote {written} files to {folder}")


def annotation_columns(texts: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns that `--annotate` names, each once; raises UsageError where one is none."""
    words = split_words(texts)
    if not words:
        return ()
    from irscope.render.text.source import COLUMNS

    if unknown := next((word for word in words if word not in (*COLUMNS, "all")), None):
        raise UsageError(
            f"--annotate {unknown!r} is not a column: write {', '.join(COLUMNS)} or all."
            f"{did_you_mean(unknown, COLUMNS)}"
        )
    return tuple(column for column in COLUMNS if column in words or "all" in words)


def columns_of(capture: Capture, stage: str | None, columns: Sequence[Column]) -> AnnotationColumns:
    """The columns of a stage, by default of the machine code; raises UsageError if that has none."""
    from irscope.analysis.source.annotations import annotate
    from irscope.render.text.source import AnnotationColumns

    return AnnotationColumns(annotate(capture, stage or ""), columns)


def annotated_text(
    capture: Capture, stage: str, columns: Sequence[Column], loc: bool, lines: str | None, color: bool
) -> str:
    """A stage of a capture, or what of it comes from lines of the kernel's file, with columns beside it."""
    from irscope.render.text.source import render_annotated

    text, kind = capture.text(stage), stage_named(stage).kind
    only = None if lines is None else frozenset(selected_lines(capture, text, kind, lines))
    return render_annotated(text, kind, columns_of(capture, stage, columns), loc=loc, only=only, color=color)


def annotations_json(capture: Capture, stage: str | None) -> dict[str, Any]:
    """What stands beside a stage, as JSON."""
    from irscope.analysis.source.annotations import annotate
    from irscope.render.text import source as texts

    return texts.annotations_json(annotate(capture, stage or ""))
