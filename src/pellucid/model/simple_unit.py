r"""The simpler simple recurrent unit (SSRU): a decoder's memory of its own words in one vector.

It takes the place of masked self-attention. Its products depend on the input alone, so that those
of all positions are computed at once; from position to position only sums and products of single
numbers are left. A step of decoding costs the same at every length, and keeps one vector.

$$f_t = σ(W_f x_t + b_f) \qquad c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ W x_t \qquad o_t = \max(0, c_t)$$

Source:
    Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
    Translation", section 3.1, after the simple recurrent unit of Lei et al. 2018.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.config import ModelConfig
from pellucid.model.kv_cache import LastState
from pellucid.model.site import Site


class SimpleUnit(nn.Module):
    """A recurrent unit that forgets a part of each number of its state, and adds the input's part.

    Args:
        config: its width.
    """

    __call__: Callable[..., Tensor]  # For type checkers: PyTorch declares Any.

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.candidate = nn.Linear(config.d_model, config.d_model, bias=False)
        self.forget = nn.Linear(config.d_model, config.d_model)

    def forward(self, x_BTD: Tensor, site: Site, past: LastState | None) -> Tensor:
        """Read positions from left to right: ``output_BTD``.

        Args:
            x_BTD: the inputs, which continue those before.
            site: where the unit is.
            past: the state that the positions before left, which becomes the last one's; None
                begins with a state of zeros.
        """
        candidate_BTD = site.show("candidate", self.candidate(x_BTD))
        forget_BTD = site.show("forget", torch.sigmoid(self.forget(x_BTD)))
        before_BD = None if past is None else past.state_BD
        state_BTD = site.show("state", _run(candidate_BTD, forget_BTD, before_BD))
        if past is not None:
            past.extend(state_BTD)
        return site.show("output", F.relu(state_BTD).to(x_BTD.dtype))


def _run(candidate_BTD: Tensor, forget_BTD: Tensor, state_BD: Tensor | None) -> Tensor:
    """Compute the states of all positions, each from the one before: ``state_BTD``."""
    # In bfloat16 a state would add up the rounding of every step.
    if candidate_BTD.dtype == torch.bfloat16:
        candidate_BTD = candidate_BTD.float()
        forget_BTD = forget_BTD.float()
    added_BTD = (1 - forget_BTD) * candidate_BTD
    if state_BD is None:
        state_BD = torch.zeros_like(added_BTD[:, 0])
    states = []
    for forget_BD, added_BD in zip(forget_BTD.unbind(dim=1), added_BTD.unbind(dim=1), strict=True):
        state_BD = torch.addcmul(added_BD, forget_BD, state_BD)
        states.append(state_BD)
    return torch.stack(states, dim=1)
