"""Progress on a terminal: no line of it wraps."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from irscope.cli.streams import fitting
from tests.cli.product import ROOT

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
pytestmark = pytest.mark.newest

TOLD = "████░░░░ 12 of 28 variants of 2 kernels, 1 failed, about 40 s left\\n" + "kernel" * 9 + " cuda:90: ttgir"
CHILD = f"""
import time
from irscope.cli.streams import progress
with progress() as tell:
    tell("{TOLD}")
    time.sleep(0.3)
"""

# \x1b[2K   \x1b[1A   \x1b[?25l   \x1b[32m
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(columns: int) -> str:
    """What a terminal of so many columns gets, without its control sequences."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment = kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdin=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    data = b""
    # Linux ends the reading with an error, other systems with nothing.
    while chunk := _read(ours):
        data += chunk
    os.close(ours)
    assert process.wait() == 0
    return _ESCAPE.sub("", data.decode())


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize("columns", [80, 40])
def test_no_line_wraps_on_a_terminal(columns: int) -> None:
    text = shown(columns)
    lines = [line for part in text.split("\n") for line in part.split("\r")]
    assert max(map(len, lines)) <= columns
    assert any("12 of 28 variants of 2 kernels" in line for line in lines)
    assert any(line.startswith("kernelkernel") for line in lines)
    assert any("████░░░░ 12" in line for line in lines) is (columns == 80)


def test_what_does_not_fit_is_cut() -> None:
    assert fitting("██░░ 1 of 3\nname", 11) == "██░░ 1 of 3\nname"
    assert fitting("██░░ 1 of 3\nname", 6) == "1 of 3\nname"
    assert fitting("██░░ 1 of 3\nname", 4) == "1 o…\nname"
