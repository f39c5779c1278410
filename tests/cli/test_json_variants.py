"""docs/json.md against what the commands that compile variants print with `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.model.capture import Capture
from irscope.record.gpu import session as gpu_session
from irscope.store.file import save
from irscope.store.shelf import StoredCaptures
from tests.cli.json_reference import OF_A_RECORDING, RICH, Reference, check, unseen
from tests.cli.product import KERNELS, Run
from tests.verify.test_proof import captures as proof_captures
from tests.verify.test_safety import captures


class FakeSession:
    """A GPU that stands in: it runs nothing."""

    def __init__(self, baseline: Capture) -> None:
        self.baseline = baseline

    def check(self, capture: Capture) -> Agreement:
        return RICH

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> tuple[tuple[Timing, Ratio], ...]:
        return tuple((Timing(5, 4, 6, rounds), Ratio(2.0, 1.9, 2.1)) for _ in captures)


def _bits(reference: Reference, irscope: Run, tmp_path: Path) -> None:
    capture = captures("cuda:90")["last_program_sums"]
    (text,) = (one for one in capture.artifacts if one.stage == "ttgir")
    other = replace(text, data=text.text.replace("warpsPerCTA = [4]", "warpsPerCTA = [2]"))
    paths = tmp_path / "one.irscope", tmp_path / "other.irscope"
    save(replace(capture, artifacts=(text,)), paths[0])
    save(replace(capture, artifacts=(other,)), paths[1])
    (bits,) = check(reference, irscope, "verify --bits", "verify", *paths, "--bits", code=1)
    assert bits["orders"][0] != bits["orders"][1]


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_what_is_printed_of_variants(
    reference: Reference, irscope: Run, product: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpu = replace(product, environment=replace(product.environment, gpu="a GPU"))

    @contextmanager
    def device_session(*_: object, **__: object) -> Iterator[FakeSession]:
        yield FakeSession(with_gpu)

    passes = ("--pass", "ttgir:coalesce", "--pass", "ttgir:convert_to_ttgpuir")
    check(reference, irscope, "layout", "layout", "last")
    check(reference, irscope, "source", "source", "last", "--stage", "sass")
    for name, code in (("reversed_read_back", 1), ("tiles_overlap_with_equal_values", 0)):
        save(captures("cuda:90")[name], tmp_path / "verified.irscope")
        check(reference, irscope, "verify", "verify", tmp_path / "verified.irscope", code=code)
        check(reference, irscope, "why", "why", tmp_path / "verified.irscope", "--tries", "0")
    for name, code in (("matmul True", 0), ("unmasked", 1)):
        save(proof_captures()[name], tmp_path / "proved.irscope")
        proof = "verify", tmp_path / "proved.irscope", "--for-all-arguments"
        check(reference, irscope, "verify --for-all-arguments", *proof, code=code)
    _bits(reference, irscope, tmp_path)
    assert set(OF_A_RECORDING) - reference.valued == set()
    check(
        reference,
        irscope,
        "ablate --check",
        "ablate",
        "last",
        "--stage",
        "ttgir",
        "--check",
        f"registers={product.resources.registers}",
    )
    plan = ("-d", "ttgir:convert_to_ttgpuir", "-d", "ttir:cse", "--stage", "ttgir")
    check(reference, irscope, "ablate --check", "ablate", "last", *plan, "--check", "compiles")
    monkeypatch.setattr(gpu_session, "device_session", device_session)
    monkeypatch.setattr("irscope.cli.launches.captures_of", lambda *_, **__: StoredCaptures.of([with_gpu]))
    check(reference, irscope, "ablate", "ablate", KERNELS, *passes, "--jobs", 1)
    assert unseen(reference, "ablate", "ablate --check") == []
