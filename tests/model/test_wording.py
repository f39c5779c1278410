"""Words of sentences."""

from irscope.model.wording import joined


def test_a_list_of_words() -> None:
    assert [joined(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
