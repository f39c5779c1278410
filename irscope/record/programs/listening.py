"""Records what a running process compiles, by Triton's own hooks and beside those of others: `irscope.listen(folder)`.

Triton calls its listener at the end of a compile and at no cached launch. What it made lies in its cache then, from
where it is copied into a capture, which a thread writes; nothing is compiled, printed or disassembled for that. A plan
needs the hook for stages too, whose answer enters Triton's keys: kernels of a plan and others are never taken for one
another.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import warnings
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from irscope.errors import MissingTool
from irscope.ir.logs.launch_text import launch_of_module
from irscope.model.capture import STAGE_NAMES, Capture, Target, stage_named
from irscope.plan import PassPlan
from irscope.record.compile.launches import describe_launch, plain
from irscope.record.compile.watch import Watch, tap
from irscope.record.process import events
from irscope.record.process.assembly import Assembly, OpenCapture
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.recording import SourceFiles, describe_environment
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import code_variables, compiler_parts
from irscope.record.triton.versions import require_names, triton_version
from irscope.store.collection import Collection


class Listening:
    """A recording of this process that is under way; `close()`, or the end of its `with` block, ends it."""

    def __init__(self, folder: str | Path, plan: PassPlan, max_bytes: int) -> None:
        triton_api.require_triton()
        require_names(virtual=False)
        if plan and not triton_api.stages_are_in_the_key():
            raise MissingTool(
                f"Triton {triton_version()} has no key for changed stages, so kernels of a plan would stay in its "
                "cache as if they were others: listen without plan=, or use Triton 3.7 or later."
            )
        self.folder = Path(folder)
        self.count = 0
        """How many captures were written."""
        self.problem = ""
        """Why the last compile that could not be recorded was not; empty if all were."""
        self._plan = plan
        self._max_bytes = max_bytes
        self._kept: deque[tuple[Path, int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._writers: list[threading.Thread] = []
        self._active = True
        self._begun: dict[Target, tuple[events.Begun, tuple[tuple[str, str], ...]]] = {}
        self._open = threading.local()
        self._request = RecordRequest(mode="script", plan=plan, snapshots="none")
        self._watch = Watch(self._take, self._request)
        self._collection = Collection(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._patches = ExitStack()
        self._knobs = triton_api.knobs()
        self._before = self._knobs.compilation.listener
        self._knobs.compilation.listener = self._compiled
        self._hook_before = self._knobs.runtime.add_stages_inspection_hook
        if plan:
            self._patches.enter_context(tap(triton_api.backend_classes(), lambda: self._watch.current))
            self._knobs.runtime.add_stages_inspection_hook = self._staged

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "listening" if self._active else "ended"
        return f"<{state}: {self.count} captures in {str(self.folder)!r}{self.problem and f'; {self.problem}'}>"

    def wait(self) -> None:
        """Wait until all that was compiled so far is in the folder, where it is written while the program goes on."""
        for writer in self._writers:
            writer.join()

    def close(self) -> None:
        """End the recording; hooks that others set since then stay, and still call those that were there before."""
        self.wait()
        if not self._active:
            return
        self._active = False
        if self._knobs.compilation.listener == self._compiled:
            self._knobs.compilation.listener = self._before
        if self._knobs.runtime.add_stages_inspection_hook == self._staged:
            self._knobs.runtime.add_stages_inspection_hook = self._hook_before
        self._patches.close()

    # Triton's hooks

    def _compiled(self, **said: Any) -> None:
        """The end of a compile, with Triton's keywords: src, metadata, metadata_group, times, cache_hit."""
        if self._before is not None:
            self._before(**said)
        if not self._active:
            return
        try:
            if not said["cache_hit"]:
                capture = self._capture(said["src"], said["metadata"], said["metadata_group"], said["times"])
                # A thread for each: one that waits for work would not be there in a process that is forked. Python
                # itself waits for them at its end.
                self._writers = [one for one in self._writers if one.is_alive()]
                self._writers.append(threading.Thread(target=self._write, args=(capture,), name="irscope.listen"))
                self._writers[-1].start()
        except Exception as error:
            # A server's compile does not fail because of a full disk, or of what irscope does not know.
            self._tell(f"{type(error).__name__}: {error}")
        finally:
            self._end_watched()

    def _staged(self, *given: Any) -> Any:
        before = self._hook_before
        if not given:
            key, digest = before() if before is not None else ("", "")
            if not self._active:
                return key, digest
            key = f"{key} irscope {self._plan}"
            return key, hashlib.sha256(f"{digest} {key}".encode()).hexdigest()
        result = before(*given) if before is not None else None
        if self._active:
            backend, stages, *_ = given
            self._end_watched()
            target = triton_api.target_of(backend.target)
            current = self._watch.begin(target)
            self._open.compile = OpenCapture(target, current.launch)
            current.wrap_stages(stages)
        return result

    def _take(self, event: events.RecordingEvent) -> None:
        if isinstance(event, events.CompileEvent):
            self._open.compile.take(event)

    def _end_watched(self) -> None:
        """End this thread's compile, and one that failed before it, of which Triton says nothing."""
        while self._watch.current is not None:
            self._watch.end()

    def _write(self, capture: Capture) -> None:
        try:
            self._keep(capture)
        except Exception as error:
            self._tell(f"{type(error).__name__}: {error}")

    def _tell(self, problem: str) -> None:
        if not self.problem:
            warnings.warn(f"irscope.listen: a compile was not recorded: {problem}", stacklevel=2)
        self.problem = problem

    # Captures

    def _capture(self, src: Any, metadata: Mapping[str, Any], paths: Mapping[str, str], times: Any) -> Capture:
        target = triton_api.target_of(metadata["target"])
        backend = triton_api.make_backend(target)
        texts: dict[str, bytes | str] = {}
        for name, path in paths.items():
            stage = name.rpartition(".")[2]
            if stage in STAGE_NAMES:
                data = Path(path).read_bytes()
                texts[stage] = data if stage_named(stage).is_binary else data.decode("utf-8", "replace")
        first = texts[min(texts, key=STAGE_NAMES.index)]
        launch = describe_launch(src) if hasattr(src, "fn") else launch_of_module(str(first))
        options = {name: metadata[name] for name in vars(backend.parse_options({})) if name in metadata}
        if target not in self._begun:
            parts = compiler_parts(target, type(backend), dict(options.get("extern_libs") or ()).items())
            begun = describe_environment(target, real=triton_api.present_gpu() is not None)
            self._begun[target] = begun, parts
        begun, parts = self._begun[target]
        assembly = Assembly(self._request, " ".join(sys.argv))
        assembly.feed(begun)
        assembly.feed(events.CompileBegun(0, target, launch))
        assembly.feed(events.OptionsKnown(0, plain(options)))
        variables = code_variables(target.backend)
        assembly.feed(events.CompilerKnown(0, parts, variables, dict(begun.environment.tools)))
        SourceFiles(assembly.feed, self._request).report(launch.kernel.file)
        durations = dict(times.lowering_stages)
        for stage, data in texts.items():
            assembly.feed(events.ArtifactMade(0, stage, data, durations.get(stage)))
        known = plain({name: value for name, value in metadata.items() if name != "target"})
        assembly.feed(events.CompileEnded(0, "", known, ""))
        (capture,) = assembly.captures()
        passes = self._open.compile.snapshots if self._plan else {}
        snapshots = tuple(snapshot for _, snapshot in sorted(passes.items()))
        return replace(capture, snapshots=snapshots, compile_us=times.total_lowering)

    def _keep(self, capture: Capture) -> None:
        with self._lock:
            self._collection.add(capture)
            path = self._collection.path_of(capture)
            size = path.stat().st_size
            self.count += 1
            for known in [row for row in self._kept if row[0] == path]:
                self._kept.remove(known)
                self._bytes -= known[1]
            self._kept.append((path, size))
            self._bytes += size
            while self._bytes > self._max_bytes and len(self._kept) > 1:
                oldest, freed = self._kept.popleft()
                self._bytes -= freed
                oldest.unlink(missing_ok=True)
