"""Recompute one weight from nothing but the bundle's files, product by product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pellucid.bundle import Bundle, load_bundle
from pellucid.config.head_address import parse_head
from pellucid.errors import InputError
from pellucid.inside.ask import Ask
from pellucid.inside.pair import PairData, attention_at, recurrent_attention_at, states_of
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.replayed_pair import replay
from pellucid.model.cross_attention import AdditiveAttention
from pellucid.model.layers import MultiHeadAttention


@dataclass(frozen=True)
class Verified:
    """A number of a trace, and the same number recomputed.

    Attributes:
        shown: the number in the trace.
        recomputed: in float64, from the files of the bundle.
    """

    shown: float
    recomputed: float

    @property
    def difference(self) -> float:
        """The distance between the two."""
        if self.shown == self.recomputed:
            return 0.0
        return abs(self.shown - self.recomputed)


def verify_cell(
    bundle: Bundle, trace: TraceData, site: str, head: int, row: int, column: int
) -> Verified:
    """Recompute one weight: read the files again, and add up every product.

    The input of the layer comes from a run in float64. Everything after it is computed here with
    plain sums of products: queries, keys, scores, the mask, the exponentials.

    Args:
        bundle: the model; it is read from its folder again.
        trace: holds the weight.
        site: such as ``decoder.1.cross``.
        head: from 0.
        row: the position that attends.
        column: the position attended to.

    Raises:
        InputError: the trace is of another model, or of a changed one, or there is no such head.
    """
    parse_head(f"{site}.{head}").check_in(bundle.config.model)
    if trace.decoding.get("changes"):
        raise InputError(
            "A weight to verify must be the model's own, but the trace was changed on the way "
            f"({trace.decoding['changes']}). Look again without changes."
        )
    fresh = load_bundle(bundle.folder)
    if fresh.model_hash != trace.model.get("model_hash"):
        raise InputError(
            "The model to verify with must be the trace's own "
            f"({trace.model.get('model_hash')}), but is {fresh.model_hash} ({bundle.folder}). Name "
            "the other model, or look again."
        )
    if fresh.config.model.is_recurrent:
        return _verify_recurrent(fresh, trace, row, column)
    pair = PairData(fresh.exact_model, fresh.tokenizer, trace.source_ids, trace.predicted_ids)
    entering_LD, attended_MD = _entering(pair, site)
    attention = attention_at(pair.model, site)
    query = _project(attention, "query", entering_LD[row], head, row)
    may_see = _may_see(pair, site, row, len(attended_MD))
    scores = []
    for position in range(len(attended_MD)):
        key = _project(attention, "key", attended_MD[position], head, position)
        key = _with_distance(attention, key, position - row)
        product = math.fsum(one * other for one, other in zip(query, key, strict=True))
        score = product / math.sqrt(len(query)) if attention.use_scale else product
        if attention.positions.kind == "alibi":
            score -= 2 ** (-8 * (head + 1) / attention.num_heads) * abs(position - row)
        scores.append(score)
    largest = max(scores[position] for position in may_see)
    exponentials = {position: math.exp(scores[position] - largest) for position in may_see}
    weight = exponentials.get(column, 0.0) / math.fsum(exponentials.values())
    shown = float(trace[f"{site}.{head}"][row, column])
    return Verified(shown, weight)


def _verify_recurrent(bundle: Bundle, trace: TraceData, row: int, column: int) -> Verified:
    """Recompute a weight of a recurrent decoder from states in float64, with plain sums."""
    pair = PairData(bundle.exact_model, bundle.tokenizer, trace.source_ids, trace.predicted_ids)
    arrays = replay(pair, Ask(stages=("state", "initial")), float64=True).arrays
    states_TD = arrays["decoder.0.recurrent.state"]
    state = states_TD[row - 1] if row else arrays["decoder.0.recurrent.initial"][0]
    attended_SD = arrays[states_of(pair.model, "encoder")[-1]].tolist()
    attention = recurrent_attention_at(pair.model, "decoder.0.cross")
    scores = []
    if isinstance(attention, AdditiveAttention):
        # The scores of Bahdanau et al.: v · tanh(W s + U h).
        energy = attention.energy.weight[0].tolist()
        query = _times(attention.query.weight, state.tolist())
        for vector in attended_SD:
            key = _times(attention.key.weight, vector)
            hidden = [math.tanh(a + b) for a, b in zip(query, key, strict=True)]
            scores.append(math.fsum(a * b for a, b in zip(energy, hidden, strict=True)))
    else:
        for vector in attended_SD:
            scores.append(math.fsum(a * b for a, b in zip(state.tolist(), vector, strict=True)))
    exponentials = [math.exp(score - max(scores)) for score in scores]
    shown = float(trace["decoder.0.cross.0"][row, column])
    return Verified(shown, exponentials[column] / math.fsum(exponentials))


def _times(weight: Tensor, vector: Sequence[float]) -> list[float]:
    return [math.fsum(a * b for a, b in zip(line, vector, strict=True)) for line in weight.tolist()]


def _may_see(pair: PairData, site: str, row: int, length: int) -> range:
    is_causal = site.startswith("decoder") and site.endswith("self")
    if is_causal and pair.model.config.look_ahead_mask:
        return range(row + 1)
    return range(length)


def _entering(pair: PairData, site: str) -> tuple[Tensor, Tensor]:
    """Return the vectors that an attention makes its queries of, and its keys."""
    config = pair.model.config
    arrays = replay(pair, Ask(stages=("input", "norm", "residual"))).arrays
    stage = "norm" if config.norm == "pre" else "input"
    entering_LD = pair.to_tensor(arrays[f"{site}.{stage}"])
    if not site.endswith("cross"):
        return entering_LD, entering_LD
    # What the decoder reads of the encoder: after its last norm, if it has one.
    memory = "encoder.norm" if config.ends_in_norm else states_of(pair.model, "encoder")[-1]
    return entering_LD, pair.to_tensor(arrays[memory])


def _project(
    attention: MultiHeadAttention, what: str, x_D: Tensor, head: int, position: int
) -> list[float]:
    """Compute one head's query or key of one position with plain sums."""
    width = attention.d_key
    x = x_D.tolist()
    if attention.projections == "none":
        return _turn(attention, x[head * width : (head + 1) * width], position)
    linear = attention.query if what == "query" else attention.key
    # Groups of query heads share one head of keys.
    own = head * (linear.out_features // width) // attention.num_heads
    # As Python numbers, so that nothing of PyTorch's arithmetic takes part.
    weight = linear.weight.tolist()
    bias = [0.0] * linear.out_features if linear.bias is None else linear.bias.tolist()
    projected = [
        math.fsum([*(a * b for a, b in zip(weight[row], x, strict=True)), bias[row]])
        # The rows of the matrix that make this head.
        for row in range(own * width, (own + 1) * width)
    ]
    return _turn(attention, projected, position)


def _turn(attention: MultiHeadAttention, vector: list[float], position: int) -> list[float]:
    """Turn each pair of numbers by its angle, if positions are rotary."""
    if attention.positions.kind != "rotary":
        return vector
    turned: list[float] = []
    for place in range(0, len(vector), 2):
        angle = position / 10000 ** (place / len(vector))
        sine = math.sin(angle)
        cosine = math.cos(angle)
        x, y = vector[place : place + 2]
        turned += [x * cosine - y * sine, x * sine + y * cosine]
    return turned


def _with_distance(attention: MultiHeadAttention, key: list[float], distance: int) -> list[float]:
    """Add the vector of a distance to a key, if positions are relative."""
    if attention.positions.kind != "relative":
        return key
    added = attention.positions.vector(distance, like=attention.positions.weight).tolist()
    return [one + other for one, other in zip(key, added, strict=True)]
