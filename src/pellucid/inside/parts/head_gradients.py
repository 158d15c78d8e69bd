r"""Gradient importance of heads: what a little less of a head would do to a word.

Every head $h$ has a gate $\xi_h = 1$, by which its context is multiplied. The derivative of a
word's log-probability by the gate,

$$g_h = \frac{\partial \log p(y_t)}{\partial \xi_h}
= \sum_i c^h_i \cdot \frac{\partial \log p(y_t)}{\partial c^h_i},$$

is the first-order approximation of what cutting the head costs the word, of all heads in one
backward pass. Above 0 the head speaks for the word. The sum over the rows of a sentence is the
derivative of its whole log-probability, and the mean of its absolute value over sentences is the
importance of Michel et al.

Source:
    Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 4.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.config.head_address import Part
from pellucid.inside.measures.maps import Map
from pellucid.inside.pair import PairData
from pellucid.inside.parts.part_maps import map_of_parts

SOURCE = "Michel et al. 2019, section 4.1"


class _Gates:
    """A probe that multiplies each head's context by a one that can be differentiated by."""

    def __init__(self) -> None:
        self.gates: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Multiply the context of one attention."""
        if stage != "context":
            return None
        self.gates[site] = torch.ones_like(tensor[0, :, :1, :1], requires_grad=True)
        return tensor * self.gates[site]


def head_gradients(pair: PairData, *, part: Part | None = None, row: int | None = None) -> Map:
    """Differentiate the log-probability of the token that each decoder row predicts by each head.

    Args:
        pair: the sentence.
        part: only the heads of this part.
        row: only this row.

    Returns:
        A map: a row for each head, a column for each decoder row.
    """
    rows = list(range(len(pair.target_ids))) if row is None else [row]
    probe = _Gates()
    # The caller may be in inference mode, whose tensors have no gradients.
    with torch.inference_mode(False), torch.enable_grad():
        logs_T = pair.log_probabilities(probe=probe)
        gates = list(probe.gates.values())
        by_row = [
            torch.cat(
                [one.flatten() for one in torch.autograd.grad(logs_T[at], gates, retain_graph=True)]
            )
            for at in rows
        ]
    names = [f"{site}.{head}" for site, gate in probe.gates.items() for head in range(len(gate))]
    columns = [f"{pair.read_tokens[one]} → {pair.predicted_tokens[one]}" for one in rows]
    chosen = [at for at, name in enumerate(names) if part is None or name.startswith(part)]
    return map_of_parts(
        "head-gradients",
        SOURCE,
        torch.stack(by_row, dim=1)[chosen],
        [names[at] for at in chosen],
        columns,
        part=part,
    )
