"""Traces with made-up numbers, of any words; no model is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from pellucid.inside.traces import Trace

__all__ = ["SOURCE", "TARGET", "make_trace"]

SOURCE = ("▁The", "▁pizza", "▁came", "▁out", "</s>")
TARGET = ("▁La", "▁pizza", "▁est", "</s>")


def make_trace(
    source: tuple[str, ...] = SOURCE, target: tuple[str, ...] = TARGET, **changes: Any
) -> Trace:
    """A trace of a decoder of two layers and three heads."""
    random = np.random.default_rng(7)
    reads = ("<s>", *target[:-1])
    arrays: dict[str, np.ndarray] = {}
    for layer in (0, 1):
        for kind, keys in (("self", len(target)), ("cross", len(source))):
            scores = random.normal(0, 3, (3, len(target), keys)).astype(np.float32)
            masked = scores.copy()
            if kind == "self":
                masked[:, np.triu(np.ones((len(target), keys), dtype=bool), 1)] = -np.inf
            powers = np.exp(masked - masked.max(axis=-1, keepdims=True))
            place = f"decoder.{layer}.{kind}"
            arrays[f"{place}.scores"] = scores
            arrays[f"{place}.scaled"] = scores / 2
            arrays[f"{place}.masked"] = masked
            arrays[f"{place}.weights"] = powers / powers.sum(axis=-1, keepdims=True)
            arrays[f"{place}.context"] = random.normal(size=(3, len(target), 2))
    values: dict[str, Any] = {
        "arrays": arrays,
        "source_tokens": source,
        "source_ids": tuple(range(len(source))),
        "target_tokens": reads,
        "target_ids": tuple(range(len(target))),
        "predicted_tokens": target,
        "predicted_ids": tuple(range(len(target))),
        "log_probabilities": (-0.5,) * len(target),
        "argmax_tokens": target,
        "heads": (0, 1, 2),
        "checks": {"rows": 1e-7},
        "model": {"model_hash": "0123456789abcdef", "name": "tiny"},
        "decoding": {"beam": 5, "precision": "int8", "replay_precision": "float32"},
    }
    return Trace(**{**values, **changes})
