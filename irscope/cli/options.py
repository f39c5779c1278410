"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


def in_panel(panel: str) -> Callable[..., Any]:
    """`typer.Option`, for the options that the help text shows in one panel."""

    def option(*names: str, **settings: Any) -> Any:
        return typer.Option(*names, rich_help_panel=panel, **settings)

    return option


_output = in_panel("Output")

Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE[::KERNEL]|CAPTURE]",
        help="A Python file or notebook (it is run, and every kernel launch recorded), - for a program on standard "
        "input, an IR file (.ttir .ttgir .llir .ptx), "
        "a capture (a .irscope file, or the first digits of a stored capture's id), a collection (a folder of them: "
        "FOLDER::KERNEL, FOLDER::'soft*' or FOLDER::ID choose from it), or 'last'.",
        show_default=False,
    ),
]
Stages = Annotated[
    list[str] | None,
    _output(
        "--stage",
        "-s",
        metavar="STAGE[,STAGE]",
        help="source, ttir, ttgir, llir, ptx, cubin, sass, amdgcn, hsaco, or all; repeatable.",
    ),
]
After = Annotated[str | None, _output("--after", metavar="PASS[#N]", help="The IR after a pass.")]
Lines = Annotated[
    str | None, _output("--lines", metavar="23-31", help="Only what comes from these lines of the kernel's file.")
]
Beside = Annotated[
    list[str] | None,
    _output(
        "--beside",
        metavar="COLUMN[,COLUMN]",
        help="Columns beside machine code: registers (live), marks (spills, dots, barriers), stalls, or all.",
    ),
]
AsJson = Annotated[bool, _output("--json", help="Print JSON; docs/json.md describes it.")]
Color = Annotated[bool | None, _output("--color/--no-color", help="Default: colour on a terminal.", show_default=False)]
Output = Annotated[Path | None, _output("--output", "-o", metavar="PATH", help="Write to a file.")]


def split_words(texts: Sequence[str] | None) -> list[str]:
    """The words of a repeatable option that takes several, separated by commas."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
