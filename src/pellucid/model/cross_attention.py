"""Attention from a recurrent decoder to the encoder's states: one head, one row a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import torch
from torch import Tensor, nn

from pellucid.attention.checks import fitted
from pellucid.attention.stages import score
from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.model.site import Site


class AdditiveAttention(nn.Module):
    r"""Scores from a network with one hidden layer: $v^T \tanh(W s + U h_j)$.

    W s is the query, U h_j a key; the values are the encoder's states themselves. No product of
    query and key exists, so there is nothing to scale.

    Source:
        Bahdanau et al. 2015, appendix A.1.2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.d_model, config.d_key, bias=False)
        self.key = nn.Linear(config.d_model, config.d_key, bias=False)
        self.energy = nn.Linear(config.d_key, 1, bias=False)

    def project_query(self, state_BLD: Tensor) -> Tensor:
        """Make the queries: ``query_BHLK``, with one head."""
        # One head, so that stages and probes see the axes that a Transformer has.
        projected: Tensor = self.query(state_BLD)[:, None]
        return projected

    def project_key_value(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Make the keys and values: ``key_BHMK``, ``value_BHME``, with one head."""
        return self.key(memory_BSD)[:, None], memory_BSD[:, None]

    def score(self, query_BHLK: Tensor, key_BHMK: Tensor) -> Tensor:
        """Compare each query with each key: ``scores_BHLM``."""
        hidden_BHLMK = torch.tanh(query_BHLK[..., :, None, :] + key_BHMK[..., None, :, :])
        return hidden_BHLMK @ self.energy.weight[0].to(hidden_BHLMK.dtype)


class DotAttention(nn.Module):
    """Scores that are dot products of the decoder's state and the encoder's: no weights at all.

    Source:
        Luong et al. 2015, section 3.1, "dot".
    """

    def project_query(self, state_BLD: Tensor) -> Tensor:
        """Return the states as queries: ``query_BHLK``, with one head."""
        return state_BLD[:, None]

    def project_key_value(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's states as keys and values, with one head."""
        return memory_BSD[:, None], memory_BSD[:, None]

    def score(self, query_BHLK: Tensor, key_BHMK: Tensor) -> Tensor:
        """Multiply each query by each key: ``scores_BHLM``."""
        return score(query_BHLK, key_BHMK)


class Rows:
    """Results of attention that come row by row, since each row needs the state before it.

    A probe with a method ``see_rows`` is handed all rows so far with each new one, and may replace
    the new one; the later ones then follow from it. Any probe is handed the whole at the end.

    Args:
        site: the place of the attention.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._computed: dict[str, list[Tensor]] = {}
        self._shown: dict[str, list[Tensor]] = {}
        self._see_rows: Callable[[str, str, Tensor], Tensor | None] | None = getattr(
            site.probe, "see_rows", None
        )

    def show(self, stage: str, row_BH1X: Tensor) -> Tensor:
        """Hand on the newest row of a stage; return it or the probe's replacement."""
        if self._site.probe is None:
            return row_BH1X
        computed = self._computed.setdefault(stage, [])
        computed.append(row_BH1X)
        if self._see_rows is not None:
            rows = torch.cat(computed, dim=2)
            changed = self._see_rows(self._site.name, stage, rows)
            if changed is not None:
                # Only the newest row is replaced: the others have had their effect.
                row_BH1X = fitted(changed, rows, self._site.name, stage)[:, :, -1:]
        self._shown.setdefault(stage, []).append(row_BH1X)
        return row_BH1X

    def finish(self) -> None:
        """Hand on each stage with all its rows.

        Raises:
            InputError: the probe wants to replace them, which is too late.
        """
        probe = self._site.probe
        if probe is None:
            return
        for stage, rows in self._shown.items():
            replacement = probe.see(self._site.name, stage, torch.cat(rows, dim=2))
            # A probe with `see_rows` has replaced rows in time, and may repeat them here.
            if replacement is not None and self._see_rows is None:
                refuse_late(self._site.name, stage)


def refuse_late(site: str, stage: str) -> NoReturn:
    """Refuse to replace attention after all rows have had their effect.

    Raises:
        InputError: always.
    """
    raise InputError(
        "A probe that replaces the attention of a recurrent decoder must have a method see_rows, "
        f"but has none ({site}.{stage}). Every row decides the next one."
    )
