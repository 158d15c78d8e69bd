"""A score penalty: large scores of self-attention cost a little, so that they pay or stay small."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch


class ScorePenalty:
    r"""The cost of the variance of self-attention's scaled scores.

    $$L = \frac{λ}{nH} \sum_i \frac{1}{n_i} \sum_j (s_{ij} - \bar s_i)^2$$

    over the rows $i$ of all layers and of their $H$ heads, and the $n_i$ keys that a row may attend
    to, with the number of target tokens $n$. What all keys of a row share has no effect on its
    weights and no cost. Without this loss, a head that a row does not need can rest on ``</s>`` at
    any size of scores; with it, an idle head spreads evenly.

    Args:
        weights: λ, by the name of the attention.
        looks_ahead: True if a target position may attend to later ones.

    Attributes:
        sites: the names of these attentions.
        stage: the stage whose scores the loss is computed from.
        heads: all heads.
    """

    stage = "scaled"
    heads = slice(None)

    def __init__(self, weights: Mapping[str, float], *, looks_ahead: bool = False) -> None:
        self.sites = frozenset(weights)
        self._weights = weights
        self._looks_ahead = looks_ahead

    @classmethod
    def of(cls, model: ModelConfig, training: TrainingConfig) -> ScorePenalty | None:
        """Make the penalty that the settings name; None if they name none."""
        if model.architecture != "transformer":
            return None
        weights: dict[str, float] = {}
        if training.score_penalty:
            for layer in range(model.num_encoder_layers):
                weights[f"encoder.{layer}.self"] = training.score_penalty
        if training.score_penalty_decoder:
            for layer in range(model.num_decoder_layers):
                weights[f"decoder.{layer}.self"] = training.score_penalty_decoder
        return cls(weights, looks_ahead=not model.look_ahead_mask) if weights else None

    def of_scores(self, site: str, scaled_BHLM: Tensor, batch: Batch) -> Tensor:
        """Compute a place's part of the loss from its scaled scores."""
        may_B1LM = self._may_attend(site, batch)
        num_B1L1 = may_B1LM.sum(-1, keepdim=True).clamp(min=1)
        mean_BHL1 = (scaled_BHLM * may_B1LM).sum(-1, keepdim=True) / num_B1L1
        offset_BHLM = (scaled_BHLM - mean_BHL1) * may_B1LM
        variance = (offset_BHLM.square() / num_B1L1).sum() / scaled_BHLM.shape[1]
        return self._weights[site] * variance / batch.num_target_tokens

    def _may_attend(self, site: str, batch: Batch) -> Tensor:
        """Make the mask of self-attention, in which rows of padding attend nowhere."""
        is_encoder = site.startswith("encoder")
        mask_BL = batch.source_mask_BS if is_encoder else batch.target_mask_BT
        may_B1LM = mask_BL[:, None, :, None] & mask_BL[:, None, None, :]
        return may_B1LM if is_encoder or self._looks_ahead else may_B1LM.tril()
