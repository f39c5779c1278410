"""The layouts that `irscope layout` shows: of a capture, of a pass, of a TTGIR file, or one given as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from irscope.errors import UsageError
from irscope.layout.described import DescribedLayout
from irscope.model.capture import Capture, Target
from irscope.model.recording_options import RecordingOptions

# ttg.target = "cuda:90"
_TARGET = re.compile(r'ttg\.target = "([^"]+)"')


def given_layout(
    text: str, shape: str | None, dtype: str, file: Path | None, asked: RecordingOptions
) -> DescribedLayout:
    """A layout given as text, with the aliases of a TTGIR file if there is one."""
    from irscope.ir.mlir.encoding import read_aliases, resolve_aliases
    from irscope.record.layouts.questions import ask_layout

    if shape is None:
        raise UsageError("a layout that is given as text needs a shape: --shape 128x64.")
    parts = shape.lower().replace("×", "x").split("x")
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--shape {shape!r} is no shape: write sizes with x between them, such as 128x64.")
    if file is not None:
        text = resolve_aliases(text, read_aliases(_read(file)))
    target = Target.parse(asked.targets[0] if asked.targets else "cuda:90")
    options = dict(asked.options)
    warps, ctas = options.get("num_warps"), options.get("num_ctas", 1)
    row = ask_layout(text, tuple(map(int, parts)), warps, target, dtype, num_ctas=ctas)
    return DescribedLayout(row, target)


def layouts_of_file(file: Path, targets: Sequence[str]) -> list[DescribedLayout]:
    """The layouts of a TTGIR file, asked of the installed compiler."""
    from irscope.record.layouts.questions import layouts_of_text

    text = _read(file)
    named = _TARGET.search(text)
    target = Target.parse(targets[0] if targets else (named[1] if named else "cuda:90"))
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


def with_layouts(capture: Capture) -> Capture:
    """The capture with the layouts of its TTGIR, asked of the installed compiler if it holds none."""
    from irscope.record.layouts.questions import layouts_of_text

    if capture.layouts or "ttgir" not in capture.stages:
        return capture
    return capture.with_(layouts=layouts_of_text(capture.text("ttgir"), capture.target))


def _read(file: Path) -> str:
    return file.read_text("utf-8", "replace")
