"""The losses that training adds for attention: a guided head's, and a penalty on scores.

Links join words; the head attends between subwords. Each link therefore joins every subword of
the one word with every subword of the other, and ``</s>`` is linked to ``</s>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch


class AttentionLosses:
    """Both losses as one probe, and their gradients for passes that keep no scores.

    Args:
        model: the sizes of the model.
        training: which losses, and how much they count.

    Attributes:
        sites: the places at which attention is computed in stages; empty without losses.
    """

    def __init__(self, model: ModelConfig, training: TrainingConfig) -> None:
        self._model = model
        self._at: dict[str, list[GuidedHead | ScorePenalty]] = {}
        for loss in (GuidedHead.of(training), ScorePenalty.of(model, training)):
            if loss is None:
                continue
            for site in sorted(loss.sites):
                self._at.setdefault(site, []).append(loss)
        self.sites = frozenset(self._at)
        self._seen: dict[tuple[str, str], Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep the scores that a loss is computed from."""
        if any(loss.stage == stage for loss in self._at.get(site, ())):
            self._seen[site, stage] = tensor

    def add_to(self, total: Tensor, batch: Batch) -> Tensor:
        """Add the losses of the latest pass to another loss."""
        for site, losses in self._at.items():
            for loss in losses:
                scores = self._seen.pop((site, loss.stage))[:, loss.heads].float()
                total = total + loss.of_scores(site, scores, batch)
        return total

    @torch.enable_grad()
    def add_gradients(
        self, batch: Batch, share: float, site: str, rows: Sequence[Tensor], grads: Sequence[Tensor]
    ) -> None:
        """Add to the gradients of a place's queries and keys.

        Kernels keep no scores, so those of a place with a loss are computed again here, for
        autograd.

        Args:
            batch: the sentences.
            share: factor of the batch's loss.
            site: the name of the attention.
            rows: queries and keys of all heads, one row for each token, without padding.
            grads: their gradients.
        """
        for loss in self._at.get(site, ()):
            query_JX, key_IX = (one.float().requires_grad_() for one in rows)
            scores_BHLM = self._scores(site, query_JX, key_IX, loss, batch)
            total = share * loss.of_scores(site, scores_BHLM, batch)
            if not total.requires_grad:  # There are no links in this batch.
                continue
            added = torch.autograd.grad(total, (query_JX, key_IX))
            for grad, more in zip(grads, added, strict=True):
                grad += more.to(grad.dtype)

    def _scores(
        self,
        site: str,
        query_JX: Tensor,
        key_IX: Tensor,
        loss: GuidedHead | ScorePenalty,
        batch: Batch,
    ) -> Tensor:
        """Compute the scores that a loss is computed from, ``[batch, heads, rows, keys]``."""
        attending_BL, seen_BM = masks_of(site, batch)
        query_BHLK = self._pad(query_JX, attending_BL, loss.heads)
        key_BHMK = self._pad(key_IX, seen_BM, loss.heads)
        scale = self._model.d_key**-0.5 if self._model.scale_scores else 1.0
        scores_BHLM = query_BHLK @ key_BHMK.transpose(2, 3) * scale
        if loss.stage == "masked":
            return scores_BHLM.masked_fill(~seen_BM[:, None, None], -torch.inf)
        return scores_BHLM

    def _pad(self, rows_JX: Tensor, mask_BL: Tensor, heads: slice) -> Tensor:
        """Put the rows of some heads into a padded batch."""
        rows_JHK = rows_JX.reshape(len(rows_JX), self._model.num_heads, -1)[:, heads]
        padded_BLHK = rows_JHK.new_zeros(*mask_BL.shape, *rows_JHK.shape[1:])
        return padded_BLHK.index_put((mask_BL,), rows_JHK).transpose(1, 2)


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
