"""`irscope serve page`: the captures of a collection as pages, for browsers of this machine alone; nothing is written.

Who may read is decided before a path is looked at: the address is the loopback's, the name in the request is that of
this server, and the path begins with a random token. A path names captures by their ids, and never a file.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from irscope import __version__
from irscope.cli.ls import collection_rows, rows_json
from irscope.errors import DAMAGE, CaptureNotFound, IrscopeError
from irscope.model.telling import telling_columns
from irscope.store.collection import Collection, PackedCollection
from irscope.store.shelf import StoredRow

_HOST = "127.0.0.1"
_MOST_KEPT = 4
"""Pages of captures in memory."""
_MOST_COMPARED = 8
_MOST_ROWS = 500
"""Of one list."""
_SLOW_S = 20.0
"""After which a client that sends no whole request is left."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=utf-8",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_STYLE = """
main.static { max-width: 110em; margin: 0 auto }
form { display: flex; gap: .6em; margin: .9em 0; align-items: baseline }
input[type=search] { flex: 1; max-width: 40em; padding: .3em .6em }
table { width: 100% }
tbody tr:hover { background: var(--raised) }
td, th { padding: .25em .9em .25em 0; border-bottom: 1px solid var(--line) }
td a { color: var(--accent); font-family: var(--mono) }
.failed { color: var(--bad) }
"""


class _ReadOnly(Collection):
    """A folder whose index is kept in memory, and not written."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._rows: tuple[StoredRow, ...] | None = None

    def _read_index(self) -> tuple[StoredRow, ...]:
        return super()._read_index() if self._rows is None else self._rows

    def _write_index(self, rows: Iterable[StoredRow]) -> None:
        self._rows = tuple(rows)


class PageServer(ThreadingHTTPServer):
    """Serves one collection until it is shut down; `url` has the token."""

    daemon_threads = True

    def __init__(self, collection: Collection | PackedCollection, port: int = 0) -> None:
        self.collection = _ReadOnly(collection.path) if isinstance(collection, Collection) else collection
        self.token = secrets.token_urlsafe(24)
        self._pages: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._one_at_a_time = threading.Lock()
        super().__init__((_HOST, port), _Handler)

    @property
    def names(self) -> tuple[str, str]:
        """What a request may call this server."""
        return f"{_HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.names[0]}/{self.token}/"

    def rows(self) -> list[StoredRow]:
        """The captures that are there now, the newest first."""
        return collection_rows(self.collection, self.collection.entries())

    def list_page(self, query: str) -> bytes:
        """The captures that hold every word of a query."""
        with self._one_at_a_time:
            rows, unreadable = self.rows(), self.collection.unreadable
        return _list_page(self.collection.path.name, _matching(rows, query), len(rows), query, unreadable)

    def report(self, ids: Sequence[str]) -> bytes:
        """The page of some captures, as `irscope report` writes it; raises CaptureNotFound, and what reading raises."""
        from irscope.render.report.page import render_report

        with self._one_at_a_time:
            rows = {row.facts.id: row for row in self.collection.entries()}
            if not ids or len(ids) > _MOST_COMPARED or any(one not in rows for one in ids):
                raise CaptureNotFound("no such capture")
            wanted = [rows[one] for one in dict.fromkeys(ids)]
            key = tuple((row.file, row.modified_ns, row.bytes) for row in wanted)
            if key not in self._pages:
                page = render_report(self.collection.captures(wanted)).encode("utf-8", "surrogateescape")
                self._pages[key] = page
                while len(self._pages) > _MOST_KEPT:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(key)
            return self._pages[key]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    """One connection: a request is refused before it is read further, or answered with one page."""

    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "irscope"
    sys_version = ""
    timeout = _SLOW_S

    def do_GET(self) -> None:
        self._answered()

    do_HEAD = do_GET

    def _answered(self) -> None:
        if self.headers.get_all("Host", []) not in ([one] for one in self.server.names):
            # Another site's name that leads here (DNS rebinding) is another name.
            return self._send(HTTPStatus.FORBIDDEN)
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            return self._send(HTTPStatus.BAD_REQUEST)
        token, slash, page = self.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode("latin-1", "replace"), self.server.token.encode()):
            return self._send(HTTPStatus.NOT_FOUND)
        try:
            asked = urlsplit(f"/{page}")
            values = parse_qs(asked.query, max_num_fields=2 * _MOST_COMPARED)
            if asked.path == "/":
                return self._send(HTTPStatus.OK, self.server.list_page(" ".join(values.get("q", ()))[:400]))
            if asked.path == "/captures":
                return self._send(HTTPStatus.OK, self.server.report(values.get("id", ())), _REPORT_POLICY)
        except CaptureNotFound:
            return self._send(HTTPStatus.NOT_FOUND)
        except ValueError:
            return self._send(HTTPStatus.BAD_REQUEST)
        except (IrscopeError, OSError, *DAMAGE) as error:
            # Of one damaged file: the others are served.
            return self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _message(str(error)))
        return self._send(HTTPStatus.NOT_FOUND)

    def _send(self, status: HTTPStatus, page: bytes | None = None, policy: str = "") -> None:
        body = page if page is not None else _message(status.phrase)
        self.close_connection = True
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", policy or _POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request, or of another method, as everything else is refused."""
        self.headers = getattr(self, "headers", None) or {}  # type: ignore[assignment]
        self.command = getattr(self, "command", None) or "GET"
        self._send(HTTPStatus(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Keep paths, which hold the token, out of standard error."""


def _style() -> str:
    return (files("irscope.render") / "report" / "assets" / "viewer.css").read_text("utf-8") + _STYLE


_NONCE = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()[:18]).decode()
_POLICY = (
    f"default-src 'none'; img-src data:; style-src 'nonce-{_NONCE}'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_REPORT_POLICY = "frame-ancestors 'none'; connect-src 'none'; form-action 'none'"
"""The page has a policy of its own too, which allows its scripts by their hashes."""


def _matching(rows: Sequence[StoredRow], query: str) -> list[StoredRow]:
    """The rows whose facts hold every word; `num_warps=8` is an option or a constant with this value."""
    words = query.casefold().split()

    def text(row: StoredRow) -> str:
        one = row.facts
        parts = [f"{name}={value}" for name, value in one.parts.items()]
        origin = [value for _, value in one.origin]
        words = (one.id, one.name, one.file, str(one.target), one.plan, one.status, one.failure, one.triton_version)
        return " ".join((*words, *parts, *origin, *one.graphs, one.date)).casefold() + " "

    def holds(row: StoredRow) -> bool:
        facts = text(row)
        # A value is whole: num_warps=1 is not 16.
        return all((f"{word} " if "=" in word else word) in facts for word in words)

    return [row for row in rows if holds(row)]


def _list_page(name: str, rows: Sequence[StoredRow], total: int, query: str, unreadable: Sequence[str]) -> bytes:
    telling, cells = telling_columns([((row.facts.name, row.facts.target), row.facts.parts) for row in rows])
    heads = ["", "id", "kernel", "target", *telling, "status", "plan", "Triton", "recorded (UTC)", "file"]
    shown = zip(rows[:_MOST_ROWS], rows_json(rows[:_MOST_ROWS]), cells, strict=False)
    lines = [f"<tr>{''.join(_cells(row, plain, own))}</tr>" for row, plain, own in shown]
    count = f"{len(rows)} of {total} captures" if query else f"{total} capture{'s'[: total != 1]}"
    more = f", the newest {_MOST_ROWS} shown" if len(rows) > _MOST_ROWS else ""
    table = f"<table><thead><tr>{''.join(f'<th>{escape(one)}</th>' for one in heads)}</tr></thead>"
    table += f"<tbody>{''.join(lines)}</tbody></table>"
    if not rows:
        table = (
            f"<p>No capture matches {escape(repr(query))}. Names, files, targets, options, constants, plans, states "
            'and dates are searched, and no IR. <a href="./">All captures</a></p>'
        )
    body = [
        f"<h1>{escape(name)}</h1>",
        '<form method="get" action="./"><input type="search" name="q" aria-label="Search" autofocus '
        f'placeholder="kernel, target, file, num_warps=8, failed …" value="{escape(query)}">'
        '<button type="submit">Search</button></form>',
        '<form method="get" action="captures" id="compare"><button type="submit">Open the chosen captures together'
        f'</button><span class="faint">{escape(count + more)}; up to {_MOST_COMPARED} in one page, which compares them'
        "</span></form>",
        table,
        *(f'<p class="failed">left out: {escape(one)}</p>' for one in unreadable),
    ]
    return _page(f"{name} · irscope", body)


def _cells(row: StoredRow, plain: dict[str, Any], own: Sequence[Any]) -> Iterator[str]:
    one = row.facts
    link = escape(f"captures?{urlencode({'id': one.id})}")
    state = f"{one.status} ({one.failure})" if one.failure else one.status
    yield f'<td><input type="checkbox" name="id" form="compare" value="{one.id}" aria-label="{escape(one.name)}"></td>'
    yield f'<td><a href="{link}">{one.id[:8]}</a></td>'
    where = f"{one.file.rpartition('/')[2]}:{one.line}"
    words = (one.name, one.target, *own, state, one.plan, one.triton_version, one.date[:16].replace("T", " "), where)
    for word in words:
        kind = ' class="failed"' if word is state and one.failure else ""
        title = f' title="{escape(plain["kernel_file"])}"' if word is where else ""
        yield f"<td{kind}{title}>{escape(str(word))}</td>"


def _message(text: str) -> bytes:
    return _page("irscope", [f"<h1>{escape(text)}</h1>"])


def _page(title: str, body: Iterable[str]) -> bytes:
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<title>{escape(title)}</title><link rel="icon" href="data:,">',
        f'<style nonce="{_NONCE}">{_style()}</style></head>',
        f'<body><main class="static">{"".join(body)}<p class="faint">irscope {__version__}</p></main></body></html>',
    ]
    return "\n".join(parts).encode("utf-8", "replace")
