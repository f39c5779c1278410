"""Which captures of two compilers are a pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irscope.analysis.upgrade.pairing import pairs_of, variants_of
from irscope.model.capture import Capture, Environment, Kernel, Launch, Target


def capture(version: str, name: str = "k", target: str = "90", **launch: Any) -> Capture:
    made = Launch(Kernel(name, "k.py", 3), (("x", "*fp32"), ("BLOCK", "constexpr")), (("BLOCK", "64"),))
    return Capture(replace(made, **launch), Target("cuda", target, 32), environment=Environment(triton_version=version))


def test_the_same_kernel_types_and_constants_are_a_pair() -> None:
    small, large = ((("BLOCK", "64"),), (("BLOCK", "128"),))
    ours = [capture("1", constants=small), capture("1", constants=large), capture("1", "gone")]
    theirs = [capture("2", constants=large), capture("2", "new"), capture("2", constants=small)]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[2]), (ours[1], theirs[0]), (ours[2], None), (None, theirs[1])]


def test_attributes_and_defaults_may_differ_but_the_alike_come_first() -> None:
    aligned, plain = (("x", "tt.divisibility=16"),), ()
    ours = [capture("1", attributes=plain), capture("1", attributes=aligned)]
    theirs = [capture("2", attributes=aligned), capture("2", attributes=(("x", "tt.pointer_range=32"),))]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[1]), (ours[1], theirs[0])]


def test_other_targets_kernels_and_options_that_were_set_are_no_pair_before_others() -> None:
    ours = [capture("1", set_options=(("num_warps", 8),)), capture("1", target="80")]
    theirs = [capture("2", set_options=(("num_warps", 4),)), capture("2", set_options=(("num_warps", 8),))]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[1]), (ours[1], None), (None, theirs[0])]


def test_variants_are_told_apart_by_what_differs_alone() -> None:
    rows = [
        capture("1", constants=(("BLOCK", "64"),)),
        capture("1", constants=(("BLOCK", "128"),)),
        capture("1", "one"),
    ]
    assert variants_of(rows) == ["BLOCK=64", "BLOCK=128", ""]
