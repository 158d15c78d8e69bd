r"""Composition scores: how much of what one head writes another one reads, by their weights.

A head writes through $W_{OV} = W^V W^O$, and reads with $W_{QK} = W^Q (W^K)^T$ and $W_{OV}$. With
the rows of vectors multiplied from the left, head 2 uses what head 1 writes

$$\text{Q:}\ \frac{\lVert M W_{QK}\rVert}{\lVert M\rVert\,\lVert W_{QK}\rVert}, \qquad
\text{K:}\ \frac{\lVert M W_{QK}^T\rVert}{\lVert M\rVert\,\lVert W_{QK}\rVert}, \qquad
\text{V:}\ \frac{\lVert M W'_{OV}\rVert}{\lVert M\rVert\,\lVert W'_{OV}\rVert}$$

with Frobenius norms and $M = W_{OV} N$. $N$ is what the layer norms between the two do to a
vector, up to the deviation of a row, which no score depends on: subtracting the mean (not for an
RMS norm) and multiplying by $\gamma$. Without norms $N$ is the identity, as in the source.
A score is from 0 to 1; heads that have nothing to do with each other have about $1 / \sqrt d$.
Heads of the encoder compose with cross-attention by its keys and values, heads of the
decoder's self-attention by its queries. Biases and positions have no part.

Source:
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Two-layer
    attention-only transformers", "Virtual attention heads and composition".
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid.config.head_address import ATTENTION_KINDS, Part, sites_of
from pellucid.inside.measures.maps import Map
from pellucid.inside.pair import PairData, attention_at, output_by_head
from pellucid.inside.parts.logit_parts import norm_at, values_of
from pellucid.inside.parts.part_maps import map_of_parts
from pellucid.model import EncoderDecoder
from pellucid.model.layers import MultiHeadAttention

SOURCE = "Elhage et al. 2021, section 'Virtual attention heads and composition'"

Side = Literal["q", "k", "v"]


@torch.inference_mode()
def composition(pair: PairData, *, side: Side, part: Part | None = None) -> Map:
    """Score how much of what each head writes each later head reads.

    Args:
        pair: its model counts, not its sentence.
        side: whether it is read by queries, keys or values.
        part: only heads of this part as writers.

    Returns:
        A map: a row for each head that writes, a column for each that reads; 0 if what the first
        writes does not reach the second. Heads that reach or read none are left out.
    """
    model = pair.model
    config = model.config
    sites = [one for one in sites_of(config) if one.endswith(ATTENTION_KINDS)]
    readers = {site: _reads(attention_at(model, site), side) for site in sites}
    scores = []
    for writer in sites:
        module = attention_at(model, writer)
        # Only the triangle of a tall matrix counts for a norm behind it.
        triangle_HEE = torch.linalg.qr(values_of(module)[0]).R
        written_HED = triangle_HEE @ output_by_head(module).double()
        found = []
        for reader, (first_HDK, second_HKK) in readers.items():
            arriving_HED = _carry(model, writer, reader, side, written_HED)
            if arriving_HED is None:
                found.append(first_HDK.new_zeros(config.num_heads, config.num_heads))
                continue
            own_HKK = torch.linalg.qr(first_HDK).R
            sizes = _norm(arriving_HED)[:, None] * _norm(own_HKK @ second_HKK.mT)
            both = _norm(arriving_HED[:, None] @ first_HDK @ second_HKK.mT)
            # What no residual connection carries has no size.
            found.append(torch.where(sizes > 0, both / sizes, 0.0))
        scores.append(torch.cat(found, dim=1))
    matrix_WR = torch.cat(scores)
    names = [f"{site}.{head}" for site in sites for head in range(config.num_heads)]
    is_part = torch.tensor([part is None or name.startswith(part) for name in names])
    rows = (matrix_WR.any(dim=1).cpu() & is_part).nonzero()[:, 0].tolist()
    columns = matrix_WR[rows].any(dim=0).nonzero()[:, 0].tolist()
    return map_of_parts(
        f"{side}-composition",
        SOURCE,
        matrix_WR[rows][:, columns],
        [names[row] for row in rows],
        [names[column] for column in columns],
        part=part,
        is_signed=False,
    )


def _norm(matrix: Tensor) -> Tensor:
    size: Tensor = torch.linalg.matrix_norm(matrix)
    return size


def _reads(module: MultiHeadAttention, side: Side) -> tuple[Tensor, Tensor]:
    """Return the matrix that reads for each head, and the triangle of that behind it."""
    value_HDE = values_of(module)[0]
    if side == "v":
        behind_HDE = output_by_head(module).double().mT
        return value_HDE, torch.linalg.qr(behind_HDE).R
    query_HDK = _by_head(module, "query")
    key_HDK = _by_head(module, "key")
    first, second = (query_HDK, key_HDK) if side == "q" else (key_HDK, query_HDK)
    return first, torch.linalg.qr(second).R


def _by_head(module: MultiHeadAttention, name: Literal["query", "key"]) -> Tensor:
    """Cut a projection into its heads: ``weight_HDK``, without biases and turning."""
    size = module.output.out_features
    has_weight = module.projections != "none"
    wide = (
        getattr(module, name).weight.T if has_weight else torch.eye(size).to(module.output.weight)
    )
    return module.share(wide.reshape(1, size, -1, module.d_key).transpose(1, 2))[0].double()


def _carry(
    model: EncoderDecoder, writer: str, reader: str, side: Side, written_HED: Tensor
) -> Tensor | None:
    """Carry what heads write through the norms before a reader; None if it does not get there."""
    config = model.config
    part = writer.split(".")[0]
    is_across = reader.endswith(".cross") and side != "q"
    own = [one for one in sites_of(config) if one.startswith(f"{part}.")]
    start = own.index(writer)
    if is_across:
        if part == "decoder":
            return None
        between = own[start:]
    elif reader not in own or own.index(reader) <= start:
        return None
    else:
        between = own[start : own.index(reader)]
    if not config.residual and len(between) > 1:
        return None
    norms: list[Any] = [norm_at(model, one) for one in between] if config.norm == "post" else []
    if is_across:
        norms.append(getattr(model.get_submodule("encoder"), "norm", None))
    elif config.norm == "pre":
        norms.append(norm_at(model, reader))
    for norm in norms:
        if isinstance(norm, nn.LayerNorm):
            written_HED = written_HED - written_HED.mean(dim=-1, keepdim=True)
        if norm is not None:
            written_HED = written_HED * norm.weight.double()
    return written_HED
