"""Fixtures and options that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("irscope")
    group.addoption("--skip-gpu", action="store_true", help="leave out the tests that need a GPU")
    group.addoption("--only-gpu", action="store_true", help="run only the tests that need a GPU")
    group.addoption("--update-goldens", action="store_true", help="write the golden files again")


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
    from importlib.util import find_spec

    return find_spec("triton") is not None


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the user's, and caches of the test's own."""
    for name in list(os.environ):
        if name.startswith(("TRITON_", "MLIR_", "LLVM_", "IRSCOPE_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(home / "triton-cache"))
    monkeypatch.setenv("IRSCOPE_HOME", str(home / "irscope"))
    monkeypatch.setenv("NO_COLOR", "1")


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
