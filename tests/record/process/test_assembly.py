from __future__ import annotations

from irscope.model.capture import Kernel, Launch
from irscope.model.launch_record import Autotuning
from irscope.record.process.assembly import Tally


def launch(name: str, index: int | None = None, count: int = 4) -> Launch:
    tuning = None if index is None else Autotuning(index, count, f"{index}")
    return Launch(Kernel(name), autotuning=tuning)


def counts(tally: Tally) -> str:
    return tally.text.partition(" ")[2].partition(", about")[0]


def test_one_launch_is_no_progress():
    tally = Tally()
    tally.begins(launch("one"), every_configuration=True)
    assert tally.text == ""


def test_variants_kernels_and_failures_are_counted():
    tally = Tally()
    for name in ("one", "other", "one"):
        tally.begins(launch(name), every_configuration=False)
    tally.ends(failed=True)
    tally.ends(failed=False)
    assert counts(tally) == "2 of 3 variants of 2 kernels, 1 failed"
    tally.dropped()
    assert counts(tally) == "2 of 2 variants of 2 kernels, 1 failed"
    assert tally.text.startswith("█" * 12 + " ")


def test_of_an_autotuned_kernel_all_configurations_are_expected():
    tally = Tally()
    for index in range(2):
        tally.begins(launch("tuned", index), every_configuration=True)
    assert counts(tally) == "0 of 4 variants"
    for index in range(2, 4):
        tally.begins(launch("tuned", index), every_configuration=True)
    # The same for another key.
    tally.begins(launch("tuned", 0), every_configuration=True)
    assert counts(tally) == "0 of 8 variants"
