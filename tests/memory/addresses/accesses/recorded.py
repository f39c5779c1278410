"""The captures of the kernels of `every`, made once in a run of the tests."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from tests.once import made_once


def recorded_accesses(factory: pytest.TempPathFactory, target: str) -> dict[str, Capture]:
    """Each kernel's capture by its name, without what costs are not read from: nvdisasm takes a second for each."""

    def record(folder: Path) -> None:
        script = Path(__file__).with_name("every.py")
        asked = request_for(script, targets=target, snapshots="none", disassemble=False, jobs=1)
        captures = {one.name: one for one in record_request(asked).captures}
        (folder / "captures").write_bytes(pickle.dumps(captures))

    return pickle.loads((made_once(factory, f"accesses-{target}", record) / "captures").read_bytes())
