"""The gradient that each layer of an untrained encoder gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid.lessons.why.tiny.learn import make_tiny
from pellucid.lessons.why.tiny.words import Pair, make_pair_batch
from pellucid.train.plain import compute_loss


def gradient_by_layer(
    pairs: Sequence[Pair], depth: int, changes: dict[str, Any], *, seed: int
) -> list[float]:
    """Compute the norm of the gradient in the matrices of each encoder layer, before training.

    Args:
        pairs: sentences whose loss is derived.
        depth: layers of the encoder.
        changes: fields of the configuration that differ from the usual tiny model.
        seed: of the weights.

    Returns:
        One norm for each layer, as a share of that in an encoder of one layer.
    """
    (alone,) = _norms(pairs, 1, changes, seed=seed)
    return [norm / alone for norm in _norms(pairs, depth, changes, seed=seed)]


def _norms(pairs: Sequence[Pair], depth: int, changes: dict[str, Any], *, seed: int) -> list[float]:
    tiny = make_tiny(pairs, seed=seed, num_encoder_layers=depth, **changes)
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    # In float64, since gradients through many layers may be smaller than float32 can hold.
    tiny.model.double()
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    squares = [0.0] * depth
    for name, weight in tiny.model.named_parameters():
        if name.startswith("encoder.layers.") and weight.dim() == 2 and weight.grad is not None:
            squares[int(name.split(".")[2])] += float(weight.grad.square().sum())
    return [square**0.5 for square in squares]
