"""One HTML file that fetches nothing: its styles and scripts in it, and a policy that allows no others."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from irscope.render.pages.assets import read_asset


def render_page(title: str, body: str, *, styles: tuple[str, ...], script: str = "") -> str:
    """A whole page.

    Args:
        title: of the page, any text.
        body: its HTML; what comes from a capture is escaped in it.
        styles: assets to add to `theme.css`.
        script: an asset to run at the end of the body, or an empty string.
    """
    style = "".join(map(read_asset, ("theme.css", *styles)))
    code = read_asset(script) if script else ""
    allowed = f"script-src {_digest(code)}; " if code else ""
    policy = f"default-src 'none'; style-src {_digest(style)}; {allowed}base-uri 'none'; form-action 'none'"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        f"<body>\n{body}",
        *([f"<script>{code}</script>"] if code else []),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
