"""Measures that run the model again or differentiate it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from small_pairs import FORMS, small_pair, translated_by_demo
from torch import Tensor

from pellucid.errors import InputError
from pellucid.inside import Pair
from pellucid.inside.changes.change import cut_source_word
from pellucid.inside.measures.gradient_attention import carry, gradient_weights, gradients
from pellucid.inside.measures.maps import source_words
from pellucid.inside.measures.occlusion import log_probabilities_of, occlusion
from pellucid.inside.measures.zeroing import value_zeroing

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
    weights_HLM = pair.see(("weights",))[f"{site}.weights"]
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
    """Keeps what leaves the last decoder layer."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.states_LD = torch.zeros(())

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) == ("decoder.1.feed_forward", self._stage):
            self.states_LD = tensor[0]
        return None


class _LastUnder(_Last):
    """Keeps it under another probe."""

    def __init__(self, stage: str, other: _Silence) -> None:
        super().__init__(stage)
        self._other = other

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        super().see(site, stage, tensor)
        return self._other.see(site, stage, tensor)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_value_zeroing_is_the_turn_of_whole_runs(pair: Pair, kind: str) -> None:
    found = value_zeroing(pair, part="decoder", kind=kind, layer=1)  # type: ignore[arg-type]
    stage = "norm" if pair.model.config.norm == "post" else "residual"
    before = _Last(stage)
    pair.logits(probe=before)
    turns = []
    for position in range(found.matrix.shape[1]):
        after = _LastUnder(stage, _Silence(f"decoder.1.{kind}", position))
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


@pytest.mark.sample(3)
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
    with pytest.raises(InputError, match="remove, unknown, cut, but is 'removed'"):
        occlusion(plain_pair, how="removed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must keep a token"):
        occlusion(plain_pair, words=[range(len(plain_pair.source_ids))])
