"""A score penalty: large scores of self-attention cost a little, so that they pay or stay small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.train.fast.guided import pad_guided_rows


class ScorePenalty:
    r"""A probe that reads scaled scores of self-attention, and the cost of their variance.

    $$L = \frac{λ}{nH} \sum_i \frac{1}{n_i} \sum_j (s_{ij} - \bar s_i)^2$$

    over the rows $i$ of all layers and of their $H$ heads, and the $n_i$ keys that a row may attend
    to, with the number of target tokens $n$. What all keys of a row share has no effect on its
    weights and no cost. Without this loss, a head that a row does not need can rest on ``</s>`` at
    any size of scores; with it, an idle head spreads evenly.

    Args:
        weights: λ, by the name of the attention.

    Attributes:
        sites: the places at which attention is computed in stages.
        weights: λ, by the name of the attention.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights
        self.sites = frozenset(weights)
        self._scaled: dict[str, Tensor] = {}

    @classmethod
    def of(cls, model: ModelConfig, training: TrainingConfig) -> ScorePenalty | None:
        """Make the penalty that the settings name; None if they name none."""
        if model.architecture != "transformer":
            return None
        parts = {
            "encoder": (model.num_encoder_layers, training.score_penalty),
            "decoder": (model.num_decoder_layers, training.score_penalty_decoder),
        }
        weights = {
            f"{part}.{layer}.self": weight
            for part, (num_layers, weight) in parts.items()
            for layer in range(num_layers)
            if weight
        }
        return cls(weights) if weights else None

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep the scaled scores."""
        if site in self.sites and stage == "scaled":
            self._scaled[site] = tensor

    def loss(self, model: ModelConfig, batch: Batch) -> Tensor:
        """Compute the loss of the latest pass; see the class."""
        total = torch.zeros((), device=batch.target_in_BT.device)
        for site, weight in self.weights.items():
            scores_BHLM = self._scaled.pop(site).float()
            offset_BHLM, num_B1L1 = _offsets(scores_BHLM, _may_attend(model, batch, site))
            variance = (offset_BHLM.square() / num_B1L1).sum() / scores_BHLM.shape[1]
            total = total + weight * variance
        return total / batch.num_target_tokens


@dataclass(frozen=True)
class PenaltyOnRows:
    r"""The score penalty of one batch on kernels, see `ScorePenalty`.

    The gradient of a score is $\frac{2λ}{nHn_i} (s_{ij} - \bar s_i)$. The kernel keeps no scores,
    so they are computed again here, from the rows that it attends with.

    Attributes:
        penalty: λ of each place.
        batch: the sentences.
        share: factor of the batch's loss.
    """

    penalty: ScorePenalty
    batch: Batch
    share: float

    @property
    def sites(self) -> frozenset[str]:
        """The places at which it changes gradients."""
        return self.penalty.sites

    def add_gradients(
        self,
        config: ModelConfig,
        site: str,
        rows: tuple[Tensor, Tensor],
        grads: tuple[Tensor, Tensor],
    ) -> None:
        """Add to the gradients of queries and keys.

        Args:
            config: of the model.
            site: the name of the attention.
            rows: queries and keys of all heads, one row for each token.
            grads: their gradients.
        """
        batch, heads = self.batch, config.num_heads
        mask_BL = batch.source_mask_BS if site.startswith("encoder") else batch.target_mask_BT
        query_BHLK, key_BHLK = (
            pad_guided_rows(one, mask_BL).view(*mask_BL.shape, heads, -1).transpose(1, 2)
            for one in rows
        )
        scale = config.d_key**-0.5 if config.scale_scores else 1.0
        scores_BHLM = query_BHLK @ key_BHLK.transpose(2, 3) * scale
        grad_BHLM, num_B1L1 = _offsets(scores_BHLM, _may_attend(config, batch, site))
        factor = 2 * scale * self.share * self.penalty.weights[site]
        grad_BHLM *= factor / (batch.num_target_tokens * heads) / num_B1L1
        added = (grad_BHLM @ key_BHLK, grad_BHLM.transpose(2, 3) @ query_BHLK)
        for grad, added_BHLK in zip(grads, added, strict=True):
            grad += added_BHLK.transpose(1, 2).flatten(2)[mask_BL].to(grad.dtype)


def _may_attend(config: ModelConfig, batch: Batch, site: str) -> Tensor:
    """Make the mask of self-attention, in which rows of padding attend nowhere."""
    is_encoder = site.startswith("encoder")
    mask_BL = batch.source_mask_BS if is_encoder else batch.target_mask_BT
    may_B1LM = mask_BL[:, None, :, None] & mask_BL[:, None, None, :]
    return may_B1LM if is_encoder or not config.look_ahead_mask else may_B1LM.tril()


def _offsets(scores_BHLM: Tensor, may_B1LM: Tensor) -> tuple[Tensor, Tensor]:
    """Compute each score's distance from its row's mean, 0 elsewhere, and the keys of each row."""
    num_B1L1 = may_B1LM.sum(-1, keepdim=True).clamp(min=1)
    mean_BHL1 = (scores_BHLM * may_B1LM).sum(-1, keepdim=True) / num_B1L1
    return (scores_BHLM - mean_BHL1) * may_B1LM, num_B1L1
