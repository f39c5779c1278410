"""`irscope why`: what it shows of a kernel with a planted cause."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from irscope.api.timing import read_grid, read_sizes, with_launch
from irscope.errors import UsageError
from irscope.model.capture import Capture, Kernel, Launch
from irscope.record.compile import second
from irscope.record.variants import pool
from irscope.target import Target
from tests.analysis.findings.cases import PLANTED, marked_lines
from tests.cli.product import Run

pytestmark = [pytest.mark.triton, pytest.mark.newest]
ROW = (
    f"{PLANTED}::row", "--signature", "*fp16:16, *fp16:16, i32", "--constexpr", "BLOCK=1024", "--target", "cuda:90",
)  # fmt: skip


def test_a_finding_its_filters_and_what_was_tried(irscope: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = irscope("why", *ROW, "--json")
    assert code == 0, err
    (answer,) = json.loads(out)
    (found,) = answer["findings"]
    (line,) = marked_lines("row", "IRS101")
    assert (found["code"], found["place"][0]["line"], found["operation"]) == ("IRS101", line, "tt.load")
    assert {"assembly", "log", "evaluated", "launch"} == {cause["evidence"] for cause in found["causes"]}
    (suggestion,) = found["suggestions"]
    assert suggestion["outcome"] == "better"
    assert suggestion["effects"][0] == "16 bits per thread → 128 bits per thread"

    # What was compiled is not compiled again.
    monkeypatch.setattr(pool, "VariantPool", None)
    assert irscope("why", "last", "--json")[:2] == (0, out)
    # From here on nothing is compiled.
    monkeypatch.setattr(second, "find_log", None)

    def codes(*options: object) -> list[str]:
        code, out, err = irscope("why", "last", "--tries", "0", "--json", *options)
        assert code == 0, err
        return [one["code"] for one in json.loads(out)[0]["findings"]]

    assert codes() == ["IRS101"]
    assert codes("--line", line, "--op", "load", "--value", found["values"][0]) == ["IRS101"]
    assert codes("--line", line + 1) == []
    assert codes("--op", "store") == []
    for absent, told in (
        (("--value", "%nothing"), "no value of the TTGIR is named so"),
        (("--line", 999999), f", {line}, "),
        (("--op", "laod"), "no MLIR stage has such an operation. Did you mean 'load'?"),
        (("--apply-to", PLANTED.parent / "fixed.py"), "--tries 0 compiles none"),
    ):
        code, out, err = irscope("why", "last", "--tries", "0", *absent)
        assert (code, out, told in err) == (2, "", True), err
    assert codes("--ignore", "narrow-load") == []
    assert codes("--size", "stride=65536", "--grid", "40000") == ["IRS701", "IRS101"]
    assert codes() == ["IRS101"]
    told = irscope("why", "last", "--tries", "0", "-v")[1]
    assert "not tried: " in told
    # The lines that a finding names are those of the text that it says, not of the one without locations.
    (command,) = re.findall(r"those of: irscope (show \w+ --stage) STAGE --loc", told)
    ttgir = irscope(*command.split(), "ttgir", "--loc")[1].split("\n")
    assert f"{found['values'][0]} = tt.load" in ttgir[found["ttgir_line"] - 1]
    assert f"line {found['ttgir_line']} of ttgir" in told
    short = irscope("why", "last", "--tries", "0")[1].splitlines()
    assert short[0].endswith(
        "not predicted: it was compiled, not launched: --grid X,Y,Z and --size NAME=N state a launch"
    )
    assert f"planted.py:{line}" in short[1]
    assert irscope("why", "last", "--tries", "0", "--op", "tt.store")[1].splitlines()[1:] == ["    no finding"]
    # With a launch it has a time.
    launch = ("--size", "stride=1001", "--grid", "8192", "--tries", "0")
    (answer,) = json.loads(irscope("why", "last", *launch, "--json")[1])
    assert answer["time"]["predicted_s"] > answer["time"]["minimum_s"] > 0
    assert [one["seconds"] is not None for one in answer["findings"]] == [True]


SCALED = """
import torch, triton
import triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at <= n - 1
    tl.store(y + at, tl.load(x + at, here) * 2, here)

x = torch.zeros(1 << 24, device="cuda", dtype=torch.float16)
scale[(1 << 14,)](x, torch.empty_like(x), 1 << 24, BLOCK=1024)
"""


def test_fixes_that_are_edits_of_the_file_are_a_patch_and_written_to_a_copy(irscope: Run, tmp_path: Path) -> None:
    script, copy = tmp_path / "scaled.py", tmp_path / "copy.py"
    script.write_text(SCALED)
    code, out, err = irscope("why", script, "--json", "--apply-to", copy, "--target", "cuda:90")
    assert code == 0, err
    (answer,) = json.loads(out)
    assert "-    here = at <= n - 1\n+    here = at < n\n" in answer["patch"]
    assert copy.read_text() == SCALED.replace("<= n - 1", "< n")
    before, after = re.findall(r"predicted (\S+) µs, before (\S+) µs", err)[0][::-1]
    assert float(after) < float(before)
    fixes = [one for finding in answer["findings"] for one in finding["suggestions"] if one["outcome"] == "better"]
    assert fixes
    assert all("same result" in one["effects"] for one in fixes)
    code, _, err = irscope("why", "last", "--apply-to", script)
    assert (code, script.read_text()) == (2, SCALED), err


@pytest.mark.newest
def test_another_layout_is_tried_in_the_ir_after_the_pass_that_chose_it(irscope: Run) -> None:
    kernel = f"{PLANTED.parent / 'families' / 'constants.py'}::unpadded"
    how = ("--signature", "*fp32:16, *fp32:16, i32", "--constexpr", "BLOCK=1024", "--target", "cuda:90")
    code, out, err = irscope("why", kernel, *how, "--op", "convert_layout", "--json")
    assert code == 0, err
    ((found,),) = (one["findings"] for one in json.loads(out))
    (suggestion,) = found["suggestions"]
    assert (found["code"], suggestion["outcome"]) == ("IRS401", "better")
    assert suggestion["changes"] == ["sizePerThread [4] → [1]"]
    assert suggestion["effects"][0] == "2 stores to shared memory → 0 stores to shared memory"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--size", "strid=64"), "no integer argument 'strid'. Did you mean 'stride'?"),
        (("--size", "x=64"), "no integer argument 'x'"),
        (("--size", "stride"), "--size 'stride' is not a size: write NAME=INTEGER"),
        (("--grid", "64,0"), "--grid '64,0' is not a grid"),
    ],
)
def test_a_launch_that_cannot_be_is_a_misuse(options: tuple[str, str], said: str) -> None:
    launch = Launch(Kernel("row"), (("x", "*fp16"), ("stride", "i32"), ("BLOCK", "constexpr")))
    capture = Capture(launch=launch, target=Target.parse("cuda:90"))
    read = read_grid if options[0] == "--grid" else lambda text: with_launch(capture, read_sizes([text]), None)
    with pytest.raises(UsageError, match=re.escape(said)):
        read(options[1])


def test_a_size_that_the_kernel_was_not_compiled_for_is_a_misuse() -> None:
    launch = Launch(Kernel("row"), (("n", "i32"),), attributes=(("n", "tt.divisibility=16"),))
    capture = Capture(launch=launch, target=Target.parse("cuda:90"))
    assert with_launch(capture, {"n": 32}, (2, 1, 1)).launch.grid == (2, 1, 1)
    with pytest.raises(UsageError, match="compiled for multiples of 16"):
        with_launch(capture, {"n": 33}, None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("last", "--size", "n=3"), "--size: why A B, which compares two predictions, takes no such option"),
        (("last", "--tries", "2", "--apply-to", "x.py"), "--apply-to and --tries: why A B"),
        (("--variants", "--time"), "--time: why --variants takes no such option"),
        (("--warmup", "--grid", "2"), "--grid: why --warmup takes no such option"),
        (("--apply-to", PLANTED.parent), "is a folder: name the file to write"),
        (("--apply-to", PLANTED / "fixed.py"), "is a file, and no folder"),
    ],
)
def test_options_that_would_be_ignored_are_refused_before_anything_is_read(
    irscope: Run, options: tuple[object, ...], told: str
) -> None:
    code, out, err = irscope("why", "nothing.irscope", *options)
    assert (code == 0, out, told in err) == (False, "", True), err


def test_a_code_that_is_none_is_a_misuse(irscope: Run) -> None:
    code, _, err = irscope("why", "last", "--ignore", "IRS999")
    assert code == 2
    assert "'IRS999' is not a finding" in err


def test_tries_that_are_no_number_are_a_misuse(irscope: Run) -> None:
    code, _, err = irscope("why", "last", "--tries", "most")
    assert code == 2
    assert "--tries 'most' is not a number of compiles: write one, such as 8, or all." in err
