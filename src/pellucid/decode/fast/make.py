"""Prepare a model of either architecture for decoding."""

from __future__ import annotations

import torch

from pellucid.config import Precision
from pellucid.decode.fast.engine import Engine
from pellucid.decode.fast.recurrent import RecurrentEngine
from pellucid.model import EncoderDecoder, RecurrentModel, Transformer


def make_engine(
    model: EncoderDecoder, precision: Precision = "float32", *, dtype: torch.dtype | None = None
) -> Engine | RecurrentEngine:
    """Prepare a model; the arguments are those of `Engine`.

    Raises:
        InputError: a recurrent model was asked for another precision than float32.
    """
    if isinstance(model, RecurrentModel):
        return RecurrentEngine(model, precision, dtype=dtype)
    assert isinstance(model, Transformer)
    return Engine(model, precision, dtype=dtype)
