"""The variants of planted kernels: what distinguishes them, and what the Python text says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.variants.merges import merges_of, remaining, warmup_code
from irscope.analysis.variants.site import KernelText, Site, read_kernel, sites_of
from irscope.model.capture import Capture, Kernel, Launch
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.process.session import record_request

PLANTED = Path(__file__).parent / "planted.py"

pytestmark = [pytest.mark.triton, pytest.mark.newest]


def recorded(path: Path, *arguments: str) -> list[Capture]:
    """All captures of a script, with what tells variants apart, and no more."""
    request: RecordRequest = request_for(
        path, targets="cuda:90", disassemble=False, layouts=False, snapshots="none", arguments=arguments, jobs=1
    )
    return list(record_request(request).captures)


@pytest.fixture(scope="module")
def captures(clean_session: None) -> list[Capture]:
    return recorded(PLANTED)


@pytest.fixture(scope="module")
def sites(captures: list[Capture]) -> dict[str, Site]:
    return {one.kernel.name: one for one in sites_of(captures)}


# kernel → (number of variants, {what tells them apart: (aspects, use, what merges them, variants that remain)})
ALIGNED, PLAIN = "do_not_specialize_on_alignment", "do_not_specialize"
EXPECTED: dict[str, tuple[int, dict[str, tuple[str, str, str, int]]]] = {
    "divisible": (2, {"n": ("divisible by 16", "used", ALIGNED, 1)}),
    "stride_one": (2, {"s": ("equal to 1", "used", PLAIN, 1)}),
    "one_and_divisible": (3, {"n": ("equal to 1, divisible by 16", "used", PLAIN, 1)}),
    "wide": (2, {"n": ("type", "used", "warm up", 2)}),
    "element_type": (2, {"x": ("type", "used", "warm up", 2)}),
    "unaligned": (2, {"x": ("aligned to 16 bytes", "used", ALIGNED, 1)}),
    "block": (2, {"BLOCK": ("constexpr", "used", "warm up", 2)}),
    "bucket": (3, {"BUCKET": ("constexpr", "never read", "remove", 1)}),
    "guarded": (3, {"N": ("constexpr", "used", "warm up", 3)}),
    "really_guarded": (3, {"N": ("constexpr", "used", "warm up", 3)}),
    "cache_keys": (
        3,
        {
            "CACHE_KEY_SEQLEN_Q": ("equal to 1, divisible by 16", "never read", "remove", 2),
            "CACHE_KEY_SEQLEN_K": ("divisible by 16", "never read", "remove", 3),
        },
    ),
    "unused_pointer": (2, {"scratch": ("aligned to 16 bytes", "never read", "remove", 1)}),
    "optional": (2, {"bias": ("type", "used", "warm up", 2)}),
    "warps": (2, {"num_warps": ("option", "option", "warm up", 2)}),
    "stages": (2, {"num_stages": ("option", "option", "one value", 1)}),
    "not_reached": (2, {"n": ("divisible by 16", "not in the IR", "remove", 1)}),
    "two_at_once": (4, {"n": ("divisible by 16", "used", ALIGNED, 2), "s": ("equal to 1", "used", PLAIN, 2)}),
    "equal_strides": (2, {"stride_x, stride_y": ("divisible by 16", "used", ALIGNED, 1)}),
    "no_difference": (2, {"K": ("constexpr", "used", "one value", 1)}),
    "dead_branch": (
        4,
        {"K": ("constexpr", "used", "one value", 3), "DEBUG": ("constexpr", "used", "warm up", 4)},
    ),
    "plain_argument": (2, {"N": ("constexpr", "used", "warm up", 2)}),
    "scalars": (1, {}),
    "mended": (1, {}),
    "called": (2, {"n": ("divisible by 16", "used", ALIGNED, 1)}),
}


WARMED_UP = (
    "one_and_divisible", "wide", "element_type", "unaligned", "block", "unused_pointer", "stages", "scalars", "called",
)  # fmt: skip
"""One kernel for each thing that a warm-up says of a variant."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_planted_reason_is_named(sites: dict[str, Site], name: str) -> None:
    count, causes = EXPECTED[name]
    site = sites[name]
    assert len(site.variants) == count
    assert {
        ", ".join(one.names): (", ".join(one.cause.aspects), one.cause.use, one.how, one.remaining)
        for one in merges_of(site)
    } == causes


def test_lines_are_those_of_the_file(sites: dict[str, Site]) -> None:
    lines = PLANTED.read_text().splitlines()
    for site in sites.values():
        for cause in site.causes:
            assert all(cause.name in lines[line - 1] for line in cause.lines)


def test_several_changes_together(sites: dict[str, Site]) -> None:
    assert remaining(sites["two_at_once"], merges_of(sites["two_at_once"])) == 1
    assert remaining(sites["cache_keys"], merges_of(sites["cache_keys"])) == 1
    assert remaining(sites["cache_keys"], []) == 3
    dead = [merge for merge in merges_of(sites["dead_branch"]) if merge.how != "warm up"]
    assert remaining(sites["dead_branch"], dead) == 3


@pytest.mark.exhaustive
def test_what_is_promised_is_what_the_change_does(sites: dict[str, Site]) -> None:
    """The kernels with their decorators changed, compiled by the script itself."""
    after = {one.kernel.name: one for one in sites_of(recorded(PLANTED, "merged"))}
    changed = Counter[str]()
    for name, site in sites.items():
        # The parameters of these stay, and no constant can be excepted from specialisation.
        arguments = {argument for one in site.variants for argument in one.arguments}
        found = [one for one in merges_of(site) if one.how in (ALIGNED, PLAIN, "remove")]
        merges = [one for one in found if one.cause.name in arguments]
        if merges and name != "called":
            assert len(after[name].variants) == remaining(site, merges), name
            changed.update(one.how for one in merges)
    assert changed == {ALIGNED: 4, PLAIN: 3, "remove": 4}


def test_the_same_code_is_told_from_other_code(sites: dict[str, Site], captures: list[Capture]) -> None:
    """Against the instructions of the PTX: names of labels and of parameters do not count, nor do their offsets."""

    def instructions(capture: Capture) -> list[str]:
        lines = (line.strip() for line in capture.text("ptx").splitlines())
        return [line for line in lines if line.endswith(";") and not line.startswith((".", "ld.param"))]

    by_id = {one.id: one for one in captures}
    compared = 0
    for site in sites.values():
        for at, one in enumerate(site.variants):
            for other in site.variants[:at]:
                same = instructions(by_id[one.id]) == instructions(by_id[other.id])
                # ptxas may make one code of two texts, but never two of one, launched alike.
                if same and one.launch.option("num_warps") == other.launch.option("num_warps"):
                    compared += 1
                    assert one.code == other.code, site.kernel.name
    assert compared >= 8
    different = {name for name, one in sites.items() if len({each.code for each in one.variants}) == len(one.variants)}
    assert {"stride_one", "wide", "unaligned", "block", "guarded", "warps"} <= different


def test_debug_information_is_no_difference(captures: list[Capture]) -> None:
    one = next(one for one in captures if one.name == "block")
    moved = one.with_(
        artifacts=tuple(
            replace(item, data=item.data.replace("planted.py", "elsewhere.py")) if isinstance(item.data, str) else item
            for item in one.artifacts
        ),
        launch=replace(one.launch, constants=(("BLOCK", "1"),)),
    )
    (site,) = sites_of([one, moved])
    (cause,) = site.causes
    assert (cause.pairs, cause.same_code) == (1, 1)


@pytest.mark.exhaustive
def test_warming_up_compiles_the_same(sites: dict[str, Site], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the code names torch's types")
    program = tmp_path / "warm.py"
    wanted = [sites[name] for name in WARMED_UP]
    program.write_text(f"import sys\nsys.path.insert(0, {str(PLANTED.parent)!r})\n{warmup_code(wanted)}")
    made = sites_of(recorded(program))

    def keys(found: list[Site] | tuple[Site, ...], what: Callable[[Launch], object]) -> Counter[object]:
        return Counter((one.kernel.name, what(variant.launch)) for one in found for variant in one.variants)

    for what in (lambda launch: (launch.signature, launch.constants, launch.attributes), lambda launch: launch.options):
        assert keys(made, what) == keys(wanted, what)


def test_captures_without_python_or_source() -> None:
    launch = Launch(Kernel("k"), signature=(("n", "i32"),), attributes=(("n", "tt.divisibility=16"),))
    from irscope.target import Target

    one = Capture(launch, Target("cuda", "90", 32))
    other = replace(one, launch=replace(launch, attributes=()))
    (site,) = sites_of([one, other, other])
    assert len(site.variants) == 2
    assert [(cause.name, cause.use, cause.same_code) for cause in site.causes] == [("n", "unknown", 0)]


HEAD = "@triton.jit\ndef k(x, N: tl.constexpr, M: 'tl.constexpr' = 3, *, s):\n"


def of(body: str, *, indent: str = "") -> KernelText:
    text = HEAD + "\n".join(f"    {line}" for line in body.splitlines())
    source = "\n".join(indent + line for line in text.splitlines())
    return read_kernel(Kernel("k", "a.py", 11, source, 10))


def test_parameters_and_the_lines_that_read_them() -> None:
    text = of("y = x + s\nx = y\nz = lambda a: a + s")
    assert text.constexprs == {"N", "M"}
    assert (text.lines_of("x"), text.lines_of("s"), text.lines_of("N")) == ((12,), (12, 14), ())
    assert (text.is_constexpr("N"), text.is_constexpr("x")) == (True, False)
    assert of("return x", indent="        ").lines_of("x") == (12,)


@pytest.mark.parametrize("source", ["", "x = 1", "def k(:", "\0", "def k(x):\n  " + "(" * 3000])
def test_what_is_no_kernel_is_not_known(source: str) -> None:
    assert read_kernel(Kernel("k", source=source)) == KernelText()
    assert KernelText().is_constexpr("x") is None
