"""`irscope serve page`: who may read what, asked by a browser's requests and by hostile ones."""

from __future__ import annotations

import http.client
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli.pages import PageServer
from irscope.store.collection import Collection, PackedCollection, pack
from irscope.store.file import load, save
from tests.cli.product import ROOT, Run

DATA = ROOT / "tests" / "data" / "layouts"
MARKUP = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two captures, one of whose names is markup, a damaged one, and a file beside them that is none."""
    made = tmp_path_factory.mktemp("collection")
    shutil.copy(DATA / "matrix_transpose-cuda-90.irscope", made)
    other = load(DATA / "matrix_transpose-cuda-90.irscope")
    kernel = replace(other.launch.kernel, name=MARKUP)
    save(replace(other, launch=replace(other.launch, kernel=kernel)), made / "markup.irscope")
    (made / "damaged.irscope").write_bytes(b"PK\x03\x04" + bytes(99))
    (made / "secret.txt").write_text("secret")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PageServer]:
    """A server of the folder, in a thread."""
    with PageServer(Collection(folder)) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


def asked(
    server: PageServer, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[int, str, dict[str, str]]:
    """(status, page, headers) of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.getheaders())


def sent(server: PageServer, data: bytes) -> bytes:
    """What the server answers to bytes that need be no request."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError:
            # Closed before all of it was sent.
            return b""


def test_the_list_is_searched_and_leads_to_pages(server: PageServer, folder: Path) -> None:
    files = {one: one.stat().st_mtime_ns for one in folder.iterdir()}
    root = f"/{server.token}/"
    status, page, headers = asked(server, root)
    assert (status, "2 captures" in page, "transpose_kernel" in page) == (200, True, True)
    assert "left out:" in page, "of the damaged file"
    assert MARKUP not in page
    assert "&lt;script&gt;" in page
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; img-src data:; style-src 'nonce-")
    assert headers["Referrer-Policy"] == "no-referrer", "the address holds the token"
    for query, count in (("Transpose_Kernel+cuda:90", 1), ("block_m=64", 2), ("block_m=6", 0), ("hip", 0)):
        page = asked(server, f"{root}?q={query}")[1]
        assert (f"{count} of 2 captures" in page, "No capture matches" in page) == (True, not count), query
    ids = [row.facts.id for row in server.rows()]
    both = f"{root}captures?{'&'.join(f'id={one}' for one in ids)}"
    status, page, _ = asked(server, both)
    assert (status, 'id="chunk1"' in page, MARKUP in page) == (200, True, False)
    assert asked(server, both)[1] == page
    assert {one: one.stat().st_mtime_ns for one in folder.iterdir()} == files, "it writes nothing, no index either"
    # A capture that comes, and one that goes.
    shutil.copy(DATA / "matmul-cuda-80.irscope", folder / "new.irscope")
    assert "3 captures" in asked(server, root)[1]
    (new,) = (row.facts.id for row in server.rows() if row.file.endswith("new.irscope"))
    (folder / "new.irscope").unlink()
    assert asked(server, f"{root}captures?id={new}")[0] == 404


def test_a_hostile_client_reads_nothing(server: PageServer, folder: Path) -> None:
    token = server.token
    here = f"127.0.0.1:{server.server_port}"
    assert asked(server, f"/{token}/", headers={"Host": f"localhost:{server.server_port}"})[0] == 200
    refused = [
        # Without the token, or with what is not quite it.
        asked(server, "/"),
        asked(server, f"/{token}"),
        asked(server, f"/{token[:-1]}/"),
        asked(server, f"/{token.swapcase()}/"),
        asked(server, f"/{token}x/"),
        asked(server, f"//{here}/{token}/"),
        # Another site's name that leads here.
        asked(server, f"/{token}/", headers={"Host": "evil.example"}),
        asked(server, f"/{token}/", headers={"Host": f"evil.example:{server.server_port}"}),
        asked(server, f"/{token}/", headers={"Host": f"{here}@evil.example"}),
        asked(server, f"/{token}/", headers={"Host": "127.0.0.1"}),
        # Files.
        *(
            asked(server, f"/{token}/{path}")
            for path in (
                "secret.txt", "../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "captures/../secret.txt",
                "captures/secret.txt", "markup.irscope", "index.json", "captures", "captures?id=secret.txt",
                "captures?id=../../etc/passwd", "captures?id=/etc/passwd", "captures?id=markup", "captures?id=%00",
                f"captures?{'&'.join(['id=a'] * 17)}", "captures?id=" + "9" * 30000,
            )
        ),
        # What would change something.
        *(asked(server, f"/{token}/", method) for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")),
        asked(server, f"/{token}/", "GET", body="q=x"),
    ]  # fmt: skip
    for status, page, headers in refused:
        assert 400 <= status <= 501, page
        assert "secret" not in page.replace("secret.txt", "")
        assert token not in page
        assert "Access-Control-Allow-Origin" not in headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    for data in (
        b"", b"\n", b"GET", b"\xff\xfe\x00" * 99, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        f"GET /{token}/ HTTP/1.0\r\n\r\n".encode(),
        f"GET http://{here}/{token}/ HTTP/1.1\r\nHost: {here}\r\n\r\n".encode(),
        f"GET /{token}/ HTTP/1.1\r\nHost: {here}\r\nHost: evil.example\r\n\r\n".encode(),
        f"GET /{token}/ HTTP/1.1\r\nHost: {here}\r\nTransfer-Encoding: chunked\r\n\r\n".encode(),
        f"GET /{token}/ HTTP/1.1\r\n{'X: y' * 9}\r\n{'A: b' + chr(13) + chr(10)}".encode() * 200,
    ):  # fmt: skip
        assert b"transpose_kernel" not in sent(server, data), data[:60]
    assert sent(server, f"GET /{token}/ HTTP/1.1\r\nHost: {here}\r\n\r\n".encode()).count(b"HTTP/1.0") == 1
    status, page, headers = asked(server, f"/{token}/", "HEAD")
    assert (status, page, int(headers["Content-Length"]) > 0) == (200, "", True)
    assert server.server_address[0] == "127.0.0.1"


def test_a_file_of_captures_is_served_and_misuse_is_named(folder: Path, tmp_path: Path, irscope: Run) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    shutil.copy(folder / "matrix_transpose-cuda-90.irscope", whole)
    pack(Collection(whole), tmp_path / "packed.irscope")
    with PageServer(PackedCollection(tmp_path / "packed.irscope")) as packed:
        assert "1 capture;" in packed.list_page("").decode()
        assert packed.token not in packed.list_page("").decode()
        code, _, err = irscope("serve", "page", str(whole), "--port", str(packed.server_port))
        assert (code, "Leave it out for one that is free" in err) == (1, True)
    for words, message in (
        (("page",), "name a folder of captures"),
        (("mcp", str(whole)), "takes no COLLECTION"),
        (("pages",), "Did you mean 'page'?"),
    ):
        code, _, err = irscope("serve", *words)
        assert (code, message in err) == (2, True), err
    code, _, err = irscope("serve", "page", str(tmp_path / "none"))
    assert (code, "holds no capture" in err) == (1, True)
