"""`verify A B --better`: what computes the same in less time is better, and ten cheats are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.better import BetterVerdict
from irscope.api.better import verdict
from irscope.cli.mcp.tools import TOOLS
from irscope.device.measurement import Agreement, Measurement, Ratio
from irscope.machine.launch import RunLimits
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.store.recent import CaptureStore
from tests.cli.json_reference import Reference, check
from tests.cli.product import Run
from tests.once import kept

pytest.importorskip("torch", reason="the script makes tensors of it")
pytestmark = [pytest.mark.triton, pytest.mark.newest]
CHEATS = Path(__file__).parents[1] / "verify" / "cheats.py"


@pytest.fixture(scope="module")
def launches() -> dict[str, Capture]:
    """The captures of the script, by kernel; `fewer launches` are of `honest` with a smaller grid."""

    def record() -> tuple[Capture, ...]:
        request = request_for(CHEATS, targets=("cuda:90",), snapshots="none", disassemble=False, layouts=False)
        return tuple(record_request(request).captures)

    captures = kept(("cheats", CHEATS.read_text("utf-8")), record)
    return {f"{one.name}{'' if one.launch.grid == (32, 1, 1) else ' fewer'}": one for one in captures}


@pytest.fixture(scope="module")
def honest(launches: dict[str, Capture]) -> BetterVerdict:
    """The verdict on what is better."""
    return verdict(launches["scaled"], launches["honest"])


CAUGHT = {
    "first_call": "elements differ",
    "some_programs": "256 elements differ",
    "no_output": "elements differ",
    "in_place": "elements differ",
    "honest fewer": "elements differ",
    "nothing": "elements differ",
    "one_size": "with n = stride = 128 in place of 256",
    "half_precision": "values of bf16",
    "rounded": "elements differ",
    "expected_read": "different tensors: expected_ptr",
}


def test_what_is_better_is_told_with_its_times_and_the_next_call(honest: BetterVerdict) -> None:
    assert (honest.answer, honest.reasons, honest.meaning.programs) == ("better", (), 32)
    assert honest.ratio is not None
    assert honest.ratio < 0.7
    assert honest.over_minimum is not None
    assert honest.over_minimum >= 1
    assert honest.then[0] in ("why", "tune")


@pytest.mark.parametrize("cheat", CAUGHT)
def test_a_cheat_is_changed(launches: dict[str, Capture], cheat: str) -> None:
    found = verdict(launches["scaled"], launches[cheat])
    assert found.answer == "changed"
    assert CAUGHT[cheat] in "; ".join(found.reasons)


def test_what_is_not_executed_is_not_believed(launches: dict[str, Capture], honest: BetterVerdict) -> None:
    before, after = launches["scaled"], launches["honest"]
    # The program that returns the result of its first call launches the kernel as it is.
    assert verdict(before, before).answer == "not better"
    # Of an edited PTX nothing says what it computes; a file may hold the machine code of another kernel.
    artifacts = tuple(one for one in after.artifacts if one.stage in ("ptx", "cubin"))
    for doctored in (
        replace(after, artifacts=artifacts),
        replace(after, environment=replace(after.environment, is_trusted=False)),
    ):
        assert verdict(before, doctored).answer == "not decided"
    # What a GPU shows decides over what is predicted, and over a result.
    slower = Measurement("a GPU", ratio=Ratio(1.2, 1.1, 1.3), agreement=Agreement("identical"))
    assert verdict(before, after, measured=slower).answer == "not better"
    wrong = replace(slower, ratio=Ratio(0.5, 0.4, 0.6), agreement=Agreement("different", differing=9))
    assert verdict(before, after, measured=wrong).answer == "changed"


def test_too_much_work_samples_programs_and_says_so(
    launches: dict[str, Capture], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    whole = verdict(launches["scaled"], launches["honest"], progress=told.append)
    assert whole.answer == "better"
    assert next(line.partition(", with")[0] for line in told) == "honest: the programs of both"
    assert {"honest: whether its accesses are safe", "honest: predicted times"} < {*told}
    monkeypatch.setattr("irscope.api.better._LIMITS", RunLimits(elements=400_000))
    sampled = verdict(launches["scaled"], launches["honest"])
    assert (sampled.answer, sampled.meaning.programs) == ("not decided", 9)
    assert sampled.reasons[-1].startswith("9 of 32 programs were executed: record a smaller launch, or give --all")
    assert verdict(launches["scaled"], launches["honest"], all_programs=True).answer == "better"
    cheat = verdict(launches["scaled"], launches["nothing"])
    assert (cheat.answer, cheat.meaning.programs) == ("changed", 9)


def test_the_command_and_the_tool(launches: dict[str, Capture], irscope: Run, reference: Reference) -> None:
    store = CaptureStore()
    names = {name: one.id for name, one in launches.items() if store.add(one)}
    code, out, _ = irscope("verify", names["scaled"], names["honest"], "--better")
    assert (code, "better: the same result in less time" in out) == (0, True), out
    assert "next: irscope" in out
    code, out, _ = irscope("verify", names["scaled"], names["nothing"], "--better")
    assert (code, "changed: " in out, "next: irscope diff" in out) == (1, True, True)
    (told,) = check(reference, irscope, "verify --better", "verify", names["scaled"], names["honest"], "--better")
    (answer,) = (one for one in TOOLS if one.name == "verdict")
    (row,) = json.loads(answer.answer({"before": names["scaled"], "after": names["honest"]}).text())["verdicts"]
    assert {name: value for name, value in told.items() if value is not None}.items() <= row.items()
    assert row["next"]["arguments"] == {"capture": names["honest"]}
    code, _, err = irscope("verify", names["scaled"], "--better")
    assert (code, "give a second FILE or CAPTURE" in err) == (2, True)
    # Several launches are not one.
    store.complete([store.add(launches[name], is_complete=False) for name in ("scaled", "honest")])
    code, _, err = irscope("verify", "last", names["honest"], "--better")
    assert (code, "compares launch with launch" in err) == (2, True), err
