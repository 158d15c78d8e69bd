"""The address of a head: ``decoder.1.cross.0``, the same in commands, Python, HTTP and recipes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from pellucid.arguments import refuse
from pellucid.errors import InputError, shorten, suggestion

Part = Literal["encoder", "decoder"]
Kind = Literal["self", "cross", "feed_forward", "recurrent"]

PARTS = ("encoder", "decoder")
ATTENTION_KINDS = ("self", "cross")
KINDS = (*ATTENTION_KINDS, "feed_forward", "recurrent")

HOW_TO_WRITE = (
    "Write it as decoder.1.cross.0 (part, layer, kind, head), with * for all; what is left out at "
    "the end means all too."
)

# Python reads no number of more than 4,300 digits, and no model has layers of 18.
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_LEVELS = ("part", "layer", "kind", "head")
_NAMES: dict[str, tuple[str, ...]] = {"part": PARTS, "kind": KINDS}


class AttentionSizes(Protocol):
    """What decides which heads a model has; a `ModelConfig`, which settings of training know."""

    @property
    def is_recurrent(self) -> bool:
        """True for gated recurrent units instead of layers of attention."""

    @property
    def decoder(self) -> str:
        """What reads the target's earlier words in a Transformer: ``attention`` or ``ssru``."""

    @property
    def attending_layers(self) -> range:
        """The layers of the decoder that attend to the source."""

    @property
    def num_heads(self) -> int:
        """Number of heads of each attention."""


@dataclass(frozen=True)
class HeadAddress:
    """Heads of a model, or whole layers and sub-layers. None means all.

    Attributes:
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross`` for attention. ``feed_forward`` and, where a model has units,
            ``recurrent`` have no heads.
        head: from 0.
        depth: the number of levels that were written; ``decoder.1`` has two. What is left out also
            means what lies around the heads.
    """

    part: Part | None = None
    layer: int | None = None
    kind: Kind | None = None
    head: int | None = None
    depth: int = field(default=4, kw_only=True)

    def __str__(self) -> str:
        """As `parse_address` reads it."""
        levels = (self.part, self.layer, self.kind, self.head)[: self.depth]
        return ".".join("*" if one is None else str(one) for one in levels)

    def __format__(self, spec: str) -> str:
        """Fill columns as text does: ``f"{head:20}"``."""
        return format(str(self), spec)

    @property
    def is_one_head(self) -> bool:
        """True if it names a single head."""
        return None not in (self.part, self.layer, self.kind, self.head)

    @property
    def site(self) -> str:
        """The place of the head in the model: ``decoder.1.cross``."""
        return ".".join(str(self).split(".")[:3])

    def is_at(self, site: str) -> bool:
        """Tell whether a site such as ``decoder.1.cross`` is meant."""
        part, *rest = site.split(".")
        # The parts themselves are sites too, but no heads.
        if len(rest) != 2:
            return False
        layer, kind = rest
        has_heads = kind in ATTENTION_KINDS
        asked = (self.part, self.layer, self.kind)
        is_meant = all(
            one in (None, found) for one, found in zip(asked, (part, int(layer), kind), strict=True)
        )
        return is_meant and (has_heads or self.depth < 4)

    def is_around(self, site: str) -> bool:
        """Tell whether a part as a whole, ``encoder`` or ``decoder``, is meant."""
        return self.depth == 1 and site in PARTS and self.part in (None, site)

    def holds(self, head: HeadAddress) -> bool:
        """Tell whether one head is meant."""
        is_there = self.is_at(f"{head.part}.{head.layer}.{head.kind}")
        return is_there and self.head in (None, head.head)

    def heads_of(self, model: AttentionSizes) -> list[HeadAddress]:
        """List the heads that are meant, in the order in which the model computes them.

        Raises:
            InputError: the model does not have them (with the range).
        """
        self.check_in(model)
        return [head for head in heads_of_model(model) if self.holds(head)]

    def check_in(self, model: AttentionSizes) -> None:
        """Make sure that a model has what the address names.

        Raises:
            InputError: a layer or a head does not exist (with the range), or no such sub-layer.
        """
        is_of_heads = self.depth == 4 or self.kind in ATTENTION_KINDS
        if model.is_recurrent and is_of_heads:
            if not model.attending_layers:
                raise InputError(
                    "A recurrent model that reads one vector of fixed length has no head "
                    f"({self}). Train one with model.recurrent_attention = 'additive' or 'dot'."
                )
            if not self.is_at("decoder.0.cross"):
                raise InputError(
                    f"The only head of a recurrent model is decoder.0.cross.0, but {self} is asked "
                    "for. Name that one."
                )
        parts = PARTS if self.part is None else (self.part,)
        of = "this model" if self.part is None else f"this model's {self.part}"
        # The deeper of the parts that are asked for: a layer that one of them has is fine.
        depth = max(getattr(model, f"num_{part}_layers") for part in parts)
        for what, number, count in (
            ("layer", self.layer, depth),
            ("head", self.head, model.num_heads),
        ):
            if number is not None and number >= count:
                raise InputError(
                    f"A {what} must be from 0 to {count - 1} for {of}, but is {number} ({self}). "
                    "Name one that exists, or * for all."
                )
        sites = sites_of(model)
        if not any(self.is_at(site) for site in sites):
            if model.decoder == "ssru" and (self.part, self.kind) == ("decoder", "self"):
                raise InputError(
                    "This model's decoder has no self-attention, since recurrent units read its "
                    f"earlier words (model.decoder = 'ssru'), but {self} is asked for. Name "
                    "decoder.LAYER.recurrent, which has no heads, or decoder.LAYER.cross.HEAD."
                )
            raise InputError(f"This model has no {self}. {suggestion(str(self), sites)}")


def parse_address(text: str) -> HeadAddress:
    """Read an address: a head (``decoder.1.cross.0``), or all heads of a place.

    ``*`` stands for all at its level (``*.*.self``), and levels that are left out at the end mean
    all too (``decoder.1``). ``encoder.0.feed_forward`` and ``decoder.0.recurrent`` have no head.

    Raises:
        InputError: the text is not an address (with the nearest name).
    """
    if not isinstance(text, str):
        refuse("head", "a text such as 'decoder.1.cross.0'", text, HOW_TO_WRITE)
    levels = text.strip().split(".")
    if len(levels) > len(_LEVELS):
        raise InputError(
            f"A head must have at most {len(_LEVELS)} levels, but is {shorten(repr(text))}. "
            f"{HOW_TO_WRITE}"
        )
    # What is left out is open, like a star.
    open_ones = ["*"] * (len(_LEVELS) - len(levels))
    found: list[Any] = [
        None if level == "*" else _read(what, level, text)
        for what, level in zip(_LEVELS, [*levels, *open_ones], strict=True)
    ]
    part, layer, kind, head = found
    if (part, kind) == ("encoder", "cross"):
        raise InputError(
            f"The encoder has no cross-attention ({text!r}). Write encoder.LAYER.self.HEAD, or "
            "decoder.LAYER.cross.HEAD."
        )
    if len(levels) == len(_LEVELS) and kind not in (None, *ATTENTION_KINDS):
        raise InputError(
            f"Only self and cross have heads, but {kind} is asked for one ({text!r}). Leave the "
            "head out."
        )
    return HeadAddress(part, layer, kind, head, depth=len(levels))


def parse_head(text: str) -> HeadAddress:
    """Read the address of a single head.

    Raises:
        InputError: the text is not an address, or leaves something open.
    """
    address = parse_address(text)
    if not address.is_one_head:
        raise InputError(
            f"A single head must be named, as in decoder.1.cross.0, but {text!r} means several or "
            "none. Name its part, layer, kind and number."
        )
    return address


def _read(what: str, level: str, text: str) -> str | int:
    known = _NAMES.get(what, ())
    if level in known:
        return level
    if not known and _NUMBER.fullmatch(level):
        return int(level)
    rule = ", ".join(known) or "a number from 0"
    raise InputError(
        f"The {what} in the address {shorten(repr(text))} must be {rule} or *, but is "
        f"{shorten(repr(level))}. {suggestion(level, known) if known and level else HOW_TO_WRITE}"
    )


def find_heads(addresses: str | Iterable[str], model: AttentionSizes) -> list[HeadAddress]:
    """List the heads that any of several addresses names, in the order of the model.

    Args:
        addresses: one or several, as `parse_address` reads them; none for all heads.
        model: its sizes.

    Raises:
        InputError: an address cannot be read, or the model does not have it.
    """
    asked = [addresses] if isinstance(addresses, str) else list(addresses)
    chosen = {head for one in asked for head in parse_address(one).heads_of(model)}
    return [head for head in heads_of_model(model) if not asked or head in chosen]


def sites_of(model: AttentionSizes) -> list[str]:
    """Name every sub-layer of a model, such as ``decoder.1.cross``, in the order of the model."""
    sites = []
    for part in PARTS:
        for layer in range(getattr(model, f"num_{part}_layers")):
            if model.is_recurrent:
                has_cross = part == "decoder" and layer in model.attending_layers
                kinds = ["cross", "recurrent"] if has_cross else ["recurrent"]
            elif part == "decoder":
                reader = "recurrent" if model.decoder == "ssru" else "self"
                kinds = [reader, "cross", "feed_forward"]
            else:
                kinds = ["self", "feed_forward"]
            sites += [f"{part}.{layer}.{kind}" for kind in kinds]
    return sites


def heads_of_model(model: AttentionSizes) -> Iterator[HeadAddress]:
    """Yield the address of every head, in the order in which the model computes them."""
    for site in sites_of(model):
        part, layer, kind = site.split(".")
        if kind in ATTENTION_KINDS:
            for head in range(model.num_heads):
                yield HeadAddress(cast(Part, part), int(layer), cast(Kind, kind), head)
