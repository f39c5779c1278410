"""Figures to compare with, to and from their files: a baseline of kernels, and what a GPU was measured to reach."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from irscope.errors import CaptureFormatError, ParseError
from irscope.model.evidence import Baseline, BaselineFacts, BaselineValue, Ceilings
from irscope.model.facts import CaptureFacts
from irscope.model.telling import DIVISIBLE
from irscope.store.disk import default_folder, write_atomically
from irscope.store.schema import converted
from irscope.store.shelf import differences

_Value = TypeVar("_Value")

_VERSION = 1
_LARGEST_BYTES = 64 << 20
_NAMED_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")
_AS_IF_UNSET = ("None", "0")


def variant_names(captures: Sequence[CaptureFacts]) -> list[tuple[str, str]]:
    """(`KERNEL TARGET`, its variant) of each capture: the types, attributes, constants and options of its launch, so
    that it has the same name after the kernel was edited; where that does not tell captures apart, whatever does.
    """
    rows = [(f"{facts.name} {facts.target}", _variant(facts)) for facts in captures]
    counts = Counter(rows)
    more = differences(captures) if max(counts.values(), default=0) > 1 else [""] * len(rows)
    named = [
        (kernel, f"{variant} {extra}".strip() if counts[kernel, variant] > 1 else variant)
        for (kernel, variant), extra in zip(rows, more, strict=True)
    ]
    seen: Counter[tuple[str, str]] = Counter()
    for place, row in enumerate(named):
        seen[row] += 1
        if seen[row] > 1:
            named[place] = (row[0], f"{row[1]} #{seen[row]}")
    return named


def _variant(facts: CaptureFacts) -> str:
    attributes = dict(facts.attributes)
    # *fp16%16: a pointer that is a multiple of 16
    types = [
        f"{name}={kind}{'%16' if DIVISIBLE in attributes.get(name, '') else ''}"
        for name, kind in facts.signature
        if kind != "constexpr"
    ]
    constants = [f"{name}={value}" for name, value in facts.constants]
    options = dict(facts.options)
    set_ = [f"{name}={options[name]}" for name in _NAMED_OPTIONS if options.get(name, "None") not in _AS_IF_UNSET]
    plan = [f"plan={facts.plan}"] if facts.plan else []
    return " ".join([*types, *constants, *set_, *plan])


def load_baseline(path: Path) -> Baseline:
    """Read a baseline; raises ParseError for a file that is none, with what to do about it."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ParseError(f"{str(path)!r} is too large for a baseline.")
        stored: Any = json.loads(path.read_bytes())
        version = stored["irscope_baseline"]
        if version != _VERSION:
            raise ParseError(f"{str(path)!r} is a baseline of version {version!r}; this irscope reads {_VERSION}.")
        kernels = converted(stored["kernels"], dict[str, dict[str, dict[str, BaselineValue]]])
        tolerances = tuple(f"{name}={value}" for name, value in stored.get("tolerances", {}).items())
        return Baseline(kernels, tolerances, tuple(map(str, stored.get("triton", []))))
    except OSError as error:
        raise ParseError(
            f"cannot read the baseline {str(path)!r}: {error.strerror or error}. --update writes it."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CaptureFormatError) as error:
        raise ParseError(
            f"{str(path)!r} is not a baseline of irscope check: {type(error).__name__}: {error}"
        ) from error


def save_baseline(baseline: Baseline, path: Path) -> None:
    write_atomically(path, baseline_text(baseline).encode("utf-8", "backslashreplace"))


def baseline_text(baseline: Baseline) -> str:
    """The text of its file: sorted, a line for each variant, so that a change of one is a change of one line."""
    tolerances = dict(text.split("=", 1) for text in baseline.tolerances)
    head = [
        f'  "irscope_baseline": {_VERSION}',
        f'  "triton": {json.dumps(sorted(baseline.triton_versions))}',
        f'  "tolerances": {json.dumps(tolerances, sort_keys=True)}',
    ]
    kernels = ",\n".join(_kernel(name, baseline.kernels[name]) for name in sorted(baseline.kernels))
    body = f'  "kernels": {{\n{kernels}\n  }}' if kernels else '  "kernels": {}'
    return "{\n" + ",\n".join([*head, body]) + "\n}\n"


def _kernel(name: str, variants: Mapping[str, BaselineFacts]) -> str:
    rows = ",\n".join(f"      {json.dumps(key)}: {json.dumps(_compact(variants[key]))}" for key in sorted(variants))
    return f"    {json.dumps(name)}: {{\n{rows}\n    }}"


def _compact(facts: BaselineFacts) -> dict[str, BaselineValue]:
    return {name: value for name, value in sorted(facts.items()) if value not in ("", ()) or name == "matrix_unit"}


_CEILINGS, _CLOCKS = "ceilings.json", "clocks.json"


def _kept(name: str, folder: Path | None, kind: type[_Value], default: _Value) -> _Value:
    try:
        return converted(json.loads(((folder or default_folder()) / name).read_bytes()), kind)
    except (OSError, ValueError, RecursionError, CaptureFormatError):
        return default


def _keep(name: str, folder: Path | None, data: object) -> Path:
    path = (folder or default_folder()) / name
    write_atomically(path, json.dumps(data, indent=2).encode())
    return path


def save_ceilings(measured: Sequence[Ceilings], folder: Path | None = None) -> Path:
    """Keep what was measured, in place of what was there; raises OSError where the folder cannot be written to."""
    return _keep(_CEILINGS, folder, [asdict(row) for row in measured])


def load_ceilings(folder: Path | None = None) -> tuple[Ceilings, ...]:
    """What was measured last; empty if nothing was, or the file cannot be read."""
    return _kept(_CEILINGS, folder, tuple[Ceilings, ...], ())


def save_clock(part: str, constants: Mapping[str, float]) -> Path:
    """Keep the timing constants that were measured on a part, in place of its earlier ones; raises OSError."""
    return _keep(_CLOCKS, None, load_clocks() | {part: dict(constants)})


def load_clocks() -> dict[str, dict[str, float]]:
    """Part → the timing constants that were measured on it; empty if nothing was, or the file cannot be read."""
    return _kept(_CLOCKS, None, dict[str, dict[str, float]], {})
