"""Streams, events and graphs of a GPU that runs nothing: everything is done at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

_ELAPSED_MS = 100.0
"""The time between any two events: long, so that a script that repeats for some time is soon done."""


def _nothing(*_: Any, **__: Any) -> None:
    """Stands in for methods that wait, capture, free or print: there is nothing to do."""


class Stream(AbstractContextManager["Stream"]):
    """Stands in for a stream of the device, the default one included."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.priority = priority
        self.cuda_stream = 0
        self.stream_id = 0
        self.device_index = 0
        self.device_type = 1

    @property
    def device(self) -> Any:
        """The device, as torch's type."""
        import torch

        return torch.device("cuda", 0)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    wait_stream = wait_event = synchronize = __exit__ = _nothing

    def record_event(self, event: Event | None = None) -> Event:
        return event if event is not None else Event()

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False


class Event:
    """Stands in for an event of the device."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, *_: Any, **__: Any) -> None:
        self.enable_timing = enable_timing
        self.cuda_event = 0

    record = wait = synchronize = _nothing

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Any) -> float:
        """The stand-in time in milliseconds."""
        return _ELAPSED_MS


class Graph:
    """Stands in for a CUDA graph: the captured Python code has run already, and a replay has nothing to do."""

    __init__ = capture_begin = capture_end = instantiate = replay = reset = enable_debug_mode = debug_dump = _nothing

    def pool(self) -> tuple[int, int]:
        return 0, 0


class Nothing(AbstractContextManager[Any]):
    """A context that takes any arguments and changes nothing; `as` gives the first argument."""

    def __init__(self, first: Any = None, *_: Any, **__: Any) -> None:
        self._first = first

    def __enter__(self) -> Any:
        return self._first

    __exit__ = _nothing


class BareInterface:
    """Triton's device interface, for a program without torch."""

    Event = Event
    Stream = Stream
    synchronize = staticmethod(_nothing)

    @staticmethod
    def current_device() -> int:
        return 0
