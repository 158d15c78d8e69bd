"""Recurrent models small enough to test, with a prime for each axis where it may be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import save_bundle
from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
from pellucid.model import RecurrentModel, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer

FORMS = ("none", "additive", "dot")
V = 23
WORDS = [f"word{number}" for number in range(19)]


def make_recurrent(form: str, *, seed: int = 3, **changes: Any) -> RecurrentModel:
    """A model of two layers on each side; its biases are not 0, which would hide mistakes."""
    values = {
        "architecture": "recurrent",
        "recurrent_attention": form,
        "d_model": 14,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_source_length": 97,
        "max_target_length": 97,
    }
    if form == "additive":
        values["d_key"] = 5
    model = RecurrentModel(ModelConfig.model_validate(values | changes))
    initialize(model, seed)
    numbers = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=numbers)
    return model.eval().requires_grad_(False)


def save_recurrent(folder: Path, form: str, **changes: Any) -> Path:
    """Save such a model as a bundle with a vocabulary of words."""
    text = " ".join(WORDS)
    tokenizer = learn_tokenizer(
        TokenizerRecipe(kind="words", vocabulary_size=V), lambda: iter([text]), lambda: iter([text])
    )
    model = make_recurrent(form, **changes)
    save_bundle(
        folder,
        config=BundleConfig(model=model.config, tokenizer=TokenizerConfig(kind="words")),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return folder
