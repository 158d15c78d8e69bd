r"""The exact terms that an attention's output is the sum of.

$$y_i = \sum_h \sum_j \alpha^h_{ij} f^h(x_j) + b, \qquad f^h(x) = (x W^V_h + b^V_h) W^O_h$$

This sum is the only place where tokens exchange anything, and it is linear for fixed weights. The
residual connection follows and, with post-norm, the layer norm, which is linear too for a fixed
standard deviation of its row (an RMS norm subtracts no mean, and has no β):

$$\text{LN}(z_i) = L_i(z_i) + \beta, \qquad
L_i(v) = \frac{v - \text{mean}(v)}{\sigma_i} \odot \gamma$$

So a sub-layer's result is the sum of one vector from each position, $T_i(x_j) = L_i(\sum_h
\alpha^h_{ij} f^h(x_j) + [i = j]\,x_i)$, and of the biases $L_i(b) + \beta$. In cross-attention the
row's own vector $L_i(x_i)$ is a separate part. Without post-norm $L_i$ is the identity.

Source:
    Kobayashi et al. 2020, "Attention is Not Only a Weight", equations 3 to 6; Kobayashi et al.
    2021, "Incorporating Residual and Normalization Layers into Analysis of Masked Language
    Models", section 3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from pellucid.arguments import checked
from pellucid.config import known_option
from pellucid.config.head_address import Part, parse_address, sites_of
from pellucid.errors import InputError
from pellucid.inside.measures.maps import last_layer, sites_up_to
from pellucid.inside.pair import PairData, attention_at, check_memory, output_by_head
from pellucid.shapes import Brief


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Brief):
    r"""Every term of one attention's output.

    Attributes:
        terms_HLMD: $\alpha^h_{ij} f^h(x_j)$, which head h brings to row i from position j.
        bias_D: of the output projection; zeros if it has no bias.
        output_LD: the output that the model computed, to compare with.
        largest_difference: between the sum of all terms and the output, as a share of the output's
            largest number if that is above 1.
    """

    terms_HLMD: Tensor
    bias_D: Tensor
    output_LD: Tensor
    largest_difference: float


@dataclass(frozen=True, eq=False, repr=False)
class Attention(Brief):
    """One attention of one run, ready to be taken apart, in double precision.

    Attributes:
        weights_HLM: the weights.
        transformed_HMD: $f^h(x_j)$.
        bias_D: of the output projection; zeros if it has no bias.
        output_LD: after the output projection.
        own_LD: what the residual connection carries; zeros without one.
        sum_LD: output plus own.
        gain_D: of the layer norm, with post-norm.
        shift_D: its bias.
        deviation_L1: the standard deviation of each row of the sum, with epsilon; of an RMS norm
            the root of the mean square.
        is_centered: False for an RMS norm.
        is_cross: True for cross-attention.
        has_residual: True if the model has residual connections.
    """

    weights_HLM: Tensor
    transformed_HMD: Tensor
    bias_D: Tensor
    output_LD: Tensor
    own_LD: Tensor
    sum_LD: Tensor
    gain_D: Tensor | None
    shift_D: Tensor | None
    deviation_L1: Tensor | None
    is_cross: bool
    has_residual: bool
    is_centered: bool = True

    def bring(self, row: int) -> Tensor:
        """Sum over heads what each position brings to a row: ``vectors_MD``."""
        return torch.einsum("hm,hmd->md", self.weights_HLM[:, row], self.transformed_HMD)

    def parts(self, row: int) -> Tensor:
        """Compute $T_i(x_j)$ of one row, ``parts_XD``.

        In cross-attention with a residual connection the last part is the row's own.
        """
        parts_XD = self.bring(row)
        if not self.is_cross:
            parts_XD[row] += self.own_LD[row]
        elif self.has_residual:
            parts_XD = torch.cat([parts_XD, self.own_LD[row : row + 1]])
        return self.through_norm(parts_XD, row)

    def rest(self, row: int) -> Tensor:
        r"""Compute the biases' part, $L_i(b) + \beta$, which no position brings: ``rest_D``."""
        rest_D = self.through_norm(self.bias_D, row)
        return rest_D if self.shift_D is None else rest_D + self.shift_D

    def result(self, row: int) -> Tensor:
        """Compute the sub-layer's result for a row, after residual and norm: ``result_D``."""
        result_D = self.through_norm(self.sum_LD[row], row)
        return result_D if self.shift_D is None else result_D + self.shift_D

    def through_norm(self, vectors: Tensor, row: int) -> Tensor:
        """Apply $L_i$, the linear part of row i's layer norm, to some vectors."""
        if self.gain_D is None or self.deviation_L1 is None:
            return vectors
        mean = vectors.mean(dim=-1, keepdim=True) if self.is_centered else 0.0
        return (vectors - mean) / self.deviation_L1[row] * self.gain_D


@torch.inference_mode()
def take_apart(pair: PairData, sites: Collection[str] | None = None) -> dict[str, Attention]:
    """Run a pair once and prepare attentions to be taken apart.

    Args:
        pair: the sentence.
        sites: such as ``decoder.1.cross``; all unless given.
    """
    if sites is None:
        encoder, decoder = sites_up_to(pair, "decoder", last_layer(pair, "decoder", None))
        known = sites_of(pair.model.config)
        sites = [one for one in (*encoder, *chain(*decoder)) if one in known]
    seen = pair.see(("weights", "value", "input", "output", "residual"), sites=sites)
    return {site: _attention(pair, site, seen) for site in sites}


def _attention(pair: PairData, site: str, seen: dict[str, Tensor]) -> Attention:
    config = pair.model.config
    module = attention_at(pair.model, site)
    value_HME = seen[f"{site}.value"].double()
    own_LD = seen[f"{site}.input"].double()
    bias = module.output.bias
    sum_LD = seen[f"{site}.residual"].double()
    gain_D = shift_D = deviation_L1 = None
    is_centered = True
    if known_option(config, "norm", ("post", "pre", "none")) == "post":
        part, layer, kind = site.split(".")
        norm = pair.model.get_submodule(f"{part}.layers.{layer}.{kind}_attention_norm")
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        # With post-norm, the norm of the sum belongs to the sub-layer's result.
        gain_D = norm.weight.double()
        is_centered = isinstance(norm, nn.LayerNorm)
        # An RMS norm has no bias.
        shift_D = norm.bias.double() if isinstance(norm, nn.LayerNorm) else torch.zeros_like(gain_D)
        mean_L1 = sum_LD.mean(dim=-1, keepdim=True) if is_centered else 0.0
        variance_L1 = (sum_LD - mean_L1).square().mean(dim=-1, keepdim=True)
        # Of this row's sum, and fixed: that makes the norm linear.
        deviation_L1 = (variance_L1 + config.layer_norm_epsilon).sqrt()
    return Attention(
        weights_HLM=seen[f"{site}.weights"].double(),
        # The value of a position after the head's block of the output projection.
        transformed_HMD=value_HME @ output_by_head(module).double(),
        bias_D=torch.zeros_like(own_LD[0]) if bias is None else bias.double(),
        output_LD=seen[f"{site}.output"].double(),
        own_LD=own_LD if config.residual else torch.zeros_like(own_LD),
        sum_LD=sum_LD,
        gain_D=gain_D,
        shift_D=shift_D,
        deviation_L1=deviation_L1,
        is_cross=site.endswith(".cross"),
        has_residual=config.residual,
        is_centered=is_centered,
    )


@checked
@torch.inference_mode()
def contributions(pair: PairData, part: Part, kind: str, layer: int | None = None) -> Contributions:
    r"""Compute every term of an attention's output: $y_i = \sum_{hj} \alpha^h_{ij} f^h(x_j) + b$.

    Args:
        pair: the sentence.
        part: ``encoder`` or ``decoder``.
        kind: ``self`` or ``cross``.
        layer: from 0; the last unless given.

    Raises:
        InputError: the attention does not exist, or its terms do not fit into memory.
    """
    if kind not in ("self", "cross") or (part, kind) == ("encoder", "cross"):
        raise InputError(
            f"An attention must be encoder self, decoder self or decoder cross, but is {part} "
            f"{kind} (part, kind). Name one of them."
        )
    site = f"{part}.{last_layer(pair, part, layer)}.{kind}"
    parse_address(site).check_in(pair.model.config)
    num_rows = len(pair.source_ids) if part == "encoder" else len(pair.target_ids)
    num_keys = len(pair.source_ids) if kind == "cross" else num_rows
    config = pair.model.config
    # One vector for each head, row and position is too much for long sentences.
    check_memory(
        "The terms of an attention",
        8 * config.num_heads * num_rows * num_keys * config.d_model,
        "Look at their norms, which need no vector for each term, or at a shorter sentence.",
    )
    attention = take_apart(pair, [site])[site]
    terms_HLMD = attention.weights_HLM[..., None] * attention.transformed_HMD[:, None]
    sum_LD = terms_HLMD.sum(dim=(0, 2)) + attention.bias_D
    # Relative to large outputs, absolute for small ones.
    size = attention.output_LD.abs().max().clamp(min=1.0)
    largest = float((sum_LD - attention.output_LD).abs().max() / size)
    return Contributions(terms_HLMD, attention.bias_D, attention.output_LD, largest)
