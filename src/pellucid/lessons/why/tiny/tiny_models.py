"""The recurrent model in its three forms and the Transformer, tiny and of equal size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from pellucid.config import ModelConfig
from pellucid.lessons.why.tiny.learn import Pair, Tiny, make_tiny
from pellucid.model import Transformer, initialize, make_model

Form = Literal["fixed vector", "additive", "dot product", "Transformer"]

FORMS: Mapping[Form, Mapping[str, Any]] = {
    "fixed vector": {"architecture": "recurrent", "recurrent_attention": "none"},
    "additive": {"architecture": "recurrent", "recurrent_attention": "additive"},
    "dot product": {"architecture": "recurrent", "recurrent_attention": "dot"},
    "Transformer": {},
}
"""The fields of `pellucid.config.ModelConfig` of each form: what the encoder hands over decides."""

_NARROWEST = 8
_WIDEST = 256


def make_form(form: Form, pairs: Sequence[Pair], *, seed: int, **sizes: Any) -> Tiny:
    """Make an untrained model of a form, with as many weights as the tiny Transformer.

    A recurrent form gets the even width whose number of weights is nearest. With widths of about
    64 that is within 3 %.

    Args:
        form: one of `FORMS`.
        pairs: everything that the model will read and write.
        seed: of the first weights.
        sizes: fields of the Transformer's configuration that differ from the usual tiny one.
    """
    transformer = make_tiny(pairs, seed=seed, **sizes)
    if form == "Transformer":
        return transformer
    wanted = count_trained_numbers(transformer)
    vocabularies = {
        "source_vocabulary_size": len(transformer.source),
        "target_vocabulary_size": len(transformer.target),
        "tied_embeddings": transformer.model.config.tied_embeddings,
    }

    def distance(width: int) -> int:
        config = ModelConfig.model_validate({**FORMS[form], **vocabularies, "d_model": width})
        # Only counted: weights without memory are made in no time.
        with torch.device("meta"):
            model = make_model(config)
        return abs(sum(weight.numel() for weight in model.parameters()) - wanted)

    # The number grows with the width: walk from the Transformer's to where it is nearest.
    width = transformer.model.config.d_model
    for step in (2, -2):
        while _NARROWEST <= width + step <= _WIDEST and distance(width + step) < distance(width):
            width += step
    return make_tiny(pairs, seed=seed, d_model=width, **FORMS[form])


def make_transformer(seed: int, **sizes: Any) -> Transformer:
    """Make an untrained Transformer of some sizes, for measurements that train nothing."""
    model = Transformer(ModelConfig.model_validate(sizes))
    initialize(model, seed)
    return model


def count_trained_numbers(tiny: Tiny) -> int:
    """Count the numbers that training can change."""
    return sum(weight.numel() for weight in tiny.model.parameters())
