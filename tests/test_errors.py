"""What a message suggests: the name that was meant, and none that was not."""

from __future__ import annotations

import importlib.metadata
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import did_you_mean, installing

PASSES = (
    "accelerate_matmul", "allocate_shared_memory", "assign_latencies", "coalesce", "combine", "canonicalizer", "cse",
    "convert_to_ttgpuir", "di_scope", "fence_insertion", "inliner", "licm", "loop_unroll", "optimize_dot_operands",
    "optimize_thread_locality", "pipeline", "plan_cta", "prefetch", "reduce_data_duplication",
    "remove_layout_conversions",
    "reorder_instructions", "rewrite_tensor_descriptor_to_pointer", "sccp", "schedule_loops", "symbol_dce",
    "tma_lowering", "to_llvmir", "warp_specialize",
)  # fmt: skip
LONG = [name for name in PASSES if len(name) >= 4]


@pytest.mark.parametrize("name", ["nope", "foo", "scope_", "nothing", "matrix", "x", "", "zzz", "coal", "hello_world"])
def test_what_is_not_near_is_not_suggested(name: str) -> None:
    suggested = did_you_mean(name, PASSES)
    assert ("Did you mean" in suggested) == (name == "coal")
    if "Did you mean" not in suggested:
        assert all(other in suggested for other in PASSES)
        assert did_you_mean(name, PASSES, or_all=False) == ""


@given(st.sampled_from(LONG), st.data())
def test_one_slip_is_seen_through(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcxyz_"))
    slips = (
        name[:place] + name[place + 1 :],
        name[:place] + letter + name[place:],
        name[:place] + letter + name[place + 1 :],
        name[:place] + name[place : place + 2][::-1] + name[place + 2 :],
        name.replace("_", "-").upper(),
    )
    slip = data.draw(st.sampled_from(slips))
    if len(slip) >= 4:
        assert repr(name) in did_you_mean(slip, PASSES, limit=len(PASSES))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("colesce", "coalesce"),
        ("layout", "remove_layout_conversions"),
        ("conversions_layout", "remove_layout_conversions"),
        ("warp", "warp_specialize"),
        ("pre", "prefetch"),
        ("tma", "tma_lowering"),
    ],
)
def test_a_part_of_a_name_means_it(asked: str, meant: str) -> None:
    assert did_you_mean(asked, PASSES) == f" Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'irscope[png]'"),
        ({"url": "file:///a%20b/c", "dir_info": {"editable": True}}, "pip install -e '/a b/c[png]'"),
        ({"url": "file:///a/c", "dir_info": {}}, "pip install 'irscope[png] @ file:///a/c'"),
        ({"url": "file:///a/c.whl", "archive_info": {}}, "pip install 'irscope[png] @ file:///a/c.whl'"),
        (
            {"url": "https://a.b/c", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'irscope[png] @ git+https://a.b/c'",
        ),
    ],
    ids=["index", "editable", "folder", "wheel", "repository"],
)
def test_an_extra_is_installed_from_where_irscope_was(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    assert installing("png") == command


def test_an_extra_of_an_irscope_that_was_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", fail)
    assert installing("png") == "pip install 'irscope[png]'"
