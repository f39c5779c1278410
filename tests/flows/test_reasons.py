"""Promise: the log of a second compile is what a plain compile prints, and changes nothing of what is compiled."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.findings.studied import decisions_of
from irscope.ir.logs.decisions import AsyncDot, LoadPipelining, Partition, ThreadWidth, VectorWidth
from irscope.ir.logs.reasons import read_entries
from irscope.model.capture import Capture
from irscope.record.compile.second import find_log
from irscope.record.triton.reasons import VARIABLES
from tests.marks import newest_but
from tests.record.reasons import CASES, line_of, with_log

pytestmark = pytest.mark.triton

RARE = ("cuda:80", "cuda:100")
# Of the older versions' logs for AMD the readers' tests have what is stored.
TARGETS = newest_but(["cuda:90"], "cuda:90", "hip:gfx942", *RARE, rare=RARE)
_VALUE = re.compile(r"%[\w.$-]+")
# #loc12 = loc("x"(#loc3))
_LOCATION_LINE = re.compile(r"#loc\d* = ")


def _lines(text: str) -> list[str]:
    """The lines of what Triton's parts and MLIR print, without locations and the names of values."""
    kinds = ("debug", "diagnostic", "text")
    lines = [line for entry in read_entries(text) if entry.kind in kinds for line in entry.text.split("\n")]
    return [_VALUE.sub("%", line) for line in lines if not _LOCATION_LINE.match(line)]


@pytest.mark.parametrize("target", TARGETS)
def test_the_log_is_what_a_plain_compile_prints(target: str, tmp_path: Path) -> None:
    capture = with_log("product", target)
    assert capture.log is not None
    signature, constexprs = CASES["product"]
    script = Path(__file__).parents[1] / "record" / "plain_reasons.py"
    command = [sys.executable, str(script), str(tmp_path), "product", target, signature, json.dumps(constexprs)]
    environment = {**os.environ, **VARIABLES, "PYTHONWARNINGS": "ignore"}
    plain = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr[-2000:]
    logged = [line for item in capture.log.passes if item.stage != "cubin" for line in _lines(item.text)]
    printed = _lines(plain.stderr)
    assert len(printed) > 500
    assert logged == printed
    # Neither the log nor the variables change what is made; ptxas may make another cubin of the same PTX.
    assert set(capture.log.differing) <= {"cubin"}
    for stage in ("ttgir", "llir", "ptx", "amdgcn"):
        if stage in capture.stages:
            assert capture.text(stage) == (tmp_path / stage).read_text(), stage


@pytest.mark.parametrize("target", TARGETS)
def test_every_writer_is_heard(target: str) -> None:
    capture = with_log("narrow" if target == "hip:gfx942" else "product", target)
    assert capture.log is not None
    entries = [entry for item in capture.log.passes for entry in read_entries(item.text)]
    # Short names among Triton's are heard only in the right place of the list.
    assert {"ttg-utility", "axis-info", "tritongpu-coalesce"} <= {entry.type for entry in entries}
    kinds = {"debug", "llvm"} | ({"diagnostic", "ptxas"} if target != "hip:gfx942" else set())
    assert kinds <= {entry.kind for entry in entries}


@pytest.mark.parametrize("target", TARGETS)
def test_the_layout_is_the_one_that_was_chosen(target: str) -> None:
    for kernel in ("narrow", "product"):
        capture = with_log(kernel, target)
        (coalesced,) = (snapshot for snapshot in capture.passes() if snapshot.name == "coalesce")
        text = coalesced.text or ""
        lines = text.split("\n")
        chosen = [
            one for one in decisions_of(capture).all if isinstance(one, ThreadWidth) and one.index == coalesced.index
        ]
        assert len(chosen) == (4 if kernel == "narrow" else 3)
        for one in chosen:
            assert one.operation is not None
            places = [(frame.line, frame.column) for frame in one.chain]
            (line,) = (number for number in _operations(text, one.operation.name) if _places(text, number) == places)
            (alias,) = set(re.findall(r"tt\.ptr<f\d+>, (#\w+)>", lines[line - 1]))
            (sizes,) = re.findall(rf"^{alias} = #ttg\.blocked<{{sizePerThread = \[([\d, ]+)\]", text, re.MULTILINE)
            assert int(sizes.split(", ")[one.order[0]]) == one.chosen


def _operations(text: str, name: str) -> list[int]:
    return [number for number, line in enumerate(text.split("\n"), 1) if f"{name} " in line]


def _places(text: str, line: int) -> list[tuple[int, int]]:
    from irscope.ir.locations.stages import read_locations

    return [(frame.line, frame.column) for frame in read_locations(text, "mlir").chain_at(line)]


@pytest.mark.parametrize("target", newest_but(["cuda:90"], "cuda:80", "cuda:90", rare=["cuda:80"]))
def test_what_is_refused_is_not_done(target: str) -> None:
    capture = with_log("product", target)
    decisions = decisions_of(capture).all
    ttgir = capture.text("ttgir")
    refused, taken = (
        [one for one in decisions if isinstance(one, LoadPipelining) and bool(one.reason) is wanted]
        for wanted in (True, False)
    )
    plain, copies = (
        [_places(ttgir, n)[0][0] for n in _operations(ttgir, name)]
        for name in ("tt.load", "async_copy_global_to_local")
    )
    assert {one.chain[0].line for one in refused} == set(plain) == {line_of("a + rows[:, None] * tight")}
    assert {one.chain[0].line for one in taken} == set(copies)


def test_a_dot_that_is_refused_is_waited_for() -> None:
    for kernel in ("product", "used"):
        capture = with_log(kernel, "cuda:90")
        (dot,) = (one for one in decisions_of(capture).all if isinstance(one, AsyncDot))
        loop = capture.text("ttgir").partition("scf.for")[2].partition("scf.yield")[0]
        waits = re.findall(r"warp_group_dot_wait .*?pendings = (\d)", loop)
        assert bool(dot.reason) is ("0" in waits)


@pytest.mark.newest
@pytest.mark.exhaustive
def test_each_partition_is_a_region_with_what_its_flags_say() -> None:
    capture = with_log("specialised", "cuda:100")
    partitions = {one.number: one.flags for one in decisions_of(capture).all if isinstance(one, Partition)}
    regions = re.split(r"\n +(?=default \{|partition\d\()", capture.text("ttgir"))[1:]
    does = {
        "LOAD": "async_tma_copy_global_to_local", "MMA": "tc_gen5_mma ", "STORE": "async_tma_copy_local_to_global",
        "TMEM": "ttng.tmem_load",
    }  # fmt: skip
    assert len(regions) == len(partitions)
    for number, region in enumerate(regions):
        assert {flag for flag, operation in does.items() if operation in region} == set(partitions[number])


def test_what_is_remarked_is_narrow_in_the_assembly() -> None:
    capture = with_log("narrow", "cuda:90")
    remarks = [one for one in decisions_of(capture).all if isinstance(one, VectorWidth)]
    # ld.global.b16 { %rs1 }, [ %rd1 + 0 ];    ld.global.v4.b32 { %r1, … }, [ %rd1 + 0 ];
    loads = re.findall(r"ld\.global\.(\S+) {", capture.text("ptx"))
    assert loads.count("b16") == sum(one.per_thread // one.elements for one in remarks) > 0
    assert len(loads) == loads.count("b16") + loads.count("v4.b32") == 8 + 1 + 8


@pytest.mark.newest
@pytest.mark.parametrize("kernel", ["product", "narrow"])
def test_a_part_of_the_log_says_of_its_passes_what_the_whole_says(kernel: str) -> None:
    whole = with_log(kernel, "cuda:90")
    parts = ("tritongpu-coalesce", "ttg-utility", "triton-loop-pipeline", "triton-wgmma-pipeline")
    log = find_log(replace(whole, log=None), parts=parts, last_stage="ttgir")
    assert not log.differing
    assert {item.stage for item in log.passes} <= {"ttir", "ttgir"}

    def said(capture: Capture) -> list[str]:
        kinds = (AsyncDot, LoadPipelining, ThreadWidth)
        return [f"{one.index} {one.said} {one.chain}" for one in decisions_of(capture).all if isinstance(one, kinds)]

    assert said(replace(whole, log=log)) == said(whole) != []
