"""Compiles the kernels that merges would make, and compares them with the variants they are in place of."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from irscope.analysis.variants.merges import (
    Group,
    Merge,
    MergeProof,
    argument_type,
    effects,
    with_argument_proofs,
    without_attributes,
    without_constexpr,
)
from irscope.analysis.variants.site import Site, code_of, figures_of
from irscope.api.reduction.run import python_case, python_request
from irscope.errors import IrscopeError, RecordingError
from irscope.model.capture import Capture
from irscope.record.process.requests import RecordRequest
from irscope.record.triton.versions import triton_version
from irscope.record.variants.completing import tell, tell_origin
from irscope.record.variants.pool import VariantPool, variant_request
from irscope.store.shelf import CaptureFile

_Merges = Sequence[tuple[Site, tuple[Merge, ...]]]


def proven(sites: _Merges, files: Mapping[str, CaptureFile]) -> list[tuple[Site, tuple[Merge, ...]]]:
    """The merges of each kernel with what became of those that can be tried.

    `files`: the captures by id.
    """

    wanted: list[tuple[Site, Merge, Group, RecordRequest]] = []
    proofs: dict[int, list[MergeProof]] = {}
    """By the `id` of the merge."""
    with tempfile.TemporaryDirectory() as folder:
        for site, merges in sites:
            if site.triton_version != triton_version():
                name, version = site.kernel.name, site.triton_version
                tell(f"{name} was compiled by Triton {version}: nothing was tried with another.")
                continue
            for merge in merges:
                groups = merge.groups if merge.how not in ("one value", "runtime") else ()
                rows = [(group, _request(merge, group, files)) for group in groups]
                for group in merge.as_argument:
                    rows.append((group, _argument_request(merge, files[group.base], Path(folder))))
                wanted += [(site, merge, group, request) for group, request in rows if request is not None]
        try:
            if wanted:
                with VariantPool() as pool:
                    for index, merged in pool.compile(request for *_, request in wanted):
                        site, merge, group, _ = wanted[index]
                        proofs.setdefault(id(merge), []).extend(_compared(site, group, merged))
        except IrscopeError as error:
            tell(f"No fix was compiled: {error}")

    def settled(site: Site, merge: Merge) -> Merge:
        known = tuple(proofs.get(id(merge), ()))
        return with_argument_proofs(site, merge, known) if merge.as_argument else replace(merge, proofs=known)

    return [(site, tuple(settled(site, merge) for merge in merges)) for site, merges in sites]


def _argument_request(merge: Merge, file: CaptureFile, folder: Path) -> RecordRequest | None:
    """The request to compile a kernel with a constant as a plain argument; None where no text can be made."""
    capture = file.load()
    if not capture.environment.is_trusted:
        return None
    name = merge.cause.name
    try:
        case = python_case(capture)
    except RecordingError:
        return None
    text = without_constexpr(case.text, capture.name, name)
    if text is None:
        return None
    kind = argument_type(dict(capture.launch.constants).get(name, ""))
    rows = tuple((one, kind, False) if one == name else (one, given, fixed) for one, given, fixed in case.parameters)
    return python_request(capture, replace(case, text=text, parameters=rows), folder)


def _request(merge: Merge, group: Group, files: Mapping[str, CaptureFile]) -> RecordRequest | None:

    if not group.base:
        return None
    capture = files[group.base].load()
    if "source" not in capture.stages:
        return None
    tell_origin(capture)
    request = variant_request(capture, capture.plan)
    names = [name for name, kind in capture.launch.signature if kind != "constexpr"]
    only_alignment = merge.how == "do_not_specialize_on_alignment"
    text: str | None = request.text
    for name in merge.names:
        text = text and without_attributes(text, names, name, only_alignment=only_alignment)
    return replace(request, text=text) if text else None


def _compared(site: Site, group: Group, merged: Capture) -> list[MergeProof]:
    variants = {one.id: one for one in site.variants}
    if not merged.has_compiled:
        why = merged.failure.message if merged.failure is not None else ""
        return [MergeProof(one, False, failure=why) for one in group.members]
    code, figures = code_of(merged), figures_of(merged)
    return [
        MergeProof(one, variants[one].code == code, tuple(effects(variants[one].figures, figures)))
        for one in group.members
    ]
