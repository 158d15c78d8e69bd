"""The losses that training adds for attention: a guided head's, and a penalty on scores."""

from __future__ import annotations

from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.train.fast.guided import GuidedHead, GuidedRows
from pellucid.train.fast.score_penalty import PenaltyOnRows, ScorePenalty


class AttentionLosses:
    """Both losses as one probe.

    Args:
        model: the sizes.
        training: names them.

    Attributes:
        sites: the places at which attention is computed in stages; empty without such a loss.
    """

    def __init__(self, model: ModelConfig, training: TrainingConfig) -> None:
        self._model = model
        self._guided, self._penalty = GuidedHead.of(training), ScorePenalty.of(model, training)
        self._probes = [one for one in (self._guided, self._penalty) if one is not None]
        self.sites = frozenset[str]().union(*(probe.sites for probe in self._probes))

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep what the losses are computed from."""
        for probe in self._probes:
            probe.see(site, stage, tensor)

    def add_to(self, loss: Tensor, batch: Batch) -> Tensor:
        """Add the losses of the latest pass to another loss."""
        if self._guided is not None and batch.guide_BTS is not None:
            loss = loss + self._guided.loss(batch.guide_BTS, batch.num_target_tokens)
        return loss if self._penalty is None else loss + self._penalty.loss(self._model, batch)

    def on_rows(self, batch: Batch, share: float) -> list[GuidedRows | PenaltyOnRows]:
        """Return the losses of a batch, times a share, for passes on kernels."""
        rows: list[GuidedRows | PenaltyOnRows] = []
        if self._guided is not None and batch.guide_BTS is not None:
            rows.append(GuidedRows(self._guided, batch, share))
        if self._penalty is not None:
            rows.append(PenaltyOnRows(self._penalty, batch, share))
        return rows
