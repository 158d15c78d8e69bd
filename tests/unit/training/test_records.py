"""JSON of a run that was changed: every field has its type, or is named."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from pellucid.config.parsing import read_record
from pellucid.errors import BundleError
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.start.training_pairs import CorpusCount

WHOLE = asdict(TrainingState(step=7, best_rank=[0.5, -1.5], best_loss=2, seconds=3))


def test_record_that_is_whole_is_read_back() -> None:
    found = read_record(TrainingState, WHOLE, "state.json")
    assert asdict(found) == WHOLE
    assert type(found) is TrainingState


@pytest.mark.parametrize(
    "change",
    [
        {"step": "7"},
        {"step": -2},
        {"step": True},
        {"step": 1.5},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"best_rank": [None]},
        {"best_rank": 3},
        {"precision": 5},
        {"best_loss": [1]},
    ],
)
def test_record_with_another_value_names_the_field(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(BundleError, match=rf"^{name}\S* must be .* \(state.json\)\."):
        read_record(TrainingState, WHOLE | change, "state.json")


@pytest.mark.parametrize("values", [5, None, [], {"source": "a"}, {"source": "a", "pairs": {}}])
def test_record_that_is_none_is_one_sentence(values: Any) -> None:
    with pytest.raises(BundleError, match=" must be "):
        read_record(CorpusCount, values, "corpora.json")
