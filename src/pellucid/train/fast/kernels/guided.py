"""The guided head's gradient on kernels: added to that of its queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.data import Batch


@dataclass(frozen=True)
class Guide:
    """The head that is taught word links: its layer, its number, and the weight λ of its loss."""

    layer: int
    head: int
    weight: float

    @property
    def site(self) -> str:
        """The name of its attention."""
        return f"decoder.{self.layer}.cross"


@dataclass(frozen=True)
class GuideOnRows:
    r"""The guided loss of one batch, see `pellucid.train.update.guided_head.GuidedHead`.

    Only one head needs its weights, so they are computed again here, from the rows that the kernel
    attends with. With weights $α$ and links $G$, the gradient of the scores is
    $\frac{λ}{n} (α_{ts} \sum_u G_{tu} - G_{ts})$.

    Attributes:
        guide: the head.
        batch: with the links.
        share: factor of the batch's loss.
    """

    guide: Guide
    batch: Batch
    share: float

    def add_gradients(
        self, config: ModelConfig, query_JX: Tensor, key_IX: Tensor, grads: tuple[Tensor, Tensor]
    ) -> None:
        """Add to the gradients of the queries and keys of all heads.

        Args:
            config: of the model.
            query_JX: queries of all heads, one row for each target token.
            key_IX: keys of all heads, one row for each source token.
            grads: their gradients, which the head's part is added to.
        """
        batch = self.batch
        assert batch.guide_BTS is not None
        width = config.d_key
        columns = slice(self.guide.head * width, (self.guide.head + 1) * width)
        query_BTK = _padded(query_JX[:, columns], batch.target_mask_BT)
        key_BSK = _padded(key_IX[:, columns], batch.source_mask_BS)
        scale = width**-0.5 if config.scale_scores else 1.0
        scores_BTS = torch.bmm(query_BTK, key_BSK.transpose(1, 2)) * scale
        scores_BTS.masked_fill_(~batch.source_mask_BS[:, None, :], float("-inf"))
        weights_BTS = scores_BTS.softmax(dim=-1)
        guide_BTS = batch.guide_BTS.to(weights_BTS.dtype)
        factor = scale * self.share * self.guide.weight / batch.num_target_tokens
        grad_BTS = (weights_BTS * guide_BTS.sum(dim=-1, keepdim=True) - guide_BTS) * factor
        grad_query_BTK = torch.bmm(grad_BTS, key_BSK)
        grad_key_BSK = torch.bmm(grad_BTS.transpose(1, 2), query_BTK)
        for grad, added, mask in (
            (grads[0], grad_query_BTK, batch.target_mask_BT),
            (grads[1], grad_key_BSK, batch.source_mask_BS),
        ):
            grad[:, columns] += added[mask].to(grad.dtype)


def _padded(rows_JK: Tensor, mask_BL: Tensor) -> Tensor:
    """Put rows into a padded batch, in float32."""
    padded_BLK = torch.zeros(*mask_BL.shape, rows_JK.shape[1])
    padded_BLK[mask_BL] = rows_JK.float()
    return padded_BLK
