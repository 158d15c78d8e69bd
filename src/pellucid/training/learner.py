"""The learner: model, optimizer, average and state, saved and restored as one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.config import BundleConfig, LanguagesConfig, ModelConfig, Recipe, TrainingConfig
from pellucid.errors import TrainingError
from pellucid.model import EncoderDecoder, initialize, make_model
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.plain import UpdateResult
from pellucid.training.run.checkpoint import LoadedCheckpoint, TrainingState
from pellucid.training.start.plan import TrainingPlan
from pellucid.training.update.ranks import Ranks
from pellucid.training.update.step import Updater
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer, freeze
from pellucid.training.weights.schedule import learning_rate, muon_learning_rate


class Learner:
    """Model, optimizer, average and state of one run, and what updates them.

    Args:
        training: the settings.
        config: of the bundle that training makes.
        tokenizer: of that bundle.
        plan: what the training computes on.
        start: the model to start from, instead of random weights.
        checkpoint: the state to continue from; None to start.
        ranks: the processes that share every update.
    """

    updater: Updater

    def __init__(
        self,
        training: TrainingConfig,
        config: BundleConfig,
        tokenizer: Tokenizer,
        plan: TrainingPlan,
        start: Bundle | None = None,
        checkpoint: LoadedCheckpoint | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.training = training
        self.config = config
        self.tokenizer = tokenizer
        self.plan = plan
        self._start = start
        self._ranks = ranks
        self.restore(checkpoint)

    def restore(self, checkpoint: LoadedCheckpoint | None) -> None:
        """Take the state of a checkpoint; None means the state that training starts from."""
        if "updater" in vars(self):
            self.updater.close()
        # Memory may not hold two models, so the former goes before the next is made.
        for name in ("updater", "model", "optimizer", "averaging"):
            vars(self).pop(name, None)
        training = self.training
        start = self._start
        plan = self.plan
        has_bias = start is not None and start.model.output_bias is not None
        self.model = make_model(self.config.model, has_output_bias=has_bias)
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint.weights)
        elif start is not None:
            self.model.load_state_dict(start.model.state_dict())
        else:
            initialize(self.model, training.seed)
        freeze(self.model, training.freeze)
        self.model.to(plan.device)
        self.state = TrainingState() if checkpoint is None else checkpoint.state
        plan.note_in(self.state)
        self.optimizer = Optimizer(self.model, training, plan.precision, plan.kernels.kernels)
        self.averaging = Averaging(self.model, training)
        if checkpoint is not None:
            self.optimizer.restore(checkpoint.tensors["optimizer"])
            self.averaging.restore(checkpoint.tensors["averaging"])
        self.updater = Updater(
            self.model,
            self.optimizer,
            training,
            plan.precision,
            plan.processes,
            self._ranks,
            averaging=self.averaging if plan.has_few_shapes else None,
        )

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """Collect what a checkpoint holds in addition to the weights."""
        return {"optimizer": self.optimizer.tensors(), "averaging": self.averaging.tensors()}

    @property
    def rates(self) -> tuple[float, float]:
        """The learning rate of the latest step, and Muon's."""
        step = max(1, self.state.step)
        rate = learning_rate(step, self.training, self.config.model.d_model)
        muon_rate = muon_learning_rate(step, self.training)
        return self.state.rate_factor * rate, self.state.rate_factor * muon_rate

    def count(self, updated: UpdateResult) -> None:
        """Count an update in the state and in the average of the weights."""
        state = self.state
        if not updated.was_made:
            state.skipped_updates += 1
            state.skipped_in_a_row += 1
            return
        if self.updater.recorded is None:
            self.averaging.update()
        state.target_tokens += updated.num_target_tokens
        state.unlogged_tokens += updated.num_target_tokens
        state.unlogged_loss += updated.loss * updated.num_target_tokens
        state.skipped_in_a_row = 0

    def require_finite_weights(self) -> None:
        """Check that all weights are finite, before they are validated or saved.

        Raises:
            TrainingError: an update was so large that some are not.
        """
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise TrainingError(
                    f"Some weights in {name} are not finite after step {self.state.step}. The last "
                    "good checkpoint is whole; train again with a lower training.learning_rate or "
                    "training.weight_decay."
                )

    def judged_model(self) -> EncoderDecoder:
        """Make the model that would be kept now, on the processor."""
        if self.training.averaging == "none" and self.plan.device.type == "cpu":
            return self.model
        judged = make_model(self.config.model, has_output_bias=self.model.output_bias is not None)
        judged.load_state_dict(self.averaging.weights())
        return judged


def make_bundle_config(recipe: Recipe, tokenizer: Tokenizer) -> BundleConfig:
    """Make the configuration of the bundle that a recipe trains."""
    model = recipe.model.model_dump() | {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    return BundleConfig(
        languages=LanguagesConfig(
            source=recipe.data.source_language, target=recipe.data.target_language
        ),
        decoding=recipe.decoding,
        model=ModelConfig.model_validate(model),
        tokenizer=tokenizer.config,
    )
