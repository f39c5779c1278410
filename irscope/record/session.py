"""The parent of a recording: starts the child, follows what it tells, and turns any end into captures.

Nothing here imports triton or torch: both live in the child, which may be another interpreter's.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from irscope import errors
from irscope.capture import Capture, stage_named
from irscope.errors import IrscopeError, RecordingError
from irscope.failure import Failure
from irscope.interruption import Interrupted, Noted, noted_signals
from irscope.record.assembly import Assembly, ScriptEnd
from irscope.record.completion import Completion, Keep
from irscope.record.events import FrameReader
from irscope.record.own_folder import FOLDER_VARIABLE, own_folder
from irscope.record.request import RecordRequest, one_for_each_target

DEFAULT_TIMEOUT_S = 300.0
"""How long one kernel's compile may take before it counts as hanging."""

_LOG_TAIL_LINES = 20
_LONGEST_WAIT_S = 0.2
"""Between looks at what the child prints, its time, and the signals that came."""
_LONGEST_END_S = 30.0


@dataclass(frozen=True, slots=True)
class Recording:
    """All that one recording process gave."""

    captures: tuple[Capture, ...]
    """Those of the first target, then those of the next."""
    script_ends: tuple[ScriptEnd, ...]
    """How the script ended, for each target that it ran to an end for."""
    notes: tuple[str, ...]
    output: str
    """What the script and the compiler printed."""
    signal_number: int = 0
    """The signal that interrupted it; 0 where none did."""
    refusals: tuple[tuple[str, IrscopeError], ...] = ()
    """(target, why) for each of several targets that nothing was recorded for."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it."""
        return self.signal_number != 0

    @property
    def stopped(self) -> tuple[ScriptEnd, ...]:
        """The ends that came before the script's own."""
        return tuple(end for end in self.script_ends if end.stopped)

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for was done; compiles that failed count as done."""
        return not self.stopped and not self.refusals


Progress = Callable[[str], None]


def record_request(
    request: RecordRequest,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    interpreter: str | None = None,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
    keep: Keep | None = None,
) -> Recording:
    """Do a request in a child process, one for each of its targets: the script runs as on a machine that has it.

    `timeout_s`: seconds for one kernel's compile. `interpreter`: a Python with another Triton. `progress` is told what
    is under way; `echo` gets what the child prints, as it comes. `keep` is given each capture when its compile ends,
    and again when more is known of it.

    Raises the error that the child refused with, and RecordingError where it died before it began; of several targets,
    where that happened for each.
    """
    recordings: list[Recording] = []
    refusals: list[tuple[str, IrscopeError]] = []
    for one in one_for_each_target(request):
        try:
            recordings.append(_record_one(one, timeout_s, interpreter, progress, echo, keep))
        except IrscopeError as error:
            refusals.append((" ".join(one.targets), error))
            continue
        if recordings[-1].interrupted:
            break
    if not recordings:
        raise refusals[0][1]
    return Recording(
        tuple(capture for recording in recordings for capture in recording.captures),
        tuple(end for recording in recordings for end in recording.script_ends),
        tuple(dict.fromkeys(note for recording in recordings for note in recording.notes)),
        "".join(recording.output for recording in recordings),
        recordings[-1].signal_number,
        tuple(refusals),
    )


def _record_one(
    request: RecordRequest,
    timeout_s: float,
    interpreter: str | None,
    progress: Progress | None,
    echo: Callable[[str], None] | None,
    keep: Keep | None,
) -> Recording:
    command = os.environ.get("IRSCOPE_COMMAND_LINE") or " ".join(["irscope", *sys.argv[1:]])
    assembly = Assembly(request, command, datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
    completion = Completion(assembly, request, keep)
    with noted_signals() as noted:
        with own_folder() as folder:
            log = folder / "log"
            log.touch()
            request = replace(request, log_path=str(log), limit_s=timeout_s)
            with _child(request, interpreter or sys.executable, log) as (process, stream):
                tail = Tail(log, echo)
                ending = _follow(process, stream, assembly, timeout_s, progress, tail, completion, noted)
            output = log.read_bytes()
        check_end(assembly, ending, process.returncode, output, timeout_s, noted.number)
        captures = completion.finish()
    stopped_by = noted.number
    if request.snapshots == "triton" and not stopped_by:
        try:
            captures = tuple(
                _with_text_before_failure(capture, timeout_s - assembly.seconds_of(index), interpreter)
                for index, capture in enumerate(captures)
            )
        except Interrupted as error:
            stopped_by = error.number
        if keep is not None:
            for capture in captures:
                keep(capture)
    ends = () if assembly.script_end is None else (assembly.script_end,)
    return Recording(captures, ends, tuple(assembly.notes), output.decode("utf-8", "replace"), stopped_by)


def _with_text_before_failure(capture: Capture, left_s: float, interpreter: str | None) -> Capture:
    """A capture that failed in a pass, with that pass and the IR just before it.

    The passes on the LLVM dialect run together and are not printed; where one of them failed, the compile is made again
    from the capture's own source, pass by pass, with every text kept, in what is `left_s` of its time.
    """
    from irscope.record.requests import request_from_capture

    failed = next((snapshot for snapshot in capture.snapshots if snapshot.outcome == "failed"), None)
    if capture.failure is None or "source" not in capture.stages or not capture.snapshots:
        return capture
    if failed is not None and capture.text_before(failed) is not None:
        return capture
    if failed is None and not _may_have_failed_in_a_pass(capture.failure):
        return capture
    if left_s <= 0:
        return capture
    request = request_from_capture(capture, plan=str(capture.plan), snapshots="all")
    recording = record_request(request, timeout_s=left_s, interpreter=interpreter)
    if recording.interrupted:
        raise Interrupted(recording.signal_number)
    again = recording.captures[0]
    if again.failure is None or again.failure.kind == "timeout":
        # What ended it is not what ended this one.
        return capture
    if failed is not None and again.failure.pass_label != failed.label:
        return capture
    return replace(capture, snapshots=again.snapshots, failure=again.failure, snapshot_level="all")


def _may_have_failed_in_a_pass(failure: Failure) -> bool:
    kind = stage_named(failure.stage).kind if failure.stage else "binary"
    return kind in ("mlir", "llvm") and failure.kind in ("pass", "abort") and not failure.pass_label


def child_environment(folder: Path) -> dict[str, str]:
    """The environment of a recording process, which finds this irscope whatever its interpreter has installed.

    `folder`: where its temporary files go, which its parent removes.
    """
    environment = dict(os.environ)
    # Another interpreter need not have irscope installed: this one's is enough, it asks only for the standard library.
    package_parent = str(Path(errors.__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_parent, environment.get("PYTHONPATH", "")]))
    environment.setdefault("PYTHONUNBUFFERED", "1")
    environment[FOLDER_VARIABLE] = str(folder)
    return environment


@contextlib.contextmanager
def _child(request: RecordRequest, interpreter: str, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    read_end, write_end = os.pipe()
    try:
        with open(log, "ab") as output:
            process = subprocess.Popen(
                [interpreter, "-m", "irscope.record", str(write_end)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(write_end,),
                env=child_environment(log.parent),
                # Its own group: a time-out ends ptxas and whatever else it started too.
                start_new_session=True,
            )
    except OSError as error:
        os.close(read_end)
        raise RecordingError(f"the interpreter {interpreter!r} cannot be started: {error.strerror}.") from error
    finally:
        os.close(write_end)
    try:
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                # It stays open: its end tells the child that this process is gone.
                process.stdin.write(request.to_json().encode() + b"\n")
                process.stdin.flush()
        yield process, read_end
    finally:
        os.close(read_end)
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, also where it has ended itself; harmless to call again."""
    if process.returncode is None:
        # It was not waited for, so the group's number is no other's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is still to be waited for."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _follow(
    process: subprocess.Popen[bytes],
    stream: int,
    assembly: Assembly,
    timeout_s: float,
    progress: Progress | None,
    tail: Tail,
    completion: Completion,
    noted: Noted,
) -> str:
    """Feed events until the stream ends; returns how it ended: "end", "timeout" or "interrupt"."""
    frames = FrameReader()
    ending = "end"
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while not noted.number:
                if selector.select(timeout=_LONGEST_WAIT_S):
                    chunk = os.read(stream, 1 << 20)
                    if not chunk:
                        break
                    for event in frames.feed(chunk):
                        completion.feed(event)
                    if progress is not None:
                        progress(assembly.working_on)
                elif _has_ended(process):
                    # A process that it forked may hold the stream open.
                    break
                tail.read()
                if assembly.longest_s > timeout_s:
                    ending = "timeout"
                    break
        if ending == "end":
            _wait_for(process, noted)
    except KeyboardInterrupt:
        # From a handler of the caller's own.
        noted.number = noted.number or signal.SIGINT
    if noted.number:
        ending = "interrupt"
    kill(process)
    for chunk in _left_in(stream):
        for event in frames.feed(chunk):
            completion.feed(event)
    tail.read()
    return ending


def _wait_for(process: subprocess.Popen[bytes], noted: Noted) -> None:
    """Wait until it has ended: it has told all that it will."""
    deadline, pause_s = time.monotonic() + _LONGEST_END_S, 0.001
    while not noted.number and not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)


def _left_in(stream: int) -> Iterator[bytes]:
    """What was written to a pipe before its writer ended, and not read yet."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(timeout=0) and (chunk := os.read(stream, 1 << 20)):
            yield chunk


def check_end(
    assembly: Assembly, ending: str, code: int, output: bytes, timeout_s: float, stopped_by: int = signal.SIGINT
) -> None:
    """Turn the end of a recording process into failures of what it was compiling; raises what it refused with.

    `ending`: "end", "timeout" or "interrupt". `code`: its exit code, a signal as a negative number. `stopped_by`: the
    signal that interrupted it.
    """
    if ending == "timeout":
        assembly.fail_open("timeout", f"the compile took longer than {timeout_s:g} s and was ended.", output)
    elif ending == "interrupt":
        by = "Ctrl-C" if stopped_by == signal.SIGINT else signal.Signals(stopped_by).name
        assembly.fail_open("interrupt", f"interrupted ({by}).", output)
    elif assembly.error is not None:
        name, message = assembly.error
        kind = getattr(errors, name, RecordingError)
        raise kind(message) if issubclass(kind, IrscopeError) else RecordingError(message)
    elif not assembly.done:
        how = how_it_died(code)
        if not assembly.compiling:
            tail = "\n".join(output.decode("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:])
            if not assembly.count:
                raise RecordingError(f"the recording process {how} before any kernel was compiled.\n{tail}".rstrip())
            assembly.notes.append(f"The recording process {how} after this compile.")
        if code == -signal.SIGKILL:
            how += ", as the system does where memory runs out"
        assembly.fail_open("abort", f"the compiler {how}.", output)


def how_it_died(code: int) -> str:
    """An exit code in words; a signal is a negative number."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"


class Tail:
    """Hands on what is appended to a file."""

    def __init__(self, path: Path, echo: Callable[[str], None] | None) -> None:
        self._path = path
        self._echo = echo
        self._offset = 0

    def read(self) -> None:
        """Hand on what is new."""
        if self._echo is None:
            return
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        if data:
            self._echo(data.decode("utf-8", "replace"))
