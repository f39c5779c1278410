"""Opens a Triton kernel in Visual Studio Code itself, saves it, and looks at what the extension shows.

`python -m tests.cli.workbench SERVER_MAIN EXTENSION [PICTURE]`: the `out/server-main.js` of its server,
as `code-server` of npm has one in `lib/vscode`; the `.vsix` that `npm run package` makes in `editors/vscode`; where a
picture of the window goes. It needs node, Chromium, and Playwright for Python. The everyday tests speak to the server
through a client of the protocol, and to the extension through a stand-in for the editor.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

STRIDED = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets * stride, mask=mask)
    tl.store(y + offsets, value * 2, mask=mask)


n = 1 << 24
x = torch.randn(n * 3, device="cuda")
y = torch.empty(n, device="cuda")
scale[(triton.cdiv(n, 256),)](x, y, n, 3, BLOCK=256)
"""
LOAD = 10
"""The line of the load, with `tl.load` from column 13 on."""
_WAIT_MS = 180_000
_SAVES = 6


@contextmanager
def served(server: Path, extension: Path, folder: Path) -> Iterator[str]:
    """The address of a server in whose windows the extension is installed."""
    settings = folder / "data" / "Machine" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"irscope.command": shutil.which("irscope"), "irscope.target": ["cuda:90"]}))
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    own = ["--server-data-dir", str(folder), "--extensions-dir", str(folder / "extensions"), "--telemetry-level", "off"]
    subprocess.run(["node", server, *own, "--install-extension", extension], check=True)
    words = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--accept-server-license-terms"]
    process = subprocess.Popen(["node", server, *own, *words])
    try:
        for _ in range(100):
            with closing(socket.socket()) as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def look(page: Page, address: str, file: Path, picture: str | None) -> None:
    """Save the file in the window of its folder, and expect each thing that the extension is to show."""
    opened = json.dumps([["openFile", f"vscode-remote://{address}{file}"]])
    page.goto(f"http://{address}/?folder={file.parent}&payload={opened}")
    page.get_by_text("Yes, I trust the authors").click(timeout=_WAIT_MS)
    line = page.locator(".view-line").filter(has_text="tl.load")
    line.click(timeout=_WAIT_MS)
    # Until the extension runs, nobody sees a save.
    for _ in range(_SAVES):
        page.keyboard.press("Control+End")
        page.keyboard.type("# saved\n")
        page.keyboard.press("Control+s")
        page.wait_for_timeout(_WAIT_MS / _SAVES)
        if page.locator(".squiggly-warning").count():
            break
    expect(page.locator(".squiggly-warning").first).to_be_attached()
    # A share of the predicted time behind the line.
    expect(line).to_contain_text("µs", timeout=_WAIT_MS)
    print("diagnostic and inlay hint")
    page.keyboard.press("Control+Shift+m")
    problem = page.locator(".markers-panel").get_by_text("IRS103").first
    expect(problem).to_be_visible(timeout=_WAIT_MS)
    page.keyboard.press("Control+1")
    page.keyboard.press("Control+g")
    page.keyboard.type(f"{LOAD}:17\n")
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+i")
    hover = page.locator(".monaco-hover-content").filter(has_text="tt.load")
    expect(hover.first).to_be_visible(timeout=_WAIT_MS)
    print("hover")
    page.keyboard.press("Escape")
    page.keyboard.press("F12")
    expect(page.locator(".peekview-title")).to_contain_text(".ttgir", timeout=_WAIT_MS)
    print("definition in TTGIR")
    if picture is not None:
        page.wait_for_timeout(2000)
        page.screenshot(path=picture)


def main() -> None:
    """Raise AssertionError where the window lacks something."""
    server, extension, *picture = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "work", "scale.py")
        file.parent.mkdir()
        file.write_text(STRIDED)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with served(Path(server), Path(extension), Path(folder, "server")) as address:
            page = browser.new_page(viewport={"width": 1200, "height": 760})
            try:
                look(page, address, file, picture[0] if picture else None)
            except BaseException:
                page.screenshot(path=str(Path(tempfile.gettempdir(), "workbench.png")))
                raise
        browser.close()


if __name__ == "__main__":
    main()
