"""The child process that is asked for layouts: a fork of this one, or a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, BinaryIO

from irscope.record.process.child import module_command

# error: …   LLVM ERROR: …   Assertion `…' failed   ModuleNotFoundError: …
_TELLING = re.compile(r"(?i:error\b)|Assertion|\w+Error: ")


@dataclass(slots=True)
class Child:
    """A process that answers questions."""

    pid: int
    questions: BinaryIO
    answers: int
    """A file descriptor."""
    log: IO[bytes]
    """What it prints on standard error."""
    process: subprocess.Popen[bytes] | None = None
    at_end: bool = False
    _rest: bytes = b""

    def write(self, data: bytes) -> None:
        """Send a question."""
        self.questions.write(data)
        self.questions.flush()

    def read(self, timeout_s: float) -> list[bytes]:
        """The lines there are; waits up to `timeout_s` for the first."""
        while not self.at_end and select.select([self.answers], [], [], timeout_s)[0]:
            timeout_s = 0.0
            chunk = os.read(self.answers, 1 << 16)
            self.at_end = not chunk
            self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        return lines

    def kill(self) -> None:
        """End it; harmless if it has ended."""
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            return

    def close(self) -> str:
        """Wait for its end, and return how it ended, with the error it printed."""
        with contextlib.suppress(OSError):
            self.questions.close()
        if self.process is not None:
            assert self.process.stdout is not None
            self.process.stdout.close()
            code = self.process.wait()
        else:
            os.close(self.answers)
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        self.log.seek(0)
        # "python: …/LinearLayout.cpp:250: void …: Assertion `…' failed." or "LLVM ERROR: …"
        said = [
            line.strip() for line in self.log.read().decode("utf-8", "replace").splitlines() if _TELLING.search(line)
        ]
        self.log.close()
        return f"{how}: {said[-1][-300:]}" if said and code else how


def spawned_child(interpreter: str) -> Child:
    """A process of its own; raises OSError if it can't be started."""
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
    process = subprocess.Popen(
        module_command("irscope.record.layouts.query", interpreter=interpreter),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return Child(process.pid, process.stdin, process.stdout.fileno(), log, process)  # type: ignore[arg-type]


def forked_child() -> Child:
    """A fork of this process, with the modules this one has loaded."""
    question_end, questions = os.pipe()
    answers, answer_end = os.pipe()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _serve_in_fork(question_end, answer_end, log.fileno())
    os.close(question_end)
    os.close(answer_end)
    return Child(pid, os.fdopen(questions, "wb"), answers, log)


def _serve_in_fork(questions: int, answers: int, log: int) -> None:
    """Serve and end the process; the file descriptors of the parent, its pipes above all, are closed here."""
    try:
        source, sink = os.dup(questions), os.dup(answers)
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.dup2(log, 2)
        os.closerange(3, 4096)
        sink = os.dup(1)
        os.dup2(2, 1)
        from irscope.record.layouts.query import serve

        with os.fdopen(0, "rb") as reader, os.fdopen(sink, "wb") as writer:
            serve(reader, writer)
    finally:
        os._exit(0)
