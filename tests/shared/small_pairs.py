"""Pairs with small models of every form, made without training."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from of_subwords import SUBWORDS

import pellucid
from pellucid.bundle import Bundle, load_bundle
from pellucid.config import ModelConfig
from pellucid.inside import Pair
from pellucid.inside.pair import make_pair
from pellucid.model import Transformer, initialize

SOURCE = "The pizza came out of the oven ."
TARGET = "La pizza est sortie du four ."

FORMS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre with biases": {"norm": "pre", "projection_bias": True},
    "no norm": {"norm": "none"},
    "no residual": {"residual": False, "projection_bias": True},
    "weights on keys": {"projections": "qk", "d_key": 3, "d_value": 3},
    "no projections": {"projections": "none", "d_key": 5, "d_value": 5, "norm": "pre"},
    "all rows seen": {"look_ahead_mask": False, "scale_scores": False},
}
"""Configurations for which the measures must hold."""


def small_pair(folder: Path, *, seed: int = 2, **changes: Any) -> Pair:
    """A pair in double precision whose model has random norms and biases too.

    Args:
        folder: a bundle with a tokenizer that knows the words.
        seed: decides the weights.
        changes: to the model's configuration.
    """
    bundle = _load(folder)
    size = bundle.tokenizer.source_vocabulary_size
    config = ModelConfig.model_validate(
        {"d_model": 10, "d_ff": 11, "num_heads": 2, "d_key": 3, "d_value": 7}
        | {"num_encoder_layers": 2, "num_decoder_layers": 2}
        | {"source_vocabulary_size": size, "target_vocabulary_size": size}
        | changes
    )
    with torch.random.fork_rng():
        model = Transformer(config).double()
        initialize(model, seed)
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.eval().requires_grad_(False)
    given = make_pair(bundle, SOURCE, TARGET)
    return Pair(model, bundle.tokenizer, given.source_ids, given.target_ids)


@cache
def _load(folder: Path) -> Bundle:
    return load_bundle(folder)


def load_demo() -> Bundle:
    """The bundle of a trained model of subwords."""
    bundle = pellucid.load(SUBWORDS).bundle
    assert bundle is not None
    return bundle


def translated_by_demo(text: str) -> Pair:
    """A line with that model and its own translation."""
    return make_pair(load_demo(), text, pellucid.load(SUBWORDS).translate([text])[0].ids)
