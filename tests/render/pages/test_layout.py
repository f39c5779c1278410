"""The interactive page, driven in Chromium over its DevTools protocol: hover, choose, step, permalink."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irscope.render.pages.layout import render_html
from tests.memory.test_between import PADDED, REGISTERS, described
from tests.render.layout.test_figure import ALL, BLOCKED, MMA

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]


class Page:
    """One tab: what it asks for, what it prints on the console, and a way to ask it."""

    def __init__(self, url: str) -> None:
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.socket.sendall(head.encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(4096)
        self.rest = self.rest.partition(b"\r\n\r\n")[2]
        self.number = 0
        self.requests: list[str] = []
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": parameters}).encode()
        mask = os.urandom(4)
        size = (
            struct.pack(">BBH", 0x81, 0xFE, len(text))
            if len(text) < 65536
            else struct.pack(">BBQ", 0x81, 0xFF, len(text))
        )
        self.socket.sendall(size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def receive(self) -> dict[str, Any]:
        first, length = struct.unpack(">BB", self.take(2))
        if length == 126:
            (length,) = struct.unpack(">H", self.take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.take(8))
        payload = self.take(length)
        if first & 0x0F != 1:
            return {}
        message = json.loads(payload)
        method, parameters = message.get("method", ""), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif (
            method == "Runtime.exceptionThrown"
            or (method == "Log.entryAdded" and parameters["entry"]["level"] == "error")
            or (method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"))
        ):
            self.problems.append(json.dumps(parameters))
        return message

    def take(self, count: int) -> bytes:
        while len(self.rest) < count:
            self.rest += self.socket.recv(65536)
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def ask(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def goto(self, url: str) -> None:
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 20
        while not self.ask("document.readyState === 'complete' && location.href !== 'about:blank'"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.settle()

    def settle(self) -> None:
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 1)")

    def mouse(self, canvas: str, column: int, row: int, click: bool = False) -> None:
        """Point at a cell of a grid; the axes are read off the canvas, as a person does."""
        x, y = self.ask(
            f"(() => {{ const c = document.getElementById('{canvas}'), b = c.getBoundingClientRect();"
            f"const s = JSON.parse(c.dataset.grid); return [b.left + s.margin + s.cell * ({column} + 0.5),"
            f" b.top + 20 + s.high * ({row} + 0.5)]; }})()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def text(self, identifier: str) -> str:
        return self.ask(f"document.getElementById('{identifier}').textContent")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("chromium")
    switches = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--remote-debugging-port=0",
        "--window-size=1600,1400",
    ]
    process = subprocess.Popen(
        [str(CHROMIUM), *switches, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = folder / "DevToolsActivePort"
        deadline = time.monotonic() + 40
        while not (port_file.exists() and port_file.read_text().strip()):
            assert time.monotonic() < deadline, "Chromium did not start"
            time.sleep(0.1)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            tabs = json.load(answer)
        page = Page(next(item["webSocketDebuggerUrl"] for item in tabs if item["type"] == "page"))
        yield page
        page.socket.close()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def page(tab: Page, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "layouts.html"
    file.write_text(render_html(ALL), "utf-8")
    tab.requests.clear()
    tab.problems.clear()
    tab.address = file.as_uri()  # type: ignore[attr-defined]
    tab.goto(file.as_uri())
    yield tab
    assert tab.problems == []
    assert {url for url in tab.requests if not url.startswith(("about:", "data:"))} <= {file.as_uri()}


def test_pointing_at_an_element_names_its_owner(page: Page) -> None:
    page.mouse("tensor", 9, 5)
    (owner,) = BLOCKED.threads.owners_at(BLOCKED.layout.flatten((5, 9)))
    details = page.text("details")
    assert "element (5, 9)" in details
    assert f"warp {owner.warp}, lane {owner.lane}, register {owner.register}" in details
    assert "lane bit 0: [0, 8]" in details


def test_pointing_at_a_register_names_its_element(page: Page) -> None:
    page.mouse("hardware", 3, 37)
    assert "→ (4, 43)" in page.text("details")
    assert BLOCKED.layout.apply(register=3, lane=5, warp=1) == (4, 43)


def test_a_click_keeps_it_and_the_address_says_so(page: Page) -> None:
    page.mouse("tensor", 9, 5, click=True)
    page.mouse("tensor", 20, 8)
    assert "element (5, 9)" in page.text("details")
    assert page.ask("location.hash") == "#layout=0&color=warp&element=5,9"


def test_an_address_brings_it_back(page: Page) -> None:
    page.goto(page.address + "#layout=1&color=lane&lane=6&warp=2&register=1")
    place = MMA.layout.apply(register=1, lane=6, warp=2)
    assert f"→ ({place[0]}, {place[1]})" in page.text("details")
    assert page.ask("document.getElementById('color').value") == "lane"
    assert page.ask("document.getElementById('layout').value") == "1"


@pytest.mark.parametrize(
    "fragment", ["#layout=99", "#element=1,2,3", "#bit=-4&lane=x", "#color=%3Cscript%3E", "#&&&=="]
)
def test_a_strange_address_does_no_harm(page: Page, fragment: str) -> None:
    page.goto(page.address + fragment)
    assert "#blocked" in page.text("title")


def test_stepping_through_the_bits(page: Page) -> None:
    page.ask("document.getElementById('next').click()")
    page.settle()
    assert page.text("step") == "register bit 0 (value 1) adds [0, 1]"
    page.ask("document.getElementById('previous').click()")
    page.settle()
    assert page.text("step") == "warp bit 1 (value 2) adds [8, 0]"
    assert "bit=12" in page.ask("location.hash")
    assert page.ask("document.querySelectorAll('#matrix .one').length") == sum(
        index.bit_count() for index in BLOCKED.layout.flat_bases()
    )


def test_choosing_a_warp_lists_its_elements(page: Page) -> None:
    page.ask("const f = document.getElementById('pick-warp'); f.value = '3'; f.dispatchEvent(new Event('input'))")
    page.settle()
    assert "2048 elements:" in page.text("details")


def test_other_layouts_and_comparison(page: Page) -> None:
    page.ask("const s = document.getElementById('layout'); s.value = '2'; s.dispatchEvent(new Event('change'))")
    page.settle()
    page.mouse("tensor", 8, 1)
    assert "byte 128, bank 0" in page.text("details")
    page.goto(page.address + "#layout=1&other=0")
    assert "elements have another thread in #blocked 128×64" in page.text("comparison")
    page.goto(page.address + "#layout=3")
    assert "no picture: no one knows" in page.text("facts")
    page.goto(page.address + "#layout=6&lead=2")
    page.mouse("tensor", 0, 0)
    assert "element (2, 0, 0)" in page.text("details")


def test_both_pictures_of_a_comparison_stand_beside_each_other_at_one_scale(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "pair.html"
    file.write_text(render_html([described(REGISTERS[0]), described(PADDED)], compared=True), "utf-8")
    tab.goto(file.as_uri())
    left, right = (
        tab.ask(
            f"(() => {{ const b = document.getElementById('{name}').getBoundingClientRect(); return [b.x, b.y]; }})()"
        )
        for name in ("tensor", "second")
    )
    assert left[1] == right[1]
    assert left[0] < right[0]
    grids = tab.ask("['tensor', 'second'].map((id) => document.getElementById(id).dataset.grid)")
    assert grids[0] == grids[1]
    assert "bank conflicts" in tab.text("comparison")
    assert "framed: what the first lanes of warp 0 access together" in tab.text("comparison")
    tab.mouse("second", 9, 1)
    assert "element (1, 9)" in tab.text("details")
    assert tab.problems == []


def test_padding_holds_nothing(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "padded.html"
    item = described(PADDED)
    file.write_text(render_html([item]), "utf-8")
    tab.goto(file.as_uri())
    assert item.memory is not None
    # [64:+8] of f16: the second line of 64 elements begins with 8 of padding.
    tab.mouse("hardware", 8, 1)
    assert f"byte {item.memory.byte(64)}, bank 4 → (1, 0)" in tab.text("details")
    tab.mouse("hardware", 7, 1)
    assert "Point at a cell" in tab.text("details")
    assert tab.problems == []
