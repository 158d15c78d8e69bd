"""Habits of heads: even rows and look-ups, on maps that are worked out by hand."""

from __future__ import annotations

import numpy as np

from pellucid.inside.heads.head_habits import find_habit

EVEN = [0.3, 0.3, 0.4]


def habit(*rows: list[float], is_causal: bool = False) -> tuple[str, str]:
    return find_habit(np.array(rows), is_causal=is_causal)


# The same maps are those of web/tests/figures.test.ts.
def test_head_is_even_or_a_look_up_if_most_rows_are() -> None:
    assert habit(EVEN, EVEN, [1, 0, 0]) == (
        "even",
        "Even in 2 of 3 rows: there it looks at all words alike, and is idle.",
    )
    assert habit(EVEN, [0.6, 0.4, 0], [1, 0, 0]) == ("", "")
    assert habit(EVEN, [0, 0, 1], [1, 0, 0]) == (
        "look-up",
        "A look-up in 2 of 3 rows: there it takes one word only.",
    )


def test_row_that_sees_one_word_has_no_habit_and_a_look_up_says_its_word() -> None:
    itself = habit([1, 0, 0], [0, 1, 0], [0, 0, 1], is_causal=True)
    before = habit([1, 0, 0], [1, 0, 0], [0, 1, 0], is_causal=True)
    even = habit([1, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4], is_causal=True)

    assert itself[1] == (
        "A look-up in 2 of 2 rows: there it takes one word only, mostly the word just read."
    )
    assert "mostly the word before that" in before[1]
    assert even[0] == "even"
    assert habit([1, 0, 0]) == ("", ""), "one row is no habit"
