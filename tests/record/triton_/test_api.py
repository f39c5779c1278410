"""What stands in for Triton's own while a recording has its cache, and where the tools come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="it is Triton's cache, which is not installed")
pytestmark = pytest.mark.triton

from irscope.record.triton import api  # noqa: E402
from irscope.record.triton.sample_kernel import sample_matmul  # noqa: E402
from irscope.record.triton.versions import triton_version  # noqa: E402
from irscope.target import Target  # noqa: E402


def compiled(target: str, block: int) -> tuple[str, str]:
    """The key of a compile in Triton's cache, and its LLVM IR."""
    from triton.compiler import ASTSource

    signature = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp32") | {"size": "i32", "BLOCK": "constexpr"}
    source = ASTSource(sample_matmul, signature, {"BLOCK": block})
    kernel = api.compile_function()(source, target=api.gpu_target(Target.parse(target)))
    return kernel.hash, kernel.asm["llir"]


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_triton_does_not_read_itself_for_the_keys_of_a_private_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime import cache

    def read() -> str:
        raise AssertionError("Triton read all of itself")

    monkeypatch.setattr(cache, "triton_key", read)
    with api.private_cache(tmp_path):
        assert cache.triton_key() == triton_version()
        made = [compiled(target, block) for target, block in (("cuda:90", 16), ("cuda:90", 32), ("hip:gfx942", 16))]
        # What is compiled differs, and so do its keys; what is compiled again is found.
        assert len(set(made)) == 3
        assert compiled("cuda:90", 16) == made[0]
    assert cache.triton_key is read
    assert sum(path.suffix == ".llir" for path in tmp_path.rglob("*")) == 3


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """A file of a mode, which the variable names."""

    def name(mode: int) -> Path:
        path = tmp_path / "disassembler"
        path.touch(mode)
        monkeypatch.setenv("TRITON_NVDISASM_PATH", str(path))
        return path

    return name


@pytest.mark.newest
def test_a_variable_of_tritons_names_another_nvdisasm(
    named: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_NVDISASM_PATH")
    own = api.nvidia_tools()
    assert own["nvdisasm"].parent == own["ptxas"].parent
    assert named(0o755) == api.nvidia_tools()["nvdisasm"]
    assert {name: path for name, path in api.nvidia_tools().items() if name != "nvdisasm"} == {
        name: path for name, path in own.items() if name != "nvdisasm"
    }


@pytest.mark.newest
def test_what_cannot_be_run_is_not_taken(named: Callable[[int], Path]) -> None:
    # As in Triton, its own then.
    path = named(0o644)
    assert api.nvidia_tools()["nvdisasm"] != path
