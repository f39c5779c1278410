"""Compiles on from the text of a stage, with no script: a capture's own `source`, an IR file, an edited snapshot."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irscope.capture import Kernel, Launch, Target
from irscope.errors import RecordingError, did_you_mean
from irscope.record import triton_api
from irscope.record.block_arguments import restore_block_arguments
from irscope.record.compiles import Watch, WatchedCompile, finish_compile
from irscope.record.launches import describe_traceback
from irscope.record.own_folder import parent_of_temporaries
from irscope.record.request import RecordRequest, launch_of
from irscope.record.retarget import Retargeted, for_its_own_target, for_target


def compile_text(request: RecordRequest, watch: Watch, target: Target) -> None:
    """Compile on from `request.text`, an artifact of `request.stage`, for a target; tells of it as of any compile."""
    what = _what(request, target)
    launch = dataclasses.asdict(what.launch)
    if what.launch.set_options is not None:
        launch["set_options"] = sorted({**dict(what.launch.set_options), **dict(request.options)}.items())
    watched = watch.begin(target)
    watched.emit("compile-begin", target=str(target), warp_size=target.warp_size, launch=launch, log=watched.log_from)
    for note in what.notes:
        watch.emit("note", text=note)
    try:
        _run_stages(request, what, watched, target)
    except BaseException as error:
        watched.failed(error, describe_traceback(error))
        raise
    finally:
        watch.end()
    finish_compile(watched, "")


def _what(request: RecordRequest, target: Target) -> Retargeted:
    if request.launch is None:
        kernel = Kernel(Path(request.path).stem, request.path)
        return Retargeted(request.text, Launch(kernel, set_options=()), {}, _assumed(request, target))
    launch = launch_of(request.launch)
    origin = Target.parse(request.launch_target) if request.launch_target else target
    if origin == target or not launch.options:
        return for_its_own_target(request.text, launch)
    return for_target(request.text, request.stage, launch, origin, target)


def _assumed(request: RecordRequest, target: Target) -> tuple[str, ...]:
    if request.stage not in ("ttir", "ttgir", "glir", "llir"):
        return ()
    given = ", ".join(f"{name}={value}" for name, value in request.options)
    said = f"Compiled from the text of a {request.stage}, which does not tell the launch's options: "
    return (f"{said}{f'{given} are given, ' if given else ''}what is not in the text is {target}'s default.",)


def _run_stages(request: RecordRequest, what: Retargeted, watched: WatchedCompile, target: Target) -> None:
    backend = triton_api.make_backend(target)
    context = triton_api.new_context(backend)
    watched.starts_from("edited" if request.resume_stage else request.stage)
    if request.stage in ("source", "ttir", "glir", "ttgir"):
        watched.emit("parse-begin", stage=request.stage)
        with _file_of(request, what.text) as file:
            module: Any = triton_api.parse_module(file, context)
        watched.emit("parse-end")
        restore_block_arguments(module, what.text)
        attributes = {
            "num_warps": module.get_int_attr("ttg.num-warps"),
            "num_ctas": module.get_int_attr("ttg.num-ctas"),
        }
    else:
        # The stage that makes LLVM IR sets LLVM up; it is behind this text.
        triton_api.set_up_llvm(target)
        module, attributes = what.text, {}
    held = {key: value for key, value in attributes.items() if value is not None}
    options = _options(request, what, backend, target, held)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, triton_api.language_of(what.launch.language))
    metadata: dict[str, Any] = {
        "hash": "",
        "target": triton_api.gpu_target(target),
        **vars(options),
        **triton_api.cache_invalidating_environment(),
        "triton_version": triton_api.triton_version(),
    }
    # The code generator's hooks are set up as for any compile; some of them load libraries the stages need.
    backend.get_codegen_implementation(options)
    for _, compile_stage in list(stages.items())[_first_stage(request, stages) :]:
        module = compile_stage(module, metadata)


@contextmanager
def _file_of(request: RecordRequest, text: str) -> Iterator[Path]:
    """A file that holds the text: the IR file itself, which the parser's errors and bare locations then name."""
    path = Path(request.path)
    if request.launch is None and path.is_file() and path.read_text("utf-8", "replace") == text:
        yield path
        return
    with tempfile.TemporaryDirectory(dir=parent_of_temporaries()) as folder:
        file = Path(folder, f"{path.stem}.{request.stage}")
        file.write_text(text, "utf-8", "surrogateescape")
        yield file


def _first_stage(request: RecordRequest, stages: dict[str, Any]) -> int:
    names = list(stages)
    if request.resume_stage:
        return names.index(request.resume_stage)
    if request.stage == "source":
        return 0
    if request.stage not in names[:-1]:
        raise RecordingError(
            f"nothing compiles on from stage {request.stage!r} here: the stages are {', '.join(names)}."
            + did_you_mean(request.stage, names[:-1])
        )
    return names.index(request.stage) + 1


def _options(request: RecordRequest, what: Retargeted, backend: Any, target: Target, attributes: dict[str, Any]) -> Any:
    """The launch's own options as far as they were chosen, not filled in, and the request's over them."""
    replaced = dict(request.options)
    triton_api.check_options(backend, target, replaced)
    for name, value in attributes.items():
        if name in replaced and replaced[name] != value:
            raise RecordingError(
                f"{name}={replaced[name]} cannot be changed here: the IR is laid out for {name}={value} already. "
                "Record the script again with that value."
            )
    return backend.parse_options({**what.options, **attributes, **replaced})
