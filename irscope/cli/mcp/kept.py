"""The last answers, from which the pages after the first are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.cli.mcp.answers import Answer
from irscope.errors import CaptureNotFound
from irscope.store.recent import CaptureStore

if TYPE_CHECKING:
    from irscope.cli.mcp.tools import Offered

__all__ = ["KeptAnswers"]

_MOST = 8
_PAGES = {"start": 0, "first_line": 1}
"""The arguments that say where a page begins, and what they are for the first."""
_NAMING = ("capture", "left", "right", "file")


class KeptAnswers:
    """The last answers of tools, by the call and the state of what it names.

    A first page is always made anew. One that follows is of the answer before, so that nothing is computed, and of
    `record` nothing run, once more; if that is no longer kept, or what it is of has changed, it is made anew as well.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._answers: dict[Any, Answer] = {}

    def text(self, offered: Offered, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, as JSON; raises what the tool raises."""
        page = next((arguments[name] for name, first in _PAGES.items() if arguments.get(name, first) != first), None)
        if page is not None and (kept := self._answers.get(_key(offered.name, arguments))) is not None:
            return kept.at(page).text()
        answer = offered.function(**arguments)
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
