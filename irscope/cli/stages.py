"""Stages and snapshots as text, JSON and files: what `dump` and `show` print and write."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from irscope.assumption import joined, notes_of
from irscope.capture import Artifact, Capture, PassSnapshot, Resources, StageKind, stage_named
from irscope.cli.output import STANDARD_OUTPUT, colored, paint_text, width, write_output
from irscope.cli.talk import say
from irscope.errors import IrscopeError, PlanError, StageNotFound, UsageError
from irscope.plan import PassRule
from irscope.store import SUFFIX, save, write_atomically

_COMMENT: dict[StageKind, str] = {"mlir": "//", "llvm": ";", "ptx": "//", "sass": "//", "amdgcn": ";", "binary": "#"}

# 31  |  23-31  |  23-31,40
_LINES = re.compile(r"^\d+(-\d+)?(,\d+(-\d+)?)*$")


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


def shown_text(capture: Capture, text: str, kind: StageKind, loc: bool, lines: str | None) -> str:
    """A text as it is shown: with the lines that were asked for, and locations hidden unless they were."""
    from irscope.ir.locations_strip import strip_locations

    if lines is not None:
        from irscope.ir.locations import filter_lines, lines_selected, read_locations

        chosen = parse_lines(lines)
        texts = {item.stage: item.data for item in capture.artifacts if isinstance(item.data, str)}
        # Assembly's locations are read with the help of the stages before it.
        llir = texts.get("llir") if kind in ("ptx", "sass", "amdgcn") else None
        locations = read_locations(text, kind, llir=llir, ptx=texts.get("ptx") if kind == "sass" else None)
        file = capture.launch.kernel.file
        selected = lines_selected(locations, lambda path: same_file(path, file), chosen)
        text = filter_lines(text, kind, selected, without_locations=not loc)
    return text if loc else strip_locations(text, kind)


def same_file(path: str, kernel_file: str) -> bool:
    """Whether a location's path is the kernel's file; a capture may hold no path for it (an IR file's)."""
    return path == kernel_file or not kernel_file.endswith(".py")


def stage_text(
    capture: Capture, artifact: Artifact, loc: bool, lines: str | None, color: bool | None, head: bool
) -> str:
    """One stage as it is printed, under a heading where there are several."""
    kind = stage_named(artifact.stage).kind
    title = f"{_COMMENT[kind]} {capture.name} · {capture.target} · {artifact.stage}\n" if head else ""
    if isinstance(artifact.data, bytes):
        return title + binary_text(capture, artifact)
    text = shown_text(capture, artifact.data, kind, loc, lines)
    return paint_text(title + text, kind, colored(color))


def binary_text(capture: Capture, artifact: Artifact) -> str:
    """A binary's sections and resources, in place of its bytes."""
    from irscope.ir.elf import parse_elf
    from irscope.render.terminal import table

    data = artifact.data if isinstance(artifact.data, bytes) else b""
    rows = [
        [item.name, item.type, item.size_bytes, item.offset, item.flag_letters] for item in parse_elf(data).sections
    ]
    sections = table(["section", "type", "bytes", "offset", "flags"], rows, width=width())
    hint = f"# {len(data)} bytes; -o FILE writes them"
    return "\n".join([sections.rstrip("\n"), "", resources_text(capture).rstrip("\n"), hint])


def resources_text(capture: Capture) -> str:
    """The resources of a capture, a line each, and the occupancy they allow."""
    rows = [
        f"{name.replace('_', ' ')}: {value}" for name, value in asdict(capture.resources).items() if value is not None
    ]
    occupancy = occupancy_text(capture)
    return "\n".join([*rows, *([f"occupancy: {occupancy}"] if occupancy else [])])


def occupancy_text(capture: Capture) -> str:
    """`50 % (32 of 64 warps a multiprocessor, limited by registers)`, or nothing where it is not known."""
    from irscope.analysis.fit import excesses_of
    from irscope.analysis.occupancy import occupancy_of
    from irscope.render.figures import percent

    if excesses := excesses_of(capture):
        return f"none (it does not fit: {'; '.join(map(str, excesses))})"
    occupancy = occupancy_of(capture)
    if occupancy is None:
        return ""
    threads = "waves" if capture.target.backend == "hip" else "warps"
    held = f"{occupancy.warps_per_sm} of {occupancy.max_warps} {threads} a {occupancy.unit}"
    return f"{percent(occupancy.fraction)} ({held}, limited by {' and '.join(occupancy.limited_by)})"


def summary(captures: Sequence[Capture], color: bool | None) -> str:
    """A table of captures: what was compiled, for what, and what it takes."""
    from irscope.render.figures import milliseconds
    from irscope.render.terminal import table

    columns = [
        "#",
        "id",
        "kernel",
        "target",
        "grid",
        "options",
        "stages",
        "regs",
        "spill B",
        "shared B",
        "occupancy",
        "ms",
    ]
    # As --launch counts them.
    numbers: defaultdict[str, count[int]] = defaultdict(lambda: count(1))
    rows = [
        [
            next(numbers[str(capture.target)]),
            capture.id[:8],
            capture.name,
            str(capture.target),
            "×".join(map(str, capture.launch.grid)) if capture.launch.grid else "–",
            options_text(capture),
            " ".join([*capture.stages, *_outcome(capture)]),
            _cell(capture.resources.registers),
            _cell(_spilled(capture.resources)),
            _cell(capture.resources.shared_bytes),
            occupancy_text(capture).partition(" (")[0] or "–",
            "–" if capture.compile_us is None else milliseconds(capture.compile_us),
        ]
        for capture in captures
    ]
    if any(capture.launch.assumptions for capture in captures):
        columns.append("assumed")
        for row, capture in zip(rows, captures, strict=True):
            row.append(_assumed(capture))
    from irscope.render.tables import masked

    text = table(columns, rows, width=width(), color=colored(color))
    notes = notes_of(joined(item for capture in captures for item in capture.launch.assumptions))
    text += "".join(f"\n{masked(note)}" for note in notes) + ("\n" if notes else "")
    return text + "\nirscope show ID --stage ttgir (or any other) prints one; irscope passes ID its passes.\n"


def _assumed(capture: Capture) -> str:
    """`n=0, m=0`: what the virtual GPU took unknown values to be, checks left out."""
    shown = (f"{item.name}={item.value}" for item in capture.launch.assumptions if not item.only_checked)
    return ", ".join(dict.fromkeys(shown)) or "–"


def _outcome(capture: Capture) -> list[str]:
    if capture.failure is None:
        return []
    return ["DOES NOT FIT" if capture.failure.kind == "fit" else "FAILED"]


def options_text(capture: Capture) -> str:
    """The launch options people choose: warps, stages, CTAs, and the autotuned configuration's place."""
    launch = capture.launch
    parts = [f"{launch.option('num_warps')}w" if launch.option("num_warps") else ""]
    parts.append(f"{launch.option('num_stages')}s" if launch.option("num_stages") is not None else "")
    if (launch.option("num_ctas") or 1) > 1:
        parts.append(f"{launch.option('num_ctas')}ctas")
    if (tuning := launch.autotuning) is not None:
        parts.append(f"config {tuning.index}/{tuning.count}{' (winner)' if tuning.winner else ''}")
    if capture.plan:
        parts.append(str(capture.plan))
    return " ".join(filter(None, parts))


def _spilled(resources: Resources) -> int | None:
    stores, loads = resources.spill_store_bytes, resources.spill_load_bytes
    return None if stores is None and loads is None else (stores or 0) + (loads or 0)


def _cell(value: int | None) -> str:
    return "–" if value is None else str(value)


def as_json(capture: Capture, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """A capture as JSON: all but the texts, and the stages that were asked for."""
    names = capture.stages if list(wanted) == ["all"] else wanted
    failure = capture.failure
    return {
        "id": capture.id,
        "kernel": capture.name,
        "file": capture.launch.kernel.file,
        "line": capture.launch.kernel.line,
        "target": str(capture.target),
        "status": capture.status,
        "failure": asdict(failure) if failure else None,
        "plan": str(capture.plan),
        "signature": dict(capture.launch.signature),
        "constants": dict(capture.launch.constants),
        "attributes": dict(capture.launch.attributes),
        "options": dict(capture.launch.options),
        "grid": capture.launch.grid,
        "autotuning": asdict(capture.launch.autotuning) if capture.launch.autotuning else None,
        "resources": asdict(capture.resources),
        "occupancy": occupancy_json(capture),
        "environment": asdict(capture.environment),
        "metadata": dict(capture.metadata),
        "notes": list(capture.notes),
        "assumptions": [asdict(item) for item in capture.launch.assumptions],
        "compile_us": capture.compile_us,
        "stages": [
            {"stage": item.stage, "duration_us": item.duration_us, "bytes": len(item.data)}
            | ({"text": item.data} if item.stage in names and isinstance(item.data, str) else {})
            for item in capture.artifacts
        ],
        "passes": len(list(capture.passes())),
    }


def occupancy_json(capture: Capture) -> dict[str, Any] | None:
    """The occupancy of a capture as JSON."""
    from irscope.analysis.occupancy import occupancy_of

    occupancy = occupancy_of(capture)
    return None if occupancy is None else asdict(occupancy) | {"fraction": occupancy.fraction}


def is_folder(output: Path) -> bool:
    """Whether `-o` names a folder: one that is there, or a name that ends in a slash or has no suffix."""
    return output.is_dir() or (not output.exists() and not output.suffix and output != STANDARD_OUTPUT)


def write_binary(artifact: Artifact, output: Path) -> None:
    """Write a binary stage."""
    write_output(output, artifact.data if isinstance(artifact.data, bytes) else artifact.data.encode())
    if output != STANDARD_OUTPUT:
        say(f"wrote {output}")


def save_captures(captures: Sequence[Capture], output: Path) -> int:
    """Write one capture as an `.irscope` file; several get their number in the name."""
    for number, capture in enumerate(captures, 1):
        path = output if len(captures) == 1 else output.with_name(f"{output.stem}-{number}{SUFFIX}")
        save(capture, path)
        say(f"wrote {path}")
    return 0


def write_folder(captures: Sequence[Capture], folder: Path, wanted: Sequence[str]) -> None:
    """Write every stage (or those asked for), and the metadata, as plain files with readable names."""
    names = file_names(captures)
    for capture, name in zip(captures, names, strict=True):
        for artifact in capture.artifacts:
            if wanted and list(wanted) != ["all"] and artifact.stage not in wanted:
                continue
            data = (
                artifact.data if isinstance(artifact.data, bytes) else artifact.data.encode("utf-8", "surrogateescape")
            )
            write_atomically(folder / f"{name}.{artifact.stage}", data)
        text = json.dumps(as_json(capture), indent=2, default=str)
        write_atomically(folder / f"{name}.json", text.encode())
    say(f"wrote {len(captures)} {'launch' if len(captures) == 1 else 'launches'} to {folder}")


def file_names(captures: Sequence[Capture]) -> list[str]:
    """A readable name for each capture: the kernel, what tells it from the others, and a number where nothing does."""
    targets = {str(capture.target) for capture in captures}
    names: list[str] = []
    for capture in captures:
        name = capture.name + (f"-{capture.target.backend}{capture.target.arch}" if len(targets) > 1 else "")
        twins = sum(1 for other in names if other == name or other.startswith(f"{name}-"))
        names.append(name if not twins else f"{name}-{twins + 1}")
    return names


def one_pass(capture: Capture, text: str) -> PassSnapshot:
    """The pass that a rule names, which must be one; the last where several have the name and none was chosen by #N.

    Raises PlanError where there is none.
    """
    rule = PassRule.parse(text)
    matching = [snapshot for snapshot in capture.snapshots if rule.matches(snapshot)]
    if not matching:
        from irscope.plan import PassPlan

        PassPlan((rule,)).check(list(capture.snapshots))
        raise PlanError(f"no pass is named {text!r}.")
    if len({snapshot.stage for snapshot in matching}) > 1:
        labels = ", ".join(snapshot.label for snapshot in matching)
        raise PlanError(f"{text!r} names passes of several stages: {labels}. Write the one you mean.")
    if len(matching) > 1 and rule.occurrence is None:
        say(f"{text} ran {len(matching)} times; this is {matching[-1].label}.")
    return matching[-1]


def snapshot_texts(
    captures: Sequence[Capture], after: str | None, before: str | None, loc: bool, lines: str | None, color: bool | None
) -> str:
    """The IR after (or before) a pass, of each capture."""
    parts: list[str] = []
    for capture in captures:
        snapshot = one_pass(capture, after or before or "")
        text = snapshot_text(capture, snapshot, before=after is None)
        kind: StageKind = "llvm" if snapshot.group == "llvm" else "mlir"
        title = f"// {capture.name} · {capture.target} · {'before' if after is None else 'after'} {snapshot.label}\n"
        if after is not None and snapshot.outcome != "ran":
            say(
                f"{snapshot.label} {'was switched off' if snapshot.outcome == 'skipped' else 'failed'} in {capture.id}."
            )
        body = shown_text(capture, text, kind, loc, lines)
        parts.append(paint_text((title if len(captures) > 1 else "") + body, kind, colored(color)))
    return "\n".join(part.rstrip("\n") for part in parts)


def snapshot_text(capture: Capture, snapshot: PassSnapshot, *, before: bool) -> str:
    """The IR before or after a pass; made on demand where the recording left it out."""
    text = capture.text_before(snapshot) if before else capture.text_after(snapshot)
    if text is not None:
        return text
    from irscope.cli.on_demand import capture_with_all_texts

    full = capture_with_all_texts(capture)
    same = next(
        (item for item in full.snapshots if item.label == snapshot.label and item.group == snapshot.group), None
    )
    text = None if same is None else (full.text_before(same) if before else full.text_after(same))
    if text is None:
        raise StageNotFound(f"the IR {'before' if before else 'after'} {snapshot.label} is not in the capture.")
    return text


def write_each(captures: Sequence[Capture], folder: Path) -> None:
    """One numbered file a pass that changed the IR, named so that `diff -r` of two folders reads well."""
    written = 0
    for capture, name in zip(captures, file_names(captures), strict=True):
        home = folder / name if len(captures) > 1 else folder
        per_stage: dict[str, int] = {}
        for snapshot in capture.snapshots:
            # Passes that changed nothing count too, so that one switched off moves no other number.
            per_stage[snapshot.stage] = per_stage.get(snapshot.stage, 0) + 1
            if snapshot.text is None:
                continue
            number = per_stage[snapshot.stage]
            suffix = "ll" if snapshot.group == "llvm" else "mlir"
            occurrence = f"#{snapshot.occurrence}" if snapshot.occurrence > 1 else ""
            file = f"{snapshot.stage}-{number:02d}-{_plain_name(snapshot.name)}{occurrence}.{suffix}"
            from irscope.ir.locations import strip_locations

            text = strip_locations(snapshot.text, "llvm" if snapshot.group == "llvm" else "mlir")
            write_atomically(home / file, text.encode("utf-8", "surrogateescape"))
            written += 1
    if not written:
        raise IrscopeError("no pass's IR was recorded: record with --snapshots triton or all.")
    say(f"wrote {written} files to {folder}")


def _plain_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:60]
