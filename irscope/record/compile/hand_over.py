"""Compiles that a script's process leaves to workers, so that the script need not wait for them; and when it must.

Of its kernel a launch needs no more than the source; whatever else a program reads is waited for. Handed over is only
what would be the same elsewhere, by the installed compiler, and where an error would end the program: what shows that
it lets an exception pass does so (a `finally`, the clean-up of a handler, a `with` whose manager is torch's, a lock's
or a file's, by the expression of the `with`). docs/architecture.md has the reasons.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import linecache
import os
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, Protocol

from irscope.model.capture import Launch, Target
from irscope.model.plain import tupled
from irscope.record.compile.launches import is_library, plain
from irscope.record.process.events import CompileDropped, HandedOver, RecordingEvent
from irscope.record.process.gathering import ENDED, FAILED
from irscope.record.process.requests import CompileJob
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import ERRORS_OF_A_CONFIGURATION, is_rehearsal, is_timing
from irscope.record.triton.versions import FUTURE_METHOD

# A kernel that makes descriptors on the device takes scratch memory, which the script has to provide.
_NEEDS_SCRATCH = "tensor_descriptor"


def deferred_kernel(source: Any, key: str, texts: Mapping[str, str], compiled: Callable[[], Any]) -> Any:
    """A kernel that is being compiled, with the texts of its stages so far; `compiled` waits for it, or raises."""
    return _kernel_class()(source, key, texts, compiled)


@cache
def _kernel_class() -> Any:
    real_class = triton_api.compiled_kernel_class()

    class DeferredKernel(real_class):
        def __init__(self, source: Any, key: str, texts: Mapping[str, str], compiled: Callable[[], Any]) -> None:
            self.src = source
            self.hash = key
            self.known_texts = dict(texts)
            self._compiled = compiled
            self._real: Any = None
            self._error: BaseException | None = None
            self._was_launched = False

        def settle(self) -> Any:
            """The kernel itself, once it is compiled; raises what its compile raised, each time."""
            if self._error is not None:
                raise self._error
            if self._real is None:
                try:
                    self._real = self._compiled()
                    if self._was_launched:
                        # A launch loads the kernel, which fails where the part has not the resources for it.
                        self._real._init_handles()
                except Exception as error:
                    self._error = error
                    raise
            return self._real

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name == FUTURE_METHOD:
                raise AttributeError(name)
            return getattr(self.settle(), name)

        def _init_handles(self) -> None:
            self.settle()._init_handles()

        def __getitem__(self, grid: Any) -> Any:
            return self.settle()[grid]

        def launch_metadata(self, grid: Any, stream: Any, *arguments: Any) -> Any:
            return self._real.launch_metadata(grid, stream, *arguments) if self._must_settle() else None

        @property
        def run(self) -> Any:
            return self._real.run if self._must_settle() else self._launch

        @property
        def function(self) -> Any:
            return None if self._is_being_launched() else self.settle().function

        @property
        def packed_metadata(self) -> Any:
            return None if self._is_being_launched() else self.settle().packed_metadata

        def _must_settle(self) -> bool:
            text = "".join(self.known_texts.values())
            if self._error is not None or _NEEDS_SCRATCH in text or triton_api.program_watches_compiles():
                self.settle()
            return self._real is not None

        def _is_being_launched(self) -> bool:
            return self._real is None and sys._getframe(2).f_globals.get("__name__") == "triton.runtime.jit"

        def _launch(self, *arguments: Any) -> Any:
            launcher = triton_api.active_driver().launcher_cls(self.src, SimpleNamespace())
            launcher.kernel = weakref.ref(self)
            try:
                launcher(*arguments)
                self._was_launched = True
            except ValueError:
                # Whether an argument is refused may depend on how the kernel takes it.
                return self.settle().run(*arguments)

        def __del__(self) -> None:
            """The kernel that was loaded is unloaded by itself."""

    return DeferredKernel


_REPORTERS = ("IPython", "runpy", "importlib", "triton", "irscope")
"""Packages that run a program and report whatever it raises: no part of what it does depends on that."""
_PASSING = ("torch", "triton", "threading", "_thread", "io", "_io", "tempfile", "numpy", "irscope")
"""Packages whose context managers let every exception pass."""
_PASSING_MANAGERS = (
    contextlib.nullcontext,
    contextlib.closing,
    contextlib.redirect_stdout,
    contextlib.redirect_stderr,
    contextlib.chdir if sys.version_info >= (3, 11) else contextlib.nullcontext,
)

_Handler = tuple[bool, tuple[ast.expr, ...]]
"""Whether a handler around a place in code may catch, and the expressions of the managers that decide it otherwise."""


def may_be_caught(frame: FrameType | None) -> bool:
    """Whether a caller may catch what is raised at its call, outside of Triton and of what runs programs."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _REPORTERS:
            catches, managers = _handlers_at(frame.f_code, frame.f_lasti)
            if catches or not all(_lets_pass(manager, frame) for manager in managers):
                return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def _handlers_at(code: CodeType, at: int) -> _Handler:
    if sys.version_info < (3, 11):
        return _is_within_try(code, at), ()
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    instructions = list(dis.get_instructions(code)) if table else []
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    seen: set[int] = set()
    managers: list[ast.expr] = []
    while (entry := next((row for row in table if row.start <= at < row.end), None)) and entry.target not in seen:
        seen.add(entry.target)
        handler = instructions[places[entry.target] :]
        kind, place = _kind_of(handler)
        if kind == "except":
            return True, ()
        if kind == "with":
            if not (made := _managers_at(code, place)):
                return True, ()
            managers += made
        # What it raises again reaches the handler that is around it.
        at = next((one.offset for one in handler if one.opname == "RERAISE"), -1)
    return False, tuple(managers)


def _kind_of(handler: list[Any]) -> tuple[str, Any]:
    """`except`, `with` and its place, or `finally`, which the clean-up of another handler is too."""
    for instruction in handler:
        name = instruction.opname
        if name == "WITH_EXCEPT_START":
            return "with", getattr(instruction, "positions", None)
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"):
            # The clean-up of a handler is COPY, POP_EXCEPT, RERAISE.
            is_cleanup = name == "POP_EXCEPT" and handler[0].opname == "COPY"
            return ("finally" if is_cleanup else "except"), None
        if name == "RERAISE":
            return "finally", None
    return "except", None


def _managers_at(code: CodeType, place: Any) -> list[ast.expr]:
    """The expressions that made the managers of a `with` at a place (up to Python 3.11, in it); none if not known."""
    if place is None or place.lineno is None or place.col_offset is None:
        return []
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(place.lineno, place.end_lineno + 1)]
    lines[-1] = lines[-1][: place.end_col_offset]
    lines[0] = lines[0][place.col_offset :]
    text = b"".join(lines)
    with contextlib.suppress(SyntaxError, ValueError):
        # A `return` or an `await` stands in a function.
        inner = b"async def _():\n " + text if text.startswith((b"with", b"async")) else b"(" + text + b")"
        (statement,) = ast.parse(inner).body
        if isinstance(statement, ast.AsyncFunctionDef):
            (statement,) = statement.body
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return [item.context_expr for item in statement.items]
        if isinstance(statement, ast.Expr):
            return [statement.value]
    return []


def _lets_pass(manager: ast.expr, frame: FrameType) -> bool:
    """Whether a manager is of a kind that lets every exception pass, as far as its expression tells."""
    made = manager.func if isinstance(manager, ast.Call) else manager
    value = _value_of(made, frame)
    if value is None:
        return False
    if not isinstance(manager, ast.Call):
        value = type(value)
    if inspect.isclass(value) or inspect.isroutine(value):
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        return value in _PASSING_MANAGERS or value is open or package in _PASSING
    return False


def _value_of(expression: ast.expr, frame: FrameType) -> Any:
    """The value of a name with attributes; None for every other expression. Runs no code of the program's."""
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if expression.id in names:
                return names[expression.id]
        return None
    if isinstance(expression, ast.Attribute):
        owner = _value_of(expression.value, frame)
        found = inspect.getattr_static(owner, expression.attr, None) if owner is not None else None
        return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return None


def _is_within_try(code: CodeType, at: int) -> bool:
    """For Python 3.10: whether the call stands within a `try` or a `with`, whatever that does."""
    return any(
        instruction.opname in ("SETUP_FINALLY", "SETUP_WITH") and instruction.offset < at < instruction.argval
        for instruction in dis.get_instructions(code)
    )


_LONGEST_PAUSE_S = 0.02


class _Compile(Protocol):
    number: int
    target: Target
    launch: Launch
    given: tuple[Any, Any]
    texts: dict[str, str]
    source: str
    source_name: str
    pass_count: int

    def report(self, event: RecordingEvent) -> None: ...


class LeftOut(BaseException):
    """Raised through Triton's `compile` where its result is another's, or stored; no error."""

    def __init__(self, key: str, texts: Mapping[str, str]) -> None:
        super().__init__(key)
        self.key, self.texts = key, texts


class Handover:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = str(triton_api.knobs().cache.dir)
        self._process = os.getpid()
        self._installed = triton_api.compiler_state()
        self._kernels: dict[str, Any] = {}
        """Those that the script has for the compiles that were handed over, by key; None at first."""
        self.has_compiled = False
        """Whether a compile ended in this process: one alone is made here, where nothing is to be set up for it."""

    def takes_launches(self) -> bool:
        return (
            self.has_compiled
            and os.getpid() == self._process
            and not is_rehearsal()
            and not triton_api.program_watches_compiles()
            and triton_api.compiler_state() == self._installed
            and not may_be_caught(sys._getframe(1))
        )

    def take(self, current: _Compile, stage: str, module: Any, key: str, metadata: dict[str, Any]) -> None:
        """Hand over a compile that is at a stage, and raise LeftOut; returns where it must be made here."""
        src, options = current.given
        if key in self._kernels:
            current.report(CompileDropped(current.number))
            raise LeftOut(key, current.texts)
        parsed = plain(vars(options))
        if tupled(parsed) != vars(options) or tupled(plain(metadata)) != tupled(metadata):
            return
        job = CompileJob(
            number=current.number,
            target=str(current.target),
            name=src.name,
            extension=src.ext,
            language=current.launch.language,
            source_key=src.hash(),
            key=key,
            options=parsed,
            texts={current.source_name: current.source, **current.texts},
            module=triton_api.generic_text(module),
            stage=stage,
            metadata=plain(metadata),
            passes=current.pass_count,
            environment=dict(os.environ),
            survived=ERRORS_OF_A_CONFIGURATION if is_timing() else (),
            cache=self._cache,
        )
        self._kernels[key] = None
        current.report(HandedOver(current.number, job, _frames()))
        raise LeftOut(key, current.texts)

    def launched(self, key: str, kernel: Any) -> None:
        if key in self._kernels:
            self._kernels[key] = kernel

    def stop_where_failed(self) -> None:
        try:
            key = (self._folder / FAILED).read_text()
        except OSError:
            return
        if (kernel := self._kernels.get(key)) is not None:
            kernel.settle()

    def wait_for(self, key: str) -> None:
        pause_s = 0.001
        while key in self._kernels and self._folder.is_dir() and not (self._folder / ENDED / key).exists():
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _frames() -> str:
    rows = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)))
    return "".join(traceback.format_list([row for row in reversed(rows) if not is_library(row.filename)]))
