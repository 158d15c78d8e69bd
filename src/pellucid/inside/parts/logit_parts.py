r"""Direct logit attribution: the logit of a word as a sum over the parts of the model.

A decoder row ends in a sum: its embedding, its position, and what every sub-layer adds. The layer
norms on the way are linear for the deviations $\sigma$ that this row has, so that the direction $u$
in which the output matrix reads a word can be carried back through each of them, and $u \cdot v$ is
the part of anything that was added before:

$$\ell = u \cdot L(v) + u \cdot \beta + b, \qquad
u \cdot L(v) = \left(C(u \odot \gamma) / \sigma\right) \cdot v$$

with $L(v) = C(v) / \sigma \odot \gamma$ and $C$ subtracting the mean (an RMS norm subtracts none).
Post-norm puts one such norm behind every sum, pre-norm a single one at the end. All parts together
are the logit, up to rounding. Parts of two words in one row can be subtracted: the difference of
their logits is that of their log-probabilities.

A cross-attention whose weights are held fixed is linear too. So the parts of its heads are, with
``encoder``, carried further back: through $W^O$ and $W^V$ into the vectors that the encoder
handed over, and through the encoder's norms to its own heads, at each source position.

Source:
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Virtual
    weights and the residual stream as a communication channel"; Wang et al. 2023,
    "Interpretability in the Wild", section 3, for the difference of two words; Kobayashi et al.
    2021, section 3, for a norm with a fixed deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from pellucid.config.head_address import ATTENTION_KINDS, Part, sites_of
from pellucid.inside.measures.maps import OWN, Map
from pellucid.inside.pair import PairData, attention_at, output_by_head, states_of
from pellucid.inside.parts.part_maps import map_of_parts
from pellucid.model import EncoderDecoder
from pellucid.model.layers import MultiHeadAttention

BIASES = "(biases)"
SOURCE = "Elhage et al. 2021; Wang et al. 2023, section 3; Kobayashi et al. 2021, section 3"

_STAGES = ("embedding", "positions", "context", "output", "residual", "norm", "weights", "logits")


class _WayBack:
    """A way from the end of one part of the model to its tokens, against the order of the run.

    Attributes:
        along: the direction in which a vector at this place counts, ``(…, rows, D)``.
        parts: what each part adds in it, ``(…, rows)``.
        biases: what all biases so far add.
        memory: directions at the encoder's output, ``(…, rows, S, D)``; 0 before any
            cross-attention.
    """

    def __init__(self, pair: PairData, seen: Mapping[str, Tensor], part: Part) -> None:
        self._pair = pair
        self._seen = {name: tensor.double() for name, tensor in seen.items()}
        self._part = part
        self.along = torch.zeros(())
        self.biases = torch.zeros(())
        self.memory = torch.zeros(())
        self.parts: dict[str, Tensor] = {}

    def walk(self, along: Tensor, *, opens_cross: bool = False) -> None:
        """Walk from the last layer to the tokens.

        Args:
            along: the direction at the end.
            opens_cross: follow cross-attention into the encoder, instead of naming its heads.
        """
        config = self._pair.model.config
        stack = self._pair.model.get_submodule(self._part)
        self.along = along
        self.biases = along.new_zeros(along.shape[:-1])
        self._through(getattr(stack, "norm", None), states_of(self._pair.model, self._part)[-1])
        for site in reversed(sites_of(config)):
            if not site.startswith(f"{self._part}."):
                continue
            kind = site.rpartition(".")[2]
            if config.norm == "post":
                self._through(norm_at(self._pair.model, site), f"{site}.residual")
            if kind in ATTENTION_KINDS:
                self._take_heads(site, is_open=opens_cross and kind == "cross")
            else:
                self._take(site, f"{site}.output")
            if not config.residual:
                # Nothing bypasses such a sub-layer.
                self.along = torch.zeros_like(self.along)
        ways_in = (f"{self._part}.{stage}" for stage in ("positions", "embedding"))
        entering = [name for name in ways_in if name in self._seen]
        summed_RD = torch.stack([self._seen[name] for name in entering]).sum(dim=0)
        self._through(getattr(stack, "input_norm", None), summed_RD)
        for name in entering:
            self._take(name, name)

    def _through(self, norm: Any, before: str | Tensor) -> None:
        """Carry the direction back through a norm, of which the biases are a part."""
        if norm is None:
            return
        before_RD = self._seen[before] if isinstance(before, str) else before
        scaled = self.along * norm.weight.double()
        if isinstance(norm, nn.LayerNorm):
            self.biases = self.biases + self.along @ norm.bias.double()
            before_RD = before_RD - before_RD.mean(dim=-1, keepdim=True)
            scaled = scaled - scaled.mean(dim=-1, keepdim=True)
        # Held fixed: that makes the norm linear.
        epsilon = self._pair.model.config.layer_norm_epsilon
        deviation_R1 = (before_RD.square().mean(dim=-1, keepdim=True) + epsilon).sqrt()
        self.along = scaled / deviation_R1

    def _take(self, part: str, name: str) -> None:
        self.parts[part] = (self.along * self._seen[name]).sum(dim=-1)

    def _take_heads(self, site: str, *, is_open: bool) -> None:
        """Take the parts of one attention's heads, or follow them to what they read."""
        module = attention_at(self._pair.model, site)
        # What the output projection reads of a head in this direction.
        read = torch.einsum("hed,...rd->...hre", output_by_head(module).double(), self.along)
        if module.output.bias is not None:
            self.biases = self.biases + self.along @ module.output.bias.double()
        if not is_open:
            by_head = (read * self._seen[f"{site}.context"]).sum(dim=-1)
            for head in reversed(range(module.num_heads)):
                self.parts[f"{site}.{head}"] = by_head.select(-2, head)
            return
        weight_HDE, bias_HE = values_of(module)
        weights_HTS = self._seen[f"{site}.weights"]
        back = torch.einsum("...hre,hde->...hrd", read, weight_HDE)
        self.memory = self.memory + torch.einsum("hts,...htd->...tsd", weights_HTS, back)
        shares_HT = weights_HTS.sum(dim=-1)
        self.biases = self.biases + torch.einsum("...hte,he,ht->...t", read, bias_HE, shares_HT)


def norm_at(model: EncoderDecoder, site: str) -> nn.Module:
    """Return the norm of a sub-layer of a model that has norms."""
    part, layer, kind = site.split(".")
    suffix = "_attention_norm" if kind in ATTENTION_KINDS else "_norm"
    return model.get_submodule(f"{part}.layers.{layer}.{kind}{suffix}")


def values_of(module: MultiHeadAttention) -> tuple[Tensor, Tensor]:
    """Return how each head makes a value of a vector: ``weight_HDE`` and ``bias_HE``."""
    size = module.output.out_features
    like = module.output.weight
    # Unit vectors show the matrix of every kind of projection, and zeros its bias.
    given_1MD = torch.cat([like.new_zeros(1, size), torch.eye(size).to(like)])[None]
    value_HME = module.share(module.project_key_value(given_1MD)[1])[0].double()
    bias_HE = value_HME[:, 0]
    return value_HME[:, 1:] - bias_HE[:, None], bias_HE


@torch.inference_mode()
def logit_attribution(pair: PairData, *, part: Part | None = None, row: int | None = None) -> Map:
    """Split the logit of the token that each decoder row predicts into parts of the model.

    Args:
        pair: the sentence, in double precision if the sum has to hold to 1e-12.
        part: ``encoder`` follows cross-attention into the encoder; otherwise its heads are parts.
        row: only this row; the encoder's parts then have a column for each source position.

    Returns:
        A map: a row for each part, a column for each decoder row.
    """
    seen = pair.see(_STAGES)
    model = pair.model
    rows = list(range(len(pair.target_ids))) if row is None else [row]
    ids = [pair.target_ids[one] for one in rows]
    of_rows = {
        name: one[rows] if one.ndim == 2 else one[:, rows]
        for name, one in seen.items()
        if name.startswith("decoder.")
    }
    is_open = part == "encoder"
    decoder = _WayBack(pair, of_rows, "decoder")
    decoder.walk(model.output_weight[ids].double(), opens_cross=is_open)
    biases_T = decoder.biases
    if model.output_bias is not None:
        biases_T = biases_T + model.output_bias[ids].double()
    # What the decoder adds belongs to the row itself, behind the source positions.
    num_source = len(pair.source_ids) if is_open else 0
    amounts = {name: pad(one[:, None], (num_source, 0)) for name, one in decoder.parts.items()}
    if is_open:
        encoder = _WayBack(pair, seen, "encoder")
        encoder.walk(decoder.memory)
        biases_T = biases_T + encoder.biases.sum(dim=-1)
        amounts |= {name: pad(one, (0, 1)) for name, one in encoder.parts.items()}
    amounts = {BIASES: pad(biases_T[:, None], (num_source, 0)), **amounts}
    parts_PTX = torch.stack(list(amounts.values())[::-1])
    is_by_position = is_open and row is not None
    columns = [f"{pair.read_tokens[one]} → {pair.predicted_tokens[one]}" for one in rows]
    return map_of_parts(
        "logit-attribution",
        SOURCE,
        parts_PTX[:, 0] if is_by_position else parts_PTX.sum(dim=-1),
        tuple(amounts)[::-1],
        (*pair.source_tokens, OWN) if is_by_position else columns,
        part=part or "decoder",
        num_source_columns=num_source if is_by_position else 0,
        differences=of_rows["decoder.logits"][range(len(ids)), ids].tolist(),
    )
