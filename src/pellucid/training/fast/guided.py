"""A guided head: one head of cross-attention is taught word links while the model learns.

Links join words; the head attends between subwords. Each link therefore joins every subword of
the one word with every subword of the other, and ``</s>`` is linked to ``</s>``.
"""

from __future__ import annotations

from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch


class GuidedHead:
    r"""The loss that pulls the weights of one head towards the links.

    $$L = -\frac{λ}{n} \sum_t \sum_s G_{ts} \log α_{ts}$$

    with the head's weights $α$, the number of target tokens $n$, and the links $G$. A row of $G$
    sums to one, or is zero if its token has no link.

    Args:
        layer: of the decoder.
        head: of its cross-attention.
        weight: λ.

    Attributes:
        sites: the name of that attention.
        stage: the stage whose scores the loss is computed from.
        heads: the head whose scores they are.

    Source:
        Garg, Peitz, Nallasamy and Paulik 2019, "Jointly Learning to Align and Translate with
        Transformer Models", section 3.3; λ = 0.05 there.
    """

    stage = "masked"

    def __init__(self, layer: int, head: int, weight: float) -> None:
        self.sites = frozenset({f"decoder.{layer}.cross"})
        self.heads = slice(head, head + 1)
        self._weight = weight

    @classmethod
    def of(cls, training: TrainingConfig) -> GuidedHead | None:
        """Make the head that the settings name; None if they name none."""
        place = training.guided_place
        return None if place is None else cls(*place, training.guided_weight)

    def of_scores(self, _site: str, masked_B1TS: Tensor, batch: Batch) -> Tensor:
        """Compute the loss from the head's masked scores; without links it is 0."""
        guide_BTS = batch.guide_BTS
        if guide_BTS is None:
            return masked_B1TS.new_zeros(())
        log_weights_BTS = masked_B1TS[:, 0].log_softmax(dim=-1)
        # Padding has a weight of 0 and no link: 0 · log 0 counts as 0.
        total = (guide_BTS * log_weights_BTS.masked_fill(guide_BTS == 0, 0)).sum()
        return -self._weight * total / batch.num_target_tokens
