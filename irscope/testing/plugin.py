"""The plugin that pytest loads by its entry point: a fixture, one option, and two hooks that explain what failed.

Nothing of irscope is imported here before a test asks for the fixture: other runs of pytest must not pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from irscope.testing.recorder import Recorder

_VERDICTS = "irscope.testing.recorder"
_REWRITTEN = "@py_assert"
"""How pytest's rewriting of asserts names the values of an assert that fails."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden IR."""
    group = parser.getgroup("irscope")
    group.addoption("--irscope-update", action="store_true", help="write the files of the fixture irscope's golden()")


@pytest.fixture(scope="session", name="_irscope_processes")
def _processes() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Recordings are forks of a process that has imported Triton, which saves each half a second."""
    from irscope.record.process.child import warm_children

    with warm_children():
        yield


@pytest.fixture
def irscope(request: pytest.FixtureRequest, _irscope_processes: None) -> Recorder:
    """Records kernels, and says what they compile to, in a form that can be asserted."""
    from irscope.testing.recorder import Recorder

    return Recorder(updates=bool(request.config.getoption("--irscope-update")))


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> list[str] | None:
    """What a figure of a kernel that compares otherwise than asserted comes from."""
    if _VERDICTS not in sys.modules:
        return None
    from irscope.testing.recorder import Figure

    return left.explained(op, right) if isinstance(left, Figure) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add to the report of a failed assert what breaks it: the line, the cause and the IR around."""
    outcome = yield
    if _VERDICTS not in sys.modules or call.excinfo is None or not call.excinfo.errisinstance(AssertionError):
        return
    from irscope.testing.recorder import Verdict

    report = outcome.get_result()
    add = getattr(report.longrepr, "addsection", None)
    values = call.excinfo.traceback[-1].frame.f_locals.items()
    for verdict in (value for name, value in values if name.startswith(_REWRITTEN) and isinstance(value, Verdict)):
        if add is not None:
            add(f"irscope: {verdict.assertion}", verdict.text)
