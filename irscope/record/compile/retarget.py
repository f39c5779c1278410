"""Compiles a stored launch for another target, with that target's attributes and defaults; notes what is not known.

The front end's IR stays: only what the compiler itself derives from a launch is derived again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from irscope.errors import RecordingError
from irscope.ir.mlir.tokens import split_commas
from irscope.model.capture import Launch, Target
from irscope.model.plain import tupled
from irscope.record.compile.launch_arguments import plain
from irscope.record.triton import api as triton_api
from irscope.record.triton.specialization import (
    Attributes,
    attributes_of,
    attributes_of_small_tensor,
    parsed_attributes,
)

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
class Retargeted:
    """A text and a launch to compile for a target."""

    text: str
    launch: Launch
    """With that target's attributes and options."""
    options: dict[str, Any]
    """For the backend to parse; the others are its defaults."""
    notes: tuple[str, ...] = ()


def chosen_options(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded options as their backend parses them, without those that it sets by itself."""
    return {key: tupled(value) for key, value in recorded.items() if key not in _BACKENDS_OWN}


def for_target(text: str, stage: str, launch: Launch, origin: Target, target: Target) -> Retargeted:
    """A launch that was recorded for `origin`, for another target.

    `text` is the artifact of `stage`. Raises RecordingError if its layouts are for warps of another size.
    """
    made_by, backend = triton_api.make_backend(origin), triton_api.make_backend(target)
    options, notes = _options(launch, origin, target, vars(made_by.parse_options({})), vars(backend.parse_options({})))
    launch = replace(launch, set_options=tuple(sorted(options.items())))
    if stage == "source" and launch.language == "triton":
        attributes, more = _attributes(launch, made_by, backend, origin)
        notes += more
        text, unplaced = with_attributes(text, launch.kernel.name, dict(launch.signature), attributes)
        if unplaced:
            notes.append(f"The attributes of {', '.join(unplaced)} are as recorded: the IR does not tell its argument.")
            attributes = {path: rows for path, rows in attributes.items() if path not in unplaced}
        held = {**dict(launch.attributes), **dict.fromkeys(attributes, "")}
        held |= {path: ", ".join(f"{name}={value}" for name, value in rows) for path, rows in attributes.items()}
        launch = replace(launch, attributes=tuple((path, rows) for path, rows in held.items() if rows))
        text, more = _with_dot_precision(text, made_by, backend, origin, target)
        notes += more + _front_end_notes(text, origin, target)
    else:
        text = _laid_out_for(text, origin, target)
        notes.append(f"Its layouts are those that were chosen for {origin}.")
    said = (
        f"Compiled for {target} from the {stage} made for {origin}: attributes and defaults are {target}'s own; what "
        f"the program would choose there (constants, num_warps, the grid) is not known. "
        f"irscope dump FILE --target {target} runs it."
    )
    return Retargeted(text, launch, options, (said, *notes))


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
        f"The capture does not tell which options its script set: those that are not {origin}'s defaults are taken for "
        f"it ({', '.join(f'{key}={value}' for key, value in chosen.items()) or 'none'})."
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
    """The path of each IR argument that a parameter of this type becomes; an empty string for a descriptor's."""
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
    note = f"Dots of f32 with {origin}'s default precision, {before}, take {target}'s, {after}: it may have been set."
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
