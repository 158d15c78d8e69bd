"""A score penalty: large scores of attention cost a little, so that they pay or stay small."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch


class ScorePenalty:
    r"""The cost of the variance of attention's scaled scores.

    $$L = \frac{λ}{nH} \sum_i \max(0, \frac{1}{n_i} \sum_j (s_{ij} - \bar s_i)^2 - m)$$

    over the rows $i$ of all layers and of their $H$ heads, and the $n_i$ keys that a row may attend
    to, with the number of target tokens $n$. What all keys of a row share has no effect on its
    weights and no cost. Without this loss, a head that a row does not need can rest on ``</s>`` at
    any size of scores; with it, an idle head spreads evenly. A margin $m$ bounds scores and leaves
    those below it alone, so that a head may prefer some keys at no cost.

    Args:
        costs: λ and m, by the name of the attention.
        looks_ahead: True if a target position may attend to later ones.

    Attributes:
        sites: the names of these attentions.
        stage: the stage whose scores the loss is computed from.
        heads: all heads.
    """

    stage = "scaled"
    heads = slice(None)

    def __init__(
        self, costs: Mapping[str, tuple[float, float]], *, looks_ahead: bool = False
    ) -> None:
        self.sites = frozenset(costs)
        self._costs = costs
        self._looks_ahead = looks_ahead

    @classmethod
    def of(cls, model: ModelConfig, training: TrainingConfig) -> ScorePenalty | None:
        """Make the penalty that the settings name; None if they name none."""
        if model.architecture != "transformer":
            return None
        decoder_selves = 0 if model.decoder == "ssru" else model.num_decoder_layers
        places = {
            "encoder": ("encoder.{}.self", model.num_encoder_layers),
            "decoder": ("decoder.{}.self", decoder_selves),
            "cross": ("decoder.{}.cross", model.num_decoder_layers),
        }
        costs = {
            site.format(layer): training.score_penalties[kind]
            for kind, (site, num_layers) in places.items()
            for layer in range(num_layers)
            if training.score_penalties[kind][0]
        }
        return cls(costs, looks_ahead=not model.look_ahead_mask) if costs else None

    def of_scores(self, site: str, scaled_BHLM: Tensor, batch: Batch) -> Tensor:
        """Compute a place's part of the loss from its scaled scores."""
        attending_BL, seen_BM = masks_of(site, batch)
        may_B1LM = attending_BL[:, None, :, None] & seen_BM[:, None, None, :]
        is_causal = site.startswith("decoder") and site.endswith("self") and not self._looks_ahead
        may_B1LM = may_B1LM.tril() if is_causal else may_B1LM
        num_B1L1 = may_B1LM.sum(-1, keepdim=True).clamp(min=1)
        mean_BHL1 = (scaled_BHLM * may_B1LM).sum(-1, keepdim=True) / num_B1L1
        offset_BHLM = (scaled_BHLM - mean_BHL1) * may_B1LM
        variance_BHL = (offset_BHLM.square() / num_B1L1).sum(-1)
        weight, margin = self._costs[site]
        excess = (variance_BHL - margin).clamp(min=0).sum() / scaled_BHLM.shape[1]
        return weight * excess / batch.num_target_tokens


def masks_of(site: str, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the real positions that attend at a place, and those that they may attend to."""
    if site.startswith("encoder"):
        return batch.source_mask_BS, batch.source_mask_BS
    is_cross = site.endswith("cross")
    return batch.target_mask_BT, batch.source_mask_BS if is_cross else batch.target_mask_BT
