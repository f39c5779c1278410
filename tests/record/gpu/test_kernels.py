"""Another binary in the place of a kernel's own, and launches as they are watched: on every version, with no GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from irscope.record.compile.launches import find_kernel, parse_signature
from irscope.record.gpu.kernels import SeenLaunch, launch, pointer_uses_of, watched_launches, with_binary
from irscope.record.process.events import Launched, LaunchedAgain, RecordingEvent
from irscope.record.programs.launch_watch import virtual_launches
from irscope.record.programs.running import import_file, run_file
from irscope.record.triton import api as triton_api
from irscope.target import Target

HERE = Path(__file__).parents[1]

# 3.9 warns once of a default that 3.10 will change.
pytestmark = [pytest.mark.triton, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION is unset")]


@pytest.fixture(scope="module", autouse=True)
def process() -> Iterator[None]:
    """What a program's process is given for good, this one only for the tests here."""
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    yield
    sys.argv, sys.path[:], sys.modules["__main__"] = before


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = HERE / "kernels" / "no_torch.py"
    function = find_kernel(import_file(path), "axpy", path)
    signature, constants, attributes = parse_signature(function, "*fp32:16, *fp32:16, i32:16, fp32", {"BLOCK": "256"})
    triton_api.silence_known_noise()
    with (
        triton_api.private_cache(tmp_path_factory.mktemp("cache")),
        virtual_launches(Target.parse("cuda:90"), "first", lambda *_, **__: None),
    ):
        src = triton_api.ast_source(function, signature, constants, attributes)
        return triton_api.compile_function()(src, target=triton_api.gpu_target(Target.parse("cuda:90")))


def test_a_kernel_with_another_binary(kernel: Any) -> None:
    own = kernel.kernel
    meta = {"shared": 4096, "num_warps": 8, "tensordesc_meta": ({"block_size": (64, 64)},), "triton_version": "none"}
    made = with_binary(kernel, b"another", meta)
    assert (made.kernel, made.metadata.shared, made.metadata.num_warps) == (b"another", 4096, 8)
    assert made.packed_metadata[0] == 8
    assert made.packed_metadata[2] == 4096
    # As Triton's cache gives them.
    assert made.metadata.tensordesc_meta == [{"block_size": [64, 64]}]
    assert made.metadata.triton_version == kernel.metadata.triton_version
    assert made.metadata.target == kernel.metadata.target
    assert made.name == kernel.name
    assert (made.module, made.function, made._run) == (None, None, None)
    assert kernel.kernel == own
    assert kernel.metadata.shared != 4096
    assert made.src is kernel.src


def test_what_the_launcher_is_given(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of a launcher's arguments, as the launcher of every version takes them."""
    monkeypatch.setattr(triton_api, "current_stream", lambda: 7)
    made = with_binary(kernel, b"another", {})
    calls: list[tuple[Any, ...]] = []
    made.module, made.function, made._run = object(), 99, lambda *args: calls.append(args)
    launch(made, (3, 2, 1), ["x", "y", 5])
    assert calls == [(3, 2, 1, 7, 99, made.packed_metadata, None, None, None, "x", "y", 5)]
    made.module = None


def test_launches_are_seen_with_their_arguments_and_let_through(tmp_path: Path) -> None:
    seen: list[SeenLaunch] = []
    made: list[RecordingEvent] = []

    def on_launch(one: SeenLaunch, proceed: Callable[[], Any]) -> Any:
        seen.append(one)
        return proceed()

    before = triton_api.compiled_kernel_class().run
    with (
        triton_api.private_cache(tmp_path),
        virtual_launches(Target.parse("cuda:90"), "first", made.append),
        watched_launches(on_launch),
    ):
        run_file(HERE / "device" / "two_launches.py", ())
    assert triton_api.compiled_kernel_class().run is before
    assert [one.grid for one in seen] == [(3, 2, 1), (5, 2, 1)]
    launched = [event for event in made if isinstance(event, Launched)]
    assert launched == [event for event in made if not isinstance(event, LaunchedAgain)]
    for one, event in zip(seen, launched, strict=True):
        assert one.grid == event.grid
        assert len(one.names) == len(one.arguments) == len(one.signature)
        assert one.has_arguments
        assert one.names == ["x_ptr", "out_ptr", "n", "BLOCK"]
        assert one.arguments[2:] == (1000, 256)
        assert [(use.read, use.written) for use in pointer_uses_of(one.kernel).parameters] == [
            (True, False),
            (False, True),
        ]
