"""`irscope check`: fails where a kernel breaks an assertion, or is worse than a baseline."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from irscope import __version__
from irscope.cli.captures import captures_of, is_program, readable, tell_unknown
from irscope.cli.command import Subjects
from irscope.cli.output import Destination, emit, write_output
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.errors import ParseError, UsageError, did_you_mean, installed_from
from irscope.model.capture import STAGES, stage_named
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.analysis.checks.results import Against, Report
    from irscope.analysis.checks.subject import Assertion


_FORMATS = ("text", "github")


@dataclass(frozen=True, slots=True)
class _Asserted:
    """What must hold of each kernel.

    Options:
        --max-regs (0..): At most N registers per thread.
        --no-spills: No register is spilled.
        --max-shared BYTES: At most this much shared memory per CTA: 49152, or 100k (KiB).
        --max-compile-time TIME: The shortest of three compiles takes at most this processor time: 500ms, 2s, or 1.5x
            that of --baseline, which --update with this option measures.
        --uses NAME[,NAME]: It has instructions of this family (wgmma, mma, tma.load, cp.async.128), or this operation
            of the IR (tt.dot_scaled); repeatable.
        --min-width OP[@LINE]=BITS: Each access of tensors in global memory moves at least this many bits per thread:
            tl.load=128, of line 31 tl.store@31=64; repeatable.
        --pipelined: Loads that the dots of a loop read are issued in an earlier iteration.
        --safe: `irscope verify` finds no error in the launch; an undecided launch fails, too.
        --no-finding CODE[,CODE]|any: `irscope why` reports none of these kinds: IRS101, or narrow-load; repeatable.
        --filecheck FILE:STAGE: FileCheck, of Triton's wheel, accepts the text of a stage by the patterns of FILE;
            repeatable.
        --golden FILE:STAGE: The text of a stage is that of FILE, but for names, numbers, locations and the order of
            independent operations; of several captures, FOLDER/:STAGE has a file for each variant. Repeatable.
    """

    max_regs: int | None = None
    no_spills: bool = False
    max_shared: str | None = None
    max_compile_time: str | None = None
    uses: list[str] | None = None
    min_width: list[str] | None = None
    pipelined: bool = False
    safe: bool = False
    no_finding: list[str] | None = None
    filecheck: list[str] | None = None
    golden: list[str] | None = None

    @property
    def needs_findings(self) -> bool:
        """Whether it needs the layouts and the IR of the passes: for findings, and for what made a violation."""
        return bool(self.no_finding) or self.safe

    def all(self, *, with_golden: bool) -> list[Assertion]:
        from irscope.analysis.checks.assertions import assertions_of

        asserted = assertions_of(
            max_registers=self.max_regs,
            no_spills=self.no_spills,
            max_shared_bytes=None if self.max_shared is None else _read_bytes(self.max_shared),
            max_compile_time=self.max_compile_time,
            uses=split_words(self.uses),
            min_width=split_words(self.min_width),
            pipelined=self.pipelined,
            safe=self.safe,
            no_finding=split_words(self.no_finding),
        )
        return [*asserted, *self._of_texts(with_golden)]

    def _of_texts(self, with_golden: bool) -> Iterator[Assertion]:
        from irscope.analysis.checks.assertions import FileChecked, Golden

        for text in self.filecheck or ():
            from irscope.record.triton.identity import filecheck_program, run_filecheck

            path, stage = _file_and_stage(text, "--filecheck")
            filecheck_program()
            _read(path, "--filecheck", "a file of FileCheck's patterns")
            yield FileChecked(path, stage, run_filecheck)
        for text in (self.golden or ()) if with_golden else ():
            path, stage = _file_and_stage(text, "--golden")
            if not _is_folder(path):
                yield Golden(path, stage, _read_golden(path))


def check(
    subjects: Subjects = None,
    *,
    asserted: _Asserted,
    baseline: Path | None = None,
    tolerance: list[str] | None = None,
    update: bool = False,
    also: list[str] | None = None,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Fail where a kernel breaks an assertion, or got worse than a baseline: a guard for tests and CI.

    Each breach is shown with its line of Python, its cause and the IR around. That kernels compile is always asserted.

    Options:
        --baseline FILE: Fail where a fact of a kernel is worse than in this file, by more than --tolerance FACT=N[%];
            --update writes it, and those of --golden.
        --tolerance FACT=N[%] (hidden): How much worse a fact may be than in the baseline: registers=4,
            instruction_count=10%; repeatable. With --update it is kept in the file.
        --update (hidden): Write the files of --baseline and --golden: what is now is good.
        --also github|FILE.sarif|FILE.md: github: print annotations of the lines of a pull request in place of text. Or
            write SARIF, which code scanning reads, or a summary for a pull request; repeatable.
    """
    for name in also or ():
        if name != "github" and "/" not in name and Path(name).suffix not in (".sarif", ".md"):
            raise UsageError(f"--also {name!r}: write github, FILE.sarif or FILE.md.")
    golden = asserted.golden or []
    if tolerance and baseline is None:
        raise UsageError("--tolerance is about the file of --baseline: give it.")
    if update and baseline is None and not golden:
        raise UsageError("--update writes the files of --baseline and --golden: give one.")
    assertions = asserted.all(with_golden=not update)
    if baseline is None and (asserted.max_compile_time or "").strip().endswith("x"):
        raise UsageError(f"--max-compile-time {asserted.max_compile_time} is a factor of a baseline: give --baseline.")
    against = _against(baseline, update, tolerance or [], subjects or [], record_options)
    asked = replace(record_options, disassemble=False)
    is_lean = against is None and not asserted.needs_findings
    captures = StoredCaptures(
        file for one in subjects or [None] for file in captures_of(one, _lean(one, asked) if is_lean else asked).files
    )
    from irscope.api.checks import check_captures

    if update and golden:
        _write_golden(golden, captures)
    of_each = _golden_of_each(golden, captures) if golden else None
    for one in captures.files:
        if not is_lean and one.facts.status == "ok":
            tell_unknown(one.load())
    report = check_captures(captures, assertions, against, of_each, read=readable)
    if against is not None and against.is_written:
        _write_baseline(against, report)
    _emit(report, also or [], to)
    return int(not report.passed)


def _lean(subject: str | None, asked: RecordingOptions) -> RecordingOptions:
    """The options with which a program is recorded whose findings are not asked for: half the cost of others."""
    if not is_program(subject, asked) or asked.snapshots != "triton":
        return asked
    return replace(asked, snapshots="none", layouts=False)


def _against(
    path: Path | None, updates: bool, tolerances: list[str], subjects: list[str], record_options: RecordingOptions
) -> Against | None:
    if path is None:
        return None
    from irscope.analysis.checks.results import Against, read_tolerances
    from irscope.model.evidence import Baseline
    from irscope.store.baseline import load_baseline

    held = Baseline() if updates and not path.exists() else load_baseline(path)
    merged = {name: str(one) for name, one in read_tolerances([*held.tolerances, *tolerances]).items()}
    held = replace(held, tolerances=tuple(f"{name}={text}" for name, text in merged.items()))
    is_whole = record_options.launch is None and not any("::" in one for one in subjects)
    return Against(str(path), held, read_tolerances(held.tolerances), is_whole, updates)


def _write_baseline(against: Against, report: Report) -> None:
    from irscope.record.triton.versions import triton_version
    from irscope.store.baseline import save_baseline

    kernels = {} if against.is_whole else {name: dict(rows) for name, rows in against.baseline.kernels.items()}
    for name, rows in report.facts.items():
        kernels.setdefault(name, {}).update(rows)
    written = replace(against.baseline, kernels=kernels, triton_versions=(triton_version(),))
    save_baseline(written, Path(against.path))
    count = sum(len(rows) for rows in kernels.values())
    say(
        f"wrote {against.path}: {count} variant{'s' * (count != 1)} of {len(kernels)} kernel{'s' * (len(kernels) != 1)}"
    )


def _address() -> str:
    """Where this irscope is to be found: by its package, the repository of the action that runs, or that it lies in."""
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for row in importlib.metadata.metadata("irscope").get_all("Project-URL") or ():
            name, _, address = row.partition(", ")
            if name.lower() in ("documentation", "homepage", "repository"):
                return address
    known = os.environ.get
    if repository := known("GITHUB_ACTION_REPOSITORY"):
        return f"{known('GITHUB_SERVER_URL')}/{repository}"
    origin = urlsplit(str(installed_from().get("url", "")))
    if origin.scheme in ("http", "https"):
        return origin.geturl()
    github = f"{known('GITHUB_SERVER_URL')}/{known('GITHUB_REPOSITORY')}/tree/{known('GITHUB_SHA')}"
    gitlab = f"{known('CI_PROJECT_URL')}/-/tree/{known('CI_COMMIT_SHA')}"
    for folder, address in ((known("GITHUB_WORKSPACE"), github), (known("CI_PROJECT_DIR"), gitlab)):
        if folder and origin.scheme == "file" and Path(unquote(origin.path)).is_relative_to(folder):
            return f"{address}/{quote(Path(unquote(origin.path)).relative_to(folder).as_posix())}"
    return ""


def _emit(report: Report, also: Sequence[str], to: Destination) -> None:
    from irscope.render.checks import render_github, render_markdown, render_report, report_json, sarif_log

    root = Path.cwd()
    for name in also:
        if name.endswith(".sarif"):
            text = f"{json.dumps(sarif_log(report, root, __version__, _address()), indent=2)}\n"
            write_output(Path(name), text.encode())
        elif name != "github":
            write_output(Path(name), render_markdown(report, root).encode("utf-8", "replace"))
    if "github" in also and not to.as_json:
        emit(render_github(report, root), to.path)
        return
    to.emit(lambda: report_json(report), lambda width, color: render_report(report, color=color))


# 100k   49152   64KiB
_BYTES = re.compile(r"(?P<number>\d{1,9})(?P<unit>k|kb|kib|)", re.IGNORECASE)


def _file_and_stage(text: str, option: str) -> tuple[str, str]:
    path, _, stage = text.rpartition(":")
    known = [one.name for one in STAGES if not one.is_binary]
    if not path:
        raise UsageError(f"{option} {text!r}: write FILE:STAGE, such as golden/matmul.ttgir:ttgir.")
    if stage not in known:
        raise UsageError(f"{option} {text!r}: {stage!r} is not a stage with a text.{did_you_mean(stage, known)}")
    return path, stage


def _read_bytes(text: str) -> int:
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--max-shared {text!r}: write bytes, such as 49152, or KiB, such as 100k.")
    return int(match["number"]) * (1024 if match["unit"] else 1)


def _is_folder(path: str) -> bool:
    return path.endswith("/") or Path(path).is_dir()


def _read_golden(path: str) -> str:
    return _read(path, "--golden", "IR; --update writes it")


def _read(path: str, option: str, what: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ParseError(f"{option} {path!r} cannot be read: {why}. It should be {what}.") from error


_NO_NAME = re.compile(r"[^\w.-]+")


def _write_golden(options: Sequence[str], captures: StoredCaptures) -> None:
    from irscope.ir.locations.strip import strip_locations

    _require_one(options, captures)
    for capture, files in zip(captures, _files(options, captures), strict=True):
        for path, stage in files:
            stripped = strip_locations(capture.text(stage), stage_named(stage).kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_output(path, stripped.encode("utf-8", "surrogateescape"))
            say(f"wrote {path}")


def _golden_of_each(options: Sequence[str], captures: StoredCaptures) -> list[list[Assertion]]:
    """What is asserted of each capture alone: that its text is that of its file in a folder."""
    from irscope.analysis.checks.assertions import Golden

    _require_one(options, captures)
    folders = [one for one in options if _is_folder(_file_and_stage(one, "--golden")[0])]
    return [
        [Golden(str(path), stage, _read_golden(str(path))) for path, stage in files]
        for files in _files(folders, captures)
    ]


def _require_one(options: Sequence[str], captures: StoredCaptures) -> None:
    """Raise UsageError where a file that is no folder would be that of several captures."""
    if len(captures) > 1 and not all(_is_folder(_file_and_stage(one, "--golden")[0]) for one in options):
        names = ", ".join(dict.fromkeys(one.facts.name for one in captures.files))
        raise UsageError(
            f"--golden FILE is the text of one capture, and these are {len(captures)} ({names}): FILE::KERNEL, "
            "--launch N, or a folder, which holds one for each: --golden golden/:ttgir."
        )


def _files(options: Sequence[str], captures: StoredCaptures) -> Iterator[list[tuple[Path, str]]]:
    from irscope.store.baseline import variant_names

    for kernel, variant in variant_names([one.facts for one in captures.files]):
        # The same for the same variant, however its kernel was edited.
        digits = sha256(f"{kernel} {variant}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = f"{_NO_NAME.sub('-', kernel)}-{digits}"
        yield [
            (Path(path, f"{name}.{stage}") if _is_folder(path) else Path(path), stage)
            for path, stage in (_file_and_stage(one, "--golden") for one in options)
        ]
