"""The record of a training in a bundle's manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import pellucid
from pellucid.bundle import read_json
from pellucid.config import StartConfig, TrainingConfig
from pellucid.data import TokenStore
from pellucid.machine.hardware import describe_machine
from pellucid.text.learned import STATISTICS
from pellucid.train.run.checkpoint import TrainingState


def provenance(
    state: TrainingState,
    store: TokenStore,
    training: TrainingConfig,
    start: StartConfig,
    data: Path | None = None,
) -> dict[str, Any]:
    """Describe the training so far for a bundle's manifest.

    Args:
        state: how far the training is.
        store: the training text.
        training: the settings.
        start: what the training started from.
        data: the run's folder of prepared data, with the counts of its text; None leaves
            them out.
    """
    return {
        "library": {"pellucid": pellucid.__version__, "torch": torch.__version__},
        "data": {
            "fingerprint": store.fingerprint,
            "pairs": len(store),
            "dropped": store.dropped,
            **_text_counts(data),
        },
        "training": {
            "step": state.step,
            "target_tokens": state.target_tokens,
            "seed": training.seed,
            "precision": state.precision,
            "processes": state.processes,
            "skipped_updates": state.skipped_updates,
            **({"started_from": start.model_hash} if start.model else {}),
        },
        "metrics": {
            "validation_bleu": state.best_bleu,
            # Below 0 before the first validation, and in runs that early versions began.
            **({"validation_chrf": state.best_chrf} if state.best_chrf >= 0 else {}),
            "best_step": state.best_step,
        },
        "durations": {"training_seconds": round(state.seconds, 1)},
        "machine": describe_machine(),
    }


def _text_counts(data: Path | None) -> dict[str, Any]:
    """Read the counts of the training text; a run that an earlier version began has none."""
    if data is None or not (data / STATISTICS).is_file():
        return {}
    return {"text": read_json(data / STATISTICS)}
