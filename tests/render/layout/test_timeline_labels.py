"""Labels of boxes: none across another box, a label or a line, and none missing where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from irscope.render.canvas import LEAST, Label, Rect, placed_labels, width_of

FRAME = Rect(0, 0, 1000, 400)


def forms(number: int, words: int = 3) -> list[tuple[str, ...]]:
    return [(f"{number} {'buffer ' * words}", "4096 bytes"), (f"{number} {'buffer ' * words}",), (str(number),)]


def placed(boxes: Sequence[Rect], lines: Sequence[Rect] = ()) -> list[Label]:
    return placed_labels(boxes, [forms(number) for number in range(len(boxes))], FRAME, lines)


# Boxes on a grid, none upon another: some are as thin as a buffer of one step or of a few bytes is drawn.
SIZES = ((4.0, 4.0), (4.0, 60.0), (60.0, 4.0), (240.0, 60.0), (30.0, 14.0))
CELLS = st.lists(st.sampled_from(range(24)), unique=True, max_size=16)


@given(CELLS, st.integers(0, 4), st.booleans())
def test_no_label_meets_anything(cells: list[int], shift: int, with_line: bool) -> None:
    boxes = [Rect(cell % 4 * 245.0, cell // 4 * 65.0, *SIZES[(cell + shift) % 5]) for cell in cells]
    lines = [Rect(120, 0, 4, 400)] if with_line else []
    found = placed(boxes, lines)
    assert len({label.box for label in found}) == len(found)
    for label in found:
        assert FRAME.holds(label.area)
        # As wide as it is drawn.
        assert label.area.width >= max(width_of(line, LEAST) for line in label.lines)
        assert label.inside == boxes[label.box].holds(label.area)
        assert not any(label.area.meets(line) for line in lines)
        assert all(
            not label.area.meets(box) for index, box in enumerate(boxes) if not label.inside or index != label.box
        )
    assert not any(one.area.meets(other.area) for one, other in combinations(found, 2))


def test_thin_boxes_beside_one_another_all_have_their_number() -> None:
    """A long label of the first one would leave the second none."""
    boxes = [Rect(left, 396, 6, 4) for left in (100.0, 136.0, 172.0)]
    found = {label.box: label.lines for label in placed(boxes)}
    assert set(found) == {0, 1, 2}
    assert all(lines[0].startswith(str(box)) for box, lines in found.items())


def test_a_label_stands_behind_a_line_that_crosses_its_box() -> None:
    line = Rect(20, 0, 4, 400)
    (label,) = placed([Rect(10, 0, 400, 100)], [line])
    assert label.inside
    assert len(label.lines) == 2
    assert label.area.left > line.right


def test_what_has_no_room_anywhere_is_left_out() -> None:
    assert placed([Rect(0, 0, 4, 400), Rect(4, 0, 992, 400), Rect(996, 0, 4, 400)])[0].box == 1
    assert len(placed([Rect(0, 0, 4, 400), Rect(4, 0, 992, 400), Rect(996, 0, 4, 400)])) == 1
