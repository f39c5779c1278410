"""Compiles the kernels that merges would make, and compares them with the variants they are in place of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.analysis.variants.merges import Group, Merge, MergeProof, effects, without_attributes
from irscope.analysis.variants.site import Site, code_of, figures_of
from irscope.cli.output.talk import say
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.record.variants.completing import tell_origin
from irscope.store.shelf import CaptureFile

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest

__all__ = ["proven"]


_Merges = Sequence[tuple[Site, tuple[Merge, ...]]]


def proven(sites: _Merges, files: Mapping[str, CaptureFile]) -> list[tuple[Site, tuple[Merge, ...]]]:
    """The merges of each kernel with what became of those that can be tried; `files`: the captures by id."""
    from irscope.record.triton.versions import triton_version
    from irscope.record.variants.pool import VariantPool

    wanted: list[tuple[tuple[int, int], Group, RecordRequest]] = []
    for row, (site, merges) in enumerate(sites):
        if site.triton_version != triton_version():
            say(f"{site.kernel.name} was compiled by Triton {site.triton_version}: nothing was tried with another.")
            continue
        for column, merge in enumerate(merges):
            for group in merge.groups:
                if (request := _request(merge, group, files)) is not None:
                    wanted.append(((row, column), group, request))
    proofs: dict[tuple[int, int], list[MergeProof]] = {}
    try:
        if wanted:
            with VariantPool() as pool:
                for index, merged in pool.compile(request for _, _, request in wanted):
                    place, group, _ = wanted[index]
                    proofs.setdefault(place, []).extend(_compared(sites[place[0]][0], group, merged))
    except IrscopeError as error:
        say(f"Nothing could be tried: {error}")
    return [
        (site, tuple(replace(one, proofs=tuple(proofs.get((row, column), ()))) for column, one in enumerate(merges)))
        for row, (site, merges) in enumerate(sites)
    ]


def _request(merge: Merge, group: Group, files: Mapping[str, CaptureFile]) -> RecordRequest | None:
    from irscope.record.variants.pool import variant_request

    if not group.base:
        return None
    capture = files[group.base].load()
    if "source" not in capture.stages:
        return None
    tell_origin(capture, say)
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
