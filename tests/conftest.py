"""Fixtures and options that all tests share."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from zlib import crc32

import pytest

from tests.once import begin_run

DATA = Path(__file__).parent / "data"

# The workers are as many as there are cores: threads of BLAS would wait for each other, and computing.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# A run of tests/gpu alone does without Hypothesis.
with contextlib.suppress(ImportError):
    from hypothesis import settings

    # The same few examples; `make fuzz` searches.
    settings.register_profile("same every time", max_examples=30, derandomize=True, deadline=None, database=None)
    settings.register_profile("search", max_examples=2000, deadline=None, print_blob=True)
    settings.load_profile("same every time")

_KEPT_LISTINGS = """#!/bin/sh
# nvdisasm takes 0.4 s of a core for the smallest binary: of one binary it is asked once in a run of the tests.
mode= file=
for word; do mode="$mode$file" file="$word"; done
[ -f "$file" ] || exec "{tool}" "$@"
digest=$(sha256sum < "$file")
kept="{folder}/${{digest%% *}}$mode"
if [ ! -f "$kept" ]; then
  "{tool}" "$@" > "$kept.$$" || exit
  mv "$kept.$$" "$kept"
fi
exec cat "$kept"
"""
_DIGESTS = "from irscope.record.triton.identity import compiler_fingerprint; compiler_fingerprint()"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("irscope")
    group.addoption("--skip-gpu", action="store_true", help="leave out the tests that need a GPU")
    group.addoption("--only-gpu", action="store_true", help="run only the tests that need a GPU")
    group.addoption("--half", type=int, choices=(1, 2), help="every second test, or the others")
    group.addoption("--update-goldens", action="store_true", help="write the golden files again")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m "triton and …"` reads no file without such a test: importing them all takes seconds of each worker."""
    if config.option.markexpr.startswith("triton and ") and collection_path.name.startswith("test_"):
        return "pytest.mark.triton" not in collection_path.read_text("utf-8") or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: looking for garbage among it would take seconds of each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if config.getoption("--only-gpu"):
        others = [item for item in items if item not in gpu]
        config.hook.pytest_deselected(items=others)
        items[:] = gpu
    if config.getoption("--skip-gpu"):
        config.hook.pytest_deselected(items=gpu)
        items[:] = [item for item in items if item not in gpu]
    elif gpu and not _has_gpu():
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="this machine has no GPU that torch can use"))
    if "exhaustive" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("exhaustive")])
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    if half := config.getoption("--half"):
        halves: tuple[list[pytest.Item], list[pytest.Item]] = [], []
        for item in items:
            halves[crc32(item.nodeid.encode()) % 2].append(item)
        items[:] = halves[half - 1]
        config.hook.pytest_deselected(items=halves[2 - half])
    # The longest begin first, so that no worker is left with one of them at the end.
    items.sort(key=lambda item: "test_every_command_runs" not in item.name)
    if any(item.get_closest_marker("triton") for item in items) and not _has_triton():
        for item in items:
            if item.get_closest_marker("triton"):
                item.add_marker(pytest.mark.skip(reason="Triton is not installed: pip install triton"))


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def _has_triton() -> bool:
    return find_spec("triton") is not None


@pytest.fixture(scope="session", autouse=True)
def clean_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No setting of the user's, also for what is made once for several tests; listings of nvdisasm are kept."""
    home = tmp_path_factory.mktemp("home")
    begin_run(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        _set_clean(patch, home)
        # Here, not in the tests that call irscope by its name: recordings are forks as long as this is the same.
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        if _has_triton():
            patch.setenv("TRITON_NVDISASM_PATH", str(_nvdisasm(tmp_path_factory)))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_recordings(clean_session: None) -> Iterator[None]:
    """The recordings of a run of the tests are forks of a process that has imported Triton, or Triton and torch."""
    from irscope.record.process.child import warm_children

    with warm_children():
        yield


@pytest.fixture
def new_processes() -> Iterator[None]:
    """Recordings in new processes, for tests of what these are, and what they import."""
    from tests.record.cold import no_block

    with no_block():
        yield


@pytest.fixture(scope="session")
def digests(clean_session: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file in which the digests of the installed Triton's files are stored: reading them takes a while."""
    home = tmp_path_factory.mktemp("digests")
    environment = os.environ | {"IRSCOPE_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", _DIGESTS], env=environment, check=True)
    return home / "contents.json"


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet: pytest's own numbers take milliseconds as soon as there are thousands."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> None:
    """No setting of the user's, and caches of the test's own."""
    home = next(homes)
    home.mkdir()
    _set_clean(monkeypatch, home)
    if request.node.get_closest_marker("triton"):
        (home / "irscope").mkdir()
        os.link(request.getfixturevalue("digests"), home / "irscope" / "contents.json")


def _set_clean(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("TRITON_", "MLIR_", "LLVM_", "IRSCOPE_")) and name != "TRITON_NVDISASM_PATH":
            patch.delenv(name)
    patch.setenv("TRITON_CACHE_DIR", str(home / "triton-cache"))
    patch.setenv("IRSCOPE_HOME", str(home / "irscope"))
    patch.setenv("NO_COLOR", "1")


def _nvdisasm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints what the installed Triton's nvdisasm does, with one folder for all workers of this run."""
    from irscope.record.triton.api import package_folder

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "nvdisasm"
    folder.mkdir(exist_ok=True)
    path = tmp_path_factory.mktemp("tools") / "nvdisasm"
    tool = package_folder() / "backends" / "nvidia" / "bin" / "nvdisasm"
    path.write_text(_KEPT_LISTINGS.format(tool=tool, folder=folder))
    path.chmod(0o755)
    return path


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], None]]:
    """`golden(name, text)`: the text equals the file of that name in tests/data/golden, or becomes it."""
    update = request.config.getoption("--update-goldens")

    def check(name: str, text: str) -> None:
        path = DATA / "golden" / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.is_file(), f"no golden file {name}: make it with pytest --update-goldens"
        assert text == path.read_text("utf-8"), f"{name} differs; if it should, pytest --update-goldens writes it again"

    return check
