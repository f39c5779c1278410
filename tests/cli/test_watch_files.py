"""Which files are watched, and when a save counts: in place, by rename, in several writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from irscope.api.watching import Watched, program_files


def program(folder: Path) -> Path:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("from . import inner\n")
    (folder / "package" / "inner.py").write_text("import far_away\nfrom .deeper import x\n")
    (folder / "package" / "deeper.py").write_text("x = 1\n")
    (folder / "beside.py").write_text("import kernel\n")
    (folder / "unused.py").write_text("")
    file = folder / "kernel.py"
    file.write_text("import os, beside\ndef f():\n    import package.inner as p\n")
    return file


def names(files: tuple[Path, ...], folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in files}


def test_the_modules_beside_it_that_a_file_imports(tmp_path: Path) -> None:
    found = names(program_files(program(tmp_path)), tmp_path)
    assert found == {"kernel.py", "beside.py", "package/__init__.py", "package/inner.py", "package/deeper.py"}


def test_a_file_that_is_no_python_is_watched_alone(tmp_path: Path) -> None:
    (tmp_path / "a.ttir").write_text("import beside")
    (tmp_path / "broken.py").write_text("import beside\ndef (")
    (tmp_path / "beside.py").write_text("")
    assert names(program_files(tmp_path / "a.ttir"), tmp_path) == {"a.ttir"}
    assert names(program_files(tmp_path / "broken.py"), tmp_path) == {"broken.py"}


def waited(files: tuple[Path, ...], *steps: Callable[[], object]) -> tuple[tuple[Path, ...], int]:
    """What `wait` returns if a step is done in each pause, and how many pauses it took."""
    waiting, count = list(steps), 0

    def sleep(_: float) -> None:
        nonlocal count
        count += 1
        assert count < 20, "it waits for what has happened"
        if waiting:
            waiting.pop(0)()

    watched = Watched(sleep=sleep)
    watched.look(files)
    return watched.wait(), count


def nothing() -> None:
    pass


def test_saves(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("1")
    other.write_text("1")

    def rename() -> None:
        (tmp_path / "new").write_text("33")
        os.replace(tmp_path / "new", file)

    files = (file, other)
    assert waited(files, nothing, lambda: file.write_text("22"))[0] == (file,)
    assert waited(files, rename)[0] == (file,)
    # Vim's way: the old one is moved aside, and for a moment there is none.
    assert waited(files, lambda: file.rename(tmp_path / "a~"), nothing, lambda: file.write_text("4"))[0] == (file,)
    # In several writes, and two files at once: one change, when the last is done.
    found, pauses = waited(
        files, lambda: file.write_text("5"), lambda: file.write_text("55"), lambda: other.write_text("6")
    )
    assert found == (file, other)
    assert pauses == 4


def test_what_was_saved_while_it_was_not_compared(tmp_path: Path) -> None:
    """A save during a recording is recorded next: files keep the stamps that they had before."""
    file = tmp_path / "a.py"
    file.write_text("1")
    watched = Watched(sleep=lambda _: None)
    watched.look([file])
    file.write_text("22")
    watched.look([file, tmp_path / "b.py"])
    assert watched.wait() == (file,)
