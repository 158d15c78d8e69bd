"""Passes that PyTorch compiles, where a recipe asks for it."""

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
from pellucid.model import Dropout, Transformer

__all__ = ["CompiledHalves", "require_compiler"]

_slots = count()
_current: dict[int, Dropout] = {}


class CompiledHalves:
    """Encoder and decoder of a model, compiled for any lengths when they are first called.

    Dropout stays what it is, a function of seed, step and place: the compiler sees an operation
    that gives a mask, and neither the step nor the rates, which would make it begin anew.

    Args:
        model: whose halves they are.
        training: says what is ever dropped.

    Attributes:
        encode: stands for ``model.encode``.
        decode: stands for ``model.decode``.
    """

    def __init__(self, model: Transformer, training: TrainingConfig) -> None:
        # The table of positions is a pure function: compiled without its cache it is the same.
        warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
        self.encode: Callable[..., Tensor] = torch.compile(model.encode, dynamic=True)
        self.decode: Callable[..., Tensor] = torch.compile(model.decode, dynamic=True)
        self._dropout = _Masks(next(_slots), training)

    def with_masks_of(self, dropout: Dropout) -> Any:
        """What both halves take for this dropout, until the next call."""
        _current[self._dropout.slot] = dropout
        return self._dropout


def require_compiler(device: torch.device) -> None:
    """Compile something small.

    Raises:
        ConfigurationError: it cannot be done on this machine.
    """
    try:
        torch.compile(lambda x: x.cos() + 1)(torch.ones(3, device=device))
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise ConfigurationError(
            "PyTorch must be able to compile for training.compile = true, but cannot here: "
            f"{reason}. Install a C++ compiler, or use training.compile = false."
        ) from error


class _Masks:
    """Has the methods of `Dropout`, and multiplies by what those make of ones."""

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
    """Make the operation known that a compiler takes as it is."""

    def mask_of(like: Tensor, slot: int, method: str, place: str) -> Tensor:
        made: Tensor = getattr(_current[slot], method)(torch.ones_like(like), place)
        return made

    schema = "(Tensor like, int slot, str method, str place) -> Tensor"
    operation = library.custom_op("pellucid::dropout_mask", mask_of, mutates_args=(), schema=schema)
    operation.register_fake(lambda like, slot, method, place: torch.empty_like(like))
