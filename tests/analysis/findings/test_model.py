"""Findings as values, as JSON, and silenced by comments."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.findings.costs import priced, timed
from irscope.analysis.findings.find import findings_of, log_needs, needs_operations
from irscope.analysis.findings.model import KINDS, Finding, FixChange, Suggestion, codes_of, is_silenced
from irscope.analysis.findings.quick import quick_findings
from irscope.analysis.findings.studied import Studied
from irscope.api.timing import read_grid, read_sizes, with_launch
from irscope.errors import UsageError
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.recording_options import RecordingOptions
from irscope.record.compile.second import find_log, find_operations
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.record.variants.completing import with_layouts, with_sass
from irscope.target import Target
from tests.analysis.findings.cases import DISASSEMBLED
from tests.marks import sampled

PAGE = (Path(__file__).parents[3] / "docs" / "findings.md").read_text("utf-8")
# ## IRS101 narrow-load
SECTIONS = {
    code: (name, text)
    for code, name, text in re.findall(r"^## (IRS\d{3}) (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
HEAD = """import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


"""

QUICK = {"IRS301", "IRS501", "IRS503", "IRS601"}
"""Kinds that a summary shows."""


def test_every_kind_has_a_section() -> None:
    assert {code: name for code, (name, _) in SECTIONS.items()} == {one.code: one.name for one in KINDS.values()}


def test_codes_and_names_are_distinct() -> None:
    assert all(code == kind.code for code, kind in KINDS.items())
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)


def test_changes_as_text() -> None:
    changes = (
        FixChange("divisible", "k", 16),
        FixChange("constant", "s", 1),
        FixChange("option", "num_warps", 8),
    )
    assert Suggestion("", changes).tried == "k divisible by 16, s = 1, num_warps=8"


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("code", sampled(sorted(KINDS), 6))
def test_the_kernel_of_a_section_gives_its_code(code: str, tmp_path: Path) -> None:
    kernel = re.search(r"^```py\n(.*?)^```", SECTIONS[code][1], re.MULTILINE | re.DOTALL)
    command = re.search(r"^```text\nirscope why kernel.py::(.*?)\n(?:.*\n)*?```", SECTIONS[code][1], re.MULTILINE)
    assert kernel is not None
    assert command is not None
    if "--values" in command[1]:
        pytest.importorskip("torch", reason="its launch has tensors of torch")
    imports = "import torch\n" if "torch." in kernel[1] else ""
    (file := tmp_path / "kernel.py").write_text(imports + HEAD + kernel[1])
    name, *words = (one for one in shlex.split(command[1]) if one != "--values")
    given = list(zip(words[::2], words[1::2], strict=True))
    asked = RecordingOptions(
        computes="--values" in command[1],
        signature=next((value for flag, value in given if flag == "--signature"), None),
        constexprs=tuple(
            (pair[0], pair[2]) for flag, value in given if flag == "--constexpr" for pair in [value.partition("=")]
        ),
        targets=tuple(value for flag, value in given if flag == "--target"),
        options=tuple(
            (flag[2:].replace("-", "_"), int(value)) for flag, value in given if flag in ("--num-stages", "--num-warps")
        ),
        disassemble=code in DISASSEMBLED,
    )
    capture = record_request(request_for(file, asked, kernel=name)).captures[0]
    sizes = read_sizes(value for flag, value in given if flag == "--size")
    if grid := next((value for flag, value in given if flag == "--grid"), ""):
        capture = with_launch(capture, sizes, read_grid(grid))
    # What a summary shows is found without.
    if code not in QUICK and needs_operations(Studied(capture)):
        capture = replace(capture, operations=find_operations(capture, stages=("ptx",)))
    found = findings_of(capture)
    if capture.launch.grid is not None:
        capture = with_sass(with_layouts(capture))
        found = priced(Studied(capture), findings_of(capture), timed(capture))
    if code not in {one.code for one in found} and log_needs(Studied(capture), found):
        found = findings_of(replace(capture, log=find_log(capture)))
    assert code in {one.code for one in found}
    quick = quick_findings(capture)
    assert {(one.code, one.place) for one in quick} <= {(one.code, one.place) for one in found}
    assert (code in {one.code for one in quick}) == (code in QUICK)


SOURCE = """def kernel(x):{of_kernel}
    a = tl.load(x){comment}
    b = tl.load(x)"""


def silenced(code: str, lines: tuple[int, ...], comment: str = "", of_kernel: str = "") -> bool:
    source = SOURCE.format(comment=comment, of_kernel=of_kernel)
    launch = Launch(Kernel("kernel", "a.py", 11, source, 11))
    place = tuple(("a.py", line) for line in lines)
    finding = Finding(code, "tt.load", 1, (), (), place, "", "", 0, ())
    return is_silenced(finding, Capture(launch=launch, target=Target.parse("cuda:90")))


@pytest.mark.parametrize(
    "comment",
    [
        "  # irscope: ignore",
        "  # irscope: ignore[IRS101]",
        "  # irscope: ignore[IRS402, narrow-load]",
        "#irscope:ignore[irs101]",
    ],
)
def test_a_comment_on_the_line_silences(comment: str) -> None:
    assert silenced("IRS101", (12,), comment)
    assert silenced("IRS101", (99, 12), comment)
    assert not silenced("IRS101", (13,), comment)


@pytest.mark.parametrize("comment", ["", "  # ignore", "  # irscope: ignore[IRS102]", "  # irscope: ignore[]"])
def test_other_comments_do_not(comment: str) -> None:
    assert not silenced("IRS101", (12,), comment)


def test_what_has_no_line_is_silenced_on_the_def() -> None:
    assert silenced("IRS501", (), of_kernel="  # irscope: ignore[IRS501]")
    assert not silenced("IRS501", (), comment="  # irscope: ignore[IRS501]")


def test_codes_and_names_of_an_option() -> None:
    assert codes_of(["irs101", "narrow-store"]) == {"IRS101", "IRS102"}
    with pytest.raises(UsageError, match="narrow-load"):
        codes_of(["narow-load"])
