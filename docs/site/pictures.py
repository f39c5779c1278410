"""The pictures of the site: what the commands of a page write, and the diagram of the packages."""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import shlex
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

import graphviz

from irscope.__main__ import run

from .pages import ROOT, block_commands, pictures_of, shown, written

__all__ = ["DRAWN", "draw", "drawing", "printed_by", "with_pictures", "workplace"]

DRAWN = "IRSCOPE_SITE_PICTURES"
"""The variable that names a folder where commands of pages have run: no others run, and their pictures are shown."""

#   plan["<b>plan</b><br/>Which passes run"]
_PACKAGE = re.compile(r'^\s*(\w+)\["<b>(.*?)</b><br/>(.*?)"\]$')
#   plan --> errors
_ARROW = re.compile(r"^\s*(\w+) --> (\w+)$")


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """Where the pages' commands run: a folder with `docs` and `examples`, a home and a Triton cache of its own."""
    for name in ("docs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    kept, before = Path.cwd(), dict(os.environ)
    os.environ.update(IRSCOPE_HOME=str(folder / "home"), TRITON_CACHE_DIR=str(folder / "triton"))
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(kept)
        os.environ.clear()
        os.environ.update(before)


def draw(page: Path) -> None:
    """Run the commands of a page that write SVGs, and those that record what these show, in the working folder.

    Raises RuntimeError if one fails.
    """
    for one in shown(page) if pictures_of(page) else ():
        if written(one.command) or shlex.split(one.command)[1] in ("record", "dump"):
            code, _, said = printed_by(one.command)
            if code:
                raise RuntimeError(f"{one.command}: exit code {code}\n{said}")


def printed_by(command: str) -> tuple[int, str, str]:
    """Run a command in this process: its exit code, and what it printed on both streams."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = run(shlex.split(command)[1:])
    return code, printed.getvalue(), said.getvalue()


def with_pictures(text: str, folder: str, drawn: Collection[str]) -> str:
    """A page with each picture that was drawn below the block of commands that writes it."""

    def followed(match: re.Match[str]) -> str:
        commands = [one.command for one in block_commands("sh", match[1])]
        pictures = [f"![{command}]({folder}{name})" for command in commands if (name := written(command)) in drawn]
        return "\n\n".join([match[0], *pictures])

    return re.sub(r"^```sh\n(.*?)^```$", followed, text, flags=re.MULTILINE | re.DOTALL)


def drawing(mermaid: str) -> str:
    """The graph of `tests/reference.py`, which is written in Mermaid, as an SVG: viewing that would need its script."""
    graph = graphviz.Digraph(
        graph_attr={"rankdir": "BT", "bgcolor": "transparent"},
        node_attr={"shape": "box", "style": "rounded,filled", "fillcolor": "#eef3fb", "fontname": "sans-serif"},
        edge_attr={"color": "#607090"},
    )
    for line in mermaid.splitlines():
        if room := _PACKAGE.match(line):
            name, title, about = room.groups()
            words = "<br/>".join(_wrapped(about, 28))
            graph.node(name, f"<<b>{title}</b><br/><font point-size='10'>{words}</font>>")
        elif arrow := _ARROW.match(line):
            graph.edge(*arrow.groups())
    svg = graph.pipe(format="svg", encoding="utf-8")
    return svg[svg.index("<svg") :]


def _wrapped(text: str, width: int) -> list[str]:
    return [html.escape(line) for line in textwrap.wrap(html.unescape(text), width)]
