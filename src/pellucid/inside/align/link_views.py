"""Views of cross-attention that links can be read from, and their maps; all without PyTorch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from pellucid.bundle import Bundle
from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside.ask import check_number, require_attention
from pellucid.text.link_choices import CONVENTIONS, MAPS, Convention, MapName


@dataclass(frozen=True)
class View:
    r"""One way to read links from cross-attention.

    A decoder row reads one token and predicts the next. With ``predicts`` it counts for the token
    that it predicts, with ``reads`` for the token that it reads. Each target token has one row
    either way. The row that reads the start token is left out with ``reads``, the row that
    predicts ``</s>`` with ``predicts``.

    Attributes:
        layer: of the decoder, from 0; None for the average over all layers.
        map: ``head``, the weights of one head; ``layer-mean``, the average over the heads;
            ``norms``, the norms of the vectors that are added up:
            $\lVert\alpha_{ij}f(x_j)\rVert$ of one head, or without a head
            $\lVert\sum_h\alpha^h_{ij}f^h(x_j)\rVert$ of the layer, with
            $f(x) = (xW^V + b^V)W^O$.
        head: from 0; None for a whole layer.
        convention: the token that a row counts for.

    Source:
        Kobayashi et al. 2020, "Attention is Not Only a Weight", equations 3 to 6.
    """

    layer: int | None
    map: MapName
    head: int | None
    convention: Convention

    @property
    def place(self) -> str:
        """The map without the convention: ``layer 1 head 3``; averages are named as such."""
        if self.layer is None:
            return "mean of all layers and heads"
        if self.map == "layer-mean":
            return f"layer {self.layer} mean of heads"
        head = "" if self.head is None else f" head {self.head}"
        return f"layer {self.layer}{head}{' norms' if self.map == 'norms' else ''}"

    def __str__(self) -> str:
        """Describe the view: ``layer 1 head 3, reads``."""
        return f"{self.place}, {self.convention}"


@dataclass(frozen=True, eq=False)
class PairMaps:
    """The maps of one pair, with a row for each decoder row.

    Attributes:
        index: the number of the pair.
        layers: layer to ``maps_XTS``, with X in the order of `_column`.
        num_heads: the number of heads of a layer.
    """

    index: int
    layers: dict[int, np.ndarray]
    num_heads: int

    def get(self, view: View) -> np.ndarray:
        """Return one view's map: ``map_TS``, a row for each target token except ``</s>``."""
        start = self.num_heads + 1 if view.map == "norms" else 0
        column = start + (self.num_heads if view.head is None else view.head)
        wanted = self.layers if view.layer is None else (view.layer,)
        map_TS: np.ndarray = np.mean([self.layers[layer][column] for layer in wanted], axis=0)
        return map_TS[1:] if view.convention == "reads" else map_TS[:-1]


def guided_view(bundle: Bundle) -> View | None:
    """Return the view of the head that was taught word links, if any."""
    place = bundle.guided_head
    return None if place is None else View(place[0], "head", place[1], bundle.guided_convention)


def all_views(
    model: ModelConfig,
    *,
    maps: Collection[MapName] = MAPS,
    conventions: Collection[Convention] = CONVENTIONS,
    layer: int | None = None,
    head: int | None = None,
) -> list[View]:
    """List every view of a model that fits what is asked for.

    Args:
        model: gives the number of layers and heads.
        maps: the maps to take.
        conventions: the conventions to take.
        layer: only this one, if given.
        head: only this one, if given; this leaves out the maps of whole layers.

    Raises:
        InputError: the layer or the head does not exist, or no view fits.
    """
    require_attention(model)
    for what, number, count in (
        ("layer", layer, len(model.attending_layers)),
        ("head", head, model.num_heads),
    ):
        if number is not None:
            check_number(what, number, count, "this model's decoder")
    layers = [layer] if layer is not None else [None, *model.attending_layers]
    # The heads that a map may name; None is the whole layer.
    heads: dict[MapName, list[int | None]] = {
        "head": [*range(model.num_heads)],
        "layer-mean": [None],
        "norms": [*range(model.num_heads), None],
    }
    views = []
    for one_layer in layers:
        for one_map in MAPS:
            # The mean of all layers is a mean of their heads too.
            is_possible = one_layer is not None or one_map == "layer-mean"
            if one_map not in maps or not is_possible:
                continue
            for one_head in heads[one_map]:
                if head is None or one_head == head:
                    views += [View(one_layer, one_map, one_head, one) for one in conventions]
    if not views:
        raise InputError(
            f"--map layer-mean cannot be combined with --head {head}. Leave one of them out."
        )
    return views
