"""What stands in a page: its blocks of code, and the commands of irscope in them with what they print."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CHECKED",
    "DOCS",
    "README",
    "ROOT",
    "Shown",
    "block_commands",
    "blocks",
    "differences",
    "pictures_of",
    "shown",
    "written",
]

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
README = ROOT / "README.md"
CHECKED = (DOCS / "tasks.md", DOCS / "first-hour.md", DOCS / "coming-from.md", *sorted((DOCS / "cases").glob("*.md")))
"""The pages whose `console` blocks show what this version prints, and whose pictures the site makes."""

# ```sh … ```
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The id of a capture, which depends on the path of its script: 31d37323
_ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b")


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, and the lines below it that it prints (None in a block of commands alone)."""

    command: str
    printed: tuple[str, ...] | None = None


def blocks(text: str) -> list[tuple[str, str]]:
    """The language and the text of each fenced block."""
    return _BLOCK.findall(text)


def block_commands(language: str, text: str) -> list[Shown]:
    """The commands of irscope in one block of the language `sh` or `console`."""
    if language == "sh":
        lines = text.replace("\\\n", " ").splitlines()
        stripped = (re.sub(r"\s+#\s.*$", "", line).strip() for line in lines)
        return [Shown(line) for line in stripped if line.startswith("irscope ")]
    if language == "console" and text.startswith("$ irscope "):
        command, _, printed = text.replace("\\\n", " ").partition("\n")
        return [Shown(command.removeprefix("$ "), tuple(printed.splitlines()))]
    return []


def shown(page: Path) -> list[Shown]:
    """The commands of a page in their order: those of `sh`, and of a checked page those of `console` too."""
    languages = ("sh", "console") if page in (*CHECKED, README) else ("sh",)
    return [
        command
        for language, text in blocks(page.read_text("utf-8"))
        if language in languages
        for command in block_commands(language, text)
    ]


def written(command: str) -> str:
    """The name of the SVG that a command writes, or nothing."""
    words = shlex.split(command)
    name = words[words.index("-o") + 1] if "-o" in words[:-1] else ""
    return name if name.endswith(".svg") else ""


def pictures_of(page: Path) -> list[str]:
    """The names of the SVGs that a page's commands write, in the working folder."""
    return [name for one in shown(page) if (name := written(one.command))]


def differences(expected: tuple[str, ...], printed: str) -> str:
    """What a page shows beside what was printed, or nothing if they agree.

    A line `…` stands for any lines, and `…` in a line for any text. All ids agree, and so do columns of other widths.
    """
    lines = [_comparable(line) for line in printed.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(_comparable(line)).replace("…", ".*") + r"\n"
        for line in expected
    )
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)):
        return ""
    return "the page shows\n" + "\n".join(expected) + "\nprinted is\n" + printed


def _comparable(line: str) -> str:
    return _ID.sub("01234567", re.sub(r" {2,}", "  ", line.rstrip()))
