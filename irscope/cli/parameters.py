"""The options and arguments of commands, which the section `Options:` of a docstring declares; several share some."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from irscope.model.recording_options import Option


def declared_options(docstring: str | None) -> dict[str, Option]:
    """The options of a docstring's section `Options:`, by parameter."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\nOptions:\n")
    rows: list[str] = []
    for line in section.splitlines():
        if line.startswith("        "):
            rows[-1] += f" {line.strip()}"
        else:
            rows.append(line.strip())
    return dict(map(Option.parse, rows))


_SUBJECT = (
    "A Python file or notebook (it is run, and every kernel launch recorded), - for a program on standard input, an IR "
    "file (.ttir .ttgir .llir .ptx), a capture (a .irscope file, or the first digits of a stored capture's id), a "
    "collection (a folder of them: FOLDER::KERNEL, FOLDER::'soft*' or FOLDER::ID choose from it), or 'last'."
)
Subject = Annotated[str | None, f"subject = [FILE[::KERNEL]|CAPTURE]: {_SUBJECT}"]
Subjects = Annotated[list[str] | None, f"subjects = [FILE[::KERNEL]|CAPTURE]…: {_SUBJECT}"]
Stages = Annotated[
    list[str] | None,
    "--stage, -s STAGE[,STAGE]: source, ttir, ttgir, llir, ptx, cubin, sass, amdgcn, hsaco, or all; repeatable.",
]
After = Annotated[str | None, "--after PASS[#N]: The IR after a pass."]
Lines = Annotated[str | None, "--lines 23-31: Only what comes from these lines of the kernel's file."]
Annotations = Annotated[
    list[str] | None,
    "--annotate COLUMN[,COLUMN]: Columns next to machine code: registers (live), marks (spills, dots, barriers), "
    "stalls, or all.",
]
Context = Annotated[int, "--context, -U (0..): Unchanged lines around a change."]
Part = Annotated[
    str | None,
    "--part PART: Which part: h100, h100-pcie, h200, … Default: the GPU that doctor --gpu measured, or the first.",
]
AsJson = Annotated[bool, "--json: Print JSON; docs/json.md describes it."]
Color = Annotated[bool | None, "--color/--no-color (hidden): Default: colour on a terminal."]
Output = Annotated[Path | None, "--output, -o PATH: Write to a file."]


def split_words(texts: Sequence[str] | None) -> list[str]:
    """The words of a repeatable option that takes several, separated by commas."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
