"""Required phrases: progress against counting in the text, allocation against plain lists."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from pellucid.config import TokenizerRecipe
from pellucid.decode.constraints.build_request import prefix_ids, required_ids
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.required import (
    Progress,
    RequiredPhrases,
    allocate,
    candidates,
)
from pellucid.errors import InputError
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

V, EOS = 4, 3

Phrase = tuple[int, ...]
PHRASES = st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple)


def make(*required: tuple[Phrase, ...]) -> RequiredPhrases:
    requests = [Request((EOS,), 99, required=phrases) for phrases in required]
    return RequiredPhrases(requests, vocabulary_size=V, device="cpu")


def write(phrases: RequiredPhrases, rows: list[list[int]], which: list[int]) -> Progress:
    """The progress of rows that are equally long."""
    progress = phrases.start(torch.tensor(which))
    for tokens in zip(*rows, strict=True):
        progress = phrases.advance(progress, torch.tensor(tokens))
    return progress


def spell(ids: Phrase | list[int]) -> str:
    return "".join(map(str, ids))


def needs_of(required: tuple[Phrase, ...]) -> dict[Phrase, int]:
    return {phrase: sum(spell(p).count(spell(phrase)) for p in required) for phrase in required}


def depth_of(phrase: Phrase, ids: list[int]) -> int:
    """Count the phrase's tokens that some tokens end with, without those that are met already."""
    rest = spell(ids)
    while spell(phrase) in rest:
        rest = rest.split(spell(phrase), 1)[1]
    return max(size for size in range(len(phrase)) if rest.endswith(spell(phrase[:size])))


@given(
    st.lists(st.lists(PHRASES, max_size=4).map(tuple), min_size=1, max_size=3),
    st.data(),
)
def test_progress_of_random_texts_is_what_counting_gives(
    required: list[tuple[Phrase, ...]], data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, 12))
    row = st.lists(st.integers(0, V - 1), min_size=length, max_size=length)
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    which = [data.draw(st.integers(0, len(required) - 1)) for _ in rows]
    phrases = make(*required)
    progress = write(phrases, rows, which)
    wanted, banks = phrases.wanted(progress).tolist(), phrases.banks(progress).tolist()
    is_met = phrases.is_met(progress).tolist()
    totals = phrases.total(torch.tensor(which)).tolist()
    for place, (ids, request) in enumerate(zip(rows, which, strict=True)):
        needs = needs_of(required[request])
        counts = {phrase: min(spell(ids).count(spell(phrase)), needs[phrase]) for phrase in needs}
        depths = {p: depth_of(p, ids) for p in needs if counts[p] < needs[p]}
        assert is_met[place] == (counts == needs)
        assert totals[place] == sum(len(phrase) * need for phrase, need in needs.items())
        met = sum(len(phrase) * count for phrase, count in counts.items())
        assert banks[place] == met + max(depths.values(), default=0)
        assert (banks[place] == totals[place]) == is_met[place]
        next_ones = [token for token in wanted[place] if token >= 0]
        assert sorted(next_ones) == sorted({phrase[depth] for phrase, depth in depths.items()})


@pytest.mark.parametrize(
    ("required", "text", "is_met"),
    [
        (((0, 0, 1),), [0, 0, 0, 1], True),  # another 0 leaves two of the phrase
        (((0, 1), (0, 1)), [0, 1, 2, 2], False),  # asked for twice, there once
        (((0, 1), (0, 1)), [0, 1, 0, 1], True),
        (((0, 0), (0, 0)), [0, 0, 0], False),  # without overlap
        (((0, 1), (0, 2)), [0, 1, 2, 2], False),  # the common token is not shared
        (((0, 1), (0, 2)), [0, 1, 0, 2], True),
        (((0, 1, 2), (1,)), [0, 1, 2], False),  # the part must appear again
        (((0, 1, 2), (1,)), [1, 0, 1, 2], True),
        (((0, 1), (1, 2)), [0, 1, 2], True),  # the end of one may begin another
        ((), [0], True),
    ],
)
def test_is_met_follows_its_definition(
    required: tuple[Phrase, ...], text: list[int], is_met: bool
) -> None:
    phrases = make(((2, 2, 2, 2),), required)
    assert phrases.is_met(write(phrases, [text], [1])).tolist() == [is_met]


def test_progress_reordered_continues_from_there() -> None:
    phrases = make(((0, 1),), ((2,), (1, 1)))
    progress = write(phrases, [[0], [1], [2]], [0, 1, 1])
    progress = progress.reorder(torch.tensor([2, 0, 0, 1]))
    progress = phrases.advance(progress, torch.tensor([1, 1, 0, 1]))
    assert progress.request_A.tolist() == [1, 0, 0, 1]
    assert phrases.banks(progress).tolist() == [2, 2, 1, 2]
    assert phrases.is_met(progress).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("phrase", "message"),
    [((), "must hold a token"), ((V,), "but one is 4"), ((0, -1), "but one is -1")],
)
def test_phrases_impossible_ones_are_refused(phrase: Phrase, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(((0,), phrase))


def share_naively(num_there: list[int], num_places: int, num_banks: int) -> list[int]:
    """Give each bank its places, one by one."""
    shares = [num_places // num_banks] * num_banks
    for bank in range(num_places % num_banks):
        shares[num_banks - 1 - bank] += 1
    filled = [0] * num_banks
    for bank, share in enumerate(shares):
        filled[bank] = min(share, num_there[bank])
    for bank, share in enumerate(shares):
        for _ in range(share - min(share, num_there[bank])):
            for other in [*range(bank + 1, num_banks), *reversed(range(bank + 1))]:
                if filled[other] < num_there[other]:
                    filled[other] += 1
                    break
    return filled


def allocate_naively(
    scores: list[float], banks: list[int], num_places: int, num_banks: int
) -> list[int]:
    order = sorted((-score, place) for place, score in enumerate(scores) if score > -math.inf)
    by_bank = [[place for _, place in order if banks[place] == bank] for bank in range(num_banks)]
    rooms = share_naively(list(map(len, by_bank)), num_places, num_banks)
    chosen = {place for places, room in zip(by_bank, rooms, strict=True) for place in places[:room]}
    return [place for _, place in order if place in chosen]


@given(st.integers(1, 13), st.integers(1, 9), st.integers(1, 3), st.data())
def test_allocate_random_candidates_gives_what_lists_give(
    num_candidates: int, width: int, rows: int, data: st.DataObject
) -> None:
    num_banks = [data.draw(st.integers(1, 5)) for _ in range(rows)]
    num_places = [data.draw(st.integers(0, width)) for _ in range(rows)]
    score = st.sampled_from([-math.inf, -3.0, -2.0, -1.5, -1.0, 0.0])
    sized: dict[str, Any] = {"min_size": num_candidates, "max_size": num_candidates}
    scores = [data.draw(st.lists(score, **sized)) for _ in range(rows)]
    banks = [data.draw(st.lists(st.integers(0, n - 1), **sized)) for n in num_banks]
    index_BW, is_filled_BW = allocate(
        torch.tensor(scores, dtype=torch.float64),
        torch.tensor(banks),
        num_places_B=torch.tensor(num_places),
        width=width,
        num_banks_B=torch.tensor(num_banks),
    )
    assert index_BW.shape == is_filled_BW.shape == (rows, width)
    for row in range(rows):
        expected = allocate_naively(scores[row], banks[row], num_places[row], num_banks[row])
        assert index_BW[row][is_filled_BW[row]].tolist() == expected
        assert is_filled_BW[row].tolist() == [i < len(expected) for i in range(width)]


def test_allocate_one_bank_is_the_best_of_all() -> None:
    scores_BC = torch.tensor([[-3.0, -1.0, -math.inf, -2.0, -1.0]])
    index_BW, is_filled_BW = allocate(
        scores_BC,
        torch.zeros(1, 5, dtype=torch.long),
        num_places_B=torch.tensor([3]),
        width=7,
        num_banks_B=torch.tensor([1]),
    )
    assert index_BW[0, :3].tolist() == [1, 4, 3]
    assert is_filled_BW.tolist() == [[True] * 3 + [False] * 4]


def collect_naively(
    values: list[list[float]], totals: list[float], wanted: list[list[int]]
) -> dict[tuple[int, int], float]:
    """The continuations of one sentence that `candidates` must hold, with their sums."""
    scores = {
        (row, token): totals[row] + value
        for row, row_values in enumerate(values)
        for token, value in enumerate(row_values)
    }
    best = sorted(scores, key=lambda place: -scores[place])[: len(totals)]
    best += [
        (row, max(range(V), key=row_values.__getitem__)) for row, row_values in enumerate(values)
    ]
    best += [(row, token) for row, tokens in enumerate(wanted) for token in tokens if token >= 0]
    return {place: scores[place] for place in best if scores[place] > -math.inf}


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 3), st.integers(0, 2**32))
@example(2, 3, 0, 1)
def test_candidates_are_the_best_and_the_wanted_each_once(
    sentences: int, width: int, num_wanted: int, seed: int
) -> None:
    dice = torch.Generator().manual_seed(seed)
    rows = sentences * width
    values_AV = torch.rand(rows, V, generator=dice).log()
    values_AV[torch.rand(rows, V, generator=dice) < 0.1] = -math.inf
    total_BW = torch.rand(sentences, width, generator=dice, dtype=torch.float64).log()
    total_BW[torch.rand(sentences, width, generator=dice) < 0.2] = -math.inf
    wanted_AX = torch.randint(-1, V, (rows, num_wanted), generator=dice)
    found = candidates(values_AV, total_BW, wanted_AX)
    for row, (scores, parents, tokens) in enumerate(zip(*map(Tensor.tolist, found), strict=True)):
        own = slice(row * width, (row + 1) * width)
        expected = collect_naively(
            values_AV[own].double().tolist(), total_BW[row].tolist(), wanted_AX[own].tolist()
        )
        listed = [
            ((parent, token), score)
            for score, parent, token in zip(scores, parents, tokens, strict=True)
            if score > -math.inf
        ]
        assert len(listed) == len(dict(listed))
        assert dict(listed) == pytest.approx(expected)


def search(
    values_TV: list[list[float]], required: tuple[Phrase, ...], width: int
) -> list[tuple[float, list[int]]]:
    """Search with a beam if values depend only on the position; return what meets the phrases."""
    phrases = make(required)
    total_1W = torch.full((1, width), -math.inf, dtype=torch.float64)
    total_1W[0, 0] = 0.0
    rows: list[list[int]] = [[] for _ in range(width)]
    progress = phrases.start(torch.zeros(width, dtype=torch.long))
    for values in values_TV:
        values_AV = torch.tensor([values] * width, dtype=torch.float64)
        score_BC, parent_BC, token_BC = candidates(values_AV, total_1W, phrases.wanted(progress))
        after = phrases.advance(progress.reorder(parent_BC[0]), token_BC[0])
        index_BW, is_filled_BW = allocate(
            score_BC,
            phrases.banks(after)[None],
            num_places_B=torch.tensor([width]),
            width=width,
            num_banks_B=phrases.total(torch.tensor([0])) + 1,
        )
        total_1W = score_BC.gather(1, index_BW).where(is_filled_BW, -math.inf)
        progress = after.reorder(index_BW[0])
        rows = [
            [*rows[int(parent_BC[0, place])], int(token_BC[0, place])]
            for place in index_BW[0].tolist()
        ]
    found = zip(total_1W[0].tolist(), rows, phrases.is_met(progress).tolist(), strict=True)
    return sorted([(-score, ids) for score, ids, met in found if met and score > -math.inf])


@pytest.mark.parametrize("required", [((0, 1),), ((0, 0), (2,)), ((1,), (1,)), ((2, 1, 2), (1,))])
def test_search_as_wide_as_the_space_is_exhaustive(required: tuple[Phrase, ...]) -> None:
    length = 4
    dice = torch.Generator().manual_seed(3)
    values_TV = torch.rand(length, V, generator=dice, dtype=torch.float64).log().tolist()
    expected = []
    for number in range(V**length):
        ids = [number // V**place % V for place in range(length)]
        if all(spell(ids).count(spell(p)) >= need for p, need in needs_of(required).items()):
            score = sum(values_TV[place][token] for place, token in enumerate(ids))
            expected.append((-score, ids))
    found = search(values_TV, required, V**length)
    assert [ids for _, ids in found] == [ids for _, ids in sorted(expected)]
    assert [score for score, _ in found] == pytest.approx([score for score, _ in sorted(expected)])


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_search_narrow_beam_meets_phrases_that_are_unlikely(width: int) -> None:
    values_TV = [[-9.0, -8.0, -7.0, -0.1]] * 9
    found = search(values_TV, ((0, 1, 2), (2, 0)), width)
    assert found
    assert "012" in spell(found[0][1])


LINES = ["the black cat eats a red apple", "le chat noir mange une pomme rouge"]


def tokenizer_of(**settings: object) -> Tokenizer:
    recipe = TokenizerRecipe.model_validate(settings)
    return learn_tokenizer(recipe, lambda: LINES, lambda: LINES)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "words"},
        {"vocabulary_size": 290},
        {"vocabulary_size": 286, "model_type": "unigram"},
    ],
)
@pytest.mark.parametrize("make_ids", [required_ids, prefix_ids])
def test_ids_of_texts_give_the_text_back(options: dict[str, object], make_ids: object) -> None:
    tokenizer = tokenizer_of(**options)
    ids = make_ids(tokenizer, " le chat noir ")  # type: ignore[operator]
    assert tokenizer.decode_target(ids) == "le chat noir"
    assert EOS not in ids


@pytest.mark.parametrize(
    ("options", "text", "named"),
    [
        ({"kind": "words"}, "le chien noir et le chien", "'chien', 'et'"),
        ({"vocabulary_size": 40, "byte_fallback": False}, "le chât ôtaît", "'â', 'ô', 'î'"),
    ],
)
def test_ids_of_unknown_characters_are_refused(
    options: dict[str, object], text: str, named: str
) -> None:
    tokenizer = tokenizer_of(**options)
    for make_ids, what in ((required_ids, "required phrase"), (prefix_ids, "prefix")):
        with pytest.raises(InputError, match=f"A {what} must be .* holds {named}, which it lacks"):
            make_ids(tokenizer, text)


def test_ids_of_nothing_are_no_phrase_but_a_prefix() -> None:
    tokenizer = tokenizer_of(kind="words")
    assert prefix_ids(tokenizer, "") == ()
    assert prefix_ids(tokenizer, " ") == ()
    with pytest.raises(InputError, match="required phrase must hold text, but is ' '"):
        required_ids(tokenizer, " ")
