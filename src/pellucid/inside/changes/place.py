"""The place of a change in a model: a head, an edge of it, or many at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside.ask import AttentionKind, Part, check_number

_NUMBER = r"(\d{1,18}|\*)"  # Python reads no number of more than 4,300 digits.
_PLACE = re.compile(
    rf"(encoder|decoder)\.{_NUMBER}\.(self|cross)\.{_NUMBER}(?::{_NUMBER}>{_NUMBER})?", re.ASCII
)


@dataclass(frozen=True)
class Place:
    """A head, or edges from queries to keys within it. None means all.

    Attributes:
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross``.
        head: from 0.
        query: the position that attends; in a decoder the row, which reads one token and predicts
            the next.
        key: the position attended to.
        is_edge: True for edges, False for whole heads.
    """

    part: Part
    layer: int | None
    kind: AttentionKind
    head: int | None
    query: int | None = None
    key: int | None = None
    is_edge: bool = False

    def __str__(self) -> str:
        """As `parse_place` reads it: ``decoder.1.cross.0``, ``encoder.0.self.2:4>7``."""
        head = f"{self.part}.{_show(self.layer)}.{self.kind}.{_show(self.head)}"
        return f"{head}:{_show(self.query)}>{_show(self.key)}" if self.is_edge else head

    @property
    def is_one_head(self) -> bool:
        """True if it names one head, or edges of one head."""
        return self.layer is not None and self.head is not None

    @property
    def whole_head(self) -> Place:
        """The head that an edge belongs to."""
        return Place(self.part, self.layer, self.kind, self.head)

    def moved_to(self, head: Place) -> Place:
        """Return the same edges of another head."""
        return replace(self, part=head.part, layer=head.layer, kind=head.kind, head=head.head)

    def is_at(self, site: str) -> bool:
        """Tell whether a site such as ``decoder.1.cross`` is meant."""
        part, _, rest = site.partition(".")
        layer, _, kind = rest.partition(".")
        is_here = (part, kind) == (self.part, self.kind)
        return is_here and self.layer in (None, int(layer))

    def holds(self, head: Place) -> bool:
        """Tell whether one head is meant."""
        is_there = self.is_at(f"{head.part}.{head.layer}.{head.kind}")
        return is_there and self.head in (None, head.head)

    def cut_from(self, tensor: Tensor) -> Tensor:
        """Return the slice of a tensor (batch, heads, queries, …) that is meant, as a view."""
        heads = tensor[:, _slice(self.head)]
        return heads[:, :, _slice(self.query), _slice(self.key)] if self.is_edge else heads

    def check(self, model: ModelConfig, source_length: int, target_length: int) -> None:
        """Make sure that the place exists in a model, and in a pair of these lengths.

        Raises:
            InputError: a layer, a head or a position does not exist, or the mask forbids the edge.
        """
        if model.is_recurrent:
            self._check_recurrent(model)
        lengths = {"encoder": source_length, "decoder": target_length}
        # Rows of cross-attention are the decoder's, its keys the source's.
        keys = source_length if self.kind == "cross" else lengths[self.part]
        for what, number, count in (
            ("layer", self.layer, getattr(model, f"num_{self.part}_layers")),
            ("head", self.head, model.num_heads),
            ("query", self.query, lengths[self.part]),
            ("key", self.key, keys),
        ):
            if number is not None:
                of = f"this model's {self.part}" if what in ("layer", "head") else "this pair"
                advice = "Name one that exists, or * for all."
                check_number(what, number, count, of, where=f" ({self})", advice=advice)
        # Such a change would have no effect, since the mask forbids the edge anyway.
        is_ahead = self.query is not None and self.key is not None and self.key > self.query
        is_masked = self.kind == "self" and self.part == "decoder" and model.look_ahead_mask
        if is_ahead and is_masked:
            raise InputError(
                f"The key of a decoder row must be the row itself or one before it, but is "
                f"{self.key} for row {self.query} ({self}). Name an edge that the mask allows."
            )

    def _check_recurrent(self, model: ModelConfig) -> None:
        if not model.has_attention:
            raise InputError(
                f"A recurrent model that reads one vector of fixed length has no head ({self}). "
                "Train one with model.recurrent_attention = 'additive' or 'dot'."
            )
        is_everywhere = self.layer is None  # as in cutting a word wherever it is attended to
        if (self.kind == "self" and not is_everywhere) or self.layer not in (None, 0):
            raise InputError(
                f"The only head of a recurrent model is decoder.0.cross.0, but {self} is asked "
                "for. Name that one."
            )


def parse_place(text: str) -> Place:
    """Read a head (``decoder.1.cross.0``) or an edge of it (``encoder.0.self.2:4>7``).

    The edge is the one from query 4 to key 7. ``*`` in place of a number means all:
    ``encoder.*.self.*:*>7`` is every edge to position 7.

    Raises:
        InputError: the text is neither, or names cross-attention of the encoder.
    """
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"A head must be written as decoder.1.cross.0 (part, layer, kind, head), but is "
            f"{text!r}. Write an edge as encoder.0.self.2:4>7 (query 4, key 7), and * for all."
        )
    part, layer, kind, head, query, key = found.groups()
    if part == "encoder" and kind == "cross":
        raise InputError(
            f"The encoder has no cross-attention ({text!r}). Write encoder.LAYER.self.HEAD, or "
            "decoder.LAYER.cross.HEAD."
        )
    return Place(
        cast(Part, part),
        _number(layer),
        cast(AttentionKind, kind),
        _number(head),
        _number(query),
        _number(key),
        is_edge=query is not None,
    )


def all_heads(model: ModelConfig) -> Iterator[Place]:
    """Yield every head of a model, in the order in which it computes them."""
    if model.is_recurrent:
        if model.has_attention:
            yield Place("decoder", 0, "cross", 0)
        return
    for layer in range(model.num_encoder_layers):
        yield from (Place("encoder", layer, "self", head) for head in range(model.num_heads))
    kinds: tuple[AttentionKind, ...] = ("self", "cross")
    for layer in range(model.num_decoder_layers):
        for kind in kinds:
            yield from (Place("decoder", layer, kind, head) for head in range(model.num_heads))


def _number(text: str | None) -> int | None:
    return None if text is None or text == "*" else int(text)


def _show(number: int | None) -> str:
    return "*" if number is None else str(number)


def _slice(number: int | None) -> slice:
    return slice(None) if number is None else slice(number, number + 1)
