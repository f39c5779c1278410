from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.telling import folder_of_generated, joined, parts_of, telling_columns, telling_names

ROWS = st.lists(st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from("123"), max_size=8), max_size=12)


def launch(block: str, *, m: str = "i32", warps: int = 4, attributes: tuple[tuple[str, str], ...] = ()) -> Launch:
    constants = (("BLOCK", block),)
    signature = (("x", "*fp16"), ("m", m), ("BLOCK", "constexpr"))
    if m == "constexpr":
        constants = (("m", "1"), *constants)
    return Launch(Kernel("k"), signature, constants, attributes, (("num_stages", 3), ("num_warps", warps)))


def test_the_parts_of_a_launch_are_its_constants_types_and_options():
    parts = parts_of(launch("64", attributes=(("x", "tt.divisibility=16"),)))
    assert parts == {"x": "*fp16:16", "m": "i32", "BLOCK": "64", "num_stages": "3", "num_warps": "4"}
    assert parts_of(launch("64", m="constexpr"))["m"] == "1"


def test_a_column_for_what_differs_and_none_for_what_does_not():
    rows = [(0, parts_of(launch(*row[:1], warps=row[1]))) for row in (("64", 4), ("128", 4), ("128", 8))]
    assert telling_columns(rows) == (["BLOCK", "num_warps"], [["64", "4"], ["128", "4"], ["128", "8"]])
    assert telling_columns(rows, without=["num_warps"])[0] == ["BLOCK"]
    assert telling_columns(rows[:1]) == ([], [[]])


def test_launches_are_compared_within_their_kernel():
    rows = [("one", {"a": "1"}), ("other", {"a": "2", "b": "1"}), ("other", {"a": "2", "b": "2"})]
    assert telling_columns(rows) == (["b"], [["–"], ["1"], ["2"]])


@given(ROWS)
def test_what_differs_is_told_apart_by_what_is_chosen(rows: list[dict[str, str]]):
    names = telling_names(rows)
    for one in rows:
        for other in rows:
            shown = [one.get(name) for name in names] == [other.get(name) for name in names]
            assert shown == (one == other)


@given(ROWS)
def test_the_table_tells_apart_whatever_differs(rows: list[dict[str, str]]):
    _, cells = telling_columns([(0, row) for row in rows])
    for one, cell in zip(rows, cells, strict=True):
        for other, of_other in zip(rows, cells, strict=True):
            assert (cell == of_other) == (one == other)


def test_a_list_of_words() -> None:
    assert [joined(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


NAME = "cln4vrfuae3mpo4ob4g42q6fcclqvmvrztuqwzigfapmx6wvr5wg.py"
OTHER = f"cln{'a' * 49}.py"


def _capture(path: str) -> Capture:
    text = f'#loc = loc("{path}":3:0)\nmodule {{}} loc(#loc)\n'
    return Capture(Launch(Kernel("k", path)), Target.parse("cuda:90"), artifacts=(Artifact("source", text),))


def test_the_folder_of_a_generated_file_is_no_part_of_the_id() -> None:
    here, there = (_capture(f"/tmp/{folder}/ln/{NAME}") for folder in ("one", "two/tmpx"))
    assert here.id == there.id
    assert _capture(f"/tmp/one/ln/{OTHER}").id != here.id
    assert replace(here, launch=replace(here.launch, options=(("num_warps", 8),))).id != here.id


def test_the_folder_of_any_other_file_is() -> None:
    assert _capture("/tmp/one/ln/k.py").id != _capture("/tmp/two/ln/k.py").id
    assert folder_of_generated(f"/tmp/one/ln/{NAME}") == "/tmp/one/"
    for path in (f"/tmp/one/xx/{NAME}", NAME, "", "/tmp/one/ln/clnshort.py", f"/tmp/one/ln/{NAME}.ttgir"):
        assert folder_of_generated(path) == ""
