"""Comparisons of measures with each other and with the truth, lenses, and the list of all."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_pairs import FORMS, load_demo, small_pair, translated_by_demo
from torch import Tensor

from pellucid.errors import InputError
from pellucid.inside import (
    MEASURES,
    Map,
    Pair,
    agreement,
    decoder_lens,
    faithfulness,
    find_raises,
    logit_lens,
    measure,
)
from pellucid.inside.changes.change import Changes, CutEdge
from pellucid.inside.changes.place import Place
from pellucid.inside.measures.agreement import kendall, spearman
from pellucid.inside.measures.maps import make_map, merge_source_words, source_words
from pellucid.inside.measures.occlusion import occlusion
from pellucid.inside.pair import make_pair
from pellucid.model import Site

TEXT = "The pizza came out of the oven and it tasted good."


@pytest.fixture(params=list(FORMS))
def pair(request: pytest.FixtureRequest, bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder, **FORMS[request.param])


@pytest.fixture
def plain_pair(bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder)


@pytest.fixture(scope="module")
def demo_pair() -> Pair:
    return translated_by_demo(TEXT)


def test_kendall_is_as_computed_by_hand() -> None:
    assert kendall(np.array([1, 2, 3]), np.array([10, 20, 30])) == 1
    assert kendall(np.array([1, 2, 3]), np.array([3, 2, 1])) == -1
    # Pairs: + + −, of three.
    assert kendall(np.array([1, 2, 3]), np.array([1, 3, 2])) == pytest.approx(1 / 3)
    # One tie: of the pairs (0, +) (+, +) (+, +) two agree, 2 / √(2 · 3).
    assert kendall(np.array([1, 1, 2]), np.array([1, 2, 3])) == pytest.approx(2 / math.sqrt(6))
    assert math.isnan(kendall(np.array([1, 1, 1]), np.array([1, 2, 3])))


def test_spearman_is_as_computed_by_hand() -> None:
    assert spearman(np.array([1, 2, 9]), np.array([10, 20, 30])) == 1
    assert spearman(np.array([1, 2, 3]), np.array([3, 2, 1])) == -1
    # 1 − 6 · Σd² / n(n² − 1) = 1 − 6 · 2 / 24.
    assert spearman(np.array([1, 2, 3]), np.array([1, 3, 2])) == pytest.approx(0.5)
    # Ranks (1.5, 1.5, 3) and (1, 2, 3): around 2, 1.5 / √(1.5 · 2).
    assert spearman(np.array([1, 1, 2]), np.array([1, 2, 3])) == pytest.approx(1.5 / math.sqrt(3))
    assert math.isnan(spearman(np.array([1, 1, 1]), np.array([1, 2, 3])))


def source_map(pair: Pair, matrix: np.ndarray, *, is_signed: bool = False) -> Map:
    return make_map(
        pair, "made up", "nobody", matrix, part="decoder", kind="cross", is_signed=is_signed
    )


def test_agreement_is_the_mean_over_rows_that_have_an_order(plain_pair: Pair) -> None:
    shape = (len(plain_pair.target_ids), len(plain_pair.source_ids))
    rising = np.tile(np.arange(shape[1], dtype=float), (shape[0], 1))
    mixed = rising.copy()
    mixed[0] = mixed[0, ::-1]
    mixed[1] = 5.0
    found = agreement(plain_pair, [source_map(plain_pair, one) for one in (rising, mixed)])
    expected = (shape[0] - 3) / (shape[0] - 1)  # One row against, one without order.
    np.testing.assert_allclose(found.kendall, [[1, expected], [expected, 1]])
    np.testing.assert_allclose(found.spearman, [[1, expected], [expected, 1]])
    np.testing.assert_array_equal(
        found.num_rows, [[shape[0], shape[0] - 1], [shape[0] - 1, shape[0] - 1]]
    )


def test_agreement_adds_up_the_tokens_of_words(demo_pair: Pair) -> None:
    weights = measure(demo_pair, "weights")
    merged = merge_source_words(weights, source_words(demo_pair))
    np.testing.assert_allclose(merged.matrix[:, 9], weights.matrix[:, 9:12].sum(axis=1))
    assert merged.column_labels[9] == "▁tasted"
    assert merged.sums_to_one
    assert merged.matrix.sum(axis=1) == pytest.approx(1)
    found = agreement(demo_pair, [weights, merged, occlusion(demo_pair)])
    assert found.kendall[0, 1] == 1
    assert found.kendall[0, 2] == found.kendall[1, 2] == found.kendall[2, 0]
    assert abs(found.kendall[0, 2]) < 0.9


def test_agreement_of_maps_without_source_columns_says_so(plain_pair: Pair) -> None:
    for of_self in (
        measure(plain_pair, "weights", "decoder.*.self"),
        measure(plain_pair, "weights", "encoder"),
    ):
        with pytest.raises(InputError, match="must have decoder rows and a column for each"):
            agreement(plain_pair, [of_self])


def test_faithfulness_of_two_words_is_as_computed_by_hand() -> None:
    pair = make_pair(load_demo(), "The oven", "Le four")
    words = source_words(pair)
    assert len(words) == 3
    first, second, end = (pair.source_ids[word[0]] for word in words)
    map_ = source_map(pair, np.tile([0.2, 0.7, 0.1], (len(pair.target_ids), 1)))
    (found,) = faithfulness(pair, [map_], num_random=40)

    def probabilities(*ids: int) -> np.ndarray:
        return pair.log_probabilities(source_ids=ids).exp().numpy()

    # Every share of two words rounds up to one: nothing once, and five times the second word.
    whole = probabilities(first, second, end)
    comprehensiveness = 5 / 6 * (whole - probabilities(first, end))
    sufficiency = ((whole - probabilities(end)) + 5 * (whole - probabilities(second, end))) / 6
    np.testing.assert_allclose(found.comprehensiveness_rows, comprehensiveness, atol=1e-5)
    np.testing.assert_allclose(found.sufficiency_rows, sufficiency, atol=1e-5)
    assert found.comprehensiveness.value == pytest.approx(comprehensiveness.mean(), abs=1e-5)
    other = 5 / 6 * (whole - probabilities(second, end))
    bounds = sorted([comprehensiveness.mean(), other.mean()])
    assert bounds[0] < found.comprehensiveness.random < bounds[1]
    assert found.comprehensiveness.low <= found.comprehensiveness.random
    assert found.comprehensiveness.random <= found.comprehensiveness.high


def test_faithfulness_tells_occlusion_from_its_opposite(demo_pair: Pair) -> None:
    truth = occlusion(demo_pair)
    opposite = replace(truth, matrix=-truth.matrix)
    one, other = faithfulness(demo_pair, [truth, opposite], num_random=20)
    assert one.beats_random == (True, True)
    assert other.beats_random == (False, False)
    assert other.comprehensiveness.value < other.comprehensiveness.low
    again, _ = faithfulness(demo_pair, [truth, opposite], num_random=20)
    assert again.comprehensiveness == one.comprehensiveness
    assert one.comprehensiveness.low == other.comprehensiveness.low


def test_faithfulness_without_words_to_order_says_so(plain_pair: Pair) -> None:
    short = Pair(plain_pair.model, plain_pair.tokenizer, (5, 3), plain_pair.target_ids)
    with pytest.raises(InputError, match="at least 2 words to order"):
        faithfulness(short, [])


def test_raises_are_where_much_weight_lies_and_the_word_is_not_missed(plain_pair: Pair) -> None:
    shape = (len(plain_pair.target_ids), len(plain_pair.source_ids))
    weights, deltas = np.full(shape, 0.1), np.full(shape, 0.5)
    weights[1, 2], deltas[1, 2] = 0.9, -0.3
    weights[4, 0], deltas[4, 0] = 0.6, -0.7
    weights[5, 5] = 0.9  # Missed, as it should be.
    deltas[6, 6] = -2.0  # Not pointed at.
    maps = source_map(plain_pair, weights), source_map(plain_pair, deltas, is_signed=True)
    found = find_raises(plain_pair, *maps)
    assert [(one.row, one.word, one.effect) for one in found] == [(4, 0, -0.7), (1, 2, -0.3)]
    assert found[1].share == pytest.approx(0.9 / (0.9 + 0.1 * (shape[1] - 1)))
    assert not find_raises(plain_pair, *maps, least_share=0.99)


def test_logit_lens_ends_in_what_the_model_says(pair: Pair) -> None:
    found = logit_lens(pair, most=3)
    assert [one.depth for one in found] == [0, 1, 2]
    np.testing.assert_allclose(found[-1].log_probabilities, pair.log_probabilities(), atol=1e-10)
    logits_TV = pair.logits()
    for row, (target, rank) in enumerate(zip(pair.target_ids, found[-1].ranks, strict=True)):
        assert rank == (logits_TV[row] > logits_TV[row, target]).sum()
        best = found[-1].guesses[row]
        assert len(best) == 3
        assert best[0].probability >= best[1].probability
    assert found[0].log_probabilities != found[1].log_probabilities


def test_logit_lens_before_all_layers_reads_the_embedding(bundle_folder: Path) -> None:
    pair = small_pair(bundle_folder, positions="none", embedding_scale="none")
    embedding_VD = pair.model.embedding.weight
    logits_TV = embedding_VD[list(pair.read_ids)] @ embedding_VD.T
    logs_T1 = logits_TV.log_softmax(-1).gather(1, torch.tensor(pair.target_ids)[:, None])
    found = logit_lens(pair)[0].log_probabilities
    np.testing.assert_allclose(found, logs_T1[:, 0], atol=1e-10)


def test_decoder_lens_is_the_decoder_on_an_earlier_layer(pair: Pair) -> None:
    model = pair.model
    found = decoder_lens(pair, max_length=5)
    assert [one.depth for one in found] == [0, 1, 2]
    np.testing.assert_allclose(found[-1].log_probabilities, pair.log_probabilities(), atol=1e-10)
    x_1SD = model.encoder.enter(
        torch.tensor([pair.source_ids]), model.embedding_of("source"), Site("encoder")
    )
    for one in found[:-1]:
        memory_1SD = model.encoder.leave(x_1SD, Site("encoder"))
        states_1TD = model.decode(torch.tensor([pair.read_ids]), memory_1SD)
        logs_TV = model.logits(states_1TD)[0].log_softmax(dim=-1)
        logs_T1 = logs_TV.gather(1, torch.tensor(pair.target_ids)[:, None])
        np.testing.assert_allclose(one.log_probabilities, logs_T1[:, 0], atol=1e-10)
        assert one.written is not None
        assert 0 < len(one.written.ids) <= 5
        x_1SD = model.encoder.layers[one.depth](x_1SD, None, Site(""))
    assert decoder_lens(pair, max_length=None)[0].written is None


def test_decoder_lens_of_the_whole_encoder_writes_the_translation(demo_pair: Pair) -> None:
    assert decoder_lens(demo_pair)[-1].written.ids == demo_pair.target_ids  # type: ignore[union-attr]


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_gives_maps_of_all_that_it_is_made_for(plain_pair: Pair, name: str) -> None:
    asked = MEASURES[name]
    sizes = {"encoder": len(plain_pair.source_ids), "decoder": len(plain_pair.target_ids)}
    for place in asked.kinds:
        part, _, kind = place.partition(".")
        found = measure(plain_pair, name, part if kind == "whole" else f"{part}.*.{kind}")
        assert (found.name, found.part, found.kind) == (name, part, kind)
        assert found.matrix.shape == (sizes[part], len(found.column_labels))
        assert len(found.row_labels) == sizes[part]
        assert found.matrix.dtype == np.float64
        assert np.isfinite(found.matrix).all()
        assert (found.is_signed, found.sums_to_one) == (asked.is_signed, asked.sums_to_one)
        assert found.is_signed or (found.matrix >= 0).all()
        if found.sums_to_one:
            np.testing.assert_allclose(found.matrix.sum(axis=1), 1)
        if part == "decoder":
            reads, predicts = plain_pair.read_tokens[1], plain_pair.predicted_tokens[1]
            assert found.row_labels[1] == f"{reads} → {predicts}"
            assert (found.num_source_columns > 0) == (kind != "self")
        else:
            assert found.row_labels == plain_pair.source_tokens
    assert measure(plain_pair, name).kind == asked.kinds[0].partition(".")[2]


@pytest.mark.parametrize(
    ("name", "head", "says"),
    [
        ("weight", None, "Did you mean 'weights'"),
        ("rollout", "decoder.*.cross", "decoder.whole or encoder.whole, but are decoder.cross"),
        ("occlusion", "encoder", "decoder.whole, but are encoder.self"),
        ("alti", "decoder.*.*.0", "cannot be combined with a head"),
        ("occlusion", "decoder.0", "cannot be combined with a layer"),
        ("norms", "decoder.*.cross.2", "A head must be from 0 to 1"),
        ("norms", "decoder.2", "A layer must be from 0 to 1 for this model's decoder"),
    ],
)
def test_measures_of_what_is_not_there_say_so(
    plain_pair: Pair, name: str, head: str | None, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        measure(plain_pair, name, head)


def test_measures_see_a_cut_edge_as_nothing(plain_pair: Pair) -> None:
    cut = Changes(CutEdge(Place("decoder", None, "cross", None, None, 3, is_edge=True)))
    logits = plain_pair.logits

    class CutPair(Pair):
        def logits(self, *, probe=None, source_ids=None):  # type: ignore[no-untyped-def]
            class Both:
                def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
                    changed = cut.see(site, stage, tensor)
                    tensor = tensor if changed is None else changed
                    further = probe.see(site, stage, tensor)
                    return changed if further is None else further

            return logits(probe=Both(), source_ids=source_ids)

    pair = CutPair(
        plain_pair.model, plain_pair.tokenizer, plain_pair.source_ids, plain_pair.target_ids
    )
    for name, head in (
        ("weights", "decoder.*.cross"),
        ("weights", "decoder.*.cross.1"),
        ("norms", "decoder.*.cross"),
        ("norms", "decoder.*.cross.0"),
        ("residual-norms", "decoder.*.cross"),
        ("alti", "decoder.*.cross"),
        ("gradients", "decoder.*.cross"),
    ):
        matrix = measure(pair, name, head).matrix
        assert (matrix[:, 3] == 0).all()
        assert (matrix[:, 2] > 0).any()
