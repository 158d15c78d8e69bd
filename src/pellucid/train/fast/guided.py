"""A guided head: one head of cross-attention is taught word links while the model learns.

Links join words; the head attends between subwords. Each link therefore joins every subword of
the one word with every subword of the other, and ``</s>`` is linked to ``</s>``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch


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
        site: the name of that attention.
        sites: the places at which attention is computed in stages.

    Source:
        Garg, Peitz, Nallasamy and Paulik 2019, "Jointly Learning to Align and Translate with
        Transformer Models", section 3.3; λ = 0.05 there.
    """

    def __init__(self, layer: int, head: int, weight: float) -> None:
        self.site = f"decoder.{layer}.cross"
        self.sites = frozenset({self.site})
        self.head = head
        self.weight = weight
        self._masked_BTS = torch.empty(0)

    @classmethod
    def of(cls, training: TrainingConfig) -> GuidedHead | None:
        """Make the head that the settings name; None if they name none."""
        if not training.guided_head:
            return None
        layer, head = training.guided_head
        return cls(layer, head, training.guided_weight)

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep the masked scores of the head."""
        if site == self.site and stage == "masked":
            self._masked_BTS = tensor[:, self.head]

    def loss(self, guide_BTS: Tensor, num_target_tokens: int) -> Tensor:
        """Compute the loss of the latest pass; see the class.

        Args:
            guide_BTS: G.
            num_target_tokens: n.
        """
        log_weights_BTS = self._masked_BTS.float().log_softmax(dim=-1)
        # Padding has a weight of 0 and no link: 0 · log 0 counts as 0.
        total = (guide_BTS * log_weights_BTS.masked_fill(guide_BTS == 0, 0)).sum()
        return -self.weight * total / num_target_tokens


@dataclass(frozen=True)
class GuidedRows:
    r"""The guided loss of one batch on kernels, see `GuidedHead`.

    Only one head needs its weights, so they are computed again here, from the rows that the kernel
    attends with. With weights $α$ and links $G$, the gradient of the scores is
    $\frac{λ}{n} (α_{ts} \sum_u G_{tu} - G_{ts})$.

    Attributes:
        guided: the head.
        batch: with the links.
        share: factor of the batch's loss.
    """

    guided: GuidedHead
    batch: Batch
    share: float

    @property
    def sites(self) -> frozenset[str]:
        """The place of the head."""
        return self.guided.sites

    def add_gradients(
        self,
        config: ModelConfig,
        site: str,
        rows: tuple[Tensor, Tensor],
        grads: tuple[Tensor, Tensor],
    ) -> None:
        """Add to the gradients of the queries and keys of all heads.

        Args:
            config: of the model.
            site: the place of the head.
            rows: queries of all heads, one row for each target token, and keys of all heads, one
                row for each source token.
            grads: their gradients, which the head's part is added to.
        """
        batch, (query_JX, key_IX) = self.batch, rows
        assert batch.guide_BTS is not None
        width = config.d_key
        columns = slice(self.guided.head * width, (self.guided.head + 1) * width)
        query_BTK = pad_guided_rows(query_JX[:, columns], batch.target_mask_BT)
        key_BSK = pad_guided_rows(key_IX[:, columns], batch.source_mask_BS)
        scale = width**-0.5 if config.scale_scores else 1.0
        scores_BTS = torch.bmm(query_BTK, key_BSK.transpose(1, 2)) * scale
        scores_BTS.masked_fill_(~batch.source_mask_BS[:, None, :], float("-inf"))
        weights_BTS = scores_BTS.softmax(dim=-1)
        guide_BTS = batch.guide_BTS.to(weights_BTS.dtype)
        factor = scale * self.share * self.guided.weight / batch.num_target_tokens
        grad_BTS = (weights_BTS * guide_BTS.sum(dim=-1, keepdim=True) - guide_BTS) * factor
        grad_query_BTK = torch.bmm(grad_BTS, key_BSK)
        grad_key_BSK = torch.bmm(grad_BTS.transpose(1, 2), query_BTK)
        for grad, added, mask in (
            (grads[0], grad_query_BTK, batch.target_mask_BT),
            (grads[1], grad_key_BSK, batch.source_mask_BS),
        ):
            grad[:, columns] += added[mask].to(grad.dtype)


def pad_guided_rows(rows_JK: Tensor, mask_BL: Tensor) -> Tensor:
    """Put rows into a padded batch, in float32."""
    padded_BLK = torch.zeros(*mask_BL.shape, rows_JK.shape[1])
    padded_BLK[mask_BL] = rows_JK.float()
    return padded_BLK
