r"""Integrated gradients: the gradient by each token's embedding, along the way from nothing to it.

For the log-probability $F$ of a row's predicted token, an embedding $x_j$ and its baseline $x'_j$,

$$\text{IG}_j = (x_j - x'_j) \cdot \int_0^1
\frac{\partial F(x' + \alpha (x - x'))}{\partial x_j}\, d\alpha$$

with the embeddings of all source tokens and of all target tokens that the decoder reads on their
way at once, and the dot product over the width of the embedding. Positions stay as they are. The
attributions of a row add up to $F(x) - F(x')$ (completeness), up to the error of the integral,
which is computed by Gauss-Legendre quadrature and reported.

The result depends on the baseline. ``zero`` is the vector of zeros: a token without any content,
which no model has seen. ``unknown`` is the embedding of ``<unk>`` for every token but the special
ones, which stay: a sentence of unknown words.

Source:
    Sundararajan, Taly and Yan 2017, "Axiomatic Attribution for Deep Networks", equation 1 and
    section 5.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pellucid.errors import InputError, suggestion
from pellucid.inside.measures.maps import Map, make_map
from pellucid.inside.pair import PairData

Baseline = Literal["zero", "unknown"]
BASELINES: tuple[Baseline, ...] = ("zero", "unknown")

STEPS = 128
"""Points of the integral."""

MOST_STEPS = 4096
MOST_NUMBERS_AT_ONCE = 1 << 24


class _OnTheWay:
    """A probe that moves embeddings along their way, by a share for each row of the batch.

    Args:
        baselines: where the way begins, by site (``encoder``, ``decoder``).
        shares_B: how far it is gone.
    """

    def __init__(self, baselines: dict[str, Tensor], shares_B: Tensor) -> None:
        self._baselines = baselines
        self.shares_B = shares_B
        self.embeddings: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Replace the embeddings."""
        if stage != "embedding":
            return None
        baseline_1LD = self._baselines[site].to(tensor.dtype)[None]
        # All points of the integral run as one batch, each at its share of the way.
        way_BLD = baseline_1LD + self.shares_B[:, None, None] * (tensor.detach() - baseline_1LD)
        self.embeddings[site] = way_BLD.requires_grad_()
        return way_BLD


def integrated_gradients(
    pair: PairData, *, steps: int | None = None, baseline: Baseline | None = None
) -> Map:
    """Attribute each target token's log-probability to source tokens and the target prefix.

    Args:
        pair: the sentence.
        steps: points of the integral; `STEPS` unless given.
        baseline: where the way begins: ``zero`` (unless given) or ``unknown``.

    Returns:
        A signed map in nats, decoder rows by source tokens and the tokens that the decoder reads.
        Its ``differences`` are what each row must add up to.

    Raises:
        InputError: the number of steps or the baseline is not allowed.
    """
    steps = STEPS if steps is None else steps
    baseline = baseline or "zero"
    if not 1 <= steps <= MOST_STEPS:
        raise InputError(
            f"The steps of integrated gradients must be from 1 to {MOST_STEPS:,}, but are "
            f"{steps}. More steps make the integral more exact."
        )
    if baseline not in BASELINES:
        raise InputError(
            f"The baseline of integrated gradients must be {' or '.join(BASELINES)}, but is "
            f"{baseline!r}. {suggestion(baseline, BASELINES)}"
        )
    # The caller may be in inference mode, whose tensors have no gradients.
    with torch.inference_mode(False), torch.enable_grad():
        embeddings = _embeddings(pair)
        baselines = {
            "encoder": _baseline(pair, "encoder", embeddings["encoder"], baseline),
            "decoder": _baseline(pair, "decoder", embeddings["decoder"], baseline),
        }
        integrals = _integrate(pair, embeddings, baselines, steps)
        start_T, end_T = (
            _log_probabilities(pair, _OnTheWay(baselines, pair.to_tensor([share])))[0].detach()
            for share in (0.0, 1.0)
        )
    matrix = np.concatenate([integrals["encoder"], integrals["decoder"]], axis=1)
    differences = (end_T - start_T).double().numpy(force=True)
    # Completeness holds exactly for the integral, so this is the error of the quadrature.
    error = float(np.abs(matrix.sum(axis=1) - differences).max())
    return make_map(
        pair,
        "integrated-gradients",
        "Sundararajan et al. 2017, equation 1",
        matrix,
        part="decoder",
        kind="whole",
        is_signed=True,
        note=f"{steps} steps from {_NAMES[baseline]}, completeness off by at most {error:.1e}",
        differences=tuple(differences.tolist()),
    )


_NAMES: dict[Baseline, str] = {"zero": "embeddings of zeros", "unknown": "unknown words"}


def _embeddings(pair: PairData) -> dict[str, Tensor]:
    """Return the embeddings of both sides, ``embedding_LD``, as they enter the stacks."""
    seen = pair.see(("embedding",))
    return {part: seen[f"{part}.embedding"].detach() for part in ("encoder", "decoder")}


def _baseline(pair: PairData, part: str, embedding_LD: Tensor, baseline: Baseline) -> Tensor:
    """Return the embeddings that the way begins with: ``baseline_LD``."""
    if baseline == "zero":
        return torch.zeros_like(embedding_LD)
    ids = pair.tokenizer.config
    # A sentence of unknown words still begins and ends.
    special = {ids.pad_id, ids.bos_id, ids.eos_id, ids.target_start_id}
    own = pair.source_ids if part == "encoder" else pair.read_ids
    replaced = [id_ if id_ in special else ids.unk_id for id_ in own]
    if part == "encoder":
        other = PairData(pair.model, pair.tokenizer, tuple(replaced), pair.target_ids)
    else:
        other = PairData(
            pair.model, pair.tokenizer, pair.source_ids, (*replaced[1:], pair.target_ids[-1])
        )
    return _embeddings(other)[part]


def _log_probabilities(pair: PairData, probe: _OnTheWay) -> Tensor:
    """Score each target token at each place of the way: ``logs_BT``."""
    size = len(probe.shares_B)
    source_BS = pair.to_tensor([pair.source_ids]).expand(size, -1)
    read_BT = pair.to_tensor([pair.read_ids]).expand(size, -1)
    logs_BTV = pair.model(source_BS, read_BT, probe=probe).log_softmax(dim=-1)
    targets_BT1 = pair.to_tensor(pair.target_ids)[None, :, None].expand(size, -1, -1)
    logs_BT: Tensor = logs_BTV.gather(2, targets_BT1)[:, :, 0]
    return logs_BT


def _integrate(
    pair: PairData, embeddings: dict[str, Tensor], baselines: dict[str, Tensor], steps: int
) -> dict[str, np.ndarray]:
    """Integrate the gradients of each row's log-probability: ``(rows, tokens)`` by part."""
    # Exact for polynomials of degree 2n − 1: far fewer points than equal steps need.
    points, weights = np.polynomial.legendre.leggauss(steps)
    dtype = embeddings["encoder"].dtype
    # From the interval [−1, 1] of the quadrature to [0, 1].
    shares_B = pair.to_tensor((points + 1) / 2, dtype)
    weights_B = pair.to_tensor(weights / 2)
    num_rows = len(pair.target_ids)
    found = {
        part: np.zeros((num_rows, len(embedding_LD))) for part, embedding_LD in embeddings.items()
    }
    ways = {part: embeddings[part] - baselines[part] for part in embeddings}
    numbers_each = num_rows * pair.model.config.target_vocabulary_size
    size = max(1, MOST_NUMBERS_AT_ONCE // numbers_each)
    for first in range(0, steps, size):
        here = slice(first, first + size)
        probe = _OnTheWay(baselines, shares_B[here])
        logs_BT = _log_probabilities(pair, probe)
        for row in range(num_rows):
            gradients = torch.autograd.grad(
                logs_BT[:, row].sum(),
                [probe.embeddings[part] for part in ways],
                # The last row frees the graph, which is the largest thing in memory.
                retain_graph=row + 1 < num_rows,
            )
            for (part, way_LD), gradient_BLD in zip(ways.items(), gradients, strict=True):
                parts_BL = (gradient_BLD * way_LD).sum(dim=-1).double()
                found[part][row] += (weights_B[here] @ parts_BL).numpy(force=True)
    return found
