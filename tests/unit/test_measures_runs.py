"""Measures that run the model anew or differentiate it, and how measures are compared."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from small_pairs import FORMS, small_pair
from torch import Tensor

import pellucid
from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside import Pair, make_pair
from pellucid.inside.changes import Changes, CutEdge, cut_source_word
from pellucid.inside.changes_places import Place
from pellucid.inside.measures import (
    MEASURES,
    Map,
    agreement,
    decoder_lens,
    faithfulness,
    find_raises,
    gradients,
    kendall,
    log_probabilities_of,
    logit_lens,
    measure,
    merge_source_words,
    occlusion,
    source_words,
    spearman,
    value_zeroing,
)
from pellucid.inside.measures.contributions import see
from pellucid.inside.measures.gradients import carry, gradient_weights
from pellucid.inside.measures.maps import make_map

TEXT = "The pizza came out of the oven and it tasted good."


@pytest.fixture(params=list(FORMS))
def pair(request: pytest.FixtureRequest, bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder, **FORMS[request.param])


@pytest.fixture
def plain_pair(bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder)


@pytest.fixture(scope="module")
def demo_pair() -> Pair:
    return make_pair(load_demo(), TEXT, pellucid.load("demo").translate([TEXT])[0].ids)


def load_demo() -> Bundle:
    bundle = pellucid.load("demo").bundle
    assert bundle is not None
    return bundle


class _Nudge:
    """Adds a little to one weight."""

    def __init__(self, site: str, place: tuple[int, int, int], by: float) -> None:
        self._site = site
        self._place = place
        self._by = by

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) != (self._site, "weights"):
            return None
        nudged = tensor.clone()
        nudged[0][self._place] += self._by
        return nudged


@pytest.mark.parametrize("site", ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])
def test_gradients_are_finite_differences_of_the_logit_in_every_form(pair: Pair, site: str) -> None:
    row = 4
    found = list(gradient_weights(pair))[row][site]
    weights_HLM = see(pair, ("weights",))[f"{site}.weights"]
    query, key = (3, 2) if site.startswith("encoder") else (row, 1)
    step = 1e-5
    products = []
    for head in range(len(weights_HLM)):
        place = (head, query, key)
        up, down = (
            pair.logits(probe=_Nudge(site, place, by))[row, pair.target_ids[row]]
            for by in (step, -step)
        )
        products.append(max(0.0, float((up - down) / (2 * step) * weights_HLM[place])))
    assert found[query, key] == pytest.approx(np.mean(products), abs=1e-8)


def test_gradients_work_while_gradients_are_switched_off(plain_pair: Pair) -> None:
    expected = gradients(plain_pair, kind="cross", layer=0).matrix
    with torch.inference_mode():
        found = gradients(plain_pair, kind="cross", layer=0).matrix
    np.testing.assert_array_equal(found, expected)
    assert (expected > 0).any()
    maps = list(gradient_weights(plain_pair))
    np.testing.assert_array_equal(expected[2], maps[2]["decoder.0.cross"][2])


def test_relevance_is_carried_as_computed_by_hand() -> None:
    # Encoder: R = I + A = [[1.5, 0.5], [0, 1]], leveled: row 0 rest (0.5, 0.5) → + I.
    encoder = [np.array([[0.5, 0.5], [0.0, 0.0]])]
    # Decoder: R = I + A = [[1, 0], [3, 2]], leveled rest of row 1: (0.75, 0.25).
    own = np.array([[0.0, 0.0], [3.0, 1.0]])
    cross = np.array([[1.0, 0.0], [0.0, 2.0]])
    leveled_source = np.array([[1.5, 0.5], [0.0, 1.0]])
    leveled_rows = np.array([[1.0, 0.0], [0.75, 1.25]])
    expected = leveled_rows.T @ cross @ leveled_source
    found = carry(encoder, [(own, cross)])
    np.testing.assert_allclose(found[:, :2], expected)
    np.testing.assert_allclose(found[:, 2:], [[1, 0], [3, 2]])
    np.testing.assert_allclose(expected[1], [0, 2.5])


def test_relevance_without_gradients_is_each_tokens_own() -> None:
    nothing = np.zeros((3, 3))
    found = carry([np.zeros((2, 2))], [(nothing, np.zeros((3, 2)))] * 2)
    np.testing.assert_array_equal(found, np.concatenate([np.zeros((3, 2)), np.eye(3)], axis=1))


class _Silence:
    """Makes one position's values zero in a whole run."""

    def __init__(self, site: str, position: int) -> None:
        self._site = site
        self._position = position

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) != (self._site, "value"):
            return None
        silenced = tensor.clone()
        silenced[:, :, self._position] = 0
        return silenced


class _Last:
    """Keeps what leaves the last decoder layer, under another probe."""

    def __init__(self, stage: str, other: _Silence | None) -> None:
        self._stage = stage
        self._other = other
        self.states_LD = torch.zeros(())

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) == ("decoder.1.feed_forward", self._stage):
            self.states_LD = tensor[0]
        return None if self._other is None else self._other.see(site, stage, tensor)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_value_zeroing_is_the_turn_of_whole_runs(pair: Pair, kind: str) -> None:
    found = value_zeroing(pair, part="decoder", kind=kind, layer=1)  # type: ignore[arg-type]
    stage = "norm" if pair.model.config.norm == "post" else "residual"
    before = _Last(stage, None)
    pair.logits(probe=before)
    turns = []
    for position in range(found.matrix.shape[1]):
        after = _Last(stage, _Silence(f"decoder.1.{kind}", position))
        pair.logits(probe=after)
        cosine_L = torch.cosine_similarity(after.states_LD, before.states_LD, dim=-1)
        turns.append(1 - cosine_L)
    turns_LM = torch.stack(turns, dim=1).clamp(min=0)
    np.testing.assert_allclose(
        found.matrix, turns_LM / turns_LM.sum(dim=1, keepdim=True), atol=1e-8
    )
    np.testing.assert_allclose(found.matrix.sum(axis=1), 1)
    if kind == "self" and pair.model.config.look_ahead_mask:
        assert (np.triu(found.matrix, 1) == 0).all()


def test_value_zeroing_in_small_batches_is_the_same(
    plain_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = value_zeroing(plain_pair, part="encoder", kind="whole").matrix
    module = import_module("pellucid.inside.measures.zeroing")
    monkeypatch.setattr(module, "MOST_NUMBERS_AT_ONCE", 250)
    found = value_zeroing(plain_pair, part="encoder", kind="whole").matrix
    np.testing.assert_allclose(found, expected, atol=1e-12)
    layers = [
        value_zeroing(plain_pair, part="encoder", kind="self", layer=layer).matrix
        for layer in (0, 1)
    ]
    np.testing.assert_allclose(found, layers[1] @ layers[0], atol=1e-12)


def test_occlusion_is_two_runs_in_every_form(pair: Pair) -> None:
    words = source_words(pair)
    removed = occlusion(pair).matrix
    unknown = occlusion(pair, how="unknown").matrix
    cut = occlusion(pair, how="cut").matrix
    before_T = pair.log_probabilities()
    for column, (place,) in enumerate(words):
        ids = list(pair.source_ids)
        without = [*ids[:place], *ids[place + 1 :]]
        put = [*ids[:place], pair.tokenizer.config.unk_id, *ids[place + 1 :]]
        for found, after_T in (
            (removed, pair.log_probabilities(source_ids=without)),
            (unknown, pair.log_probabilities(source_ids=put)),
            (cut, pair.log_probabilities(probe=cut_source_word([place]))),
        ):
            np.testing.assert_allclose(found[:, column], before_T - after_T, atol=1e-10)


def test_occlusion_of_a_word_takes_all_its_tokens(demo_pair: Pair) -> None:
    words = source_words(demo_pair)
    found = occlusion(demo_pair)
    column = found.column_labels.index("▁tasted")
    assert words[column] == (9, 10, 11)
    assert found.column_labels[-2:] == (".", "</s>")
    ids = demo_pair.source_ids
    after_T = demo_pair.log_probabilities(source_ids=[*ids[:9], *ids[12:]])
    expected_T = demo_pair.log_probabilities() - after_T
    np.testing.assert_allclose(found.matrix[:, column], expected_T, atol=1e-4)
    assert found.is_signed
    assert not found.sums_to_one
    of_token = occlusion(demo_pair, words=[(9,)])
    assert of_token.column_labels == ("▁t",)
    assert of_token.matrix.shape == (16, 1)


def test_occlusion_knows_what_the_pizza_is_for(demo_pair: Pair) -> None:
    found = occlusion(demo_pair)
    row = demo_pair.predicted_tokens.index("▁pizza")
    assert found.matrix[row].argmax() == found.column_labels.index("▁pizza")


def test_log_probabilities_of_other_sources_do_not_depend_on_the_batch(plain_pair: Pair) -> None:
    sources = [plain_pair.source_ids, plain_pair.source_ids[3:], plain_pair.source_ids[-1:]]
    found_BT = log_probabilities_of(plain_pair, sources)
    for source, logs_T in zip(sources, found_BT, strict=True):
        expected_T = plain_pair.log_probabilities(source_ids=source)
        torch.testing.assert_close(logs_T, expected_T, rtol=0, atol=1e-10)


def test_occlusion_in_an_unknown_way_or_of_everything_says_so(plain_pair: Pair) -> None:
    with pytest.raises(InputError, match="remove, unknown, cut, but is by 'removed'"):
        occlusion(plain_pair, how="removed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must keep a token"):
        occlusion(plain_pair, words=[range(len(plain_pair.source_ids))])


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
        measure(plain_pair, "weights", kind="self"),
        measure(plain_pair, "weights", part="encoder"),
    ):
        with pytest.raises(InputError, match="must have decoder rows and source columns"):
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
    with pytest.raises(InputError, match="two source words and one random order"):
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
    x_1SD = model.encoder.enter(torch.tensor([pair.source_ids]), model.embedding_of("source"))
    for one in found[:-1]:
        memory_1SD = model.encoder.leave(x_1SD)
        states_1TD = model.decode(torch.tensor([pair.read_ids]), memory_1SD)
        logs_TV = model.logits(states_1TD)[0].log_softmax(dim=-1)
        logs_T1 = logs_TV.gather(1, torch.tensor(pair.target_ids)[:, None])
        np.testing.assert_allclose(one.log_probabilities, logs_T1[:, 0], atol=1e-10)
        assert one.written is not None
        assert 0 < len(one.written.ids) <= 5
        x_1SD = model.encoder.layers[one.depth](x_1SD, None, site="")
    assert decoder_lens(pair, max_length=None)[0].written is None


def test_decoder_lens_of_the_whole_encoder_writes_the_translation(demo_pair: Pair) -> None:
    assert decoder_lens(demo_pair)[-1].written.ids == demo_pair.target_ids  # type: ignore[union-attr]


@pytest.mark.parametrize("name", list(MEASURES))
def test_every_measure_gives_maps_of_all_that_it_is_made_for(plain_pair: Pair, name: str) -> None:
    asked = MEASURES[name]
    sizes = {"encoder": len(plain_pair.source_ids), "decoder": len(plain_pair.target_ids)}
    for place in asked.kinds:
        part, _, kind = place.partition(".")
        found = measure(plain_pair, name, part=part, kind=kind)  # type: ignore[arg-type]
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
    ("name", "asked", "says"),
    [
        ("weight", {}, "Did you mean 'weights'"),
        ("rollout", {"kind": "cross"}, "decoder.whole or encoder.whole, but is asked of"),
        ("occlusion", {"part": "encoder"}, "decoder.whole, but is asked of encoder.self"),
        ("alti", {"head": 0}, "without a head, but is asked of head 0"),
        ("occlusion", {"layer": 0}, "without a layer"),
        ("norms", {"head": 2}, "A head must be from 0 to 1"),
        ("norms", {"layer": 2}, "A layer must be from 0 to 1 for this model's decoder"),
    ],
)
def test_measures_of_what_is_not_there_say_so(
    plain_pair: Pair, name: str, asked: dict[str, int], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        measure(plain_pair, name, **asked)  # type: ignore[arg-type]


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
    for name, asked in (
        ("weights", {"kind": "cross"}),
        ("weights", {"kind": "cross", "head": 1}),
        ("norms", {"kind": "cross"}),
        ("norms", {"kind": "cross", "head": 0}),
        ("residual-norms", {"kind": "cross"}),
        ("alti", {"kind": "cross"}),
        ("gradients", {"kind": "cross"}),
    ):
        matrix = measure(pair, name, **asked).matrix  # type: ignore[arg-type]
        assert (matrix[:, 3] == 0).all()
        assert (matrix[:, 2] > 0).any()
