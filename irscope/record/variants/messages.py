"""The commands of a pool of variants to its warm process, and the answers."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.record.process.events import Refused
from irscope.record.process.requests import RecordRequest


@dataclass(frozen=True, slots=True)
class Fork:
    """Fork a worker for a request; with it come the pipe for its events, and the file for what it prints."""

    request: RecordRequest


@dataclass(frozen=True, slots=True)
class Reap:
    """Wait for the end of a worker."""

    pid: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The first answer: Triton is imported."""

    triton_version: str
    compiler: str
    """A text that changes with every rebuild of Triton, and every variable it depends on."""


@dataclass(frozen=True, slots=True)
class Forked:
    """The worker was forked."""

    pid: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """The worker ended."""

    code: int
    """A signal as a negative number."""


Answer = Ready | Refused | Forked | Reaped

COMMANDS: tuple[type[Fork | Reap], ...] = (Fork, Reap)
ANSWERS: tuple[type[Answer], ...] = (Ready, Refused, Forked, Reaped)
