"""Compiles on from the text of a stage, with no script: a capture's own `source`, an IR file, an edited snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irscope.capture import Target
from irscope.errors import RecordingError, did_you_mean
from irscope.record import triton_api
from irscope.record.block_arguments import restore_block_arguments
from irscope.record.compiles import Watch, WatchedCompile, finish_compile, plain
from irscope.record.launches import describe_traceback
from irscope.record.request import RecordRequest
from irscope.store import tupled

# What a backend fills in by itself, from the target or from the machine.
_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")


def compile_text(request: RecordRequest, watch: Watch, target: Target) -> None:
    """Compile on from `request.text`, an artifact of `request.stage`, for a target; tells of it as of any compile."""
    launch = request.launch or {"kernel": {"name": Path(request.path).stem, "file": request.path}}
    watched = watch.begin(target)
    watched.emit("compile-begin", target=str(target), warp_size=target.warp_size, launch=launch)
    try:
        _run_stages(request, watched, target)
    except BaseException as error:
        watched.emit("compile-failed", **describe_traceback(error), log="".join(watched.printed))
        raise
    finally:
        watch.end()
    finish_compile(watched, "")


def _run_stages(request: RecordRequest, watched: WatchedCompile, target: Target) -> None:
    backend = triton_api.make_backend(target)
    context = triton_api.new_context(backend)
    language = (request.launch or {}).get("language", "triton")
    watched.starts_from("edited" if request.resume_stage else request.stage)
    if request.stage in ("source", "ttir", "glir", "ttgir"):
        with tempfile.NamedTemporaryFile("w", suffix=f".{request.stage}", encoding="utf-8") as file:
            file.write(request.text)
            file.flush()
            module: Any = triton_api.parse_module(Path(file.name), context)
        restore_block_arguments(module, request.text)
        attributes = {
            "num_warps": module.get_int_attr("ttg.num-warps"),
            "num_ctas": module.get_int_attr("ttg.num-ctas"),
        }
    else:
        # The stage that makes LLVM IR sets LLVM up; it is behind this text.
        triton_api.set_up_llvm(target)
        module, attributes = request.text, {}
    options = _options(request, backend, target, {key: value for key, value in attributes.items() if value is not None})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, triton_api.language_of(language))
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


def chosen_options(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded options as the backend they are of takes them, without what it fills in by itself."""
    return {key: tupled(value) for key, value in recorded.items() if key not in _BACKENDS_OWN}


def _options(request: RecordRequest, backend: Any, target: Target, attributes: dict[str, Any]) -> Any:
    """The launch's own options as far as they were chosen, not filled in, and the request's over them."""
    chosen: dict[str, Any] = {}
    recorded = {key: tupled(value) for key, value in (request.launch or {}).get("options", ())}
    if recorded:
        origin = Target.parse(request.launch_target) if request.launch_target else target
        if origin == target:
            chosen = chosen_options(recorded)
        else:
            filled_in = plain(vars(triton_api.make_backend(origin).parse_options({})))
            chosen = {
                key: value
                for key, value in recorded.items()
                if key not in _BACKENDS_OWN and key in filled_in and plain(value) != filled_in[key]
            }
    replaced = dict(request.options)
    triton_api.check_options(backend, target, replaced)
    for name, value in attributes.items():
        if name in replaced and replaced[name] != value:
            raise RecordingError(
                f"{name}={replaced[name]} cannot be changed here: the IR is laid out for {name}={value} already. "
                "Record the script again with that value."
            )
    return backend.parse_options({**chosen, **attributes, **replaced})
