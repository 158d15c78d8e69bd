r"""Positions inside self-attention, and norms: what later Transformers changed.

Sinusoidal and learned positions are added to the input. The three kinds here act where two
positions meet, so a score depends on how far apart they are. Cross-attention, whose two sides count
apart, has none of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pellucid.attention import stages
from pellucid.attention.positions import position_rows
from pellucid.config import ModelConfig, known_option

IN_ATTENTION = ("rotary", "alibi", "relative")
"""The values of ``model.positions`` that act in self-attention."""


def rotate(x_BHLK: Tensor, start: int) -> Tensor:
    r"""Turn the vectors of positions ``start``, ``start + 1``, … (``rotary``): ``turned_BHLK``.

    The pair $(x_{2j}, x_{2j+1})$ of position i turns by the angle $i\,\omega_j$ with
    $\omega_j = 10000^{-2j/d_k}$, the angles of sinusoidal positions:

    $$(x_{2j}\cos i\omega_j - x_{2j+1}\sin i\omega_j,\;
    x_{2j}\sin i\omega_j + x_{2j+1}\cos i\omega_j)$$

    The product of a turned query and a turned key depends on their distance only. A trace shows
    queries and keys after turning, so its scores are still $QK^T$.

    Args:
        x_BHLK: queries or keys.
        start: the position of the first.

    Source:
        Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section
        3.2.2, equations 14, 15 and 34.
    """
    # In bfloat16 sines and cosines would be rounded to 8 bits before the products.
    wide = x_BHLK if x_BHLK.dtype == torch.float64 else x_BHLK.float()
    end = start + x_BHLK.shape[2]
    waves = position_rows(start, end, like=wide, halves=False)
    sines = waves[:, 0::2]
    cosines = waves[:, 1::2]
    even = wide[..., 0::2]
    odd = wide[..., 1::2]
    turned = torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), dim=-1)
    return turned.flatten(-2).to(x_BHLK.dtype)


def behind(num_queries: int, num_keys: int, device: torch.device) -> Tensor:
    """Compute how far each key is behind each query, if queries are the last positions."""
    places_M = torch.arange(num_keys, device=device)
    behind_LM: Tensor = places_M - places_M[num_keys - num_queries :, None]
    return behind_LM


class PositionsInside(nn.Module):
    r"""The positions of one self-attention: ``rotary``, ``alibi``, ``relative``, or none.

    - ``rotary`` turns queries and keys: see `rotate`.
    - ``alibi`` adds $-m_h\,|i - j|$ to scaled scores, with the slopes $m_h = 2^{-8(h+1)/n}$ of n
      heads. The numbers are part of the matrix B of equation 11: a trace shows them in ``masked``.
    - ``relative`` learns one vector a for each distance from −k to k, the same for all heads of a
      layer; farther positions count as k. A trace shows $q_i \cdot (k_j + a_{j-i})$ in ``scores``.

    Args:
        config: sizes and switches.
        is_used: False for cross-attention, which has none.

    Source:
        ``alibi``: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables
        Input Length Extrapolation", section 3. ``relative``: Shaw et al. 2018, "Self-Attention with
        Relative Position Representations", equations 4 and 5, section 3.2.

    Differs:
        Press et al. have decoders only; here an encoder's later words are as far as earlier ones,
        so an encoder reads a sentence and its mirror image alike, each word with its own result.
        Their code takes other slopes unless the number of heads is a power of two. Shaw et al. also
        add vectors to values (equation 3); their table 3 finds that it gains nothing, and without
        it a context remains a sum of values.
    """

    def __init__(self, config: ModelConfig, *, is_used: bool) -> None:
        super().__init__()
        is_inside = is_used and config.positions in IN_ATTENTION
        self.kind = config.positions if is_inside else "none"
        # One number for both sides, so that encoder and decoder share a table.
        if self.kind == "relative":
            self._farthest = config.max_relative_distance
            self.weight = nn.Parameter(torch.zeros(2 * self._farthest + 1, config.d_key))

    def turn(self, x_BHLK: Tensor, start: int) -> Tensor:
        """Turn queries or keys from a position on, if positions are rotary."""
        return rotate(x_BHLK, start) if self.kind == "rotary" else x_BHLK

    def score(self, query_BHLK: Tensor, key_BHMK: Tensor) -> Tensor:
        """Stage 1 of attention, with relative positions in it: ``scores_BHLM``."""
        scores_BHLM = stages.score(query_BHLK, key_BHMK)
        if self.kind != "relative":
            return scores_BHLM
        return scores_BHLM + self._match(query_BHLK, key_BHMK.shape[-2])

    def lower(self, scaled_BHLM: Tensor) -> Tensor:
        """Lower scaled scores by the distance, if positions are ``alibi``, before the mask."""
        if self.kind != "alibi":
            return scaled_BHLM
        num_heads, num_queries, num_keys = scaled_BHLM.shape[-3:]
        device = scaled_BHLM.device
        heads_H = torch.arange(1, num_heads + 1, dtype=torch.float64, device=device)
        slopes_H11 = (2 ** (-8 * heads_H / num_heads))[:, None, None]
        lowered_HLM = -slopes_H11 * behind(num_queries, num_keys, device).abs()
        return scaled_BHLM + lowered_HLM.to(scaled_BHLM.dtype)

    def bias(self, query_BHLK: Tensor, key_BHMK: Tensor, use_scale: bool) -> Tensor | None:
        """Compute all that positions add to scaled scores, for attention that hides its stages."""
        if self.kind == "alibi":
            shape = (*query_BHLK.shape[1:-1], key_BHMK.shape[-2])
            # Zeros lowered are what lowering adds.
            return self.lower(query_BHLK.new_zeros(shape))
        if self.kind != "relative":
            return None
        added_BHLM = self._match(query_BHLK, key_BHMK.shape[-2])
        return stages.scale(added_BHLM, query_BHLK.shape[-1]) if use_scale else added_BHLM

    def vector(self, distance: int, *, like: Tensor) -> Tensor:
        """Get what a key has added for its distance from a query; 0 unless ``relative``."""
        if self.kind != "relative":
            return like.new_zeros(())
        nearest = max(-self._farthest, min(self._farthest, distance))
        return self.weight[nearest + self._farthest].to(like.dtype)

    def _match(self, query_BHLK: Tensor, num_keys: int) -> Tensor:
        """Match each query with the vector of its distance to each key."""
        rows_LM = behind(query_BHLK.shape[-2], num_keys, query_BHLK.device)
        rows_LM = rows_LM.clamp(-self._farthest, self._farthest) + self._farthest
        # One product for each distance, which many pairs share, and not for each pair.
        by_distance = query_BHLK @ self.weight.to(query_BHLK.dtype).T
        return by_distance.gather(-1, rows_LM.expand(*query_BHLK.shape[:-1], num_keys))


def make_norm(config: ModelConfig) -> nn.LayerNorm | nn.RMSNorm | None:
    r"""Make the norm of one sub-layer or stack; None for ``norm = "none"``.

    ``layer`` is $(x - \mu) / \sigma \odot \gamma + \beta$; ``rms`` is
    $x / \sqrt{\text{mean}(x^2) + \epsilon} \odot \gamma$.

    Source:
        Ba et al. 2016, "Layer Normalization"; Zhang and Sennrich 2019, "Root Mean Square Layer
        Normalization", equation 4.
    """
    if config.norm == "none":
        return None
    kind = known_option(config, "norm_kind", ("layer", "rms"))
    make = nn.LayerNorm if kind == "layer" else nn.RMSNorm
    return make(config.d_model, eps=config.layer_norm_epsilon)
