"""The weights of all heads of a model, and the model without some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from pellucid.inside.changes.change import Changes, CutHead
from pellucid.inside.changes.place import Place
from pellucid.inside.pair import Keeper
from pellucid.model import EncoderDecoder


def weights_of_heads(
    model: EncoderDecoder, source: Sequence[int], read: Sequence[int] = ()
) -> dict[str, Tensor]:
    """Return the weights of all heads by attention, such as ``encoder.0.self``.

    Args:
        model: reads the sentence.
        source: its tokens.
        read: the tokens that the decoder reads; without any only the encoder's attentions come.
    """
    keeper = Keeper(("weights",))
    memory_1SD = model.encode(torch.tensor([list(source)]), probe=keeper)
    if read:
        model.decode(torch.tensor([list(read)]), memory_1SD, probe=keeper)
    return {site.removesuffix(".weights"): found[0] for site, found in keeper.found.items()}


class WithoutHeads(Changes):
    """A probe that cuts some heads; attentions that keep all of theirs run as without a probe.

    Args:
        heads: to cut.
    """

    def __init__(self, heads: Collection[Place]) -> None:
        super().__init__(*map(CutHead, heads))
        # An attention that is not named keeps its fast path.
        self.sites = {f"{head.part}.{head.layer}.{head.kind}" for head in heads}
