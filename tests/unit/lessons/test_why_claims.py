"""Numbers of `pellucid claim`, computed again in another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pellucid.attention import attend
from pellucid.errors import InputError
from pellucid.lessons.why.cells import Cells
from pellucid.lessons.why.claims.diagonal import count_rows
from pellucid.lessons.why.claims.fixed_size import WAYS, cut_batches
from pellucid.lessons.why.claims.length import COSTS, fit_laws, longest_in, seconds_of_encoder
from pellucid.lessons.why.claims.scale import measure_sharpness, softmax_gradient
from pellucid.lessons.why.clock import peak_bytes, seconds_of
from pellucid.lessons.why.fits import fit_power_law
from pellucid.lessons.why.tiny.learn import (
    END,
    PAD,
    START,
    UNKNOWN,
    TinyVocabulary,
    count_exact,
    loss_on,
    make_pair_batch,
    make_tiny,
    train_tiny,
)
from pellucid.lessons.why.tiny.tiny_language import (
    draw_ambiguous,
    draw_lists,
    draw_statements,
    is_translation,
    swap_animals,
)
from pellucid.lessons.why.tiny.two_nouns import TASTE, draw_others, draw_tests, draw_ties
from pellucid.machine.randomness import generator
from pellucid.model import Transformer


def softmax_of(scores_LM: np.ndarray) -> np.ndarray:
    powers_LM = np.exp(scores_LM - scores_LM.max(axis=-1, keepdims=True))
    return np.asarray(powers_LM / powers_LM.sum(axis=-1, keepdims=True))


def test_softmax_gradient_equals_the_norm_of_numerical_derivatives() -> None:
    scores_LM = generator(1, "test gradient").standard_normal((3, 7)) * 2
    found = softmax_gradient(softmax_of(scores_LM))
    step = 1e-6
    for row, scores_M in enumerate(scores_LM):
        columns = [
            (softmax_of(scores_M + step * unit_M) - softmax_of(scores_M - step * unit_M))
            / (2 * step)
            for unit_M in np.eye(7)
        ]
        assert found[row] == pytest.approx(np.linalg.norm(columns), rel=1e-7)


def test_softmax_gradient_of_a_sharp_row_is_not_rounded_to_zero() -> None:
    weights_LM = softmax_of(np.array([[90.0, 0.0, 0.0]]))
    rest = math.exp(-90)
    # diag(w) − wwᵀ is about e^-90 times [[2, -1, -1], [-1, 1, 0], [-1, 0, 1]].
    assert softmax_gradient(weights_LM)[0] == pytest.approx(rest * math.sqrt(10), rel=1e-6)


@pytest.mark.parametrize("is_scaled", [False, True])
def test_sharpness_equals_entropy_and_deviation_in_plain_loops(is_scaled: bool) -> None:
    found = measure_sharpness(11, "alike", is_scaled=is_scaled, queries=5, seed=3)
    numbers = generator(3, "why scale", 11)
    query_LK = numbers.standard_normal((5, 11))
    key_LMK = numbers.standard_normal((5, 32, 11))
    entropies, tops, scores = [], [], []
    for query_K, key_MK in zip(query_LK, key_LMK, strict=True):
        key_MK[0] = query_K
        row = [float(query_K @ key_K) / (math.sqrt(11) if is_scaled else 1) for key_K in key_MK]
        total = sum(math.exp(score) for score in row)
        weights = [math.exp(score) / total for score in row]
        entropies.append(-sum(weight * math.log(weight) for weight in weights) / math.log(32))
        tops.append(max(weights))
        scores += row
    assert found["entropy"] == pytest.approx(sum(entropies) / 5)
    assert found["largest"] == pytest.approx(sum(tops) / 5)
    assert found["deviation"] == pytest.approx(float(np.std(scores)))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 2.6])
def test_power_law_of_made_up_times_finds_factor_and_exponent(exponent: float) -> None:
    lengths = [3, 7, 19, 53]
    law = fit_power_law(lengths, [0.25 * n**exponent for n in lengths])
    assert law.exponent == pytest.approx(exponent, abs=1e-12)
    assert law.factor == pytest.approx(0.25)
    assert law.at(100) == pytest.approx(0.25 * 100**exponent)


def test_power_law_of_noisy_times_is_the_least_squares_line() -> None:
    lengths, costs = [2.0, 3.0, 5.0, 11.0], [1.0, 3.0, 4.0, 30.0]
    x, y = np.log(lengths), np.log(costs)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    assert fit_power_law(lengths, costs).exponent == pytest.approx(slope)


@pytest.mark.parametrize(("lengths", "costs"), [([3], [1.0]), ([3, 5], [1.0]), ([3, 5], [1, 0])])
def test_power_law_of_too_few_or_no_costs_is_refused(
    lengths: list[int], costs: list[float]
) -> None:
    with pytest.raises(InputError, match="power law"):
        fit_power_law(lengths, costs)


def test_laws_of_made_up_costs_give_the_longest_text_of_the_encoder() -> None:
    rows = [
        {"length": n, "seed": 1}
        | dict(zip(COSTS, (1e-6 * n**2, 1e-7 * n**2, 1e-5 * n, 128 * n**2, 2048 * n), strict=True))
        for n in (64, 128, 256)
    ]
    laws = fit_laws(Cells(tuple(rows)))
    assert laws["explicit_bytes"].at(math.sqrt(2**30 / 128)) == pytest.approx(2**30)
    longest = longest_in(laws, "fast", 1.0)
    # 6 (1e-7 n² + 1e-5 n) = 1
    root = (-1e-5 + math.sqrt(1e-10 + 4 * 1e-7 / 6)) / (2 * 1e-7)
    assert longest == pytest.approx(root, rel=1e-6)
    assert seconds_of_encoder(laws, "explicit", 100) == pytest.approx(6 * (1e-2 + 1e-3))


def test_peak_bytes_counts_results_that_exist_at_once() -> None:
    first = torch.zeros(1000)

    def one_after_another() -> torch.Tensor:
        second = first + 1  # 4,000 bytes
        third = second.view(10, 100) * 2  # 4,000 more; the view holds nothing
        del second
        return third.sum()  # 4 bytes, when 4,000 are gone

    assert peak_bytes(one_after_another) == 8000


def test_peak_bytes_of_five_stages_is_four_matrices_of_scores() -> None:
    query_BHLK = torch.zeros(1, 2, 53, 3)
    matrix = 2 * 53 * 53 * 4
    assert 4 * matrix <= peak_bytes(lambda: attend(query_BHLK, query_BHLK, query_BHLK)) < 5 * matrix


def test_seconds_of_calls_a_short_function_often() -> None:
    calls = []
    assert 0 < seconds_of(lambda: calls.append(1), repeats=3) < 0.1
    assert len(calls) > 10


def test_count_rows_finds_the_rows_whose_diagonal_is_highest() -> None:
    weights_HLM = torch.tensor([[[0.6, 0.4], [0.7, 0.3]], [[0.1, 0.9], [0.2, 0.8]]])
    highest_H, own_H = count_rows(weights_HLM)
    assert highest_H.tolist() == [1, 1]
    assert own_H.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "buckets"])
def test_lay_out_keeps_every_sentence_and_fits_the_longest(way: str) -> None:
    sentences = [[n] * length for n, length in enumerate((3, 11, 2, 7, 5))]
    batches = cut_batches(sentences, way, rows=2, fixed=13)
    assert sorted(one for batch, _ in batches for one in batch) == sorted(sentences)
    for batch, length in batches:
        assert length == (13 if way == "fixed size" else max(map(len, batch)))
        assert len(batch) <= (1 if way == "one at a time" else 2)


def test_vocabulary_encodes_and_decodes_with_an_unknown_word() -> None:
    words = TinyVocabulary.of(["b a", "c a"])
    assert len(words) == 7
    assert words.decode(words.encode("c b a")) == "c b a"
    assert words.encode("a x") == [4, UNKNOWN, END]


def test_pair_batch_shifts_the_target_behind_the_start() -> None:
    batch = make_pair_batch([[5, END], [6, 7, END]], [[8, 9, END], [8, END]])
    assert batch.target_in_BT.tolist() == [[START, 8, 9], [START, 8, PAD]]
    assert batch.target_out_BT.tolist() == [[8, 9, END], [8, END, PAD]]
    assert batch.num_target_tokens == 5
    assert batch.source_mask_BS.tolist() == [[True, True, False], [True, True, True]]


def test_statements_are_new_in_the_test_and_depend_on_the_seed() -> None:
    train, test = (draw_statements(300, seed=1, part=part) for part in ("train", "test"))
    assert not {english for english, _ in train} & {english for english, _ in test}
    assert len({english for english, _ in train}) == 300
    assert draw_statements(5, seed=1, part="train") == train[:5]
    assert draw_statements(5, seed=2, part="train") != train[:5]


def test_statements_agree_in_gender() -> None:
    female = {"vache", "chèvre", "poule", "grenouille", "souris"}
    for _, french in draw_statements(200, seed=1, part="train"):
        words = french.split()
        for place, word in enumerate(words):
            if word in ("le", "la"):
                assert (word == "la") == (words[place + 1] in female)
        for color, noun in zip(words[1:], words, strict=False):
            if color in ("noire", "blanche", "verte", "grise", "brune"):
                assert noun in female


def test_swapped_animals_keep_words_and_change_both_languages() -> None:
    pair = ("the black dog sees the cow", "le chien noir voit la vache")
    assert swap_animals(pair) == ("the cow sees the black dog", "la vache voit le chien noir")
    assert swap_animals(("the cow sees the cow", "la vache voit la vache")) is None


def test_ambiguous_verbs_are_drawn_evenly_and_both_count_as_right() -> None:
    usual = dict(draw_statements(400, seed=1, part="train"))
    drawn = draw_ambiguous(400, seed=1, part="train")
    changed = sum(usual[english] != french for english, french in drawn)
    assert 150 < changed < 250
    assert all(is_translation(usual[english], (english, french)) for english, french in drawn)
    assert not is_translation("la vache voit le chien", ("", "le chien voit la vache"))


def test_lists_have_the_sizes_asked_for() -> None:
    for english, french in draw_lists(30, phrases=(2, 3), seed=1, part="train"):
        assert english.count(" and ") == french.count(" et ") in (1, 2)


def test_pizza_has_a_pronoun_only_in_ties_and_tests() -> None:
    others, ties, tests = draw_others(500, seed=1), draw_ties(40, seed=1), draw_tests()
    assert any("pizza" in english for english, _ in others)
    assert not any("pizza" in english and " it " in english for english, _ in others)
    assert all("pizza" in english and " it tasted" in english for english, _ in ties)
    texts = {english for english, _ in (*others, *ties)}
    assert not texts & {english for english, _ in tests}
    about = [french for english, french in tests if english.endswith(TASTE)]
    assert all(" et elle avait" in french for french in about)
    assert len(about) == len(tests) / 2
    assert all(" et il était" in french for english, french in tests if "tasted" not in english)


def test_tiny_model_learns_and_its_loss_is_that_of_numpy() -> None:
    pairs = [("a b", "x y"), ("b a", "y x"), ("a", "x"), ("b", "y")]
    tiny = make_tiny(pairs, seed=1, d_model=16, d_ff=32, num_heads=2)
    before = loss_on(tiny, pairs)
    assert before == pytest.approx(
        numpy_loss(tiny.model, tiny.source, tiny.target, pairs), rel=1e-5
    )
    tiny = train_tiny(tiny, pairs, steps=60, seed=1, rate=1e-2, rows=4)
    assert len(tiny.losses) == 60
    assert loss_on(tiny, pairs) < 0.1 < before
    assert count_exact(tiny, pairs) == 1.0


def numpy_loss(
    model: Transformer, source: TinyVocabulary, target: TinyVocabulary, pairs: list[tuple[str, str]]
) -> float:
    """The mean −log p of the target words, one pair at a time, from the logits."""
    losses = []
    for english, french in pairs:
        wanted = target.encode(french)
        read = torch.tensor([[START, *wanted[:-1]]])
        with torch.no_grad():
            logits_TV = model(torch.tensor([source.encode(english)]), read)[0].double().numpy()
        for row, word in zip(logits_TV, wanted, strict=True):
            losses.append(math.log(np.exp(row - row.max()).sum()) + row.max() - row[word])
    return sum(losses) / len(losses)
