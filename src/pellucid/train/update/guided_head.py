"""A guided head: one head of cross-attention is taught word links while the model learns.

Links join words; the head attends between subwords. Each link therefore joins every subword of
the one word with every subword of the other, and ``</s>`` is linked to ``</s>``.
"""

from __future__ import annotations

import torch
from torch import Tensor


class GuidedHead:
    r"""A probe that reads one head's weights, and the loss that pulls them towards the links.

    $$L = -\frac{λ}{n} \sum_t \sum_s G_{ts} \log α_{ts}$$

    with the head's weights $α$, the number of target tokens $n$, and the links $G$. A row of $G$
    sums to one, or is zero if its token has no link.

    Args:
        layer: of the decoder.
        head: of its cross-attention.
        weight: λ.

    Attributes:
        sites: the places at which attention is computed in stages.

    Source:
        Garg, Peitz, Nallasamy and Paulik 2019, "Jointly Learning to Align and Translate with
        Transformer Models", section 3.3; λ = 0.05 there.
    """

    def __init__(self, layer: int, head: int, weight: float) -> None:
        self._site = f"decoder.{layer}.cross"
        self.sites = frozenset({self._site})
        self._head = head
        self._weight = weight
        self._masked_BTS = torch.empty(0)

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep the masked scores of the head."""
        if site == self._site and stage == "masked":
            self._masked_BTS = tensor[:, self._head]

    def loss(self, guide_BTS: Tensor, num_target_tokens: int) -> Tensor:
        """Compute the loss of the latest pass; see the class.

        Args:
            guide_BTS: G.
            num_target_tokens: n.
        """
        log_weights_BTS = self._masked_BTS.float().log_softmax(dim=-1)
        # Padding has a weight of 0 and no link: 0 · log 0 counts as 0.
        total = (guide_BTS * log_weights_BTS.masked_fill(guide_BTS == 0, 0)).sum()
        return -self._weight * total / num_target_tokens
