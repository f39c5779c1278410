"""Files are written whole or not at all, and what is not a regular file keeps its kind."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from irscope.store.disk import write_atomically


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_written_to_in_place(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"text")
    reader.join()
    assert read == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device() -> None:
    before = os.stat(os.devnull)
    write_atomically(Path(os.devnull), b"text")
    after = os.stat(os.devnull)
    assert (after.st_mode, after.st_rdev) == (before.st_mode, before.st_rdev)


def test_the_file_behind_a_link_is_written(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"before")
    link.symlink_to(file)
    write_atomically(link, b"after")
    assert link.is_symlink()
    assert file.read_bytes() == b"after"
