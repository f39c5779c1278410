"""An answer of at most 8 kB: as many rows as fit, what was left out, and the call that gives it; the last are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

from irscope.errors import CaptureNotFound
from irscope.store.recent import CaptureStore

MOST_BYTES = 8000
_HEAD_BYTES = 4000
_ROW_BYTES = 5000
_NOTES_BYTES = 1200
_RESERVED = 700
"""For `left_out`."""

_CUTS = ((3000, 60), (1000, 30), (400, 12), (150, 6), (60, 3), (20, 1))
"""(characters of a text, entries of a list or map) that are kept, until it fits."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: values that are always present, and rows of which a part may be."""

    head: Mapping[str, Any]
    key: str
    """The name of the rows."""
    rows: Sequence[Any]
    whole: str
    """The command of a shell that prints all of it."""
    start: int = 0
    """The first row that is asked for."""
    page: str = "start"
    """The argument that says where a page begins."""
    numbers: Sequence[int] | None = None
    """The value of that argument for each row; by default its index."""
    notes: Sequence[str] = ()
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the call that is answered, but for where the page begins."""

    def at(self, page: int) -> ToolAnswer:
        """The same answer, from another row on: the value of the argument `page`."""
        if self.numbers is None:
            return replace(self, start=page)
        return replace(self, start=sum(number < page for number in self.numbers))

    def text(self) -> str:
        """As JSON."""
        cut: list[str] = []
        head = _fitted(dict(self.head), _HEAD_BYTES, cut, "the head")
        document: dict[str, Any] = {**head}
        if self.notes:
            document["notes"] = _fitted(list(self.notes), _NOTES_BYTES, cut, "notes")
        used = _size(document) + _size(self.key) + _RESERVED
        kept: list[Any] = []
        wanted = self.rows[self.start :] if self.start else self.rows
        for row in wanted:
            shown, mark = row, len(cut)
            room = MOST_BYTES - used - 2
            if _size(row) > room and not kept:
                shown = _fitted(row, min(room, _ROW_BYTES), cut, f"{self.key}[{self.start}]")
            if _size(shown) > room:
                del cut[mark:]
                break
            kept.append(shown)
            used += _size(shown) + 2
        document[self.key] = kept
        if left := self._left_out(len(kept), cut):
            document["left_out"] = left
        return _json(document)

    def _left_out(self, kept: int, cut: Sequence[str]) -> dict[str, Any]:
        left: dict[str, Any] = {}
        end = self.start + kept
        if self.start:
            left["before"] = f"{min(self.start, len(self.rows))} of {len(self.rows)} {self.key}"
        if end < len(self.rows):
            left["after"] = f"{len(self.rows) - end} of {len(self.rows)} {self.key}"
            at = end if self.numbers is None else self.numbers[end]
            left["next"] = call_of(self.tool, {**self.arguments, self.page: at})
        if cut:
            left["cut"] = f"long texts and lists in {', '.join(cut)} end with … and how much is missing"
            left["whole"] = self.whole
        return left


def call_of(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call as its tool and its arguments, without what is not given."""
    given = {name: value for name, value in arguments.items() if value not in (None, "", (), [], {})}
    return {"tool": tool, "arguments": given}


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """`why(capture="1a2b", start=3)`, for a message."""
    given = call_of(tool, arguments)["arguments"]
    return f"{tool}({', '.join(f'{name}={_json(value)}' for name, value in given.items())})"


def _json(value: Any) -> str:
    # Lone surrogates are bytes of a text that are no UTF-8: they stay escaped, which any client can read.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def _size(value: Any) -> int:
    return len(_json(value).encode())


def _fitted(value: Any, most: int, cut: list[str], name: str) -> Any:
    """A value that takes at most so many bytes; `cut` gets its name if it had to be cut."""
    if _size(value) <= most:
        return value
    cut.append(name)
    for characters, entries in _CUTS:
        if _size(shorter := _cut(value, characters, entries)) <= most:
            return shorter
    return _cut(_json(value), most // 8, 1)


def _cut(value: Any, characters: int, entries: int) -> Any:
    if isinstance(value, str):
        more = len(value) - characters
        return value if more <= 0 else f"{value[:characters]}… {more} more characters"
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())
        # The names of an object's values are few; a map of data may have thousands.
        kept = {name: _cut(one, characters, entries) for name, one in items[: max(entries, 24)]}
        return kept | ({"…": f"{len(items) - len(kept)} more"} if len(items) > len(kept) else {})
    if isinstance(value, (list, tuple)):
        rows = cast("Sequence[Any]", value)
        kept_rows = [_cut(one, characters, entries) for one in rows[:entries]]
        return kept_rows + ([f"… {len(rows) - entries} more"] if len(rows) > entries else [])
    return value


_MOST = 8
_PAGES = {"start": 0, "first_line": 1}
"""The arguments that say where a page begins, and what they are for the first."""
_NAMING = ("capture", "left", "right", "file")


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool."""

    name: str
    function: Callable[..., ToolAnswer]
    effect: Literal["reads", "compiles", "runs the file"]
    """`reads`: it adds no capture, and runs no code of the user's; what a capture lacks is compiled if it was recorded
    here. `compiles`: it adds captures, made of those that are there."""
    then: str = "stages"
    """The tool that is named as the next, where the answer names no call."""

    def answer(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call the tool; raises what it raises."""
        defaults = {one.name: one.default for one in signature(self.function).parameters.values()}
        given = {name: value for name, value in arguments.items() if value != defaults.get(name) and name not in _PAGES}
        answer = self.function(**arguments)
        if "next" not in answer.head and not any("next" in row for row in answer.rows if isinstance(row, dict)):
            answer = replace(answer, head={**answer.head, "next": self._next(answer, arguments)})
        return replace(answer, tool=self.name, arguments=given)

    def _next(self, answer: ToolAnswer, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The call after an answer: of its capture, of the first that it lists, or of a file where there is none."""
        rows = answer.rows if answer.key == "captures" else ()
        listed = next((cast("dict[str, Any]", row).get("id") for row in rows if isinstance(row, dict)), None)
        capture = arguments.get("capture") or arguments.get("left") or listed
        if capture is None or self.then == "record":
            return call_of("record", {"file": arguments.get("file") or "FILE.py"})
        return call_of(self.then, {"capture": capture})


class KeptAnswers:
    """The last answers of tools, by the call and the state of what it names.

    A first page is always made anew. One that follows is of the answer before, so that nothing is computed, and of
    `record` nothing run, once more; if that is no longer kept, or what it is of has changed, it is made anew as well.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._answers: dict[Any, ToolAnswer] = {}

    def text(self, offered: Offered, arguments: Mapping[str, Any]) -> str:
        """The answer of a tool, as JSON; raises the errors of the tool."""
        page = next((arguments[name] for name, first in _PAGES.items() if arguments.get(name, first) != first), None)
        if page is not None and (kept := self._answers.get(_key(offered.name, arguments))) is not None:
            return kept.at(page).text()
        answer = offered.answer(arguments)
        # After the call, which may have added what it found out to a stored capture.
        key = _key(offered.name, arguments)
        self._answers.pop(key, None)
        self._answers[key] = replace(answer, start=0)
        while len(self._answers) > self._most:
            del self._answers[next(iter(self._answers))]
        return answer.text()


def _key(tool: str, arguments: Mapping[str, Any]) -> Any:
    given = {name: value for name, value in arguments.items() if name not in _PAGES}
    states = [_state(given[name]) for name in _NAMING if given.get(name)]
    if tool == "list":
        states.append(tuple(CaptureStore().paths()))
    return tool, repr(sorted(given.items())), tuple(states)


def _state(text: str) -> Any:
    """The file that a text names, and when it was written last; None if there is none."""
    path = Path(text.partition("::")[0])
    try:
        path = path if path.exists() else CaptureStore().find(str(path))
        status = path.stat()
    except (CaptureNotFound, OSError):
        return None
    return path, status.st_mtime_ns, status.st_size
