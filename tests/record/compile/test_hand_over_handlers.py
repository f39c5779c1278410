from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from irscope.record.compile import hand_over
from irscope.record.compile.hand_over import may_be_caught


@pytest.fixture(autouse=True)
def pytest_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs these tests catches too."""
    monkeypatch.setattr(hand_over, "_REPORTERS", (*hand_over._REPORTERS, "_pytest", "pluggy", "xdist", "execnet"))


def here() -> bool:
    return may_be_caught(sys._getframe(1))


def plain() -> bool:
    return here()


def within_try() -> bool:
    try:
        return here()
    except ValueError:
        return False


def within_bare_except() -> bool:
    try:
        found = here()
    except:  # noqa: E722
        found = False
    return found


def within_finally() -> bool:
    try:
        return here()
    finally:
        print(end="")


def within_with() -> bool:
    with open(__file__):
        return here()


def within_suppress() -> bool:
    with contextlib.suppress(ValueError):
        return here()
    return False


class closing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> bool:
        return True


def within_a_class_with_a_harmless_name() -> bool:
    found = False
    with closing():
        found = here()
    return found


@contextlib.contextmanager
def swallows() -> Iterator[None]:
    with contextlib.suppress(ValueError):
        yield


def within_a_generator() -> bool:
    found = False
    with swallows():
        found = here()
    return found


def within_a_stack() -> bool:
    found = False
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(ValueError))
        found = here()
    return found


def within_a_variable() -> bool:
    found = False
    made = contextlib.suppress(ValueError)
    with made:
        found = here()
    return found


def within_a_lock() -> bool:
    lock = threading.Lock()
    with lock, contextlib.nullcontext():
        return here()


def within_with_within_try() -> bool:
    try:
        with open(__file__):
            found = here()
    except OSError:
        found = False
    return found


def within_finally_within_try() -> bool:
    try:
        try:
            found = here()
        finally:
            print(end="")
    except ValueError:
        found = False
    return found


def after_try() -> bool:
    try:
        int("3")
    except ValueError:
        print(end="")
    return here()


def in_a_handler() -> bool:
    try:
        int("x")
    except ValueError:
        return here()
    return False


def called_within_try() -> bool:
    try:
        found = plain()
    except ValueError:
        found = False
    return found


def in_a_generator() -> bool:
    def values() -> Iterator[bool]:
        yield here()

    return next(values())


CATCHING = [
    within_try,
    within_bare_except,
    within_suppress,
    within_a_class_with_a_harmless_name,
    within_a_generator,
    within_a_stack,
    within_a_variable,
    within_with_within_try,
    within_finally_within_try,
    called_within_try,
]
NOT_CATCHING = [plain, after_try, in_a_handler, in_a_generator]
# In 3.10 what only cleans up cannot be told from what catches: waiting is right there too.
NOT_CATCHING += [within_finally, within_with, within_a_lock] if sys.version_info >= (3, 11) else []


@pytest.mark.parametrize("case", CATCHING, ids=lambda case: case.__name__)
def test_an_except_around_the_launch_is_seen(case: Callable[[], bool]):
    assert case()


@pytest.mark.parametrize("case", NOT_CATCHING, ids=lambda case: case.__name__)
def test_what_lets_an_error_pass_is_not(case: Callable[[], bool]):
    assert not case()
