"""The memory that training is expected to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import make_recipe, write_text

from pellucid.config import NAMED_SIZES, ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.model import Transformer
from pellucid.training.console.messages import Interval
from pellucid.training.run.folder import RunFolder
from pellucid.training.start.prepare import prepare_data
from pellucid.training.update import memory_estimate
from pellucid.training.update.memory_estimate import MemoryNeeds, require_memory

V = 8009
TINY = ModelConfig.model_validate(
    {**NAMED_SIZES["tiny"], "source_vocabulary_size": V, "target_vocabulary_size": V}
)
WEIGHTS = 2_000_003


def predict(
    budget: int,
    longest: int = 31,
    *,
    bytes_per_number: int = 4,
    **training: Any,
) -> int:
    return make_needs(longest, bytes_per_number=bytes_per_number, **training).predict(budget)


def make_needs(
    longest: int = 31,
    *,
    bytes_per_number: int = 4,
    has_kernels: bool = False,
    **training: Any,
) -> MemoryNeeds:
    return MemoryNeeds(
        TINY,
        TrainingConfig(**training),
        num_weights=WEIGHTS,
        longest=longest,
        bytes_per_number=bytes_per_number,
        has_kernels=has_kernels,
    )


def test_memory_grows_with_the_batch_by_the_same_amount_a_token() -> None:
    steps = [predict(budget) for budget in (1000, 2000, 3000)]
    assert steps[1] - steps[0] == pytest.approx(steps[2] - steps[1], abs=2)
    assert steps[1] > steps[0]


def test_a_score_penalty_counts_the_scores_that_it_holds() -> None:
    scores = 4 * TINY.num_heads * 31 * 8192
    # Six float32 numbers for each score of one layer, or four for each score of all.
    for has_kernels, numbers in ((True, 6), (False, 4 * 2 * TINY.num_encoder_layers)):
        both = {"score_penalty": 0.1, "score_penalty_decoder": 0.1}
        passes = [
            make_needs(has_kernels=has_kernels, **settings).of_passes(8192)
            for settings in ({}, both)
        ]
        assert passes[1] - passes[0] == numbers * scores


def test_averaging_counts_its_copies_exactly() -> None:
    plain = predict(8192)
    kept = predict(8192, averaging="last", averaging_count=7)
    assert kept - plain == 4 * WEIGHTS * 8


def test_saving_counts_where_it_takes_more_than_the_passes() -> None:
    averages: dict[str, Any] = {"averaging": "last", "averaging_count": 7}
    few, fewer = predict(64, **averages), predict(61, **averages)
    assert few == fewer, "batches so small do not matter"
    copies, serialized = 5 + 7, 2 * 7
    kept = memory_estimate.TRANSPOSED_PROJECTION * V * TINY.d_model + 4 * WEIGHTS * (
        copies + serialized
    )
    assert few == memory_estimate.LIBRARIES + kept


def test_on_kernels_a_weight_between_two_positions_is_not_kept() -> None:
    found = [make_needs(longest, has_kernels=True).predict(4096) for longest in (31, 509)]
    one_head = 8 * (509**2 - 31**2) * torch.get_num_threads()
    assert found[1] - found[0] == pytest.approx(memory_estimate.SPARE_ON_KERNELS * one_head, abs=2)
    assert found[0] < predict(4096)


def test_weights_of_attention_count_where_they_are_kept() -> None:
    long = 509
    assert predict(4096, long, attention_dropout=0.1) > predict(4096, long)


def test_on_a_processor_they_are_float32_whatever_the_precision() -> None:
    with_weights, without = (
        [predict(4096, 509, bytes_per_number=size, attention_dropout=rate) for size in (4, 2)]
        for rate in (0.1, 0.0)
    )
    in_float32, in_bfloat16 = (a - b for a, b in zip(with_weights, without, strict=True))
    assert in_bfloat16 == pytest.approx(in_float32, rel=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_fitting_budget_is_the_largest_that_fits(share: float) -> None:
    available = round(share * predict(8192))
    budget = make_needs(max_tokens_per_batch=8192).fitting_budget(available)
    assert budget in (8192 >> halvings for halvings in range(14)) or budget == 31
    assert budget == 31 or predict(budget) <= available
    assert budget == 8192 or predict(2 * budget) > available


def test_budget_never_falls_below_the_longest_sentence() -> None:
    assert make_needs(max_tokens_per_batch=8192).fitting_budget(1) == 31


@pytest.mark.parametrize(
    ("training", "copies"),
    [({}, 4), ({"averaging": "running"}, 6), ({"averaging": "best", "averaging_count": 7}, 12)],
)
def test_a_model_whose_weights_alone_do_not_fit_is_refused(
    training: dict[str, Any], copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = torch.device("cpu")
    num_weights = sum(weight.numel() for weight in Transformer(TINY).parameters())
    available = 4 * copies * num_weights
    monkeypatch.setattr(memory_estimate, "available_memory", lambda device: available)
    require_memory(TINY, TrainingConfig(**training), device)
    available -= 1
    with pytest.raises(ConfigurationError, match=rf"{num_weights:,} weights .* smaller sizes"):
        require_memory(TINY, TrainingConfig(**training), device)


def test_the_largest_sizes_are_counted_without_being_made() -> None:
    largest = 2**16
    sizes = {
        **dict.fromkeys(("d_model", "num_heads", "d_key", "d_value"), largest),
        **{"d_ff": 2**18, "num_encoder_layers": 29, "num_decoder_layers": 31},
        **{"positions": "learned", "max_source_length": 10**12},
        **{"source_vocabulary_size": 2**24, "target_vocabulary_size": 2**24},
    }
    model = ModelConfig.model_validate(sizes)
    with pytest.raises(ConfigurationError, match=r"must fit into memory.* GiB are free"):
        require_memory(model, TrainingConfig(), torch.device("cpu"))


def test_the_longest_sentence_is_the_longest_that_any_batch_may_hold(tmp_path: Path) -> None:
    write_text(tmp_path)

    def longest(**changes: dict[str, Any]) -> int:
        recipe = make_recipe(**changes)
        run = RunFolder(tmp_path / f"run{len(list(tmp_path.iterdir()))}", recipe)
        with run.locked(), run.created():
            return prepare_data(recipe, tmp_path, run).longest

    plain = longest()
    drawn = {"subword_samples": 7, "subword_dropout": 0.9}
    assert longest(training=drawn) > plain


def test_the_log_leaves_out_what_was_no_training() -> None:
    interval = Interval()
    interval._started -= 5
    interval.leave_out(3)
    assert interval.seconds_per_update == pytest.approx(2, abs=0.5)
