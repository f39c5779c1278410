"""The report: captures as one HTML page that needs no server, no network and no Triton.

The page is a shell, the viewer (a built asset), and data. All data is base64 in script elements that no browser runs;
a Content-Security-Policy allows the viewer's scripts by their hashes, and no request of any kind.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from irscope.capture import Capture
from irscope.errors import UsageError
from irscope.render.report_blobs import armored, deflate
from irscope.render.report_payload import Payload
from irscope.render.report_summary import summary_html

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


def render_report(captures: Sequence[Capture], *, title: str = "") -> str:
    """One page of HTML that shows the captures; what is in them is data, never markup or script.

    Args:
        captures: one or more; failed ones too.
        title: of the page; by default the kernels' names.

    Raises UsageError where there is no capture.
    """
    if not captures:
        raise UsageError("a report needs at least one capture: name a file, an id that 'irscope ls' lists, or 'last'.")
    payload = Payload(captures)
    names = list(dict.fromkeys(capture.name for capture in captures))
    title = title or ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    loader, viewer, graphs, style = (_asset(name) for name in ("loader.js", "viewer.js", "graphs.js", "viewer.css"))
    nonce = base64.b64encode(hashlib.sha256(style.encode()).digest()[:18]).decode()
    scripts = " ".join(f"'sha256-{_digest(code)}'" for code in (loader, viewer, graphs))
    policy = "; ".join([*_POLICY, f"script-src {scripts} 'wasm-unsafe-eval'", f"style-src 'nonce-{nonce}'"])
    summaries = "\n".join(summary_html(capture) for capture in captures[:1])
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(_one_line(title))} · irscope</title>",
        '<link rel="icon" href="data:,">',
        f'<style nonce="{nonce}" id="style">{style}</style>',
        "</head>",
        "<body>",
        f'<div id="app"><main class="static">{summaries}</main></div>',
        f"<noscript><p>{_NO_SCRIPT}</p></noscript>",
        _data("index", payload.packed_index()),
        *(_data(f"chunk{number}", chunk) for number, chunk in enumerate(payload.packed_chunks())),
        _data("viewer", deflate(viewer.encode())),
        _code("graphs", graphs),
        f"<script>{loader}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _asset(name: str) -> str:
    return (files("irscope.render") / "report" / "assets" / name).read_text("utf-8")


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def _data(name: str, data: bytes) -> str:
    return f'<script type="{_DATA_TYPE}" id="{name}">{armored(data)}</script>'


def _code(name: str, code: str) -> str:
    """A script that the viewer starts when it needs it: as it is where HTML leaves every character of it alone."""
    lowered = code.lower()
    if "</script" in lowered or "<!--" in lowered or "\r" in code or "\0" in code:
        return _data(name, deflate(code.encode()))
    return f'<script type="text/plain" id="{name}">{code}</script>'


def _one_line(text: str) -> str:
    return " ".join(text.split())
