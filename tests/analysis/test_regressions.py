"""Which changes of facts are for the worse."""

from __future__ import annotations

import pytest

from irscope.analysis.regressions import FACTS, OF_ONE_SOURCE, Tolerance, Value, changed_facts, facts_of
from irscope.model.capture import Artifact, Capture, Environment, Failure, Kernel, Launch, Resources, Target

WORSE: dict[str, tuple[Value, Value]] = {
    "failure": ("", "failed in ptxas"),
    "result": ("", "differs"),
    "meaning": ("", "changed"),
    "time_us": (10.0, 11.0),
    "spilled_bytes": (0, 8),
    "matrix_unit": ("wgmma", "mma"),
    "load_bits": (128.0, 32.0),
    "store_bits": (128.0, 64.0),
    "pipeline_buffers": (3, 1),
    "findings": (("IRS101",), ("IRS101", "IRS501")),
    "occupancy_percent": (50.0, 25.0),
    "shared_bytes": (1024, 2048),
    "tensor_memory_columns": (64, 128),
    "registers": (100, 128),
    "stack_bytes": (0, 16),
    "instruction_count": (500, 600),
}


def capture(ptx: str, **changes: object) -> Capture:
    launch = Launch(Kernel("k", "k.py", 1), options=(("num_warps", 4),))
    artifacts = (Artifact("ttgir", "%0 = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, #s>"), Artifact("ptx", ptx))
    made = Capture(launch, Target("cuda", "90", 32), artifacts=artifacts, environment=Environment(triton_version="1"))
    return made.with_(**{"resources": Resources(registers=32, spill_store_bytes=4, spill_load_bytes=4), **changes})


def test_every_fact_has_a_case() -> None:
    assert {*WORSE, *OF_ONE_SOURCE} == FACTS.keys()


@pytest.mark.parametrize("name", WORSE)
def test_one_way_is_worse_and_the_other_better(name: str) -> None:
    worse, better = WORSE[name]
    known: dict[str, Value] = {"failure": "", "registers": 64} if name != "registers" else {"failure": ""}
    (there,) = changed_facts({**known, name: worse}, {**known, name: better})
    (back,) = changed_facts({**known, name: better}, {**known, name: worse})
    assert (there.verdict, back.verdict) == ("worse", "better")
    assert there.fact.title in there.text


def test_what_is_within_the_tolerance_is_neither() -> None:
    before, after = {"failure": "", "registers": 100}, {"failure": "", "registers": 104}
    assert changed_facts(before, after)[0].verdict == "other"
    assert changed_facts(before, after, {"registers": Tolerance(0, False)})[0].verdict == "worse"


def test_what_got_worse_comes_first() -> None:
    before: dict[str, Value] = {"failure": "", "registers": 100, "spilled_bytes": 0, "shared_bytes": 2048}
    after: dict[str, Value] = {"failure": "", "registers": 128, "spilled_bytes": 64, "shared_bytes": 1024}
    assert [one.name for one in changed_facts(before, after)] == ["spilled_bytes", "registers", "shared_bytes"]


def test_facts_of_assembly() -> None:
    lines = [
        "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];",
        "ld.global.b32 %r5, [%rd2];",
        "st.global.b32 [%rd1], %r1;",
    ]
    facts = facts_of(capture("\n".join([".visible .entry k()", "{", *lines, "}"])), ["IRS501", "IRS501"])
    assert facts["load_bits"] == (128 + 32) / 2
    assert facts["store_bits"] == 32.0
    assert facts["pipeline_buffers"] == 3
    assert facts["spilled_bytes"] == 8
    assert facts["findings"] == ("IRS501",)
    assert facts["count.ld.global.128"] == 1


def test_of_a_compile_that_fails_the_failure_alone_is_told() -> None:
    failed = capture("", status="failed", failure=Failure("pass", "no", "ttgir", "ttgir:coalesce#1"))
    (change,) = changed_facts(facts_of(capture("\tret;")), facts_of(failed))
    assert change.text == "fails compiles → failed in ttgir:coalesce#1"
    assert change.verdict == "worse"
