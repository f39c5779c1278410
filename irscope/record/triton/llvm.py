"""LLVM's own passes in this process: named one by one, left out by a plan, and timed.

Triton gives no access to them. Its libraries hold LLVM's functions for it, found by symbol as `reasons` finds its own:
`libtriton`, and from 3.9 on AMD's code generator, which is a library with an LLVM of its own.

LLVM asks a gate before each pass that may be left out (`llvm/IR/OptBisect.h`): `getGlobalPassGate` returns the object,
and while a compile is watched its table of virtual functions is one of this module's. Passes that must run are not
asked for. The middle end asks, and is timed, only where `LLVM_IR_ENABLE_DUMP` is set, which also prints the IR after
each pass; a filter for a function that does not exist keeps that away. Times are LLVM's own time trace
(`llvm/Support/TimeProfiler.h`), in microseconds.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from irscope.ir.logs.dump import pass_identifier
from irscope.ir.logs.time_trace import MARK, AskedPass, LlvmTrace
from irscope.model.capture import PassSnapshot
from irscope.plan import PassPlan
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import environment_variable
from irscope.record.triton.reasons import function_addresses

_PARSE = "LLVMParseCommandLineOptions"
# OptPassGate &getGlobalPassGate()
_GATE = "_ZN4llvm17getGlobalPassGateEv"
# PassRegistry *PassRegistry::getPassRegistry(), void PassRegistry::enumerateWith(PassRegistrationListener *)
_REGISTRY = "_ZN4llvm12PassRegistry15getPassRegistryEv"
_ENUMERATE = "_ZN4llvm12PassRegistry13enumerateWithEPNS_24PassRegistrationListenerE"
# void timeTraceProfilerInitialize(unsigned granularity, StringRef process, bool verbose)
_TRACE = "_ZN4llvm27timeTraceProfilerInitializeEjNS_9StringRefEb"
# Error timeTraceProfilerWrite(StringRef file, StringRef other), void timeTraceProfilerCleanup()
_WRITE = "_ZN4llvm22timeTraceProfilerWriteENS_9StringRefES0_"
_CLEAN = "_ZN4llvm24timeTraceProfilerCleanupEv"
# TimeTraceProfilerEntry *timeTraceProfilerBegin(StringRef name, StringRef detail), void timeTraceProfilerEnd()
_BEGIN = "_ZN4llvm22timeTraceProfilerBeginENS_9StringRefES0_"
_END = "_ZN4llvm20timeTraceProfilerEndEv"
# raw_fd_ostream &errs(), which has no buffer; void raw_ostream::SetBuffered(), which writes what a buffer holds
_ERRORS, _BUFFER = "_ZN4llvm4errsEv", "_ZN4llvm11raw_ostream11SetBufferedEv"
# void raw_ostream::SetBufferAndMode(char *buffer, size_t size, BufferKind), of an empty buffer; 0 is Unbuffered
_MODE = "_ZN4llvm11raw_ostream16SetBufferAndModeEPcmNS0_10BufferKindE"
_SYMBOLS = (_ERRORS, _BUFFER, _MODE, _PARSE, _GATE, _REGISTRY, _ENUMERATE, _TRACE, _WRITE, _CLEAN, _BEGIN, _END)

_MARK = MARK.encode()
_PRINT_NOTHING = b"-filter-print-funcs=no-function-has-this-name"
_STAGE_OF_MIDDLE_END = "llir"

_Text, _Size, _Pointer = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
# A StringRef is passed as two words. bool shouldRunPass(StringRef, StringRef), bool isEnabled(), passEnumerate(info *)
_ShouldRun = ctypes.CFUNCTYPE(ctypes.c_bool, _Pointer, _Pointer, _Size)
_IsEnabled = ctypes.CFUNCTYPE(ctypes.c_bool, _Pointer)
_Enumerated = ctypes.CFUNCTYPE(None, _Pointer, _Pointer)


class _Library:
    def __init__(self, path: Path, exported: str) -> None:
        self._addresses = function_addresses(path, _SYMBOLS, exported)
        self.is_complete = self._addresses.keys() == set(_SYMBOLS)
        self._arguments: dict[str, str] = {}
        self._names: dict[bytes, tuple[str, str]] = {}
        self._traced: set[str] = set()
        self._is_silent = False

    @cache  # noqa: B019 - there is one of each library
    def _function(self, symbol: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        return ctypes.PYFUNCTYPE(result, *arguments)(self._addresses[symbol])

    def print_nothing(self) -> None:
        """Keep this LLVM from printing IR in this process; before its first compile, which reads the filter once."""
        if self._is_silent:
            return
        self._is_silent = True
        words = [b"irscope", _PRINT_NOTHING]
        parse = self._function(_PARSE, None, ctypes.c_int, ctypes.POINTER(_Text), _Text)
        parse(len(words), (_Text * len(words))(*words), None)

    @contextmanager
    def writes_in_blocks(self) -> Iterator[None]:
        """Let this LLVM write what it prints in blocks: of each pass it prints the name, in eight pieces."""
        errors, write = self._function(_ERRORS, _Pointer)(), self._function(_BUFFER, None, _Pointer)
        write(errors)
        try:
            yield
        finally:
            write(errors)
            self._function(_MODE, None, _Pointer, _Text, _Size, ctypes.c_int)(errors, None, 0, 0)

    @contextmanager
    def gate(self, asked: list[AskedPass], runs: Callable[[str, str], bool] | None) -> Iterator[None]:
        """Add each pass that LLVM asks for to `asked`, until the end of the block; `runs(name, argument)` decides."""

        def should_run(_: Any, name: int, length: int) -> bool:
            # LLVM asks hundreds of times in a compile.
            text, answer = ctypes.string_at(name, length), True
            if runs is not None:
                # An exception cannot pass through LLVM.
                with suppress(Exception):
                    answer = runs(*self._named(text))
            asked.append((time.perf_counter_ns(), text, answer))
            return answer

        table = ctypes.cast(self._function(_GATE, _Pointer)(), ctypes.POINTER(_Pointer))
        before = table[0]
        own = ctypes.cast(before, ctypes.POINTER(_Pointer))
        functions = (_ShouldRun(should_run), _IsEnabled(lambda _: True))
        entries = (_Pointer * 4)(own[0], own[1], *(ctypes.cast(function, _Pointer) for function in functions))
        table[0] = ctypes.addressof(entries)
        try:
            yield
        finally:
            table[0] = before

    def argument_of(self, name: str) -> str:
        """`machine-cse` of `Machine Common Subexpression Elimination`; the middle end gives arguments as names."""
        if " " not in name:
            return name
        if name not in self._arguments:
            self._arguments |= self._registered()
        return self._arguments.setdefault(name, "")

    def _registered(self) -> dict[str, str]:
        rows: dict[str, str] = {}

        def note(_: Any, info: int) -> None:
            # llvm/PassInfo.h: StringRef PassName, StringRef PassArgument
            words = ctypes.cast(info, ctypes.POINTER(_Size))
            name, argument = (ctypes.string_at(words[at], words[at + 1]).decode() for at in (0, 2))
            rows.setdefault(name, argument)

        callback = ctypes.cast(_Enumerated(note), _Pointer)
        # Two destructors, passRegistered and passEnumerate.
        entries = (_Pointer * 4)(None, None, callback, callback)
        listener = (_Pointer * 1)(ctypes.addressof(entries))
        registry = self._function(_REGISTRY, _Pointer)()
        self._function(_ENUMERATE, None, _Pointer, _Pointer)(registry, ctypes.addressof(listener))
        return rows

    def _named(self, text: bytes) -> tuple[str, str]:
        if text not in self._names:
            name = text.decode("utf-8", "replace")
            argument = self.argument_of(name)
            self._names[text] = argument or pass_identifier(name), argument
        return self._names[text]

    @contextmanager
    def trace(self, stage: str, asked: list[AskedPass], take: Callable[[LlvmTrace], None]) -> Iterator[None]:
        """Give the time trace of the block, one stage, to `take`, with the passes that LLVM asked for."""
        self._function(_TRACE, None, ctypes.c_uint, _Text, _Size, ctypes.c_bool)(0, b"", 0, False)
        # The first call of a function takes several microseconds, in which its moment is not known.
        self._mark()
        begun_ns = self._mark()
        try:
            yield
        finally:
            # LLVM writes to a file that it opens by name; one in memory takes a third of the time of one in a folder.
            with open(os.memfd_create("irscope"), "rb") as file:
                place, error = f"/proc/self/fd/{file.fileno()}".encode(), ctypes.create_string_buffer(8)
                write = self._function(_WRITE, _Pointer, _Pointer, _Text, _Size, _Text, _Size)
                write(ctypes.addressof(error), place, len(place), b"", 0)
                self._function(_CLEAN, None)()
                data = file.read()
            if stage not in self._traced:
                self._traced.add(stage)
                self._arguments |= self._registered()
            take(LlvmTrace(data, begun_ns, tuple(asked), dict(self._arguments)))

    def _mark(self) -> int:
        """Add an event without duration to the trace that is being made, and return its moment."""
        begin, end = self._function(_BEGIN, None, _Text, _Size, _Text, _Size), self._function(_END, None)
        before_ns = time.perf_counter_ns()
        begin(_MARK, len(_MARK), b"", 0)
        moment_ns = (before_ns + time.perf_counter_ns()) // 2
        end()
        return moment_ns


_library = cache(_Library)


def _libraries(backend: str) -> list[_Library]:
    places = [triton_api.compiler_library()]
    if backend == "hip" and (code_generator := triton_api.amd_code_generator()) is not None:
        places.append(code_generator)
    return [library for place in places if (library := _library(*place)).is_complete]


class LlvmPasses:
    """LLVM's passes of one compile: counted by name, left out where a plan says so, timed on request."""

    def __init__(self, backend: str, plan: PassPlan, *, is_timed: bool, prints: bool) -> None:
        """`prints`: whether the IR after each pass is printed, with a line before it that names the pass."""
        self._libraries = _libraries(backend)
        self._plan = plan
        # Only their times are needed: the trace has the names.
        self._is_listed = not is_timed or plan.names_llvm
        self._is_timed = is_timed
        self._prints = prints
        self._counts: Counter[str] = Counter()
        self._stage = ""
        self.snapshots: list[PassSnapshot] = []
        """All of the compile; none where only times are requested."""
        self.traces: list[LlvmTrace] = []

    @property
    def is_available(self) -> bool:
        """Whether this Triton's libraries name the functions that are needed."""
        return bool(self._libraries)

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        self._stage = stage
        with ExitStack() as stack:
            if stage == _STAGE_OF_MIDDLE_END:
                stack.enter_context(environment_variable("LLVM_IR_ENABLE_DUMP", "1"))
            for library in self._libraries:
                if not self._prints:
                    library.print_nothing()
                    stack.enter_context(library.writes_in_blocks())
                asked: list[AskedPass] = []
                stack.enter_context(library.gate(asked, self._runs if self._is_listed else None))
                if self._is_timed:
                    stack.enter_context(library.trace(stage, asked, self.traces.append))
            yield

    def _runs(self, known: str, argument: str) -> bool:
        self._counts[known] += 1
        step = PassSnapshot(len(self.snapshots), self._stage, known, self._counts[known], argument, group="llvm")
        skipped = self._plan.skips(step)
        if skipped:
            step = replace(step, outcome="skipped", changed=False)
        self.snapshots.append(step)
        if self._prints:
            os.write(2, f"irscope: {'skips' if skipped else 'runs'} {known}\n".encode())
        return not skipped
