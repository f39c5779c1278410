"""Streams, events and graphs of a GPU that runs nothing: everything is done at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from irscope.record.triton.patches import nothing
from irscope.record.virtual.placeholders import measured

_ELAPSED_MS = 100.0
"""The time between any two events: long, so that a script that repeats for some time is soon done."""


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
        import torch

        return torch.device("cuda", 0)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    wait_stream = wait_event = synchronize = __exit__ = nothing

    def record_event(self, event: Event | None = None) -> Event:
        return event if event is not None else Event()

    def query(self) -> bool:
        return measured(True)

    def is_capturing(self) -> bool:
        return CudaGraph.is_capturing


class Event:
    """Stands in for an event of the device."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, *_: Any, **__: Any) -> None:
        self.enable_timing = enable_timing
        self.cuda_event = 0

    record = wait = synchronize = nothing

    def query(self) -> bool:
        return measured(True)

    def elapsed_time(self, end_event: Any) -> float:
        return measured(_ELAPSED_MS)


class CudaGraph:
    """Stands in for a CUDA graph: the captured Python code has run already, and a replay has nothing to do."""

    is_capturing = False
    """Whether a graph is being captured now: there is one device, and all its streams are one."""

    __init__ = instantiate = replay = reset = enable_debug_mode = debug_dump = nothing

    def capture_begin(self, *_: Any, **__: Any) -> None:
        CudaGraph.is_capturing = True

    def capture_end(self) -> None:
        CudaGraph.is_capturing = False

    def pool(self) -> tuple[int, int]:
        return 0, 0


class Capturing(AbstractContextManager[None]):
    def __init__(self, cuda_graph: CudaGraph, *_: Any, **__: Any) -> None:
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *_: object) -> None:
        self._graph.capture_end()


class Nothing(AbstractContextManager[Any]):
    """A context that takes any arguments and changes nothing; `as` gives the first argument."""

    def __init__(self, first: Any = None, *_: Any, **__: Any) -> None:
        self._first = first

    def __enter__(self) -> Any:
        return self._first

    __exit__ = nothing


class BareInterface:
    """Triton's device interface, for a program without torch."""

    Event = Event
    Stream = Stream
    synchronize = staticmethod(nothing)

    @staticmethod
    def current_device() -> int:
        return 0
