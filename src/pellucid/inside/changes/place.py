"""The place of a change in a model: a head, an edge of it, or many at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.config.head_address import (
    ATTENTION_KINDS,
    HeadAddress,
    heads_of_model,
    parse_address,
)
from pellucid.errors import InputError
from pellucid.inside.ask import check_number

_EDGE = re.compile(r"(\d{1,18}|\*)>(\d{1,18}|\*)", re.ASCII)


@dataclass(frozen=True)
class Place(HeadAddress):
    """A head, or edges from queries to keys within it. None means all.

    Attributes:
        query: the position that attends; in a decoder the row, which reads one token and predicts
            the next.
        key: the position attended to.
        is_edge: True for edges, False for whole heads.
    """

    query: int | None = None
    key: int | None = None
    is_edge: bool = False

    def __str__(self) -> str:
        """As `parse_place` reads it: ``decoder.1.cross.0``, ``encoder.0.self.2:4>7``."""
        head = super().__str__()
        return f"{head}:{_show(self.query)}>{_show(self.key)}" if self.is_edge else head

    @property
    def whole_head(self) -> Place:
        """The head that an edge belongs to."""
        return Place(self.part, self.layer, self.kind, self.head)

    def moved_to(self, head: Place) -> Place:
        """Return the same edges of another head."""
        return replace(self, part=head.part, layer=head.layer, kind=head.kind, head=head.head)

    def cut_from(self, tensor: Tensor) -> Tensor:
        """Return the slice of a tensor (batch, heads, queries, …) that is meant, as a view."""
        heads = tensor[:, _slice(self.head)]
        return heads[:, :, _slice(self.query), _slice(self.key)] if self.is_edge else heads

    def check(self, model: ModelConfig, source_length: int, target_length: int) -> None:
        """Make sure that the place exists in a model, and in a pair of these lengths.

        Raises:
            InputError: a layer, a head or a position does not exist, or the mask forbids the edge.
        """
        # Cutting a word cuts it wherever it is attended to, also where a model never attends.
        is_word = self.is_edge and self.layer is None and model.has_attention
        if not (model.is_recurrent and is_word):
            self.check_in(model)
        lengths = {"encoder": source_length, "decoder": target_length}
        if not self.is_edge or self.part is None:
            return
        # Rows of cross-attention are the decoder's, its keys the source's.
        keys = source_length if self.kind == "cross" else lengths[self.part]
        for what, number, count in (
            ("query", self.query, lengths[self.part]),
            ("key", self.key, keys),
        ):
            if number is not None:
                advice = "Name one that exists, or * for all."
                check_number(what, number, count, "this pair", where=f" ({self})", advice=advice)
        # Such a change would have no effect, since the mask forbids the edge anyway.
        is_ahead = self.query is not None and self.key is not None and self.key > self.query
        is_masked = self.kind == "self" and self.part == "decoder" and model.look_ahead_mask
        if is_ahead and is_masked:
            raise InputError(
                f"The key of a decoder row must be the row itself or one before it, but is "
                f"{self.key} for row {self.query} ({self}). Name an edge that the mask allows."
            )


def parse_place(text: str) -> Place:
    """Read heads (``decoder.1.cross.0``) or an edge of them (``encoder.0.self.2:4>7``).

    Heads are an address, as `parse_address` reads it. The edge is the one from query 4 to key 7;
    ``encoder.*.self.*:*>7`` is every edge to position 7.

    Raises:
        InputError: the text is neither, or what it names has no heads.
    """
    head, colon, edge = text.partition(":")
    address = parse_address(head)
    if address.kind not in (None, *ATTENTION_KINDS):
        raise InputError(f"A change must be of heads, but {head} has none. Name self or cross.")
    found = Place(address.part, address.layer, address.kind, address.head)
    if not colon:
        return found
    numbers = _EDGE.fullmatch(edge.strip())
    # Positions are counted along a side, so an edge must say of which.
    if numbers is None or None in (address.part, address.kind):
        raise InputError(
            "An edge must be written as encoder.0.self.2:4>7 (a head with its part and kind, query "
            f"4, key 7; * for all), but is {text!r}. Write it so."
        )
    query, key = (None if number == "*" else int(number) for number in numbers.groups())
    return replace(found, query=query, key=key, is_edge=True)


def all_heads(model: ModelConfig) -> Iterator[Place]:
    """Yield every head of a model, in the order in which it computes them."""
    for head in heads_of_model(model):
        yield Place(head.part, head.layer, head.kind, head.head)


def _show(number: int | None) -> str:
    return "*" if number is None else str(number)


def _slice(number: int | None) -> slice:
    return slice(None) if number is None else slice(number, number + 1)
