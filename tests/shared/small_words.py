"""Small models of whole words with random weights, of any form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import save_bundle
from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer

__all__ = ["SENTENCES", "make_words_bundle"]

SENTENCES = (
    "The pizza came out of the oven, and it tasted good.",
    "Let's  see the well-known cafe\u0301, isn't it?",
    "nowhere a word \u00ab known \u00bb \u4e2d\u6587 \U0001f600!",
)

_SOURCES = (
    "The pizza came out of the oven, and it tasted good.",
    "Let's see the caf\u00e9: it isn't!",
)
_TARGETS = (
    "La pizza est sortie du four et elle avait bon go\u00fbt.",
    "Voyons le caf\u00e9\u00a0!",
)


def make_words_bundle(folder: Path, *, seed: int = 1, **model: Any) -> Path:
    """Save an untrained model; ``model`` are fields of its configuration."""
    settings = TokenizerRecipe(kind="words", sharing="separate")
    model = {"tied_embeddings": "decoder", **model}
    if model["tied_embeddings"] == "all":
        settings = TokenizerRecipe(kind="words", sharing="joint")
    tokenizer = learn_tokenizer(settings, lambda: iter(_SOURCES), lambda: iter(_TARGETS))
    sizes = {"d_model": 14, "d_ff": 11, "num_heads": 3, "d_key": 5, "d_value": 7}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 2}
    sizes |= {"max_source_length": 37, "max_target_length": 23}
    sizes |= {"source_vocabulary_size": tokenizer.source_vocabulary_size}
    sizes |= {"target_vocabulary_size": tokenizer.target_vocabulary_size}
    config = ModelConfig.model_validate({**sizes, **model})
    with torch.random.fork_rng():
        network = Transformer(config)
        initialize(network, seed)
        # Biases and gains differ from 0 and 1, so that a forgotten one shows.
        torch.manual_seed(seed)
        for parameter in network.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
    stored = {key: getattr(settings, key) for key in TokenizerConfig.model_fields}
    save_bundle(
        folder,
        config=BundleConfig(model=config, tokenizer=TokenizerConfig(**stored)),
        weights=network.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={"data": {"pairs": 2}},
    )
    return folder
