"""One training update, written to be read: forward, loss, backward, check, optimizer step.

`compute_loss` computes the loss of one batch, `sum_gradients` adds up the gradients of an update's
batches, `move_weights` clips the sum and takes the optimizer's step; `make_update` does all three.
The cross-entropy itself stands in `training/fast/loss.py`; tests compare it with PyTorch's.

Training runs `move_weights`, and the gradients of `pellucid.training.fast`, which tests compare
with those of this file; in float32 on PyTorch's operations they are the same bits. R-Drop and
losses of attention exist only there. `pellucid.training.update.step.Updater` cuts batches if
memory runs out.

Source:
    Vaswani et al. 2017, section 5; notes "Transformers", section 4.2, on teacher forcing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.model import Dropout, EncoderDecoder
from pellucid.training.fast.loss import smoothed_cross_entropy
from pellucid.training.update.batch_parts import BatchPart, to_device
from pellucid.training.weights.optimizer import Optimizer
from pellucid.training.weights.schedule import make_dropout


def compute_loss(
    model: EncoderDecoder, batch: Batch, smoothing: float, dropout: Dropout | None
) -> tuple[Tensor, Tensor]:
    r"""Run encoder and decoder with the true target given (teacher forcing), and compare.

    The loss of one token is $-\sum_v q_v \log p_v$ with $q_v = (1 - ε)[v = y] + ε/|V|$. It is that
    of PyTorch's ``cross_entropy``, computed without holding all logits.

    Returns:
        The mean label-smoothed loss, which has gradients, and the mean loss without smoothing.
    """
    device = model.output_weight.device
    # P is the axis of the real target positions: padding has no loss. They are found before the
    # batch goes to a GPU, where counting them would make the processor wait.
    real_P = batch.target_mask_BT.flatten().nonzero()[:, 0].to(device)
    batch = to_device(batch, device)
    # Without the look-ahead mask a row also sees the rows after it, so padding must be masked.
    target_mask_BT = None if model.config.look_ahead_mask else batch.target_mask_BT
    memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS, dropout=dropout)
    states_BTD = model.decode(
        batch.target_in_BT,
        memory_BSD,
        batch.source_mask_BS,
        target_mask_BT=target_mask_BT,
        dropout=dropout,
    )
    return smoothed_cross_entropy(
        states_BTD.flatten(0, 1)[real_P],
        model.output_weight,
        model.output_bias,
        batch.target_out_BT.flatten()[real_P],
        smoothing=smoothing,
    )


def sum_gradients(
    model: EncoderDecoder, pieces: Sequence[BatchPart], training: TrainingConfig, *, step: int
) -> Tensor:
    """Leave the gradient of the mean loss per target token in the model's parameters.

    What memory cannot hold at once comes in pieces, each with its share of the target tokens.

    Returns:
        The mean loss without smoothing, on the model's device.
    """
    device = next(model.parameters()).device
    model.zero_grad(set_to_none=True)
    mean_loss = torch.zeros((), device=device)
    for piece in pieces:
        dropout = make_dropout(training, step=step, part=piece.part)
        smoothed, loss = compute_loss(model, piece.batch, training.label_smoothing, dropout)
        # Each token counts the same, in whichever batch it is.
        (smoothed * piece.share).backward()  # type: ignore[no-untyped-call]
        mean_loss += piece.share * loss
    return mean_loss


@dataclass(frozen=True)
class UpdateResult:
    """The result of one update.

    Attributes:
        loss: mean −log p of the true tokens, in nats, without smoothing.
        gradient_norm: length of the whole gradient, before it was clipped.
        num_target_tokens: target tokens, padding not counted.
        was_made: False if loss or gradient was not finite: the weights are as they were.
        was_split: True if memory ran out, so that `Updater` cut batches.
        seconds_waited: time in which this process waited for the other ranks.
        seconds_worked: time that a device took which repeats updates by itself.
        step: the update's number, if others have begun since.
    """

    loss: float
    gradient_norm: float
    num_target_tokens: int
    was_made: bool
    was_split: bool = False
    seconds_waited: float = field(default=0.0, compare=False)
    seconds_worked: float = field(default=0.0, compare=False)
    step: int | None = None


def move_weights(
    optimizer: Optimizer,
    training: TrainingConfig,
    mean_loss: Tensor,
    *,
    num_tokens: int,
    rate: float,
    muon_rate: float,
) -> UpdateResult:
    """Clip the gradient and take the optimizer's step, if loss and gradient are finite."""
    norm = optimizer.gradient_norm()
    # One transfer for both numbers: on a GPU each one waits for the device.
    loss, gradient_norm = torch.stack((mean_loss, norm.to(mean_loss.dtype))).tolist()
    is_finite = math.isfinite(loss) and math.isfinite(gradient_norm)
    if is_finite:
        if training.max_gradient_norm:
            optimizer.clip_(norm, training.max_gradient_norm)
        optimizer.step(rate, muon_rate)
    return UpdateResult(loss, gradient_norm, num_tokens, was_made=is_finite)


def make_update(
    model: EncoderDecoder,
    optimizer: Optimizer,
    pieces: Sequence[BatchPart],
    training: TrainingConfig,
    *,
    step: int,
    rate: float,
    muon_rate: float,
) -> UpdateResult:
    """Make one update: sum the gradients of its pieces, then move the weights.

    Args:
        model: its float32 weights are updated.
        optimizer: over those weights.
        pieces: the batches, or parts of them, each with its share of the target tokens.
        training: the settings.
        step: the update's number, from 1; it decides what dropout drops.
        rate: the learning rate.
        muon_rate: the learning rate of matrices with ``optimizer = "muon"``.
    """
    mean_loss = sum_gradients(model, pieces, training, step=step)
    num_tokens = sum(piece.batch.num_target_tokens for piece in pieces)
    return move_weights(
        optimizer, training, mean_loss, num_tokens=num_tokens, rate=rate, muon_rate=muon_rate
    )
