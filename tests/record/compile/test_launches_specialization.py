"""What a backend of Triton derives from arguments, without torch where the program has none."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from types import ModuleType

import pytest

from irscope.record.compile.launches import spare_torch
from irscope.record.triton.api import backend_classes
from irscope.record.triton.patches import Patches

pytestmark = pytest.mark.triton


class NoTorch(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        assert name != "torch", "torch is imported"


class Sized:
    """A tensor that knows the bytes of its storage, as torch's do."""

    def untyped_storage(self) -> Sized:
        return self

    def size(self) -> int:
        return 64


def test_torch_is_imported_by_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    (amd,) = [one for one in backend_classes() if hasattr(one, "is_within_2gb")]
    before = dict(vars(amd))
    if hasattr(amd, "_torch_available"):
        monkeypatch.setattr(amd, "_torch_available", None)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoTorch(), *sys.meta_path])
    with Patches() as patches:
        spare_torch(patches)
        assert not amd.is_within_2gb(Sized())
        # As soon as the program has imported it, its tensors are known.
        torch = ModuleType("torch")
        vars(torch)["Tensor"] = Sized
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert amd.is_within_2gb(Sized())
    monkeypatch.undo()
    assert dict(vars(amd)) == before
