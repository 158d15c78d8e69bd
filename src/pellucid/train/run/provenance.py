"""The record of a training in a bundle's manifest."""

from __future__ import annotations

from typing import Any

import torch

import pellucid
from pellucid.config import StartConfig, TrainingConfig
from pellucid.data import TokenStore
from pellucid.hardware import describe_machine
from pellucid.train.run.checkpoint import TrainingState

__all__ = [
    "provenance",
]


def provenance(
    state: TrainingState, store: TokenStore, training: TrainingConfig, start: StartConfig
) -> dict[str, Any]:
    """Describe the training so far for a bundle's manifest.

    Args:
        state: how far the training is.
        store: the training text.
        training: the settings.
        start: what the training started from.
    """
    return {
        "library": {"pellucid": pellucid.__version__, "torch": torch.__version__},
        "data": {"fingerprint": store.fingerprint, "pairs": len(store), "dropped": store.dropped},
        "training": {
            "step": state.step,
            "target_tokens": state.target_tokens,
            "seed": training.seed,
            "precision": state.precision,
            "processes": state.processes,
            "skipped_updates": state.skipped_updates,
            **({"started_from": start.model_hash} if start.model else {}),
        },
        "metrics": {"validation_bleu": state.best_bleu, "best_step": state.best_step},
        "durations": {"training_seconds": round(state.seconds, 1)},
        "machine": describe_machine(),
    }
