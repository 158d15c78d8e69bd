"""Averages of weights over training, which are validated and saved as the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.training.run.checkpoint import copy_saved


class Averaging:
    r"""The weights of a model, averaged as the settings say.

    ``none``: the weights as they are. ``running``: after each update
    $$\bar w ← d \bar w + (1 - d) w, \quad d = \min\left(\text{decay}, \frac{1 + t}{10 + t}\right)$$
    where t counts updates, so that the first weights soon count little. ``last``: the mean of the
    current weights and those of the last ``averaging_count`` - 1 validations. ``best``: the mean of
    the current weights and the best ``averaging_count`` - 1 before, ranked by the BLEU that their
    own mean had when they were current.

    Memory: one copy of the trained weights for ``running``, ``averaging_count`` - 1 for the others.

    Args:
        model: has the weights, which the optimizer changes.
        training: chooses the average.

    Source:
        Polyak and Juditsky 1992; the last checkpoints: Vaswani et al. 2017, section 6.1.
    """

    def __init__(self, model: nn.Module, training: TrainingConfig) -> None:
        self._model = model
        self._kind = training.averaging
        self._decay = training.averaging_decay
        self._count = training.averaging_count
        self._num_updates = torch.zeros((), dtype=torch.int64)
        self._running = {}
        if self._kind == "running":
            self._running = self._copy()
            self._num_updates = self._num_updates.to(next(model.parameters()).device)
        self._copies: list[tuple[float, dict[str, Tensor]]] = []

    @torch.no_grad()
    def update(self, was_made: Tensor | None = None) -> None:
        """Include the weights after an update; only a running average does.

        Args:
            was_made: on a device, whether there was an update, as a truth value that only the
                device reads; None if there was.
        """
        if self._kind != "running":
            return
        running = list(self._running.values())
        trained = list(self._trained().values())
        # At first it spans few updates, so that random weights soon count little.
        if was_made is None:
            t = int(self._num_updates)
            decay = min(self._decay, (1 + t) / (10 + t))
            torch._foreach_lerp_(running, trained, 1 - decay)
            self._num_updates += 1
        else:
            count = self._num_updates
            weight = (1 - ((1 + count) / (10 + count)).clamp(max=self._decay)) * was_made
            steps = torch._foreach_sub(trained, running)
            torch._foreach_mul_(steps, weight)
            torch._foreach_add_(running, steps)
            count += was_made

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """Compute the average, by the names of the model's state."""
        state = self._model.state_dict()
        if self._kind == "running":
            return state | self._running
        if not self._copies:
            return state
        summands = [copy for _, copy in self._copies]
        if not self._holds_current():
            summands.append(self._trained())
        means = {name: weight.clone() for name, weight in summands[-1].items()}
        for weights in summands[:-1]:
            torch._foreach_add_(list(means.values()), [weights[name] for name in means])
        torch._foreach_div_(list(means.values()), len(summands))
        return state | means

    def validated(self, bleu: float) -> None:
        """Record that `weights` has just been validated, with this BLEU."""
        if self._kind not in ("last", "best") or self._count == 1 or self._holds_current():
            return
        self._copies.append((bleu, self._copy()))
        if len(self._copies) < self._count:
            return
        worst = 0
        if self._kind == "best":
            worst = min(range(len(self._copies)), key=lambda index: (self._copies[index][0], index))
        del self._copies[worst]

    def _holds_current(self) -> bool:
        """True if there is a copy of the current weights already, as after their validation."""
        current = self._trained()
        return any(
            all(torch.equal(copy[name], weight) for name, weight in current.items())
            for _, copy in self._copies
        )

    def tensors(self) -> dict[str, Tensor]:
        """Give everything that the average depends on, for a checkpoint."""
        return self._named(self._copies)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` gave.

        Raises:
            BundleError: it belongs to another model or another average.
        """
        number = sum(name.endswith(".bleu") for name in tensors)
        most = self._count - 1 if self._kind in ("last", "best") else 0
        # Copies of the current weights, to be overwritten.
        copies = [(0.0, self._copy()) for _ in range(min(number, most))]
        own = self._named(copies)
        copy_saved(own, tensors, of="average")
        self._copies = [
            (float(own[f"{index}.bleu"]), copy) for index, (_, copy) in enumerate(copies)
        ]

    def _named(self, copies: Sequence[tuple[float, Mapping[str, Tensor]]]) -> dict[str, Tensor]:
        if self._kind == "running":
            count = {"num_updates": self._num_updates}
            return count | {f"running.{name}": value for name, value in self._running.items()}
        found = {}
        for number, (bleu, weights) in enumerate(copies):
            found[f"{number}.bleu"] = torch.tensor(bleu, dtype=torch.float64)
            found |= {f"{number}.{name}": value for name, value in weights.items()}
        return found

    def _trained(self) -> dict[str, Tensor]:
        return {
            name: parameter.detach()
            for name, parameter in self._model.named_parameters()
            if parameter.requires_grad
        }

    def _copy(self) -> dict[str, Tensor]:
        return {name: weight.clone() for name, weight in self._trained().items()}
