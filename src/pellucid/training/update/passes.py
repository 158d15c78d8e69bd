"""Forward and backward passes by the fastest path; `pellucid.training.plain` is their reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.model import EncoderDecoder, Transformer
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.kernels.kernel_model import ModelOnKernels, choose_kernels
from pellucid.training.fast.pytorch import ModelOnPyTorch
from pellucid.training.update.batch_parts import BatchPart, repeat_batch
from pellucid.training.weights.schedule import make_dropout


class Passes:
    """Forward and backward passes of a model, on the package's kernels or on PyTorch's.

    ``kernels`` describes them, and ``seconds_waited`` is the time of the last sum in which this
    process waited for others.

    Args:
        model: its parameters get the gradients.
        training: the settings.
        precision: of the passes.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
    ) -> None:
        self._training = training
        self.seconds_waited = 0.0
        self._device = next(model.parameters()).device
        losses = AttentionLosses(model.config, training)
        kernels, self.kernels = choose_kernels(
            model.config,
            training,
            precision,
            self._device,
            has_output_bias=model.output_bias is not None,
        )
        self.way: ModelOnKernels | ModelOnPyTorch
        if kernels is None:
            self.way = ModelOnPyTorch(model, training, precision, losses)
        else:
            assert isinstance(model, Transformer)
            self.way = ModelOnKernels(model, kernels, losses)

    def refresh_weights(self) -> None:
        """Take the weights as they are now, for the passes of one update."""
        self.way.refresh_weights()

    def sum_gradients(
        self, step: int, pieces: Sequence[BatchPart], into: Sequence[Tensor] = ()
    ) -> Tensor:
        """Leave the sum of the pieces' gradients, each times its share, in the model.

        Args:
            step: decides what dropout drops.
            pieces: of the update.
            into: tensors for the gradients of the trained parameters, used if the passes can.

        Returns:
            The same sum of their losses, without smoothing.
        """
        training = self._training
        way = self.way
        way.clear_gradients(into)
        total = torch.zeros((), device=self._device)
        for piece in pieces:
            batch = repeat_batch(piece.batch) if training.r_drop else piece.batch
            loss = way.add_gradient(
                batch,
                make_dropout(training, step=step, part=piece.part),
                smoothing=training.label_smoothing,
                r_drop=training.r_drop,
                share=piece.share,
            )
            total += piece.share * loss
        return total
