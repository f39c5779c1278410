"""Whose fact came of a graft: the one before the change, the one after it, or neither's."""

from __future__ import annotations

from irscope.analysis.findings.find import findings_of
from irscope.analysis.regressions import FactChange, Facts, Value, facts_of
from irscope.analysis.upgrade.model import Side
from irscope.model.capture import Capture

__all__ = ["graft_facts", "is_clear", "like_of", "value_text"]

_CLEAR = 1 / 3
"""How far from a side's figure, as a share of the change, that of a graft may be and still be that side's."""


def graft_facts(capture: Capture, change: FactChange) -> Facts:
    """The facts of a graft; its findings only where the change is one of them."""
    wants_findings = change.name == "findings" and capture.has_compiled
    return facts_of(capture, [one.code for one in findings_of(capture)] if wants_findings else None)


def like_of(change: FactChange, facts: Facts) -> Side | None:
    """Whose fact it is: the nearer one of numbers; None if it is neither's, or not known."""
    if change.name != "failure" and set(facts) == {"failure"}:
        return None
    value = facts.get(change.name)
    if change.name == "failure":
        return _like_failure(change, str(value or ""))
    if value == change.before:
        return "before"
    if value == change.after:
        return "after"
    if isinstance(change.before, tuple) or isinstance(change.after, tuple):
        return _like_codes(change, value)
    before, after = _number(change.before), _number(change.after)
    found = _number(value)
    if before is None or after is None or found is None:
        return None
    away = abs(found - before) - abs(found - after)
    return None if away == 0 else "before" if away < 0 else "after"


def is_clear(change: FactChange, facts: Facts) -> bool:
    """Whether it is one side's fact, and no number far from both."""
    before, after = _number(change.before), _number(change.after)
    found = _number(facts.get(change.name)) if change.name in facts else None
    if before is None or after is None or found is None or change.name == "failure":
        return True
    return min(abs(found - before), abs(found - after)) <= _CLEAR * abs(after - before)


def _like_failure(change: FactChange, value: str) -> Side | None:
    """A failure is a side's only if it is the same: another is of the graft itself, such as a text that is not read."""
    return "before" if value == change.before else "after" if value == change.after else None


def _like_codes(change: FactChange, value: Value | None) -> Side | None:
    before, after, found = (
        set(one) if isinstance(one, tuple) else set[str]() for one in (change.before, change.after, value)
    )
    telling = before ^ after
    as_before, as_after = len((found ^ after) & telling), len((found ^ before) & telling)
    return None if as_before == as_after else "before" if as_before > as_after else "after"


def _number(value: Value | None) -> float | None:
    # A count of none is not held.
    return 0.0 if value is None else float(value) if isinstance(value, (int, float)) else None


def value_text(change: FactChange, facts: Facts) -> str:
    """The fact of a graft as text: `115`."""
    one = FactChange(change.name, facts.get(change.name), None, "other").text
    return one.removeprefix(change.fact.title).rpartition(" → ")[0].strip() or one
