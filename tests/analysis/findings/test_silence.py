"""Comments that silence findings."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.silence import codes_of, is_silenced
from irscope.errors import UsageError
from irscope.model.capture import Capture, Kernel, Launch
from irscope.target import Target

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
