"""Small Transformers of every architecture, requests to them, and both ways to answer these."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.native import NativePath
from pellucid.model import Transformer, initialize
from pellucid.native.call import LengthLimits, SearchOptions
from pellucid.native.engine import NativeEngine

START, END = 2, 3
SPECIAL = SpecialIds(START, END, (0, START))

SWITCHES: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "learned", "input_norm": True},
    {"norm": "none", "embedding_scale": "none", "positions": "none"},
    {"activation": "swish", "positions": "sinusoidal_halves", "projection_bias": True},
    {"tied_embeddings": "none", "scale_scores": False, "target_vocabulary_size": 47},
    {"tied_embeddings": "decoder", "source_vocabulary_size": 29, "residual": False, "norm": "pre"},
    {"projections": "qk", "d_value": 5},
    {"projections": "none", "d_key": 7, "d_value": 7},
    {"d_model": 34, "d_ff": 53, "num_heads": 3, "d_key": 17, "d_value": 19},
    {"target_vocabulary_size": 1031, "tied_embeddings": "none"},  # several blocks of logits
    {"decoder": "ssru", "d_model": 34, "norm": "pre"},
    {"decoder": "ssru", "projections": "none", "d_key": 7, "d_value": 7},
    {"input_norm": True, "activation": "gelu", "positions": "learned", "projection_bias": True},
]

DIFFERENT = tuple(SWITCHES[place] for place in (1, 5, 7, 8, 9, 10))
"""The architectures that with the other tests of the engine run every line and branch of its C that
all of them run, counted by gcov; fewer are not enough."""


def make_transformer(seed: int = 1, **changes: Any) -> Transformer:
    values: dict[str, Any] = {
        "d_model": 14,
        "d_ff": 11,
        "num_heads": 2,
        "d_key": 5,
        "d_value": 3,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "source_vocabulary_size": 23,
        "target_vocabulary_size": 23,
        "max_source_length": 97,
        "max_target_length": 97,
    }
    model = Transformer(ModelConfig.model_validate(values | changes), has_output_bias=bool(changes))
    initialize(model, seed)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() == 1:  # Biases and gains that start as 0 and 1 would hide mistakes.
            parameter.data += 0.2 * torch.randn(parameter.shape)
    return model.eval()


def make_requests(model: Transformer, count: int, seed: int = 1) -> list[Request]:
    chance = random.Random(seed)
    size = model.config.source_vocabulary_size
    sources = [
        (*(chance.randrange(4, size) for _ in range(chance.randrange(37))), END)
        for _ in range(count)
    ]
    return [
        Request(
            source,
            max_length=len(source) + 5,
            min_length=chance.choice([0, 5]),
            prefix_ids=chance.choice([(), (), (5, 6)]),
        )
        for source in sources
    ]


def engine_of(model: Transformer, precision: Any = "float32") -> NativeEngine:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    engine = NativeEngine(model.config, weights, precision)
    assert engine.obstacle is None
    return engine


def answers_of(
    engine: NativeEngine, requests: Sequence[Request], sentences: int, threads: int, **options: Any
) -> list[Any]:
    search = SearchOptions(DecodingConfig(**options), START, END, SPECIAL.never)
    limits = [LengthLimits(one.max_length, one.min_length, one.prefix_ids) for one in requests]
    sources = [one.source_ids for one in requests]
    return engine.translate(sources, limits, search, sentences=sentences, threads=threads)


def on_pytorch(
    models: Any, requests: list[Request], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[Hypothesis, ...]]:
    models = models if isinstance(models, list) else [models]
    with monkeypatch.context() as patch:
        patch.setattr(NativePath, "find_obstacle", lambda *_: "this test compares with PyTorch")
        return Decoder(models, SPECIAL).decode(
            requests, DecodingConfig(**options), batch_tokens=512
        )
