"""Comparing maps: shared columns are subtracted, others are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import InputError
from pellucid.inside import Trace
from pellucid.inside.heads.compare import compare_heads, compare_maps
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay

SOURCE = "The pizza came out of the oven ."
OTHER = "The pizza came out ."
TARGET = "La pizza est sortie du four ."


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return load_bundle(bundle_folder)


@pytest.fixture(scope="module")
def trace(bundle: Bundle) -> Trace:
    return replay(make_pair(bundle, SOURCE, TARGET))


def test_difference_keeps_what_both_have_and_says_what_is_left_out() -> None:
    first = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    second = np.array([[0.6, 0.4], [0.3, 0.7], [0.9, 0.1]])
    found = compare_maps(
        first, second, (["it", "fell"], ["it", "was", "fell"]), (["a", "b", "c"], ["a", "c"])
    )
    assert found.rows == ((0, 0), (1, 2))
    assert found.columns == ((0, 0), (2, 1))
    assert found.row_tokens == ("it", "fell")
    assert found.column_tokens == ("a", "c")
    np.testing.assert_allclose(found.values, [[-0.1, -0.15], [-0.8, 0.6]], atol=1e-12)
    np.testing.assert_allclose(found.left_out, [[0.25, 0], [0.2, 0]], atol=1e-12)
    assert found.only_first == ()
    assert found.only_second == (1,)
    assert found.distance == pytest.approx((0.1 + 0.15 + 0.25 + 0.8 + 0.6 + 0.2) / 4)


def test_difference_of_texts_without_a_common_word_is_empty() -> None:
    found = compare_maps(np.eye(2), np.eye(3), ("ab", "cde"), ("ab", "cde"))
    assert found.values.shape == (0, 0)
    assert found.only_first == (0, 1)
    assert found.distance == 0


def test_map_of_another_size_than_its_words_is_refused() -> None:
    with pytest.raises(InputError, match="2 and 3, but has the shape \\(3, 2\\) \\(second\\)"):
        compare_maps(np.ones((2, 3)), np.ones((3, 2)), ("ab", "ab"), ("abc", "abc"))


def test_two_heads_of_one_sentence_are_subtracted_and_turn_round_in_sign(trace: Trace) -> None:
    one = "decoder.0.cross.0"
    other = "decoder.1.cross.1"
    found = compare_heads(trace, one, trace, other)
    np.testing.assert_allclose(
        found.values,
        trace["decoder.0.cross.0"].astype(float) - trace["decoder.1.cross.1"],
        atol=1e-12,
    )
    assert (found.first, found.second) == ("decoder.0.cross.0", "decoder.1.cross.1")
    assert found.row_tokens == trace.target_tokens
    assert found.column_tokens == trace.source_tokens
    assert not found.left_out.any()
    back = compare_heads(trace, other, trace, one)
    np.testing.assert_array_equal(back.values, -found.values)
    assert back.distance == found.distance > 0
    assert compare_heads(trace, one, trace, one).distance == 0


def test_one_head_of_two_sentences_compares_their_common_words(
    bundle: Bundle, trace: Trace
) -> None:
    other = replay(make_pair(bundle, OTHER, TARGET))
    head = "encoder.0.self.1"
    found = compare_heads(trace, head, other, head)
    assert found.row_tokens == ("The", "pizza", "came", "out", ".", "</s>")
    assert found.rows[-1] == (8, 5)
    assert found.only_first == (4, 5, 6)
    weights = trace["encoder.0.self.1"]
    np.testing.assert_allclose(found.left_out[0], [weights[0, 4:7].sum(), 0], atol=1e-6)
    np.testing.assert_allclose(
        found.values.sum(axis=1), found.left_out[:, 1] - found.left_out[:, 0], atol=1e-5
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("decoder.0.cross.0", "decoder.0.self.0", "one part and kind"),
        ("decoder.0.cross.*", "decoder.0.cross.0", "A single head must be named"),
        ("decoder.0.cross.0", "decoder.0.cross.0:1>2", "must be a number from 0"),
        ("decoder.0.cross.0", "decoder.0.cross.5", "but is 5"),
        ("decoder.7.cross.0", "decoder.0.cross.0", "does not hold 'decoder.7.cross.0.weights'"),
    ],
)
def test_heads_that_cannot_be_compared_are_refused(
    trace: Trace, first: str, second: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        compare_heads(trace, first, trace, second)
