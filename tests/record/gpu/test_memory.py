"""What is kept of a launch, and how what a variant leaves is compared: on the CPU, with Python for kernels."""

from __future__ import annotations

import math
import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are kept are torch's")

from irscope.device.measurement import Agreement  # noqa: E402
from irscope.ir.mlir.uses import PointerUse, PointerUses  # noqa: E402
from irscope.record.gpu.memory import KeptArguments  # noqa: E402
from irscope.record.gpu.noise import poisons_of, values_of  # noqa: E402

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32]

Kernel = Callable[[list[Any]], None]


def roles(text: str) -> PointerUses:
    """`r w rw`: what becomes of each pointer."""
    return PointerUses(tuple(PointerUse(f"p{n}", "r" in word, "w" in word) for n, word in enumerate(text.split())))


def check(arguments: list[Any], uses: str, baseline: Kernel, variant: Kernel) -> Agreement:
    names = [f"p{number}" for number in range(len(arguments))]
    kept = KeptArguments(names, arguments, {}, roles(uses))
    kept.take_reference(lambda: baseline(kept.arguments))
    return kept.check(lambda: variant(kept.arguments))


def double(arguments: list[Any]) -> None:
    arguments[1].copy_(arguments[0] * 2)


def test_the_same_kernel_is_identical_and_the_tensors_of_the_script_are_left_alone() -> None:
    x, out = torch.randn(100), torch.full((100,), 7.0)
    before = x.clone()
    found = check([x, out], "r w", double, double)
    assert found == Agreement("identical", 0.0, 0.0)
    assert torch.equal(x, before)
    assert bool((out == 7.0).all())


@pytest.mark.parametrize("dtype", FLOATS + NARROW + INTEGERS)
def test_one_element_that_differs_is_found_in_every_dtype(dtype: Any) -> None:
    source = torch.arange(64).remainder(2).to(dtype)

    def copy(arguments: list[Any]) -> None:
        arguments[1].copy_(arguments[0])

    def wrong(arguments: list[Any]) -> None:
        copy(arguments)
        arguments[1][5] = arguments[0][4]

    out = torch.zeros(64, dtype=dtype)
    assert check([source, out], "r w", copy, copy).verdict == "identical"
    found = check([source, out], "r w", copy, wrong)
    assert (found.verdict, found.differing, found.argument) == ("different", 1, "p1")
    assert found.max_abs_error == 1.0
    assert found.max_rel_error == 1.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_unit_in_the_last_place_is_close_and_a_thousandth_part_more_is_not(dtype: Any) -> None:
    """The oracle: torch.nextafter in the dtype itself, on a copy, whose inputs moved by a unit move it by one too."""
    torch.manual_seed(0)
    source = torch.randn(256, dtype=torch.float64).to(dtype)
    near = torch.nextafter(source, torch.full_like(source, math.inf))
    far = (source.double() * (1 + 50 * torch.finfo(dtype).eps)).to(dtype)

    def copy(arguments: list[Any]) -> None:
        arguments[1].copy_(arguments[0])

    for changed, verdict in ((near, "close"), (far, "different")):

        def variant(arguments: list[Any], changed: Any = changed) -> None:
            arguments[1].copy_(arguments[0])
            arguments[1][7] = changed[7]

        found = check([source, torch.empty_like(source)], "r w", copy, variant)
        assert (found.verdict, found.differing) == (verdict, 1), found
        assert found.noise is not None
        assert "12 runs on inputs perturbed" in found.noise_of


@pytest.mark.parametrize("dtype", FLOATS + NARROW[:2])
def test_both_poisons_are_nans(dtype: Any) -> None:
    for poison in poisons_of(dtype):
        bits = torch.tensor(
            [poison], dtype={1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
        )
        assert math.isnan(float(values_of(bits, dtype)[0]))
        assert not math.isnan(float(values_of(bits * 0, dtype)[0]))


@pytest.mark.parametrize("dtype", FLOATS + NARROW + INTEGERS)
def test_what_nobody_writes_is_told_from_what_is_computed(dtype: Any) -> None:
    def half(arguments: list[Any]) -> None:
        arguments[0][:32] = 1

    def none(arguments: list[Any]) -> None:
        arguments[0][:31] = 1

    def all_(arguments: list[Any]) -> None:
        arguments[0][:33] = 1

    # It holds the right result already, as after a run before: that must not help.
    out = torch.ones(64).to(dtype)
    assert check([out], "w", half, half).verdict == "identical"
    missing = check([out], "w", half, none)
    assert (missing.verdict, missing.differing) == ("different", 1)
    assert "1 element never written" in missing.detail
    more = check([out], "w", half, all_)
    assert (more.verdict, more.differing) == ("different", 1)
    assert "1 element written that the empty plan leaves alone" in more.detail


@pytest.mark.parametrize("dtype", FLOATS + NARROW[:2])
def test_a_nan_never_passes(dtype: Any) -> None:
    def well(arguments: list[Any]) -> None:
        arguments[0].fill_(1)

    def ill(arguments: list[Any]) -> None:
        arguments[0].fill_(1)
        arguments[0][3] = float("nan")

    out = torch.zeros(16).to(dtype)
    alone = check([out], "w", well, ill)
    assert alone.verdict == "nan"
    assert "1 NaN computed, 0 of them" in alone.detail
    both = check([out], "w", ill, ill)
    assert both.verdict == "nan"
    assert "1 NaN computed, 1 of them under the empty plan too" in both.detail
    assert check([out], "w", ill, well).verdict == "different"


def test_a_nan_that_was_there_before_and_is_left_alone_is_not_counted() -> None:
    cache = torch.full((16,), float("nan"))

    def append(arguments: list[Any]) -> None:
        arguments[0][2] = arguments[0][2].nan_to_num() + 1

    assert check([cache], "rw", append, append).verdict == "identical"


def test_an_infinity_on_one_side() -> None:
    def fill(value: float) -> Kernel:
        return lambda arguments: arguments[0].fill_(value)

    out = torch.zeros(4)
    assert check([out], "w", fill(math.inf), fill(math.inf)).verdict == "identical"
    for other in (1.0, -math.inf):
        found = check([out], "w", fill(math.inf), fill(other))
        assert found.verdict == "different"
        assert "4 elements infinite on one side" in found.detail


def test_minus_zero_is_close_and_not_identical() -> None:
    out = torch.zeros(4)
    found = check([out], "w", lambda a: a[0].fill_(0.0), lambda a: a[0].fill_(-0.0))
    assert (found.verdict, found.differing, found.max_abs_error) == ("close", 4, 0.0)


def test_large_integers_that_round_to_one_float_differ() -> None:
    out = torch.zeros(2, dtype=torch.int64)
    found = check([out], "w", lambda a: a[0].fill_(2**60), lambda a: a[0].fill_(2**60 + 1))
    assert found.verdict == "different"


def test_views_keep_their_offset_strides_and_alignment() -> None:
    whole = torch.arange(1000.0)
    view = whole[3:963].view(32, 30).t()[1:, ::2]
    kept = KeptArguments(["v"], [view], {}, roles("r"))
    kept.fill()
    (copy,) = kept.arguments
    assert torch.equal(copy, view)
    assert copy.stride() == view.stride()
    assert copy.shape == view.shape
    assert copy.data_ptr() % 64 == (view.data_ptr() - whole.data_ptr() + kept.storages[0].body.data_ptr()) % 64
    assert copy.untyped_storage().data_ptr() != view.untyped_storage().data_ptr()


def test_a_view_that_is_written_wrongly_outside_of_itself_is_found() -> None:
    whole = torch.zeros(100)

    def wide(arguments: list[Any]) -> None:
        arguments[0].fill_(1)
        arguments[0].as_strided((1,), (1,), arguments[0].storage_offset() - 1).fill_(1)

    found = check([whole[10:20]], "w", lambda a: a[0].fill_(1), wide)
    assert (found.verdict, found.differing) == ("different", 1)


def test_writing_beyond_the_memory_is_found() -> None:
    def beyond(arguments: list[Any]) -> None:
        arguments[0].fill_(1)
        arguments[0].as_strided((1,), (1,), arguments[0].storage_offset() + 16).fill_(1)

    found = check([torch.zeros(16)], "w", lambda a: a[0].fill_(1), beyond)
    assert found.verdict == "different"
    assert "outside of its memory" in found.detail
    both = check([torch.zeros(16)], "w", beyond, beyond)
    assert both.verdict == "different"
    assert "under the empty plan too, something is written outside of the memory of p0" in both.detail


def test_arguments_that_share_memory_share_it_in_the_copies() -> None:
    x = torch.arange(8.0)

    def add(arguments: list[Any]) -> None:
        arguments[1].add_(arguments[0])

    # In place: the output is also read, by another name, and so is not poisoned.
    assert check([x, x], "r rw", add, add).verdict == "identical"
    kept = KeptArguments(["a", "b"], [x, x[4:]], {}, roles("r w"))
    kept.fill()
    assert len(kept.storages) == 1
    assert not kept.storages[0].is_output
    kept.arguments[1].fill_(9)
    assert kept.arguments[0][4:].tolist() == [9.0] * 4


@dataclass
class Descriptor:
    base: Any
    shape: list[int]


Pair = namedtuple("Pair", "first second")


def test_tensors_in_descriptors_and_tuples_are_kept_too() -> None:
    x, y, z = torch.ones(4), torch.ones(4), torch.ones(4)
    arguments = [Descriptor(x, [4]), (y, 3, (z, None)), Pair(y, 1.5), 7]
    kept = KeptArguments(["d", "t", "p", "n"], arguments, {}, roles("r rw r rw"))
    kept.fill()
    descriptor, nested, pair, number = kept.arguments
    descriptor.base.fill_(5)
    nested[0].fill_(6)
    nested[2][0].fill_(7)
    assert (x.sum(), y.sum(), z.sum()) == (4, 4, 4)
    assert pair.first.tolist() == [6.0] * 4
    assert isinstance(pair, Pair)
    assert (nested[1], nested[2][1], pair.second, number) == (3, None, 1.5, 7)
    assert descriptor.shape == [4]
    assert [kept_.names for kept_ in kept.storages] == [["d"], ["t[0]", "p[0]"], ["t[2][0]"]]


def test_what_is_not_known_of_the_pointers_is_never_poisoned_and_still_compared() -> None:
    x, out = torch.ones(4), torch.ones(4)
    for uses in (PointerUses(), PointerUses(roles("r w").parameters, elsewhere=True)):
        kept = KeptArguments(["x", "out"], [x, out], {}, uses)
        assert not any(storage.is_output for storage in kept.storages)
        assert kept.compulsory_bytes is None
        kept.take_reference(lambda kept=kept: double(kept.arguments))
        assert kept.check(lambda kept=kept: double(kept.arguments)).verdict == "identical"
        assert kept.check(lambda: None).verdict == "different"


def test_inputs_are_as_they_were_before_every_run() -> None:
    total = torch.zeros(4)

    def accumulate(arguments: list[Any]) -> None:
        arguments[0].add_(1)

    kept = KeptArguments(["total"], [total], {}, roles("rw"))
    kept.take_reference(lambda: accumulate(kept.arguments))
    assert kept.check(lambda: accumulate(kept.arguments)).verdict == "identical"
    for _ in range(3):
        accumulate(kept.arguments)
        kept.refill_changed()
    assert kept.arguments[0].tolist() == [0.0] * 4


def test_a_result_that_moves_between_runs_is_said() -> None:
    runs = iter(range(1000))

    def racy(arguments: list[Any]) -> None:
        arguments[0].fill_(2 if next(runs) == 1 else 1)

    found = check([torch.zeros(4)], "w", lambda a: a[0].fill_(1), racy)
    assert found.verdict == "different"
    assert re.search(r"in 1 of ([4-9]|1\d|20) runs on the same inputs", found.detail)


def test_a_baseline_that_differs_from_itself_is_said() -> None:
    runs = iter(range(1000))

    def shaky(arguments: list[Any]) -> None:
        arguments[0].fill_(1 + next(runs))

    found = check([torch.zeros(4)], "w", shaky, shaky)
    assert "the empty plan's own runs differ in 4 elements of p0, by up to 1" in found.detail


@pytest.mark.parametrize(
    ("make", "uses", "expected"),
    [
        (lambda x: [x, torch.empty_like(x)], "r w", 800),
        (lambda x: [x, x], "r rw", 800),
        (lambda x: [x[:50], x[25:75]], "r r", 300),
        (lambda x: [x[::2], torch.empty(1)], "r w", 204),
        (lambda x: [x[:1].expand(1000), torch.empty(1)], "r w", 8),
        (lambda x: [x, torch.empty(0)], "r w", 400),
    ],
)
def test_compulsory_bytes_count_each_region_once(make: Any, uses: str, expected: int) -> None:
    arguments = make(torch.zeros(100))
    kept = KeptArguments([f"p{n}" for n in range(len(arguments))], arguments, {}, roles(uses))
    assert kept.compulsory_bytes == expected


def test_memory_that_is_no_tensors_is_refused() -> None:
    class Raw:
        def data_ptr(self) -> int:
            return 16

    from irscope.errors import RecordingError

    with pytest.raises(RecordingError, match=r"'p' is a Raw"):
        KeptArguments(["p"], [Raw()], {}, roles("r"))


def test_a_reinterpreted_tensor_is_compared_as_what_the_kernel_sees() -> None:
    x = torch.zeros(16, dtype=torch.int8)
    kept = KeptArguments(["x"], [x], {"x": "*fp8e5"}, roles("w"))
    assert kept.storages[0].dtype == torch.float8_e5m2
