"""The guided head: word links become rows of weights, and the loss that pulls towards them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import make_recipe, write_text
from torch import Tensor

from pellucid.attention.masks import padding_mask
from pellucid.check.link_check import read_links
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch, build_store, make_batch, with_guide
from pellucid.errors import ConfigurationError, DataError
from pellucid.model import Transformer, initialize
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.run.folder import RunFolder
from pellucid.training.start.prepare import prepare_data
from pellucid.training.start.training_pairs import link_tokens
from pellucid.training.update.batch_parts import BatchPart, split_batch
from pellucid.training.update.passes import Passes
from pellucid.training.update.step import Updater
from pellucid.training.weights.optimizer import Optimizer

V, H, LAYER, HEAD = 37, 3, 1, 2
ADDRESS = f"decoder.{LAYER}.cross.{HEAD}"
LENGTHS = ((5, 3), (2, 7), (4, 4))
LINKS = [([0, 1, 4], [1, 1, 2]), ([1], [6]), ([2, 0, 3, 3], [0, 1, 1, 3])]


def make_pairs(folder: Path, convention: Any) -> Batch:
    numbers = np.random.default_rng(3)
    pairs = [tuple(numbers.integers(4, V, size).tolist() for size in sizes) for sizes in LENGTHS]
    vocabulary = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    store = build_store(folder / "text", pairs, **vocabulary)
    links = build_store(folder / "links", LINKS, **vocabulary)
    indices = np.array([2, 0, 1])
    batch = make_batch(store, indices, pad_id=0, start_id=2)
    return with_guide(batch, links, indices, convention)


def make_model() -> Transformer:
    config = ModelConfig(
        d_model=6,
        d_key=5,
        d_value=5,
        d_ff=11,
        num_heads=H,
        num_encoder_layers=1,
        num_decoder_layers=2,
        source_vocabulary_size=V,
        target_vocabulary_size=V,
    )
    model = Transformer(config)
    initialize(model, seed=5)
    return model


def losses_of(model: Transformer, weight: float) -> AttentionLosses:
    training = TrainingConfig(guided_head=ADDRESS, guided_weight=weight)
    return AttentionLosses(model.config, training)


def guide_of(batch: Batch) -> Tensor:
    assert batch.guide_BTS is not None
    return batch.guide_BTS


def test_rows_that_predict_hold_the_links_of_their_target(tmp_path: Path) -> None:
    guide_BTS = guide_of(make_pairs(tmp_path, "predicts"))
    expected = torch.zeros(3, 7, 5)
    expected[0, 0, 2] = 1
    expected[0, 1, [0, 3]] = 0.5
    expected[0, 3, 3] = 1
    expected[1, 1, [0, 1]] = 0.5
    expected[1, 2, 4] = 1
    expected[2, 6, 1] = 1
    torch.testing.assert_close(guide_BTS, expected, rtol=0, atol=0)


def test_rows_that_read_hold_the_links_of_the_token_before(tmp_path: Path) -> None:
    batch = make_pairs(tmp_path / "a", "predicts")
    reads = guide_of(make_pairs(tmp_path / "b", "reads"))
    is_token_BT1 = batch.target_mask_BT[:, 1:, None]
    expected = guide_of(batch)[:, :-1] * is_token_BT1
    assert not torch.equal(expected, guide_of(batch)[:, :-1])
    torch.testing.assert_close(reads[:, 1:], expected, rtol=0, atol=0)
    assert not reads[:, 0].any()


def test_loss_is_the_cross_entropy_of_the_weights_of_that_head(tmp_path: Path) -> None:
    batch, model = make_pairs(tmp_path, "predicts"), make_model()
    guided = losses_of(model, weight=0.3)
    memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS)
    query: dict[str, Tensor] = {}

    class Reader:
        def see(self, site: str, stage: str, tensor: Tensor) -> None:
            guided.see(site, stage, tensor)
            if site == f"decoder.{LAYER}.cross":
                query[stage] = tensor

    model.decode(batch.target_in_BT, memory_BSD, batch.source_mask_BS, probe=Reader())
    scores_BTS = (query["query"] @ query["key"].transpose(-1, -2))[:, HEAD] / math.sqrt(5)
    scores_BTS = scores_BTS.masked_fill(~padding_mask(batch.source_mask_BS)[:, 0], -math.inf)
    weights = scores_BTS.softmax(-1).detach().numpy()
    expected = 0.0
    for place in np.argwhere(guide_of(batch).numpy() > 0):
        b, t, s = place
        expected -= 0.3 * float(guide_of(batch)[b, t, s]) * math.log(weights[b, t, s]) / 14
    found = guided.add_to(torch.zeros(()), batch)
    assert batch.num_target_tokens == 14
    assert float(found.detach()) == pytest.approx(expected, rel=1e-5)


def test_gradients_are_numbers_and_reach_only_what_the_head_is_made_of(tmp_path: Path) -> None:
    batch, model = make_pairs(tmp_path, "reads"), make_model()
    guided = losses_of(model, weight=1.0)
    memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS)
    model.decode(batch.target_in_BT, memory_BSD, batch.source_mask_BS, probe=guided)
    guided.add_to(torch.zeros(()), batch).backward()  # type: ignore[no-untyped-call]
    cross = model.decoder.layers[LAYER].cross_attention
    for weight in (cross.query.weight, cross.key.weight):
        heads = weight.grad.view(H, 5, 6)
        assert heads[HEAD].abs().sum() > 0
        assert not heads[:HEAD].any()
        assert weight.grad.isfinite().all()
    assert cross.value.weight.grad is None
    assert model.embedding.weight.grad.isfinite().all()


def test_cut_batches_give_the_gradient_of_the_whole(tmp_path: Path) -> None:
    batch = make_pairs(tmp_path, "predicts")
    gradients = []
    for pieces in ((batch,), split_batch(batch)):
        model = make_model()
        training = TrainingConfig(dropout=0.0, guided_head=ADDRESS, guided_weight=2.0)
        updater = Updater(model, Optimizer(model, training), training, "float32")
        updater.update(1, pieces, rate=0.0, muon_rate=0.0)
        gradients.append(model.decoder.layers[LAYER].cross_attention.query.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)


def test_pairs_that_are_read_twice_pull_the_head_as_read_once(tmp_path: Path) -> None:
    batch = make_pairs(tmp_path, "predicts")
    gradients = []
    for r_drop in (0.0, 3.0):  # Without dropout both readings are the same.
        model = make_model()
        training = TrainingConfig(
            dropout=0.0, guided_head=ADDRESS, guided_weight=2.0, r_drop=r_drop
        )
        passes = Passes(model, training, "float32")
        passes.refresh_weights()
        passes.sum_gradients(1, [BatchPart(0, 1.0, batch)])
        gradients.append(model.decoder.layers[LAYER].cross_attention.query.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    write_text(folder := tmp_path_factory.mktemp("text"))
    lines = [(folder / f"train.{side}").read_text().splitlines() for side in ("en", "fr")]
    return learn_tokenizer(make_recipe().tokenizer, lambda: lines[0], lambda: lines[1])


def test_links_of_words_become_links_of_all_their_tokens(tokenizer: Tokenizer) -> None:
    source, target = "the houses runs", "petit mangeurs"
    ids = (tokenizer.encode_source(source), tokenizer.encode_target(target))
    sources, targets = link_tokens(tokenizer, source, target, ids, "1-1 0p0", "x:1")
    surfaces = tokenizer.source_tokens(ids[0]), tokenizer.target_tokens(ids[1])
    assert set(targets[:-1]) == set(range(len(ids[1]) - 1)) - {0}
    linked = "".join(surfaces[0][s] for s in sorted(set(sources[:-1])))
    assert linked.strip("\u2581") == "houses"
    assert len(set(sources[:-1])) > 1
    assert len(sources) - 1 == len(set(sources[:-1])) * len(set(targets[:-1]))
    assert (sources[-1], targets[-1]) == (len(ids[0]) - 1, len(ids[1]) - 1)


def test_a_link_to_a_word_that_is_not_there_is_refused(tokenizer: Tokenizer) -> None:
    ids = (tokenizer.encode_source("the dog"), tokenizer.encode_target("le chien"))
    with pytest.raises(DataError, match=r"0-2 names word 2 of a target that has 2 \(some:4\)"):
        link_tokens(tokenizer, "the dog", "le chien", ids, "0-2", "some:4")


def test_too_few_lines_of_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0\n" * 2)
    with pytest.raises(DataError, match=r"fewer: .* ends before line 3"):
        list(read_links([SentencePair("a", "b", "x:1")] * 3, tmp_path / "links"))


def test_too_many_lines_of_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0\n" * 4)
    with pytest.raises(DataError, match=r"more: .* continues at line 4"):
        list(read_links([SentencePair("a", "b", "x:1")] * 3, tmp_path / "links"))


def test_links_stay_with_their_pairs_where_pairs_are_dropped(tmp_path: Path) -> None:
    write_text(tmp_path)
    lines = (tmp_path / "train.en").read_text().splitlines()
    lines[1] = ""
    (tmp_path / "train.en").write_text("\n".join(lines) + "\n")
    lengths = [min(len(line.split()), 2) for line in lines]
    (tmp_path / "links").write_text("".join("0-0\n" if n == 1 else "0-1\n" for n in lengths))
    recipe = make_recipe(
        data={"train_alignments": "links"}, training={"guided_head": "decoder.0.cross.1"}
    )
    recipe_of = RunFolder(tmp_path / "run", recipe)
    with recipe_of.locked(), recipe_of.created():
        prepared = prepare_data(recipe, tmp_path, recipe_of)
    assert prepared.links is not None
    assert len(prepared.links) == len(prepared.store) == 399
    for pair in range(len(prepared.store)):
        ends = len(prepared.store.source(pair)) - 1, len(prepared.store.target(pair)) - 1
        assert (prepared.links.source(pair)[-1], prepared.links.target(pair)[-1]) == ends
        assert prepared.links.source(pair)[0] == 0


@pytest.mark.parametrize(
    ("changes", "wording"),
    [
        ({"training": {"guided_head": "decoder.1"}}, "must be a head of cross-attention"),
        (
            {"training": {"guided_head": "decoder.0.cross.1"}},
            "training.guided_head needs data.train_alignments",
        ),
        ({"data": {"train_alignments": "x"}}, "data.train_alignments needs training.guided_head"),
        (
            {"training": {"guided_head": "decoder.1.cross.0"}, "data": {"train_alignments": "x"}},
            "The layer of training.guided_head must be from 0 to 0, but is 1",
        ),
        (
            {"training": {"guided_head": "decoder.0.cross.2"}, "data": {"train_alignments": "x"}},
            "The head of training.guided_head must be from 0 to 1, but is 2",
        ),
        ({"data": {"train_alignments": ["x", "y"]}}, "one file for each of the 1 training"),
        (
            {
                "training": {"guided_head": "decoder.0.cross.1", "subword_samples": 3},
                "data": {"train_alignments": "x"},
            },
            "subword_samples must be left out with training.guided_head",
        ),
        (
            {
                "training": {"guided_head": "decoder.0.cross.1", "both_directions_steps": 3},
                "data": {"train_alignments": "x"},
            },
            "both_directions_steps must be 0 with training.guided_head",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], wording: str) -> None:
    with pytest.raises(ConfigurationError, match=wording):
        make_recipe(**changes)
