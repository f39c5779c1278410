"""What a built site asks other machines for when it is viewed: nothing, or a page of it is not done."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

__all__ = ["outside_references"]

_LOADING = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "image": "href", "use": "href",
}  # fmt: skip
_LINKS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "manifest", "modulepreload"}
# url(https://fonts.example/a.woff2)   @import "//cdn.example/a.css"
_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


def outside_references(site: Path) -> list[str]:
    """Every reference of the HTML and CSS below a folder that a browser would fetch from another machine by itself."""
    found: list[str] = []
    for path in sorted(site.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text("utf-8"))
        found += [f"{path.relative_to(site)}: {address}" for address in reader.found]
    for path in sorted(site.rglob("*.css")):
        found += [f"{path.relative_to(site)}: {address}" for address in _CSS.findall(path.read_text("utf-8"))]
    return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        addresses = [given.get(_LOADING.get(tag, ""), "")]
        if tag == "link" and _LINKS & set(given.get("rel", "").split()):
            addresses.append(given.get("href", ""))
        if tag in ("img", "source"):
            addresses += given.get("srcset", "").split()
        self.found += [one for one in addresses if re.match(r"(?:\w+:)?//", one)]
        self.found += _CSS.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += _CSS.findall(data)
