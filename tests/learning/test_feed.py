"""Batches made ahead: the same after resuming at any update, and no thread left running."""

from __future__ import annotations

import threading
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import make_recipe, write_text

from pellucid.config import Recipe
from pellucid.data import BatchOrder
from pellucid.errors import ConfigurationError, DataError
from pellucid.training.feed import Feed, UpdateBatches
from pellucid.training.run.folder import RunFolder
from pellucid.training.start.prepare import PreparedData, prepare_data

UNIGRAM = {"model_type": "unigram", "vocabulary_size": 308}


def prepare(folder: Path, **changes: Any) -> tuple[Recipe, PreparedData]:
    write_text(folder)
    recipe = make_recipe(**changes)
    run = RunFolder(folder / "run", recipe)
    with run.locked(), run.created():
        return recipe, prepare_data(recipe, folder, run)


def take(feed: Feed, after: int, count: int) -> list[UpdateBatches]:
    with closing(feed.updates(after)) as updates:
        return list(islice(updates, count))


def same(first: list[UpdateBatches], second: list[UpdateBatches]) -> bool:
    return all(
        a.epoch == b.epoch
        and len(a.batches) == len(b.batches)
        and all(
            torch.equal(x.source_BS, y.source_BS) and torch.equal(x.target_in_BT, y.target_in_BT)
            for x, y in zip(a.batches, b.batches, strict=True)
        )
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"training": {"accumulate": 3}},
        {"tokenizer": UNIGRAM, "training": {"subword_samples": 5, "accumulate": 2}},
        {"training": {"subword_samples": 5}},
        {"data": {"train_weights": [1.5]}},
        {"training": {"both_directions_steps": 23, "accumulate": 2}},
    ],
)
def test_updates_are_the_same_from_any_one_on(changes: dict[str, Any], tmp_path: Path) -> None:
    recipe, prepared = prepare(tmp_path, **changes)
    whole = take(Feed(prepared, recipe, max_tokens_per_batch=400), 0, 29)
    later = take(Feed(prepared, recipe, max_tokens_per_batch=400), 17, 12)
    assert same(whole[17:], later)
    assert {len(update.batches) for update in whole} == {recipe.training.accumulate}
    assert whole[-1].epoch > 0


def test_every_pair_is_seen_once_an_epoch(tmp_path: Path) -> None:
    recipe, prepared = prepare(tmp_path)
    updates = take(Feed(prepared, recipe, max_tokens_per_batch=400), 0, 40)
    first = [update for update in updates if update.epoch == 0]
    assert sum(len(update.batches[0].source_BS) for update in first) == 400
    tokens = sum(update.batches[0].num_target_tokens for update in first)
    assert tokens == int(prepared.store.target_lengths.sum())


def rows_of(updates: list[UpdateBatches]) -> list[tuple[str, str]]:
    """Source and target ids of every pair, in order."""
    return [
        (str(source[source_mask].tolist()), str(target[target_mask].tolist()))
        for update in updates
        for batch in update.batches
        for source, source_mask, target, target_mask in zip(
            batch.source_BS,
            batch.source_mask_BS,
            batch.target_out_BT,
            batch.target_mask_BT,
            strict=True,
        )
    ]


def test_first_steps_read_about_half_of_the_pairs_backwards_and_later_ones_none(
    tmp_path: Path,
) -> None:
    recipe, prepared = prepare(tmp_path, training={"both_directions_steps": 20})
    forwards = recipe.model_copy(
        update={"training": recipe.training.model_copy(update={"both_directions_steps": 0})}
    )
    mixed, plain = (
        take(Feed(prepared, one, max_tokens_per_batch=400), 0, 29) for one in (recipe, forwards)
    )
    assert same(mixed[20:], plain[20:])
    found, expected = rows_of(mixed[:20]), rows_of(plain[:20])
    assert all(row in (known, known[::-1]) for row, known in zip(found, expected, strict=True))
    turned = sum(row != known for row, known in zip(found, expected, strict=True))
    assert turned == pytest.approx(len(found) / 2, abs=3 * len(found) ** 0.5)


@pytest.mark.parametrize("tokenizer", [UNIGRAM, {}])
def test_sampling_cuts_sentences_differently_in_every_epoch(
    tokenizer: dict[str, Any], tmp_path: Path
) -> None:
    recipe, prepared = prepare(
        tmp_path,
        tokenizer=tokenizer,
        training={"subword_samples": 5, "subword_dropout": 0.1, "subword_alpha": 0.1},
    )
    updates = take(Feed(prepared, recipe, max_tokens_per_batch=400), 0, 40)
    tokens = [
        sum(update.batches[0].num_source_tokens for update in updates if update.epoch == epoch)
        for epoch in (0, 1)
    ]
    assert min(tokens) > int(prepared.store.source_lengths.sum())
    assert tokens[0] != tokens[1]


def test_sampling_needs_subwords(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs a tokenizer that SentencePiece learned"):
        prepare(tmp_path, tokenizer={"kind": "words"}, training={"subword_samples": 5})


def test_corpora_are_counted_and_weighted(tmp_path: Path) -> None:
    write_text(tmp_path)
    for name in ("train.en", "train.fr"):
        lines = (tmp_path / name).read_text().splitlines()[:31]
        (tmp_path / f"more-{name}").write_text("\n".join([*lines, ""]) + "\n")
    recipe, prepared = prepare(
        tmp_path,
        data={
            "train": [["train.en", "train.fr"], ["more-train.en", "more-train.fr"]],
            "train_weights": [1, 3],
        },
    )
    found = [(one.name, one.pairs, one.kept, one.weight) for one in prepared.corpora]
    assert found == [("train.en", 400, 400, 1.0), ("more-train.en", 32, 31, 3.0)]
    feed = Feed(prepared, recipe, max_tokens_per_batch=400)
    first = [update for update in take(feed, 0, 40) if update.epoch == 0]
    assert feed.batches_in_epoch(0) == len(first)
    assert sum(len(update.batches[0].source_BS) for update in first) == 400 + 3 * 31


def test_an_error_in_the_thread_comes_out_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, prepared = prepare(tmp_path)
    feed = Feed(prepared, recipe, max_tokens_per_batch=400)

    def fail(self: BatchOrder, step: int) -> tuple[int, int]:
        raise DataError("The store must be there, but is gone.")

    monkeypatch.setattr(BatchOrder, "locate", fail)
    with pytest.raises(DataError, match="is gone"):
        take(feed, 0, 1)


def test_closing_ends_the_thread(tmp_path: Path) -> None:
    recipe, prepared = prepare(tmp_path)
    updates = Feed(prepared, recipe, max_tokens_per_batch=400).updates(0)
    next(updates)
    assert any(thread.name == "pellucid-feed" for thread in threading.enumerate())
    updates.close()
    assert not any(thread.name == "pellucid-feed" for thread in threading.enumerate())
