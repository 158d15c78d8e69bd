"""Byte-pair encoding with merges left out: the paper's algorithm, a function of seed and text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pellucid.text.tokenizers.subwords import MergeDropout

RANKS = {"ab": 0.0, "cd": 1.0, "abcd": 2.0, "bc": 3.0}
IDS = {piece: number for number, piece in enumerate([*"abcdxyz", *RANKS])}
PIECES = {number: piece for piece, number in IDS.items()}


def merges(rate: float, seed: int = 1, ranks: Mapping[str, float] = RANKS) -> MergeDropout:
    return MergeDropout(IDS, ranks, rate=rate, seed=seed)


def cut(one: MergeDropout, text: str, count: int) -> list[list[str]]:
    return [
        ["".join(f"{PIECES[id_]}|" for id_ in ids) for ids in ways]
        for ways in one.segment(text.split(), count)
    ]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(0.0, ["abcd|", "x|bc|", "a|x|"]), (1.0, ["a|b|c|d|", "x|b|c|", "a|x|"])],
)
def test_nothing_or_everything_left_out(rate: float, expected: list[str]) -> None:
    assert cut(merges(rate), "abcd xbc ax", 2) == [expected, expected]


def test_a_cut_depends_on_seed_and_text_alone() -> None:
    text = "abcd abcd xbc abcd cdab"
    first = cut(merges(0.4), text, 7)
    other = merges(0.4)
    cut(other, "cdab abcd", 3)
    assert cut(other, text, 7) == first
    assert cut(merges(0.4, seed=2), text, 7) != first
    assert cut(merges(0.4), text + " a", 7) != [[*ways, "a|"] for ways in first]


def test_places_of_one_word_are_cut_apart() -> None:
    [words] = cut(merges(0.5), " ".join(["abcd"] * 200), 1)
    assert len(set(words)) > 4


def test_a_merge_is_left_out_as_often_as_asked() -> None:
    # A word of two letters has one possible merge, tried once.
    rate, letters = 0.3, [chr(0x4E00 + number) for number in range(60)]
    words = [left + right for left in letters for right in letters]
    ids = {piece: number for number, piece in enumerate([*letters, *words])}
    one = MergeDropout(ids, dict.fromkeys(words, 0.0), rate=rate, seed=5)
    left_out = sum(len(cut) == 2 for ways in one.segment(words, 5) for cut in ways)
    total = 5 * len(words)
    # A place draws among the ways of its word, so only the words are independent.
    deviation = (rate * (1 - rate) / len(words)) ** 0.5
    assert abs(left_out / total - rate) < 4 * deviation


def test_an_unfinished_merge_leaves_the_next_ones_open() -> None:
    # abcd is only made from ab and cd.
    found = {way for [way] in cut(merges(0.5), "abcd", 300)}
    assert found == {"abcd|", "ab|cd|", "ab|c|d|", "a|b|cd|", "a|bc|d|", "a|b|c|d|"}


def test_a_word_with_a_letter_that_is_no_piece_has_no_ids() -> None:
    for ways in merges(0.5).segment(["axé", "ab"], 3):
        assert ways[0] == ()
        assert ways[1] in {(IDS["ab"],), (IDS["a"], IDS["b"])}
