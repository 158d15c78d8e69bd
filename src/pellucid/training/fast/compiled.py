"""Passes that PyTorch compiles, if a recipe sets ``training.compile``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import torch
from torch import Tensor, library

from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.model import Dropout, EncoderDecoder

_slots = count()
_current: dict[int, Dropout] = {}


class CompiledTransformer:
    """Encoder and decoder of a model, compiled for all lengths at their first call.

    Dropout stays a function of seed, step and place. The compiler sees an operation that returns a
    mask, and neither the step nor the rates: a change of these would make it compile again.

    Args:
        model: the model.
        training: its dropout rates tell which masks are needed.

    Attributes:
        encode: replaces ``model.encode``.
        decode: replaces ``model.decode``.
    """

    def __init__(self, model: EncoderDecoder, training: TrainingConfig) -> None:
        # Dynamo compiles cached functions without their cache. The table of positions is a pure
        # function, so the result is the same.
        warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
        self.encode: Callable[..., Tensor] = torch.compile(model.encode, dynamic=True)
        self.decode: Callable[..., Tensor] = torch.compile(model.decode, dynamic=True)
        self._dropout = _Masks(next(_slots), training)

    def with_masks_of(self, dropout: Dropout) -> Any:
        """Return the dropout to pass to `encode` and `decode`; it is valid until the next call."""
        _current[self._dropout.slot] = dropout
        return self._dropout


def require_compiler(device: torch.device) -> None:
    """Compile a small function, to find out early whether it works.

    Raises:
        ConfigurationError: PyTorch cannot compile on this machine.
    """
    try:
        torch.compile(lambda x: x.cos() + 1)(torch.ones(3, device=device))
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigurationError(
            f"PyTorch cannot compile on this machine (training.compile = true): {reason}. "
            "Install a C++ compiler, or use training.compile = false."
        ) from error


class _Masks:
    """The interface of `Dropout`, as multiplication with the mask that it makes of ones."""

    def __init__(self, slot: int, training: TrainingConfig) -> None:
        _register()
        self.slot = slot
        self.drops_weights = training.attention_dropout > 0
        self._drops_results = training.dropout > 0
        self._drops_activated = training.feed_forward_dropout > 0
        self._drops_tokens = training.token_dropout > 0

    def __call__(self, tensor: Tensor, place: str) -> Tensor:
        return self._masked(tensor, "__call__", place) if self._drops_results else tensor

    def on_weights(self, weights_BHLM: Tensor, place: str) -> Tensor:
        return self._masked(weights_BHLM, "on_weights", place)

    def on_activated(self, activated_BLF: Tensor, place: str) -> Tensor:
        if not self._drops_activated:
            return activated_BLF
        return self._masked(activated_BLF, "on_activated", place)

    def on_tokens(self, embedding_BLD: Tensor, place: str) -> Tensor:
        return (
            self._masked(embedding_BLD, "on_tokens", place) if self._drops_tokens else embedding_BLD
        )

    def _masked(self, tensor: Tensor, method: str, place: str) -> Tensor:
        mask: Tensor = torch.ops.pellucid.dropout_mask(tensor.detach(), self.slot, method, place)
        return tensor * mask


@cache
def _register() -> None:
    """Register the operation, which compilers call without looking inside."""

    def make_mask(like: Tensor, slot: int, method: str, place: str) -> Tensor:
        mask: Tensor = getattr(_current[slot], method)(torch.ones_like(like), place)
        return mask

    schema = "(Tensor like, int slot, str method, str place) -> Tensor"
    operation = library.custom_op(
        "pellucid::dropout_mask", make_mask, mutates_args=(), schema=schema
    )
    operation.register_fake(lambda like, slot, method, place: torch.empty_like(like))
