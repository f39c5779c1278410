"""What mkdocs calls when it builds the site: the guide to the commands, pictures, and the check of the result."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.site.guide import commands_page
from docs.site.outside import outside_references
from docs.site.pages import CHECKED, DOCS, pictures_of
from docs.site.pictures import DRAWN, draw, drawing, with_pictures, workplace
from irscope.record.process.child import warm_children

_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the guide, and the pictures that the commands of the pages write."""
    files.append(File.generated(config, "commands.md", content=commands_page()))
    if drawn := os.environ.get(DRAWN):
        _append_pictures(files, config, Path(drawn))
        return files
    with tempfile.TemporaryDirectory(prefix="irscope-site-") as folder:
        with workplace(Path(folder)), warm_children():
            for page in CHECKED:
                try:
                    draw(page)
                except RuntimeError as error:
                    raise PluginError(f"{page.name}: {error}") from error
        _append_pictures(files, config, Path(folder))
    return files


def _append_pictures(files: Files, config: Any, folder: Path) -> None:
    for page in CHECKED:
        for name in pictures_of(page):
            if (path := folder / name).exists():
                address = page.relative_to(DOCS).parent / "pictures" / name
                files.append(File.generated(config, str(address), content=path.read_text("utf-8")))


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Show the pictures below their commands, and a graph of Mermaid as a picture."""
    source = Path(page.file.src_uri)
    if DOCS / source in CHECKED:
        folder = source.parent / "pictures"
        drawn = [name for name in pictures_of(DOCS / source) if files.get_file_from_path(str(folder / name))]
        markdown = with_pictures(markdown, "pictures/", drawn)
    return _MERMAID.sub(lambda match: f'<div class="drawing">{drawing(match[1])}</div>', markdown)


def on_post_build(config: Any) -> None:
    """Raise PluginError if a page of the site asks another machine for something when it is viewed."""
    if found := outside_references(Path(config.site_dir)):
        raise PluginError("the site refers to other machines:\n" + "\n".join(found))
