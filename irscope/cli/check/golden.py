"""The files of `--golden`: that of one capture, or in a folder one for each variant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.check.assertions import file_and_stage, is_folder, read_golden
from irscope.cli.output.destination import write_output
from irscope.cli.output.talk import say
from irscope.errors import UsageError

if TYPE_CHECKING:
    from irscope.analysis.checks.subject import Assertion
    from irscope.store.shelf import StoredCaptures

__all__ = ["golden_of_each", "write_golden"]

_NO_NAME = re.compile(r"[^\w.-]+")


def write_golden(options: Sequence[str], captures: StoredCaptures) -> None:
    """Write the files of `--golden` anew."""
    from irscope.ir.locations.strip import strip_locations
    from irscope.model.capture import stage_named

    _require_one(options, captures)
    for capture, files in zip(captures, _files(options, captures), strict=True):
        for path, stage in files:
            stripped = strip_locations(capture.text(stage), stage_named(stage).kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_output(path, stripped.encode("utf-8", "surrogateescape"))
            say(f"wrote {path}")


def golden_of_each(options: Sequence[str], captures: StoredCaptures) -> list[list[Assertion]]:
    """What is asserted of each capture alone: that its text is that of its file in a folder."""
    from irscope.analysis.checks.assertions import Golden

    _require_one(options, captures)
    folders = [one for one in options if is_folder(file_and_stage(one, "--golden")[0])]
    return [
        [Golden(str(path), stage, read_golden(str(path))) for path, stage in files]
        for files in _files(folders, captures)
    ]


def _require_one(options: Sequence[str], captures: StoredCaptures) -> None:
    """Raise UsageError where a file that is no folder would be that of several captures."""
    if len(captures) > 1 and not all(is_folder(file_and_stage(one, "--golden")[0]) for one in options):
        names = ", ".join(dict.fromkeys(one.name for one in captures.files))
        raise UsageError(
            f"--golden FILE is the text of one capture, and these are {len(captures)} ({names}): FILE::KERNEL, "
            "--launch N, or a folder, which holds one for each: --golden golden/:ttgir."
        )


def _files(options: Sequence[str], captures: StoredCaptures) -> Iterator[list[tuple[Path, str]]]:
    """(file, stage) of each option, for each capture."""
    from irscope.store.baseline import variant_names

    for kernel, variant in variant_names([one.facts for one in captures.files]):
        # The same for the same variant, however its kernel was edited.
        digits = sha256(f"{kernel} {variant}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = f"{_NO_NAME.sub('-', kernel)}-{digits}"
        yield [
            (Path(path, f"{name}.{stage}") if is_folder(path) else Path(path), stage)
            for path, stage in (file_and_stage(one, "--golden") for one in options)
        ]
