"""Compiles on from the text of a stage, without a script: a capture's `source`, an IR file, an edited snapshot."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irscope.errors import RecordingError, did_you_mean
from irscope.model.capture import Kernel, Launch, Target
from irscope.record.compile.block_arguments import restore_block_arguments
from irscope.record.compile.launch_arguments import plain
from irscope.record.compile.launches import describe_traceback
from irscope.record.compile.retarget import Retargeted, chosen_options, for_target
from irscope.record.compile.watch import Watch, WatchedCompile, finish_compile
from irscope.record.process.events import ArtifactMade, CompileBegun, Note, OptionsKnown, ParseBegun, ParseEnded
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import triton_version


def compile_text(watch: Watch, target: Target) -> None:
    """Compile on from the request's text, an artifact of its stage, for a target; reported as any compile."""
    request = watch.request
    work = _retargeted(request, target)
    launch = work.launch
    if launch.set_options is not None:
        chosen = {**dict(launch.set_options), **dict(request.options)}
        launch = dataclasses.replace(launch, set_options=tuple(sorted(chosen.items())))
    watched = watch.begin(target)
    watch.sink(CompileBegun(watched.number, target, launch, watched.log_from))
    for note in work.notes:
        watch.sink(Note(note))
    try:
        _run_stages(request, work, watched, target)
    except BaseException as error:
        watched.failed(error, describe_traceback(error))
        raise
    finally:
        watch.end()
    finish_compile(watched, "")


def _retargeted(request: RecordRequest, target: Target) -> Retargeted:
    if request.compiled_launch is None:
        kernel = Kernel(Path(request.path).stem, request.path)
        # Only Gluon's pipeline begins with this stage.
        language = "gluon" if "glir" in (request.stage, request.resume_stage) else "triton"
        launch = Launch(kernel, set_options=(), language=language)
        return Retargeted(request.text, launch, {}, _assumed(request, target))
    launch = request.compiled_launch
    origin = Target.parse(request.compiled_target) if request.compiled_target else target
    if origin == target or not launch.options:
        return Retargeted(request.text, launch, chosen_options(dict(launch.options)))
    return for_target(request.text, request.stage, launch, origin, target)


def _assumed(request: RecordRequest, target: Target) -> tuple[str, ...]:
    if request.stage not in ("ttir", "ttgir", "glir", "llir"):
        return ()
    given = ", ".join(f"{name}={value}" for name, value in request.options)
    what = f"of a {request.stage}" if not request.resume_stage else f"for the passes of {request.resume_stage}"
    said = f"Compiled from a text {what}, which does not tell the launch's options: "
    return (f"{said}{f'{given} are given, ' if given else ''}what is not in the text is {target}'s default.",)


def _run_stages(request: RecordRequest, work: Retargeted, watched: WatchedCompile, target: Target) -> None:
    backend = triton_api.make_backend(target)
    context = triton_api.new_context(backend)
    watched.source_name = "edited" if request.resume_stage else request.stage
    # Within the stage that makes LLVM IR, it is MLIR yet.
    if request.resume_stage or request.stage in ("source", "ttir", "glir", "ttgir"):
        watched.report(ParseBegun(watched.number, request.stage))
        with _file_of(request, work.text) as file:
            module: Any = triton_api.parse_module(file, context)
        watched.report(ParseEnded(watched.number))
        if request.reprinted:
            is_generic = request.reprinted == "generic"
            watched.report(ArtifactMade(watched.number, request.stage, triton_api.printed(module, generic=is_generic)))
            return
        restore_block_arguments(module, work.text)
        attributes = {
            "num_warps": module.get_int_attr("ttg.num-warps"),
            "num_ctas": module.get_int_attr("ttg.num-ctas"),
        }
    else:
        # The stage that makes LLVM IR, which sets up LLVM, is not run.
        triton_api.set_up_llvm(target)
        module, attributes = work.text, {}
    held = {key: value for key, value in attributes.items() if value is not None}
    options = _options(request, work, watched, backend, held)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, triton_api.language_of(work.launch.language))
    metadata: dict[str, Any] = {
        "hash": "",
        "target": triton_api.gpu_target(target),
        **vars(options),
        **triton_api.cache_invalidating_environment(),
        "triton_version": triton_version(),
    }
    # As for any compile: some of the code generator's hooks load libraries that the stages need.
    backend.get_codegen_implementation(options)
    for name, compile_stage in list(stages.items())[_first_stage(request, stages) :]:
        module = compile_stage(module, metadata)
        if name == request.last_stage:
            break


@contextmanager
def _file_of(request: RecordRequest, text: str) -> Iterator[Path]:
    """A file with the text: the IR file itself if there is one, for the parser's errors and bare locations."""
    path = Path(request.path)
    if request.compiled_launch is None and path.is_file() and path.read_text("utf-8", "replace") == text:
        yield path
        return
    with tempfile.TemporaryDirectory(dir=parent_of_temporaries()) as folder:
        file = Path(folder, f"{path.stem}.{request.stage}")
        file.write_text(text, "utf-8", "surrogateescape")
        yield file


def _first_stage(request: RecordRequest, stages: dict[str, Any]) -> int:
    names = list(stages)
    if request.resume_stage in names:
        return names.index(request.resume_stage)
    if request.resume_stage:
        raise RecordingError(
            f"there is no stage {request.resume_stage!r} here whose passes could run on it: the stages are "
            f"{', '.join(names)}.{did_you_mean(request.resume_stage, names)}"
        )
    if request.stage == "source":
        return 0
    if request.stage not in names[:-1]:
        raise RecordingError(
            f"nothing compiles on from stage {request.stage!r} here: the stages are {', '.join(names)}."
            + did_you_mean(request.stage, names[:-1])
        )
    return names.index(request.stage) + 1


def _options(
    request: RecordRequest, work: Retargeted, watched: WatchedCompile, backend: Any, attributes: dict[str, Any]
) -> Any:
    """The launch's own options, those that the backend sets left out, overridden by the request's.

    What the backend refuses is reported with the text: the failed capture is told from others, and compiles again.
    """
    replaced = dict(request.options)
    triton_api.check_options(backend, watched.target, replaced)
    for name, value in attributes.items():
        if name in replaced and replaced[name] != value:
            raise RecordingError(
                f"{name}={replaced[name]} cannot be changed here: the IR is laid out for {name}={value} already. "
                "Record the script again with that value."
            )
    asked = {**work.options, **attributes, **replaced}
    try:
        return backend.parse_options(asked)
    except Exception:
        watched.report(OptionsKnown(watched.number, plain({**vars(backend.parse_options({})), **asked})))
        watched.report(ArtifactMade(watched.number, request.stage, work.text))
        raise
