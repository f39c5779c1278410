"""Comments in a kernel that silence findings: `# irscope: ignore[IRS101, narrow-store]`, or `# irscope: ignore`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.analysis.findings.model import KINDS, Finding
from irscope.analysis.source.map import python_line
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture

__all__ = ["ANY", "codes_of", "is_silenced"]

# x = tl.load(p)  # irscope: ignore[IRS101]
_COMMENT = re.compile(r"#\s*irscope:\s*ignore(?:\[(?P<codes>[^\]]{0,400})\])?")


ANY = "any"
"""Every kind of finding, in place of the codes and names of some."""


def codes_of(words: Iterable[str]) -> frozenset[str]:
    """The codes that some codes or names of kinds mean, all for `any`; raises UsageError for one that is none."""
    words = list(words)
    if ANY in words:
        return frozenset(KINDS)
    found = {word: _code(word) for word in words}
    for word, code in found.items():
        if not code:
            known = [one for kind in KINDS.values() for one in (kind.code, kind.name)]
            raise UsageError(f"{word!r} is no kind of finding: docs/findings.md lists them.{did_you_mean(word, known)}")
    return frozenset(found.values())


def is_silenced(finding: Finding, capture: Capture) -> bool:
    """Whether a comment silences a finding: on a line that it comes from, or on the kernel's `def` for the kernel's."""
    kernel = capture.launch.kernel
    places = finding.place or ((kernel.file, kernel.line),)
    return any(_is_named(finding, python_line(capture, file, line)) for file, line in places)


def _is_named(finding: Finding, line: str) -> bool:
    match = _COMMENT.search(line)
    if match is None:
        return False
    return match["codes"] is None or finding.code in {_code(word.strip()) for word in match["codes"].split(",")}


def _code(word: str) -> str:
    return next((one.code for one in KINDS.values() if word.casefold() in (one.code.casefold(), one.name)), "")
