"""Runs tests with pytest, in this process, so that each launch is known by its test.

Tests run one after another here: options of plugins that spread them over processes are switched off. Assertions are
not rewritten by pytest, since the virtual GPU rewrites them itself, and neither the cache of pytest nor a coverage
report is written.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from irscope.errors import MissingTool, RecordingError
from irscope.record.compile.watched_compile import Watch
from irscope.record.process.events import Note, ScriptEnd
from irscope.record.programs.scratch import working_folder

__all__ = ["run_tests"]

_NONE_COLLECTED = 5
_TESTS_FAILED = 1
_MOST_SHOWN = 20
_ONE_PROCESS = {"numprocesses": None, "dist": "no", "tx": [], "forked": False, "workers": None, "boxed": False}
"""Options of pytest-xdist, pytest-forked and pytest-parallel, and their values for one process."""

_ENDINGS = {2: "pytest was interrupted", 3: "pytest failed itself", 4: "pytest refused its arguments"}


@dataclass(slots=True, eq=False)
class _Watcher:
    """The plugin of pytest that tells which test is under way, and collects what failed."""

    watch: Watch
    tests: set[str] = field(default_factory=set[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    switched_off: list[str] = field(default_factory=list[str])

    def pytest_cmdline_main(self, config: Any) -> None:
        """Before any plugin starts processes of its own."""
        for name, value in _ONE_PROCESS.items():
            # xdist itself derives --dist and --tx from --numprocesses.
            if not self.switched_off and getattr(config.option, name, value) not in (value, None, 0):
                self.switched_off.append(f"--{name}")
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    def pytest_runtest_protocol(self, item: Any) -> Generator[None]:
        """Around the setup, the call and the teardown of a test."""
        self.tests.add(item.nodeid)
        self.watch.origin = (("test", item.nodeid),)
        yield
        self.watch.origin = ()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """After each of them."""
        if report.failed:
            self.failed.setdefault(report.nodeid, _first_line(report))

    def pytest_collectreport(self, report: Any) -> None:
        """After a file was collected."""
        if report.failed:
            self.failed.setdefault(report.nodeid, _first_line(report))


def run_tests(watch: Watch) -> ScriptEnd:
    """Run the tests of a request; raises MissingTool without pytest, and RecordingError where no test could be run."""
    if importlib.util.find_spec("pytest") is None:
        raise MissingTool("--pytest needs pytest in the Python that records: pip install pytest.")
    import pytest

    request = watch.request
    watcher = _Watcher(watch)
    _mark(pytest)
    # What the compiler prints goes to the standard error of the process, from which each compile's is read.
    words = ["--assert=plain", "--capture=sys", "-p", "no:cacheprovider"]
    if importlib.util.find_spec("pytest_cov") is not None:
        words.append("--no-cov")
    words += ["-k", request.test_filter] if request.test_filter is not None else []
    # Not those of a copy that the tests run in.
    tests = [str(working_folder() / test) if request.dry else test for test in request.tests]
    code = int(pytest.main([*words, *request.arguments, *tests], plugins=[watcher]))
    for name in watcher.switched_off:
        watch.report(Note(f"{name} was switched off: tests that are recorded run one after another in one process."))
    if code == _NONE_COLLECTED:
        chosen = f" that matches -k {request.test_filter!r}" if request.test_filter is not None else ""
        raise RecordingError(f"pytest found no test{chosen} in {' '.join(request.tests)}.")
    if code in _ENDINGS and not watcher.failed:
        raise RecordingError(f"{_ENDINGS[code]}: --verbose shows what it printed.")
    if not code:
        return ScriptEnd()
    rows = [f"  {name}: {why}" for name, why in watcher.failed.items()]
    if len(rows) > _MOST_SHOWN:
        rows[_MOST_SHOWN:] = [f"  … and {len(rows) - _MOST_SHOWN} more"]
    run = f"{len(watcher.failed)} of {len(watcher.tests)} tests failed" if watcher.tests else "no test was run"
    return ScriptEnd(code, run, "\n".join(rows), complete=code == _TESTS_FAILED)


def _mark(pytest: Any) -> None:
    """Say which of the hooks go around, or before, those of other plugins."""
    pytest.hookimpl(hookwrapper=True, tryfirst=True)(_Watcher.pytest_runtest_protocol)
    pytest.hookimpl(tryfirst=True)(_Watcher.pytest_cmdline_main)


def _first_line(report: Any) -> str:
    """The error of a report: the last line of the traceback's own, or the first of its text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr)
    lines = [line for line in inspect.cleandoc(text).splitlines() if line.strip()]
    return (lines or ["failed"])[0 if crash is not None else -1]
