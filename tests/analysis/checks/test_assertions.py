"""Each assertion holds of a real capture, and is broken by its twin with one regression planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from irscope.analysis.checks.assertions import (
    Compiled,
    FileChecked,
    Golden,
    MaxRegisters,
    MaxShared,
    MinWidth,
    NoFinding,
    NoSpills,
    Pipelined,
    Uses,
)
from irscope.analysis.checks.subject import Assertion, Breach, Subject
from irscope.analysis.findings.model import KINDS
from irscope.errors import UsageError
from irscope.model.capture import Capture, Failure, Resources, SourceFile
from irscope.store.file import load
from tests.conftest import DATA

ATTENTION = "layouts/flash_attention-cuda-90"
MATMUL = "layouts/matmul-cuda-80"
TILE = "counters/tile"
COLUMN = "counters/column"


@cache
def capture(name: str) -> Capture:
    return load(DATA / f"{name}.irscope")


def breaches(assertion: Assertion, of: Capture) -> tuple[Breach, ...] | None:
    found = assertion.breaches(Subject(of))
    return None if found is None else tuple(found)


def taking(**figures: int) -> Callable[[Capture], Capture]:
    return lambda one: replace(one, resources=replace(one.resources, **figures))


def rewritten(stage: str, pattern: str, by: str) -> Callable[[Capture], Capture]:
    """The twin in which something of a stage reads otherwise."""

    def plant(one: Capture) -> Capture:
        text, count = re.subn(pattern, by, one.text(stage))
        assert count, f"{pattern} is nowhere in the {stage}"
        artifacts = (replace(item, data=text) if item.stage == stage else item for item in one.artifacts)
        return replace(one, artifacts=tuple(artifacts))

    return plant


def failing(kind: str, message: str) -> Callable[[Capture], Capture]:
    return lambda one: replace(one, status="failed", failure=Failure(kind, message, "cubin"))  # type: ignore[arg-type]


SMALL = Resources(registers=32, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=4096)

PLANTED: dict[str, tuple[Assertion, str, Callable[[Capture], Capture], str]] = {
    "registers": (MaxRegisters(64), TILE, taking(registers=65), "uses 65 registers per thread, 64 are allowed"),
    "accumulators": (MaxRegisters(64), TILE, taking(accumulator_registers=33), "uses 65 registers per thread"),
    "unknown registers": (MaxRegisters(64), TILE, lambda one: replace(one, resources=Resources()), "is unknown"),
    "spills": (NoSpills(), TILE, taking(spill_load_bytes=8), "spills 8 bytes of registers per thread"),
    "scalar spills": (NoSpills(), TILE, taking(scalar_spills=2), "spills 2 scalar registers"),
    "shared": (MaxShared(4096), TILE, taking(shared_bytes=4097), "uses 4097 bytes of shared memory per CTA"),
    "fit": (Compiled(), TILE, failing("fit", "out of resource: shared memory"), "it does not fit: out of resource"),
    "compile": (Compiled(), TILE, failing("assembler", "ptxas fatal: no"), "it does not compile: ptxas: ptxas fatal"),
    "wgmma": (Uses("wgmma"), ATTENTION, rewritten("ptx", r"wgmma\.mma_async\S*", "mov.b32"), "has no wgmma in its ptx"),
    "operation": (Uses("tt.reduce"), ATTENTION, rewritten("ttgir", r'"tt\.reduce"', '"tt.scan"'), "has no tt.reduce"),
    "width of copies": (
        MinWidth.parse("tl.load=128"), MATMUL, rewritten("ptx", r"(cp\.async\.\S+ \[.*\], \[.*\]), 0x10", r"\1, 0x4"),
        "ttg.async_copy_global_to_local loads 32 bits a thread at once, at least 128 are asserted",
    ),
    "width of stores": (
        MinWidth.parse("store=128"), MATMUL, rewritten("ptx", r"st\.global\.v4\.b32", "st.global.b32"),
        "tt.store stores 32 bits a thread at once, at least 128 are asserted",
    ),
    "pipelined": (
        Pipelined(), MATMUL,
        # The copies before the loop are not the loop's any more.
        rewritten("ttgir", r"(?m)^(    %\w+ = )ttg\.async_copy_global_to_local\b", r"\1ttg.other_copy"),
        "no ttg.async_copy_global_to_local is issued before the loop",
    ),
    "narrow load": (
        NoFinding(frozenset({"IRS101"})), MATMUL,
        lambda one: one if one.name == "masked" else capture("counters/masked"), "IRS101 narrow-load: 32-bit loads",
    ),
    "golden": (
        Golden("golden.ttgir", "ttgir", capture(TILE).text("ttgir")), TILE,
        rewritten("ttgir", r"arith\.addi", "arith.subi"), "its ttgir is not that of golden.ttgir",
    ),
    "filecheck": (
        FileChecked("a.check", "ttgir", lambda _, text: "" if "tt.load" in text else "error: CHECK"),
        TILE, rewritten("ttgir", r"tt\.load", "tt.other"), "FileCheck rejects its ttgir by a.check",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_regression_breaks_it_and_its_twin_does_not(name: str) -> None:
    assertion, of, plant, said = PLANTED[name]
    sound = capture(of)
    if of == TILE:
        sound = replace(sound, resources=SMALL)
    assert breaches(assertion, sound) == ()
    found = breaches(assertion, plant(sound))
    assert found
    assert said in found[0].text
    assert (found[0].rule, found[0].assertion) == (assertion.rule, str(assertion))


@pytest.mark.parametrize("name", ["width of copies", "width of stores", "pipelined"])
def test_a_breach_has_its_line_of_python_and_the_ir_around(name: str) -> None:
    assertion, of, plant, _ = PLANTED[name]
    one = plant(capture(of))
    (file, line), *_ = (breaches(assertion, one) or ())[0].place
    source = [""] * (line - 1) + ["    x = here()"]
    full = replace(one, sources=(SourceFile(file, "\n".join(source)),))
    found = (breaches(assertion, full) or ())[0]
    assert found.python == "x = here()"
    lines = full.text("ttgir").split("\n")
    assert dict(found.excerpt).keys() == set(range(found.line - 2, found.line + 3))
    assert all(lines[number - 1].startswith(text) and "loc(" not in text for number, text in found.excerpt)
    assert re.search(r"async_copy_global_to_local|tt\.store", dict(found.excerpt)[found.line])


def test_a_cause_is_the_finding_of_the_same_line() -> None:
    """`masked` loads 32 bits a lane because of its mask, which is what IRS101 says of it."""
    (found,) = breaches(MinWidth("tl.load", 128), capture("counters/masked")) or ()
    assert found.finding is not None
    assert found.finding.code == "IRS101"
    assert found.causes[0].startswith("IRS101 narrow-load")


def test_of_a_kernel_without_such_operations_it_says_nothing() -> None:
    assert breaches(Pipelined(), capture(TILE)) is None
    assert breaches(MinWidth.parse("atomic=32"), capture(TILE)) is None
    assert breaches(MinWidth.parse("tl.load@9999=32"), capture(TILE)) is None


def test_only_the_line_that_is_named() -> None:
    lines = {line for one in breaches(MinWidth("load", 256), capture(MATMUL)) or () for _, line in one.place[:1]}
    assert len(lines) == 2
    for line in lines:
        found = breaches(MinWidth.parse(f"load@{line}=256"), capture(MATMUL)) or ()
        assert [one.place[0][1] for one in found] == [line]


def test_what_waits_for_matrix_instructions_is_not_using_them() -> None:
    only_control = rewritten("ptx", r"wgmma\.mma_async\S*", "wgmma.wait_group.sync.aligned")(capture(ATTENTION))
    assert breaches(Uses("wgmma"), only_control)
    assert breaches(Uses("cp.async"), capture(MATMUL)) == ()
    assert breaches(Uses("cp.async.128"), capture(MATMUL)) == ()
    (found,) = breaches(Uses("wgmma"), capture(MATMUL)) or ()
    assert "it has mma" in found.text


def test_golden_ir_survives_renumbering_and_moving_of_lines() -> None:
    text = capture(MATMUL).text("ttgir")
    renamed = re.sub(r"%(\w+)", r"%v_\1", text.replace("#blocked", "#other"))
    assert renamed != text
    golden = Golden("golden.ttgir", "ttgir", renamed)
    assert breaches(golden, capture(MATMUL)) == ()


@pytest.mark.parametrize("codes", [frozenset(KINDS), frozenset({"IRS101"})])
def test_answers_do_not_depend_on_what_was_asked_before(codes: frozenset[str]) -> None:
    """A capture gets SASS, a log and the lines of operations by other commands: the facts stay the same."""
    full = capture("counters/masked")
    assert full.operations
    assert "sass" in full.stages
    bare = replace(full, operations=(), artifacts=tuple(one for one in full.artifacts if one.stage != "sass"))
    assert Subject(full).findings == Subject(bare).findings
    assert [one.width_bits for one in Subject(full).accesses] == [one.width_bits for one in Subject(bare).accesses]
    assert bool(breaches(NoFinding(codes), full)) == bool(breaches(NoFinding(codes), bare))


@pytest.mark.parametrize(
    "wrong",
    [lambda: Uses("wgmmma"), lambda: MinWidth.parse("tl.load"), lambda: MinWidth.parse("tl.lod=128"), lambda: Uses("")],
)
def test_what_cannot_be_asserted_is_refused_with_the_nearest(wrong: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=r"tl\.load|wgmma|Known|family"):
        wrong()
