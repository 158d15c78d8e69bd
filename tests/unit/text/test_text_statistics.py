"""The counts of the training text that a bundle keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pellucid.config import TokenizerRecipe
from pellucid.text.learned import (
    MOST_SAMPLED,
    LearnedText,
    TextStatistics,
    length_bound,
    merge_statistics,
    read_characters,
    read_rare_tokens,
)
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

V = 11


def count(*pairs: tuple[str, str], ids: tuple[int, ...] = (4, 5, 3)) -> dict[str, Any]:
    statistics = TextStatistics(V, V)
    for source, target in pairs:
        statistics.add(source, target, ids, ids)
    found = statistics.to_manifest()
    json.dumps(found, allow_nan=False)
    return found


def test_characters_are_listed_by_the_power_of_ten_of_their_count() -> None:
    found = count(*[("aab", "é")] * 10, ("c", "é\u00a0"))
    assert found["source"]["characters"] == {"10": "ab", "1": "c"}
    assert found["target"]["characters"] == {"10": "é", "1": "\u00a0"}
    assert read_characters(found["source"]) == {"a": 10, "b": 10, "c": 1}
    assert found["source"]["other_characters"] == 0


def test_most_frequent_characters_are_kept_of_very_many() -> None:
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 20_902)))
    found = count((letters + letters[:3000], ""))["source"]
    assert found["other_characters"] == 902
    assert read_characters(found).keys() == set(letters[:20_000])


def test_tokens_met_less_than_ten_times_are_rare() -> None:
    found = count(*[("a", "b")] * 9)
    assert read_rare_tokens(found["source"]) == set(range(V))
    found = count(*[("a", "b")] * 10)
    assert read_rare_tokens(found["source"]) == set(range(V)) - {3, 4, 5}


def test_lengths_and_sentences_are_described_by_percentiles() -> None:
    pairs = [("One.", "x")] * 98 + [("One. Two.", "x"), ("One. Two. Three.", "x")]
    found = count(*pairs)["source"]
    assert found["sentences"] == {"median": 1, "p99": 2, "p999": 3, "longest": 3}
    assert found["length"] == {"median": 4, "p99": 9, "p999": 16, "longest": 16}


def test_sentences_are_counted_in_a_sample_that_is_spread_over_the_text() -> None:
    half = [("One.", "x")] * (2 * MOST_SAMPLED)
    found = count(*half, *[("One. Two.", "x")] * (2 * MOST_SAMPLED + 3))["source"]
    assert found["sentences"]["p99"] == 2
    assert found["sentences"]["median"] in (1, 2)


@pytest.mark.parametrize(
    ("length", "bound"), [(1, 1), (8, 8), (9, 10), (16, 16), (17, 20), (50, 56)]
)
def test_length_bound_is_exact_for_short_lines(length: int, bound: int) -> None:
    assert length_bound(length) == bound


def test_longest_targets_grow_with_the_length_of_the_source() -> None:
    statistics = TextStatistics(V, V)
    for source, target in ((3, 9), (5, 7), (20, 30)):
        statistics.add("a", "b", [4] * source, [4] * target)
    assert statistics.to_manifest()["longest_targets"] == {"3": 9, "5": 9, "20": 30}


def test_counts_of_a_model_that_is_trained_further_are_combined() -> None:
    earlier = count(*[("abc One.", "é")] * 10)
    later = count(*[("abd One. Two.", "x")] * 2, ids=(7, 3))
    merged = merge_statistics(earlier, later)
    assert read_characters(merged["source"]).keys() == set("abcd One.Two")
    assert read_characters(merged["source"])["c"] == 10
    assert read_rare_tokens(merged["source"]) >= {6, 7}
    assert not read_rare_tokens(merged["source"]) & {3, 4, 5}
    assert merged["source"]["sentences"] == later["source"]["sentences"]
    assert merge_statistics({}, later) == later


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["the soup is salty", "a cat sees the dog"] * 7
    recipe = TokenizerRecipe(kind="sentencepiece", vocabulary_size=280)
    return learn_tokenizer(recipe, lambda: lines, lambda: lines)


def test_learned_text_is_read_from_the_manifest(tokenizer: Tokenizer) -> None:
    text = count(*[("One. Two.", "x")] * 10)
    learned = LearnedText.read({"data": {"text": text}}, tokenizer)
    assert (learned.usual_sentences, learned.most_sentences, learned.most_characters) == (2, 2, 9)
    assert learned.characters["T"] == 10
    assert learned.longest_target(2) == learned.longest_target(3) == 3
    assert learned.longest_target(4) is None


def test_learned_text_without_counts_has_the_characters_of_the_vocabulary(
    tokenizer: Tokenizer,
) -> None:
    learned = LearnedText.read({}, tokenizer)
    assert learned.characters.keys() == set("the soup is salty a cat sees the dog")
    assert (learned.usual_sentences, learned.most_characters) == (1, 0)
    assert learned.longest_target(3) is None


STRANGE: list[Any] = [
    7,
    {"text": []},
    {"text": {"source": 3, "longest_targets": {"x": 1, "9" * 5000: 2}}},
    {"text": {"source": {"characters": {"9" * 5000: "a", "1": 7}, "rare_tokens": "%"}}},
    {"text": {"source": {"characters": {"1": "a"}, "rare_tokens": 5, "sentences": {"median": -1}}}},
]


@pytest.mark.parametrize("data", STRANGE)
def test_learned_text_of_a_strange_manifest_is_read_as_far_as_it_goes(
    data: Any, tokenizer: Tokenizer
) -> None:
    learned = LearnedText.read({"data": data}, tokenizer)
    assert learned.characters
    assert learned.usual_sentences == 1
