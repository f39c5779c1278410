"""Compiles on from the text of a stage, without a script, for its own target or for another one.

MLIR prints `scf.for %k = … iter_args(%acc_50 = %acc)` without the locations of %k and %acc_50, by which later stages
name values: the loop's, and that of the initial value, each with the Python variable's name. With both restored, every
later stage is the same. Only what the compiler derives from a launch is derived again, not the front end's IR.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irscope.errors import RecordingError, did_you_mean
from irscope.ir.locations.model import Frame
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.reader import Operation, Region, parse_mlir
from irscope.ir.mlir.tokens import split_commas
from irscope.model.capture import Kernel, Launch, Target
from irscope.model.plain import tupled
from irscope.record.compile.launches import (
    Attributes,
    attributes_of,
    attributes_of_small_tensor,
    describe_traceback,
    parsed_attributes,
    plain,
)
from irscope.record.compile.watch import Watch, WatchedCompile, finish_compile
from irscope.record.process import events
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import triton_version

# acc_50, as MLIR makes "acc" unique
_NUMBERED = re.compile(r"^(?P<name>.*\D)_\d+$")

_LOOPS = ("scf.for", "scf.while")
_MADE_UP = re.compile(r"^(?:arg\d+|\d+)$")


def _restore_block_arguments(module: Any, text: str) -> None:
    """Set the locations of the loops' block arguments from the module's text; nothing if its loops do not match."""
    locations = read_locations(text, "mlir")
    loops = list(_loops(parse_mlir(text).operations, frozenset(), locations.chain_at))
    operations = _loop_operations(module)
    if len(loops) != len(operations):
        return
    builder = triton_api.location_builder(module)
    # The outer loops first: an initial value may be an argument of one.
    for (names, frame), (operation, block) in reversed(list(zip(loops, operations, strict=True))):
        if block is None or block.get_num_arguments() != len(names):
            continue
        # An scf.for has its bounds and its step before the initial values, and an induction variable.
        is_for = operation.get_name() == "scf.for"
        for index, name in enumerate(names):
            if is_for and index == 0:
                place = builder.create_loc(frame.file, frame.line, frame.column)
            else:
                place = operation.get_operand(index + 2 * is_for).get_loc()
            named = place if _MADE_UP.match(name) else builder.create_name_loc(name, place)
            block.get_argument(index).set_loc(named)


def _loop_operations(module: Any) -> list[tuple[Any, Any]]:
    """(operation, the first block in it) of each loop of a module, after the loops within it."""
    first_blocks: dict[int, Any] = {}
    found: list[tuple[Any, Any]] = []

    def visit(operation: Any) -> None:
        block = operation.get_block()
        # The module itself is in no block.
        if block is not None and (region := block.get_parent()) is not None:
            first_blocks.setdefault(region.id(), block)
        if operation.get_name() in _LOOPS:
            found.append((operation, first_blocks.get(operation.get_region(0).id())))

    module.walk(visit)
    return found


def _loops(
    operations: Iterable[Operation], outer: frozenset[str], chain_at: Callable[[int], Sequence[Frame]]
) -> Iterator[tuple[list[str], Frame]]:
    """(names of the block arguments in Python, place) of each loop of a text, after the loops within it."""
    for operation in operations:
        for region in operation.regions:
            known = outer | _names_of(region)
            for block in region.blocks:
                yield from _loops(block.operations, known, chain_at)
        first = next((block for region in operation.regions for block in region.blocks[:1]), None)
        chain = chain_at(operation.first_line)
        if operation.name in _LOOPS and first is not None and chain:
            seen, names = set(outer), list[str]()
            for argument in first.arguments:
                names.append(_base(argument.name[1:], seen))
                seen.add(argument.name[1:])
            yield names, chain[0]


def _names_of(region: Region) -> frozenset[str]:
    values = (
        value
        for block in region.blocks
        for value in (*block.arguments, *(result for operation in block.operations for result in operation.results))
    )
    return frozenset(value.name[1:].partition("#")[0] for value in values)


def _base(name: str, seen: Container[str]) -> str:
    """The Python name in an SSA name: MLIR adds a number only if another value has that name already."""
    match = _NUMBERED.match(name)
    return match["name"] if match is not None and match["name"] in seen else name


# The options that a backend sets by itself, from the target or from the machine.
_BACKENDS_OWN = ("arch", "backend_name", "warp_size", "extern_libs", "ir_override")

# %x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc))  |  %n: i32
_ARGUMENT = re.compile(r"^(?P<head>%[\w$.-]+: (?:!tt\.ptr<(?:[^<>]|<[^<>]*>)*>|[su]?i\d+))(?: \{[^{}]*\})?")
# %x_ptr: !tt.ptr<f32>
_BEGIN = re.compile(r"%[\w$.-]+: ")
# %acc = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
_DOT = re.compile(
    r"(?P<head>\btt\.dot %[^:\n]*?)(?P<precision>, inputPrecision = \w+)?(?P<rest>(?:, maxNumImpreciseAcc[^:\n]*: i32)?"
    r"(?: \{[^{}\n]*\})? : tensor<[^>]*>)"
)
# ttg.target = "cuda:90"
_TARGET = re.compile(r'(?P<head>\bttg\.target = ")(?P<target>[^"]*)"')


@dataclass(frozen=True, slots=True)
class _Retargeted:
    text: str
    launch: Launch
    """With that target's attributes and options."""
    options: dict[str, Any]
    """For the backend to parse; the others are its defaults."""
    notes: tuple[str, ...] = ()


def chosen_options(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded options as their backend parses them, without those that it sets by itself."""
    return {key: tupled(value) for key, value in recorded.items() if key not in _BACKENDS_OWN}


def _for_target(text: str, stage: str, launch: Launch, origin: Target, target: Target) -> _Retargeted:
    """A launch recorded for `origin`, for another target; raises RecordingError for layouts of another warp size."""
    made_by, backend = triton_api.make_backend(origin), triton_api.make_backend(target)
    options, notes = _options(launch, origin, target, vars(made_by.parse_options({})), vars(backend.parse_options({})))
    launch = replace(launch, set_options=tuple(sorted(options.items())))
    if stage == "source" and launch.language == "triton":
        attributes, more = _attributes(launch, made_by, backend, origin)
        notes += more
        text, unplaced = with_attributes(text, launch.kernel.name, dict(launch.signature), attributes)
        if unplaced:
            notes.append(
                f"The attributes of {', '.join(unplaced)} are as recorded: the IR does not have these arguments."
            )
            attributes = {path: rows for path, rows in attributes.items() if path not in unplaced}
        held = {**dict(launch.attributes), **dict.fromkeys(attributes, "")}
        held |= {path: ", ".join(f"{name}={value}" for name, value in rows) for path, rows in attributes.items()}
        launch = replace(launch, attributes=tuple((path, rows) for path, rows in held.items() if rows))
        text, more = _with_dot_precision(text, made_by, backend, origin, target)
        notes += more + _front_end_notes(text, origin, target)
    else:
        text = _laid_out_for(text, origin, target)
        notes.append(f"Its layouts are those chosen for {origin}.")
    said = (
        f"Compiled for {target} from the {stage} made for {origin}: attributes and defaults are those of {target}. "
        f"The script may choose other constants, num_warps or grids for {target}: "
        f"irscope dump FILE --target {target} records that."
    )
    return _Retargeted(text, launch, options, (said, *notes))


def _options(
    launch: Launch, origin: Target, target: Target, origin_defaults: dict[str, Any], defaults: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    if launch.set_options is not None:
        chosen = {key: tupled(value) for key, value in launch.set_options if key not in _BACKENDS_OWN}
        unknown = sorted(name for name in chosen if name not in defaults)
        notes = [
            f"{target} has no option {name}: {name}={chosen.pop(name)} of the script is left out." for name in unknown
        ]
        return chosen, notes
    chosen = {
        key: value
        for key, value in chosen_options(dict(launch.options)).items()
        if key in origin_defaults and key in defaults and plain(value) != plain(origin_defaults[key])
    }
    note = (
        f"The capture does not record which options the script set: those that differ from {origin}'s defaults are "
        f"assumed ({', '.join(f'{key}={value}' for key, value in chosen.items()) or 'none'})."
    )
    return chosen, [note]


def _attributes(launch: Launch, made_by: Any, backend: Any, origin: Target) -> tuple[Attributes, list[str]]:
    """The attributes of every argument that has any, or had: an empty row for one that has none now."""
    recorded = dict(launch.attributes)
    signature = dict(launch.signature)
    if launch.record is not None:
        then = attributes_of(made_by, launch.record, signature)
        texts = {path: ", ".join(f"{name}={value}" for name, value in rows) for path, rows in then.items()}
        if texts == recorded:
            now = attributes_of(backend, launch.record, signature)
            return {argument.path: now.get(argument.path, ()) for argument in launch.record.arguments}, []
    aligned = parsed_attributes(made_by, "D")
    now = {
        path: parsed_attributes(backend, "D")
        if all(f"{name}={value}" in held.split(", ") for name, value in aligned)
        else ()
        for path, held in recorded.items()
    }
    lost = left_out_of_pointers(backend, signature, now)
    why = "has no record of its launch" if launch.record is None else f"does not explain {origin}'s attributes"
    said = f"The capture {why}: the alignment is as recorded"
    return now, [f"{said}, and {lost}." if lost else f"{said}."]


def left_out_of_pointers(backend: Any, signature: Mapping[str, str], attributes: Attributes) -> str:
    """What a backend derives from a tensor's size and cannot where that is not known, as text; or an empty string."""
    aligned = parsed_attributes(backend, "D")
    by_size = [f"{name}={value}" for name, value in attributes_of_small_tensor(backend) if (name, value) not in aligned]
    pointers = [path for path, kind in signature.items() if str(kind).startswith("*")]
    if not by_size or not any(attributes.get(path, aligned) == aligned for path in pointers):
        return ""
    return f"the tensors' sizes are not known, so {', '.join(by_size)} is left out"


def with_attributes(
    text: str, kernel: str, signature: Mapping[str, str], attributes: Attributes
) -> tuple[str, tuple[str, ...]]:
    """A Triton IR text with other attributes on its kernel's arguments, and the paths without an argument there."""
    start = text.find(f"tt.func public @{kernel}(")
    end = text.find("\n", start)
    # 3.6 gives all elements of a tuple the parameter's name: only their order distinguishes them.
    begins = [start + match.start() for match in _BEGIN.finditer(text[start:end])] if start >= 0 else []
    paths = [path for name, kind in signature.items() for path in _argument_paths(name, kind)]
    if len(begins) != len(paths):
        return text, tuple(path for path, rows in attributes.items() if rows)
    pieces = [text[: begins[0]]] if begins else [text]
    for path, begin, stop in zip(paths, begins, [*begins[1:], len(text)], strict=True):
        piece = text[begin:stop]
        if path in attributes:
            rows = ", ".join(f"{name} = {value} : i32" for name, value in sorted(attributes[path]))
            held = f" {{{rows}}}" if rows else ""
            piece = _ARGUMENT.sub(lambda match, held=held: f"{match['head']}{held}", piece, count=1)
        pieces.append(piece)
    return "".join(pieces), tuple(path for path, rows in attributes.items() if rows and path not in paths)


def _argument_paths(path: str, kind: str) -> Iterator[str]:
    if kind.startswith("("):
        # (*fp32, (i32, constexpr))
        for index, item in enumerate(filter(None, split_commas(kind[1:-1]))):
            yield from _argument_paths(f"{path}[{index}]", item)
    elif kind.startswith("tensordesc<"):
        # The descriptor, and its sizes and strides.
        block = kind.partition("[")[2].partition("]")[0]
        yield from [""] * (1 + 2 * len(block.split(",")))
    elif kind != "constexpr":
        yield path


def _with_dot_precision(text: str, made_by: Any, backend: Any, origin: Target, target: Target) -> tuple[str, list[str]]:
    """Change the dots' default precision, which the front end writes: tf32 if the backend supports it, else ieee."""
    before, after = (
        "tf32" if "tf32" in getattr(one.parse_options({}), "allowed_dot_input_precisions", ()) else "ieee"
        for one in (made_by, backend)
    )
    if before == after:
        return text, []
    matters = False

    def dot(match: re.Match[str]) -> str:
        nonlocal matters
        # MLIR does not print ieee.
        if (match["precision"] or ", inputPrecision = ieee").endswith(f" {before}"):
            matters = matters or match["rest"].endswith("xf32>")
            return match["head"] + ("" if after == "ieee" else f", inputPrecision = {after}") + match["rest"]
        return match[0]

    text = _DOT.sub(dot, text)
    note = f"f32 dots with {origin}'s default precision, {before}, get {target}'s, {after}; the script may have set it."
    return text, [note] if matters else []


def _front_end_notes(text: str, origin: Target, target: Target) -> list[str]:
    if origin.backend == target.backend:
        return []
    notes: list[str] = []
    if "extern_elementwise" in text:
        notes.append(f"It calls functions of {origin}'s device library, which the front end chose.")
    if "elementwise_inline_asm" in text:
        notes.append(f"It holds inline assembly of {origin}, from the program or from a type's conversion.")
    return notes


def _laid_out_for(text: str, origin: Target, target: Target) -> str:
    found = _TARGET.search(text)
    if found is None:
        return text
    if origin.warp_size != target.warp_size:
        raise RecordingError(
            f"its layouts are for {origin}'s warps of {origin.warp_size} threads; {target} has {target.warp_size}. "
            f"Record the script for it: irscope dump FILE --target {target}."
        )
    return _TARGET.sub(lambda match: f'{match["head"]}{target}"', text)


def compile_text(watch: Watch, target: Target) -> None:
    """Compile on from the request's text, an artifact of its stage, for a target; reported as any compile."""
    request = watch.request
    work = _retargeted(request, target)
    launch = work.launch
    if launch.set_options is not None:
        chosen = {**dict(launch.set_options), **dict(request.options)}
        launch = dataclasses.replace(launch, set_options=tuple(sorted(chosen.items())))
    watched = watch.begin(target)
    watched.launch = launch
    watch.sink(events.CompileBegun(watched.number, target, launch, watched.log_from))
    for note in work.notes:
        watch.sink(events.Note(note))
    try:
        with watched.timed_whole():
            _run_stages(request, work, watched, target)
    except BaseException as error:
        watched.failed(error, describe_traceback(error))
        raise
    finally:
        watch.end()
    finish_compile(watched, "")


def _retargeted(request: RecordRequest, target: Target) -> _Retargeted:
    if request.compiled_launch is None:
        kernel = Kernel(Path(request.path).stem, request.path)
        # Only Gluon's pipeline begins with this stage.
        language = "gluon" if "glir" in (request.stage, request.resume_stage) else "triton"
        launch = Launch(kernel, set_options=(), language=language)
        return _Retargeted(request.text, launch, {}, _assumed(request, target))
    launch = request.compiled_launch
    origin = Target.parse(request.compiled_target) if request.compiled_target else target
    if origin == target or not launch.options:
        return _Retargeted(request.text, launch, chosen_options(dict(launch.options)))
    return _for_target(request.text, request.stage, launch, origin, target)


def _assumed(request: RecordRequest, target: Target) -> tuple[str, ...]:
    if request.stage not in ("ttir", "ttgir", "glir", "llir"):
        return ()
    given = ", ".join(f"{name}={value}" for name, value in request.options)
    what = f"of a {request.stage}" if not request.resume_stage else f"for the passes of {request.resume_stage}"
    said = f"Compiled from a text {what}, which does not hold the launch's options: "
    return (f"{said}{f'{given} are given, ' if given else ''}what is not in the text is {target}'s default.",)


def _run_stages(request: RecordRequest, work: _Retargeted, watched: WatchedCompile, target: Target) -> None:
    backend = triton_api.make_backend(target)
    context = triton_api.new_context(backend)
    watched.source_name = "edited" if request.resume_stage else request.stage
    module: Any
    # Within the stage that makes LLVM IR, it is MLIR yet.
    if request.resume_stage or request.stage in ("source", "ttir", "glir", "ttgir"):
        watched.report(events.Parsing(watched.number, request.stage))
        with watched.part("parse the source", "call"):
            module = _parsed(request, work.text, context)
        watched.report(events.Parsing(watched.number, ""))
        if request.reprinted:
            is_generic = request.reprinted == "generic"
            watched.report(
                events.ArtifactMade(watched.number, request.stage, triton_api.printed(module, generic=is_generic))
            )
            return
        with watched.part("irscope", "irscope"):
            _restore_block_arguments(module, work.text)
        attributes = {
            "num_warps": module.get_int_attr("ttg.num-warps"),
            "num_ctas": module.get_int_attr("ttg.num-ctas"),
        }
    else:
        # The stage that makes LLVM IR, which sets up LLVM, is not run.
        triton_api.set_up_llvm(target)
        module, attributes = work.text, {}
    held = {key: value for key, value in attributes.items() if value is not None}
    options = _options_of_recompile(request, work, watched, backend, held)
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


def _parsed(request: RecordRequest, text: str, context: Any) -> Any:
    path = Path(request.path)
    if request.compiled_launch is None and path.is_file() and path.read_text("utf-8", "replace") == text:
        return triton_api.parse_module(path, context)
    return triton_api.parse_text(text, context, parent_of_temporaries(), f"{path.stem}.{request.stage}")


def _first_stage(request: RecordRequest, stages: dict[str, Any]) -> int:
    names = list(stages)
    if not request.resume_stage and request.stage == "source":
        return 0
    how, stage, known = "at", request.resume_stage, names
    if not stage:
        how, stage, known = "from", request.stage, names[:-1]
    if stage not in known:
        raise RecordingError(
            f"no compile can resume {how} stage {stage!r}: the stages are {', '.join(names)}."
            + did_you_mean(stage, known)
        )
    return names.index(stage) + (how == "from")


def _options_of_recompile(
    request: RecordRequest, work: _Retargeted, watched: WatchedCompile, backend: Any, attributes: dict[str, Any]
) -> Any:
    """The launch's own options, overridden by the request's. What the backend refuses is reported with the text."""
    replaced = dict(request.options)
    triton_api.check_options(backend, watched.target, replaced)
    for name, value in attributes.items():
        if name in replaced and replaced[name] != value:
            raise RecordingError(
                f"{name}={replaced[name]} cannot be set for this IR: its layouts are for {name}={value}. "
                "Record the script again with that value."
            )
    asked = {**work.options, **attributes, **replaced}
    try:
        return backend.parse_options(asked)
    except Exception:
        watched.report(events.OptionsKnown(watched.number, plain({**vars(backend.parse_options({})), **asked})))
        watched.report(events.ArtifactMade(watched.number, request.stage, work.text))
        raise
