"""The layouts that `irscope layout` shows: of a capture, of a pass, of a TTGIR file, or one given as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.errors import UsageError
from irscope.layout.described import DescribedLayout
from irscope.model.capture import Capture, Target
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_layouts


@dataclass(frozen=True, slots=True)
class Typed:
    """What the command line says of layouts that are given as text."""

    shape: str | None
    dtype: str
    threads_per_warp: int | None
    file: Path | None
    """A TTGIR file with the aliases that they use."""


def given_layouts(texts: Sequence[str], typed: Typed, record_options: RecordingOptions) -> list[DescribedLayout]:
    """Layouts given as text: one, or two that are compared, which are named `#A` and `#B` if they are no aliases."""
    from irscope.ir.mlir.attributes import parse_encoding, read_aliases, resolve_aliases
    from irscope.layout.typed import target_of
    from irscope.record.layouts.questions import ask_layout
    from irscope.record.process.annotations import LayoutServer

    if typed.shape is None:
        raise UsageError("a layout that is given as text needs a shape: --shape 128x64.")
    parts = typed.shape.lower().replace("×", "x").split("x")
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UsageError(f"--shape {typed.shape!r} is no shape: write sizes with x between them, such as 128x64.")
    aliases = read_aliases(_read(typed.file)) if typed.file is not None else {}
    whole = [resolve_aliases(text.strip(), aliases) for text in texts]
    target = (
        Target.parse(record_options.targets[0])
        if record_options.targets
        else target_of([parse_encoding(text) for text in whole])
    )
    options = dict(record_options.options)
    found: list[DescribedLayout] = []
    with LayoutServer() as server:
        for name, text, resolved in zip("AB", texts, whole, strict=False):
            row = ask_layout(
                resolved,
                tuple(map(int, parts)),
                _number(options, "num_warps"),
                target,
                typed.dtype,
                num_ctas=_number(options, "num_ctas"),
                threads_per_warp=typed.threads_per_warp,
                server=server,
            )
            alias = text.strip() if text.strip() in aliases else (f"#{name}" if len(texts) > 1 else "")
            found.append(DescribedLayout(replace(row, alias=alias), target))
    return found


def _number(options: Mapping[str, object], name: str) -> int | None:
    """A number of warps or CTAs that was asked for; raises UsageError if it is none."""
    value = options.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise UsageError(f"--{name.replace('_', '-')} {value!r} is no number.")
    return value


def layouts_of_file(file: Path, targets: Sequence[str]) -> list[DescribedLayout]:
    """The layouts of a TTGIR file, asked of the installed compiler."""
    from irscope.ir.mlir.reader import parse_mlir
    from irscope.record.layouts.questions import layouts_of_text

    text = _read(file)
    stated = parse_mlir(text).option("target")
    target = Target.parse(targets[0] if targets else stated if isinstance(stated, str) else "cuda:90")
    return [DescribedLayout(row, target) for row in layouts_of_text(text, target)]


def layouts_of_capture(capture: Capture, after: str | None) -> list[DescribedLayout]:
    """The layouts of a capture's TTGIR, or of the IR after a pass."""
    if after is not None:
        from irscope.cli.dump.stages import one_pass, snapshot_text
        from irscope.record.layouts.questions import layouts_of_text

        text = snapshot_text(capture, one_pass(capture, after), before=False)
        rows = layouts_of_text(text, capture.target, capture.layouts)
    else:
        rows = with_layouts(capture).layouts
    if not rows:
        raise UsageError(
            f"{capture.name} ({capture.target}) has no layouts: they stand in TTGIR, and it holds "
            f"{', '.join(capture.stages)}."
        )
    return [DescribedLayout(row, capture.target) for row in rows]


def _read(file: Path) -> str:
    return file.read_text("utf-8", "replace")
