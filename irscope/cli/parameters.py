"""The options and arguments of commands: the annotation of a parameter declares one, several share some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated


class Option:
    """An option: `--name` and its short form, as the help shows it; hidden ones work, and other pages list them."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        shows_default: bool = True,
        hidden: bool = False,
        panel: str = "Options",
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.least = min
        self.most = max
        self.shows_default = shows_default
        self.hidden = hidden
        self.panel = panel


class Argument:
    """A positional argument."""

    def __init__(self, metavar: str, help: str, hidden: bool = False) -> None:
        self.metavar = metavar
        self.help = help
        self.hidden = hidden


_SUBJECT = (
    "A Python file or notebook (it is run, and every kernel launch recorded), - for a program on standard input, an IR "
    "file (.ttir .ttgir .llir .ptx), a capture (a .irscope file, or the first digits of a stored capture's id), a "
    "collection (a folder of them: FOLDER::KERNEL, FOLDER::'soft*' or FOLDER::ID choose from it), or 'last'."
)
Subject = Annotated[str | None, Argument("[FILE[::KERNEL]|CAPTURE]", _SUBJECT)]
Subjects = Annotated[list[str] | None, Argument("[FILE[::KERNEL]|CAPTURE]…", _SUBJECT)]
Stages = Annotated[
    list[str] | None,
    Option(
        "--stage",
        "-s",
        metavar="STAGE[,STAGE]",
        help="source, ttir, ttgir, llir, ptx, cubin, sass, amdgcn, hsaco, or all; repeatable.",
    ),
]
After = Annotated[str | None, Option("--after", metavar="PASS[#N]", help="The IR after a pass.")]
Lines = Annotated[
    str | None, Option("--lines", metavar="23-31", help="Only what comes from these lines of the kernel's file.")
]
Annotations = Annotated[
    list[str] | None,
    Option(
        "--annotate",
        metavar="COLUMN[,COLUMN]",
        help="Columns next to machine code: registers (live), marks (spills, dots, barriers), stalls, or all.",
    ),
]
Context = Annotated[int, Option("--context", "-U", metavar="N", min=0, help="Unchanged lines around a change.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON; docs/json.md describes it.")]
Color = Annotated[bool | None, Option("--color/--no-color", help="Default: colour on a terminal.", hidden=True)]
Output = Annotated[Path | None, Option("--output", "-o", metavar="PATH", help="Write to a file.")]


def split_words(texts: Sequence[str] | None) -> list[str]:
    """The words of a repeatable option that takes several, separated by commas."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]
