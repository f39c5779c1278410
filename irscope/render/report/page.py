"""The report: captures as one HTML page that needs no server, no network and no Triton.

The page is a shell, the viewer (a built asset), and data. All data is base 85 in script elements that no browser runs;
a Content-Security-Policy allows the viewer's scripts by their hashes, and no request of any kind.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from types import MappingProxyType
from urllib.parse import urlencode

from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.render.capture.page import summary_html
from irscope.render.report.facts import Between
from irscope.render.report.payload import Payload
from irscope.render.report.pictures import poster_style
from irscope.render.report.results import Results
from irscope.render.report.texts import pack, printed

_POLICY = (
    "default-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "connect-src 'none'",
    "img-src data:",
    "require-trusted-types-for 'script'",
    "trusted-types irscope",
)
_NO_SCRIPT = "The passes, stages and graphs of this report need JavaScript, which runs from this file alone."
_DATA_TYPE = "application/octet-stream"
_FIRST: Mapping[str, object] = MappingProxyType({})
"""The view of a page that is not opened at any: the overview of the first capture."""
_NO_PAIRS: Mapping[tuple[int, int], Between] = MappingProxyType({})


def render_report(
    captures: Sequence[Capture],
    *,
    title: str = "",
    view: Mapping[str, object] = _FIRST,
    between: Mapping[tuple[int, int], Between] = _NO_PAIRS,
    results: Results | None = None,
) -> str:
    """One page of HTML that shows the captures; what is in them is data, never markup or script.

    Args:
        captures: one or more; failed ones too.
        title: of the page; by default the kernels' names.
        view: what is shown first, as the page's fragment has it: `{"tab": "passes", "pass": 3}`.
        between: what is known of pairs of layouts of the first capture, by their numbers.
        results: those of many compiles, a view of its own; None for none.

    Raises UsageError if there is no capture.
    """
    if not captures:
        raise UsageError("a report needs at least one capture: name a file, an id that 'irscope ls' lists, or 'last'.")
    payload = Payload(captures, between, results)
    names = list(dict.fromkeys(row["kernel"] for row in payload.index["captures"]))
    title = title or ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    loader, style = _asset("loader.js").decode(), _asset("viewer.css").decode() + poster_style()
    nonce = base64.b64encode(hashlib.sha256(style.encode()).digest()[:18]).decode()
    allowed = json.loads(_asset("digests.json"))
    if not payload.places_graphs:
        del allowed["graphs.js"]
    scripts = " ".join(f"'{digest}'" for digest in allowed.values())
    wasm = " 'wasm-unsafe-eval'" if payload.places_graphs else ""
    policy = "; ".join([*_POLICY, f"script-src {scripts}{wasm}", f"style-src 'nonce-{nonce}'"])
    opened = f' data-opened="{escape(urlencode(view))}"' if view else ""
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"{opened}>',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(' '.join(title.split()))} · irscope</title>",
        '<link rel="icon" href="data:,">',
        f'<style nonce="{nonce}" id="style">{style}</style>',
        "</head>",
        "<body>",
        f'<div id="app"><main class="static">{summary_html(captures[0])}</main></div>',
        f"<noscript><p>{_NO_SCRIPT}</p></noscript>",
        _data("index", pack(payload.index)),
        *(_data(f"chunk{number}", chunk.to_bytes()) for number, chunk in enumerate(payload.chunks)),
        _data("viewer", _asset("viewer.js.deflate")),
        *([_data("graphs", _asset("graphs.js.deflate"))] if payload.places_graphs else []),
        f"<script>{loader}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _asset(name: str) -> bytes:
    return (files("irscope.render") / "report" / "assets" / name).read_bytes()


def _data(name: str, data: bytes) -> str:
    return f'<script type="{_DATA_TYPE}" id="{name}">{printed(data)}</script>'
