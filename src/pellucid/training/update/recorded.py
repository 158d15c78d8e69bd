"""Updates that a GPU repeats by itself, and whose results are read some updates later."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.machine.graphs import GraphDevice, GraphSchedule, make_graphs
from pellucid.model import EncoderDecoder
from pellucid.model.dropout import DropoutOnDevice
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.pytorch import ModelOnPyTorch, trained
from pellucid.training.plain import UpdateResult
from pellucid.training.update.batch_parts import BatchPart, repeat_batch, tensors_of
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer
from pellucid.training.weights.schedule import dropout_share

LATE = 3
"""Updates that may have begun since the one whose result is read: so many hide the way to the
device and back, and after an update that is not finite no more than these are for nothing."""


class SharedPasses(Protocol):
    """The passes of all ranks together.

    ``seconds_waited`` is the time of the last sum in which this process waited for others.
    """

    seconds_waited: float

    def sum_gradients(self, step: int, pieces: Sequence[BatchPart]) -> Tensor:
        """Leave the sum of the pieces' gradients in the model, and return that of their losses."""


class RecordedPasses:
    """`Passes` that a device repeats by itself: a graph for each shape computes a gradient.

    What changes from update to update (tokens, shares, seeds) is data in buffers.

    Args:
        model: its parameters get the gradients.
        training: the settings.
        precision: of the passes.
        graphs: record work.
        generator: of the device, for dropout; the graphs know it.
    """

    kernels = "PyTorch's, recorded"
    seconds_waited = 0.0

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        graphs: GraphDevice,
        generator: torch.Generator,
    ) -> None:
        self._training = training
        self._generator = generator
        losses = AttentionLosses(model.config, training)
        self._way = ModelOnPyTorch(model, training, precision, losses, masks_padding=True)
        self.schedule = GraphSchedule(graphs)
        self._parameters = trained(model)
        self._gradients = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._loss = torch.zeros((), device=graphs.device)

    def refresh_weights(self) -> None:
        """Do nothing: the first piece of each sum takes the weights as they are."""

    def sum_gradients(
        self, step: int, pieces: Sequence[BatchPart], _into: Sequence[Tensor] = ()
    ) -> Tensor:
        """Do as `Passes.sum_gradients` does, always in the same memory, and wait for nothing."""
        training = self._training
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            # Autograd adds to a gradient that is there.
            parameter.grad = gradient
        for number, piece in enumerate(pieces):
            dropout = DropoutOnDevice(
                training.dropout,
                training.seed,
                step,
                piece.part,
                attention_rate=training.attention_dropout,
                feed_forward_rate=training.feed_forward_dropout,
                token_rate=training.token_dropout,
                cut_rate=training.token_cut if training.r_drop else 0.0,
                generator=self._generator,
            )
            self._generator.manual_seed(dropout.key)
            tensors = tensors_of(piece.batch)
            is_first = number == 0
            shapes = {name: tensor.shape for name, tensor in tensors.items()}
            self.schedule.run(
                ("gradient", is_first, *shapes.items()),
                {
                    **tensors,
                    "share": torch.tensor(piece.share),
                    "warmup": torch.tensor(dropout_share(step, training)),
                },
                partial(self._add_gradient, dropout=dropout, is_first=is_first),
            )
        return self._loss

    def _add_gradient(
        self, buffers: Mapping[str, Tensor], *, dropout: DropoutOnDevice, is_first: bool
    ) -> None:
        """Add the gradient of a piece, and its loss, to what earlier pieces left."""
        training = self._training
        tensors: dict[str, Any] = dict(buffers)
        share = tensors.pop("share")
        dropout = replace(dropout, warmup=tensors.pop("warmup"))
        if is_first:
            self._way.refresh_weights()
            torch._foreach_zero_(self._gradients)
            self._loss.zero_()
        batch = Batch(**tensors, num_source_tokens=0, num_target_tokens=0)
        if training.r_drop:
            batch = repeat_batch(batch)
        # Data too: a number would be recorded as it is now.
        num_tokens: Any = batch.target_mask_BT.sum()
        loss = self._way.add_gradient(
            replace(batch, num_target_tokens=num_tokens),
            dropout,
            smoothing=training.label_smoothing,
            r_drop=training.r_drop,
            share=share,
        )
        self._loss += share * loss


def record_passes(
    model: EncoderDecoder, training: TrainingConfig, precision: Literal["float32", "bfloat16"]
) -> RecordedPasses | None:
    """Make passes that the device of a model repeats by itself; None if it cannot."""
    device = next(model.parameters()).device
    generator = torch.Generator(device)
    graphs = make_graphs(device, generator)
    if graphs is None:
        return None
    return RecordedPasses(model, training, precision, graphs, generator)


class RecordedUpdates:
    """Makes the updates of `pellucid.training.plain.make_update` without waiting for the device.

    Clipping, the optimizer's step and the running average are one graph; the rates are data in
    buffers. Whether an update is finite only the device knows: if not, it adds nothing.

    Args:
        model: its float32 parameters are updated.
        optimizer: over those parameters.
        training: the settings.
        averaging: is updated after each update; None for none.
        passes: of this process.
        ranks: the passes of all ranks together, which wait for each other once in an update.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        optimizer: Optimizer,
        training: TrainingConfig,
        averaging: Averaging | None,
        passes: RecordedPasses,
        ranks: SharedPasses | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._training = training
        self._averaging = averaging
        self._passes: SharedPasses = ranks or passes
        self._schedule = passes.schedule
        device = next(model.parameters()).device
        self._loss = torch.zeros((), device=device)
        self._numbers = torch.zeros(2, device=device)
        self._unread: deque[tuple[UpdateResult, Callable[[], list[float]]]] = deque()

    @property
    def fault(self) -> str:
        """The reason why updates run step by step, if they do."""
        return self._schedule.fault

    def begin(
        self,
        step: int,
        pieces: Sequence[BatchPart],
        *,
        rate: float,
        muon_rate: float,
        was_split: bool = False,
    ) -> None:
        """Start an update.

        Args:
            step: its number, from 1.
            pieces: the batches, or parts of them, each with its share of the target tokens.
            rate: the learning rate.
            muon_rate: the learning rate of Muon.
            was_split: whether memory ran out in an earlier attempt.
        """
        began = self._schedule.graphs.mark()
        self._loss.copy_(self._passes.sum_gradients(step, pieces))
        rates = {"rates": torch.tensor([rate, muon_rate])}
        self._schedule.run("step", rates, self._move_weights)
        num_tokens = sum(piece.batch.num_target_tokens for piece in pieces)
        result = UpdateResult(
            math.nan,
            math.nan,
            num_tokens,
            was_made=False,
            was_split=was_split,
            seconds_waited=self._passes.seconds_waited,
            step=step,
        )
        read = self._schedule.graphs.read_later(self._numbers, began)
        self._unread.append((result, read))

    def read(self, *, most_unread: int = LATE) -> list[UpdateResult]:
        """Read results, the oldest first, until at most so many updates have none."""
        found = []
        while len(self._unread) > most_unread:
            result, read = self._unread.popleft()
            loss, norm, seconds = read()
            is_finite = math.isfinite(loss) and math.isfinite(norm)
            result = replace(result, loss=loss, gradient_norm=norm, seconds_worked=seconds)
            found.append(replace(result, was_made=is_finite))
        return found

    def _move_weights(self, buffers: Mapping[str, Tensor]) -> None:
        """Clip the gradient and take the optimizer's step, if loss and gradient are finite."""
        optimizer = self._optimizer
        norm = optimizer.gradient_norm()
        is_finite = torch.isfinite(self._loss) & torch.isfinite(norm)
        if self._training.max_gradient_norm:
            optimizer.clip_(norm, self._training.max_gradient_norm)
        rate, muon_rate = buffers["rates"].unbind()
        optimizer.step_if(is_finite, rate, muon_rate)
        if self._averaging is not None:
            self._averaging.update(is_finite)
        self._numbers.copy_(torch.stack((self._loss, norm)))
