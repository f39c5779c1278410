"""Reads the launch that a module was compiled for from its text: kernel, signature, options, target."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from irscope.errors import TargetError
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import parse_entries
from irscope.ir.mlir.tokens import closing, split_commas
from irscope.ir.mlir.types import parse_type
from irscope.model.capture import Kernel, Launch, Target
from irscope.model.plain import tupled

# tt.func public @matmul(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("a"(#loc)), …
_KERNEL = re.compile(
    r'^[ \t]*tt\.func (?P<public>public )?@(?:"(?P<quoted>[^"\n]*)"|(?P<name>[\w.$-]+))\(', re.MULTILINE
)
# llvm.func @matmul(%arg0: …) attributes {nvvm.kernel = 1 : ui1, …
_LLVM_KERNEL = re.compile(
    r'^[ \t]*llvm\.func (?:[a-z_]+ )*@"?(?P<name>[^"(\n]+)"?\([^\n]*(?:nvvm|rocdl)\.kernel', re.MULTILINE
)
# llvm.func @matmul(%arg0: …) attributes {…} {
_LLVM_BODY = re.compile(r'^[ \t]*llvm\.func @"?(?P<name>[^"(\n]+)"?\([^\n]*\{(?: loc\([^\n]*)?$', re.MULTILINE)
# loc("a"(#loc))   loc(#loc25)
_NAME_LOCATION = re.compile(r'loc\("(?P<name>[A-Za-z_]\w*)"\(|loc\((?P<alias>#loc[\w.$-]*)\)')
# #loc25 = loc("a"(#loc))
_NAME_ALIAS = re.compile(r'^(#loc[\w.$-]*) = loc\("([A-Za-z_]\w*)"\(', re.MULTILINE)
# "ttg.num-warps" = 4 : i32   "ttg.threads-per-warp" = 32 : i32   ttg.target = "cuda:90"
_MODULE_NUMBER = re.compile(r'"ttg\.(?P<name>num-warps|num-ctas|threads-per-warp)" = (?P<value>\d{1,9})\b')
_MODULE_TARGET = re.compile(r'"?ttg\.target"? = "(?P<target>\w+:\w+)"')

_TYPES = {
    "f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E4M3FNUZ": "fp8e4b8", "f8E4M3": "fp8e4nv",
    "f8E5M2": "fp8e5", "f8E5M2FNUZ": "fp8e5b16",
}  # fmt: skip
_HEAD = 20_000
_MAX_PARAMETERS_TEXT = 200_000

UNKNOWN_TARGET = Target("unknown", "unknown", 32)
"""The target of a capture if the compiled target is unknown."""


def _kernel_header(text: str) -> re.Match[str] | None:
    headers = list(_KERNEL.finditer(text))
    return next((header for header in headers if header["public"]), headers[0] if headers else None)


def kernel_of_module(text: str) -> str:
    """The name of a module's kernel: its public function; empty if there is none."""
    match = _kernel_header(text)
    if match is not None:
        return match["quoted"] or match["name"] or ""
    match = _LLVM_KERNEL.search(text) or _LLVM_BODY.search(text)
    return match["name"] if match else ""


def target_of_module(text: str) -> Target | None:
    """The target in the module's attributes; None if the module has none yet."""
    match = _MODULE_TARGET.search(text, 0, _module_head(text))
    if match is None:
        return None
    numbers = dict(_module_numbers(text))
    return target_named(match["target"], int(numbers.get("threads-per-warp", 0)))


def target_named(name: str, warp_size: int = 0) -> Target:
    """The target of a text such as `cuda:90`; an unknown one keeps its name."""
    warp_size = warp_size if warp_size <= 128 else 0
    try:
        target = Target.parse(name)
    except TargetError:
        backend, _, arch = name.partition(":")
        # A capture allows no other characters in a target.
        backend, arch = (re.sub(r"[^\w.+-]", "", text)[:40] or "unknown" for text in (backend, arch))
        target = Target(backend, arch, warp_size or 32)
    return Target(target.backend, target.arch, warp_size or target.warp_size)


def _options_of_module(text: str) -> dict[str, int]:
    """The compile options in a module's attributes: num_warps and num_ctas."""
    return {name.replace("-", "_"): int(value) for name, value in _module_numbers(text) if name != "threads-per-warp"}


def launch_of_module(text: str, options: dict[str, object] | None = None) -> Launch:
    """The launch, as far as the text of a module contains it.

    Constants are folded into the IR, so they and the Python source stay unknown. The types are Triton's (`*fp16`), in
    the order of the function, without its `constexpr` parameters.
    """
    match = _kernel_header(text)
    name = kernel_of_module(text)
    language = "gluon" if "gluon." in text else "triton"
    chosen = tuple(sorted({**_options_of_module(text), **(options or {})}.items()))
    if match is None:
        return Launch(Kernel(name), options=chosen, language=language)
    names = dict(_NAME_ALIAS.findall(text))
    signature: list[tuple[str, str]] = []
    attributes: list[tuple[str, str]] = []
    limit = min(len(text), match.end() + _MAX_PARAMETERS_TEXT)
    end = closing(text, match.end() - 1, limit)
    for parameter in split_commas(text[match.end() : end if end >= 0 else limit]):
        # %a: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("a"(#loc))
        value, colon, rest = parameter.partition(": ")
        if not colon or not value.startswith("%"):
            continue
        kind, dictionary, location = _split_parameter(rest)
        found = _NAME_LOCATION.search(location)
        own = (found["name"] or names.get(found["alias"], "")) if found else ""
        own = own or value[1:]
        signature.append((own, _type_text(kind)))
        pairs = [f"{name}={entry.partition(' : ')[0]}" for name, entry in parse_entries(dictionary).items() if entry]
        if pairs:
            attributes.append((own, ", ".join(pairs)))
    chain = read_locations(text, "mlir").chain_at(text.count("\n", 0, match.start()) + 1)
    file, line = (chain[0].file, chain[0].line) if chain else ("", 0)
    return Launch(
        Kernel(name, file, line),
        signature=tuple(signature),
        attributes=tuple(attributes),
        options=chosen,
        language=language,
    )


def _type_text(kind: str) -> str:
    """An MLIR type as in a signature: `!tt.ptr<f16>` is `*fp16`; unknown types stay as they are."""
    pointer = parse_type(kind)
    if pointer.form == "pointer" and pointer.element is not None:
        return "*" + _type_text(pointer.element.text)
    return _TYPES.get(kind, kind)


def _module_head(text: str) -> int:
    start = max(text.find("\nmodule"), 0)
    end = text.find("\n", start + 1)
    return min(end if end >= 0 else len(text), start + _HEAD)


def _module_numbers(text: str) -> list[tuple[str, str]]:
    return [(match["name"], match["value"]) for match in _MODULE_NUMBER.finditer(text, 0, _module_head(text))]


def _split_parameter(rest: str) -> tuple[str, str, str]:
    kind, brace, behind = rest.partition(" {")
    if brace and "loc(" not in kind:
        dictionary, _, location = behind.partition("}")
        return kind.strip(), dictionary, location
    kind, _, location = rest.partition(" loc(")
    return kind.strip(), "", "loc(" + location if location else ""


# ── Reads Triton's own metadata of a compiled kernel, as its cache and others' traces hold it: launch and target ────

# Metadata that Triton adds to the options after a compile, and paths on the compiling machine.
_NOT_OPTIONS = frozenset((
    "cluster_scheduling", "global_scratch_align", "global_scratch_size", "hash", "name", "profile_scratch_align",
    "profile_scratch_size", "shared", "target", "tensordesc_meta", "tmem_size", "triton_version", "extern_libs",
))  # fmt: skip
_HIDDEN = ("hash", "target", "triton_version")


def launch_of_metadata(kernel: str, metadata: Mapping[str, Any], texts: Mapping[str, str]) -> Launch:
    """The launch that a kernel was compiled for, as far as its metadata and the texts of its stages contain it."""
    options = {key: tupled(value) for key, value in metadata.items() if key not in _NOT_OPTIONS and not key.isupper()}
    if not options:
        options = {**_options_of_module(texts.get("ttgir") or texts.get("glir") or "")}
    text = texts.get("source") or texts.get("ttir") or texts.get("ttgir") or ""
    launch = launch_of_module(text)
    return replace(
        launch,
        kernel=Kernel(kernel, launch.kernel.file, launch.kernel.line),
        options=tuple(sorted(options.items())),
    )


def shown_metadata(metadata: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The metadata that a capture holds."""
    return tuple(sorted((key, tupled(value)) for key, value in metadata.items() if key not in _HIDDEN))


def target_of_metadata(metadata: Mapping[str, Any]) -> Target | None:
    """The target that metadata names; None if it names none."""
    target = metadata.get("target")
    if isinstance(target, Mapping):
        fields = cast("Mapping[str, Any]", target)
        name = f"{fields.get('backend', '')}:{fields.get('arch', '')}"
        return target_named(name, number(fields.get("warp_size")) or 0)
    return None


# ── Values of JSON and Python that others wrote, read without raising ───────────────────────────────────────────────


def number(value: Any) -> int | None:
    """An integer that is one; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: Any) -> dict[str, Any]:
    """An object of JSON; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A list of JSON; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def parsed_json(text: str) -> Any:
    """The value of a text of JSON; None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
