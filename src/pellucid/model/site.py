"""One place in the model: its name, the probe that looks there, and the dropout of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from pellucid.attention.probe import Probe, is_watched, show
from pellucid.model.dropout import Dropout


@dataclass(frozen=True)
class Site:
    """A place in the model: shows its results to the probe, and applies the dropout of training.

    Attributes:
        name: such as ``encoder``, ``decoder.1`` or ``decoder.1.cross``.
        probe: is handed every result; None if nothing looks.
        dropout: None outside training.
    """

    name: str
    probe: Probe | None = None
    dropout: Dropout | None = None

    def within(self, name: str | int) -> Site:
        """Name a place inside this one, with the same probe and dropout."""
        return Site(f"{self.name}.{name}", self.probe, self.dropout)

    @property
    def is_watched(self) -> bool:
        """True if the probe wants every stage of attention here."""
        return self.probe is not None and is_watched(self.probe, self.name)

    def show(self, stage: str, tensor: Tensor, *, is_shared: bool = False) -> Tensor:
        """Hand a result to the probe, or a copy of one that something else shares; return it."""
        # A probe may change in place what it is handed.
        is_copied = is_shared and self.probe is not None
        return show(self.probe, self.name, stage, tensor.clone() if is_copied else tensor)

    def drop(self, tensor: Tensor) -> Tensor:
        """Apply dropout to a sub-layer's output, or to the input of a stack."""
        return tensor if self.dropout is None else self.dropout(tensor, self.name)

    def drop_activated(self, activated: Tensor) -> Tensor:
        """Apply dropout inside the feed-forward network, after the activation."""
        dropout = self.dropout
        return activated if dropout is None else dropout.on_activated(activated, self.name)

    def drop_tokens(self, embedding: Tensor) -> Tensor:
        """Apply dropout to whole embeddings."""
        return embedding if self.dropout is None else self.dropout.on_tokens(embedding, self.name)

    @property
    def drop_weights(self) -> Callable[[Tensor], Tensor] | None:
        """Dropout of attention weights; None if nothing is dropped, so that attention may fuse."""
        if self.dropout is None or not self.dropout.drops_weights:
            return None
        return partial(self.dropout.on_weights, place=self.name)
