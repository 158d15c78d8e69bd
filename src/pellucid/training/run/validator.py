"""Validations of a run: measure the model that would be kept now, and keep the best."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from pellucid.machine.devices import is_out_of_memory
from pellucid.machine.hardware import some_threads
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.training.learner import Learner
from pellucid.training.run.folder import RunFolder
from pellucid.training.run.limit import TIMED_PAIRS
from pellucid.training.run.metrics import MetricsWriter
from pellucid.training.run.run_end import (
    describe_guessing,
    has_reached_limit,
    is_done,
    is_far_above_guessing,
)
from pellucid.training.run.saving import Saver
from pellucid.training.start.prepare import PreparedData
from pellucid.training.validation import (
    Validation,
    validate_model,
)
from pellucid.translate.translator import Translator

SECONDS_TO_TIME = 1.0
"""Time that a measured validation on a device should take: below, most of it is its start."""

TOKENS_ON_DEVICE = 1 << 15
"""Positions that a device validates at once: at the size ``big`` half a gigabyte of activations."""


class Validator:
    """Validates the model of a run, and keeps it if it is the best so far.

    Args:
        run: the folder.
        prepared: holds the validation text.
        learner: its model is measured.
        saver: keeps the best.
        metrics: takes the figures.

    Attributes:
        seconds: time of the latest validation; 0 before the first.
    """

    def __init__(
        self,
        run: RunFolder,
        prepared: PreparedData,
        learner: Learner,
        saver: Saver,
        metrics: MetricsWriter,
    ) -> None:
        self._run = run
        self._prepared = prepared
        self._learner = learner
        self._training = learner.training
        self._saver = saver
        self._metrics = metrics
        self._device = learner.plan.device
        self._translator: Translator | None = None
        self.seconds = 0.0

    @property
    def is_due(self) -> bool:
        """True if the weights of this step are to be validated now."""
        training = self._training
        state = self._learner.state
        if state.step == state.validated_step:
            # A best model that was lost must be replaced before training ends.
            return self._saver.has_lost_best and is_done(training, state)
        return state.step % training.validate_every == 0 or has_reached_limit(training, state)

    def validate(self) -> Validation:
        """Measure the weights that would be kept now, and record the figures."""
        began = time.monotonic()
        learner = self._learner
        state = learner.state
        learner.require_finite_weights()
        found = self._measure(self._pairs)
        # A validation that is repeated after an interruption is recorded once.
        if state.step != state.validated_step:
            self._metrics.add(
                "validation",
                {
                    "step": state.step,
                    "seconds": round(state.seconds, 3),
                    "loss": found.loss,
                    "bleu": found.bleu,
                    "chrf": found.chrf,
                },
            )
        best_by = self._saver.better_by(found)
        outside = self._prepared.validation_outside
        self._run.log(found.describe(state.step, best_by=best_by, outside=outside))
        if is_far_above_guessing(found.loss, learner.tokenizer):
            self._run.log(describe_guessing(learner.tokenizer))
        self.seconds = time.monotonic() - began
        return found

    def keep_if_better(self, found: Validation) -> None:
        """Log samples, keep the model if it is the best so far, and count validations."""
        state = self._learner.state
        is_new = state.step != state.validated_step
        if is_new:
            self._log_samples(found)
        is_better = self._saver.better_by(found) is not None
        if is_new:
            state.validations_without_better += 1
            if is_better:
                state.validations_without_better = 0
        if is_better:
            self._saver.keep_best(found)
        state.validated_step = state.step
        self._learner.averaging.validated(found.grade(self._training.best_by))

    def time_a_pair(self) -> float:
        """Measure how long a validation takes before there was one: seconds a pair."""
        pairs = self._prepared.validation
        number = TIMED_PAIRS
        while True:
            began = time.monotonic()
            self._measure(pairs[:number])
            seconds = time.monotonic() - began
            # Elsewhere the first sentences start libraries, and a few take as long as many.
            is_sure = self._device.type == "cpu" or seconds > SECONDS_TO_TIME
            if is_sure or number >= len(pairs):
                return seconds / min(number, len(pairs))
            number *= 4

    def _measure(self, pairs: Sequence[SentencePair]) -> Validation:
        """Measure on the device of training, or on the processor if memory runs out."""
        # Last digits of a search may depend on the number of threads.
        with some_threads(self._learner.plan.threads):
            try:
                return self._measure_there(pairs)
            except RuntimeError as error:
                if self._device.type == "cpu" or not is_out_of_memory(error):
                    raise
            # Only here, since an error that is being handled keeps its tensors.
            self._translator = None
            self._run.log(
                f"Validation runs on the processor from here on: {self._device} has no memory left."
            )
            self._device = torch.device("cpu")
            torch.cuda.empty_cache()
            return self._measure_there(pairs)

    def _measure_there(self, pairs: Sequence[SentencePair]) -> Validation:
        learner = self._learner
        if self._device.type == "cpu":
            # Made again, since what decodes prepares the weights for the processor once.
            translator = Translator(learner.judged_model(), learner.tokenizer)
            return validate_model(translator, pairs)
        # Kept with its memory, so that the steps that the device has recorded serve again.
        if self._translator is None:
            model = learner.judged_model().to(self._device)
            self._translator = Translator(model, learner.tokenizer)
        else:
            self._translator.model.load_state_dict(learner.averaging.weights())
        return validate_model(self._translator, pairs, batch_tokens=TOKENS_ON_DEVICE)

    @property
    def _pairs(self) -> list[SentencePair]:
        """The validation pairs, as many as a time limit allows."""
        return self._prepared.validation[: self._learner.state.validation_pairs or None]

    def _log_samples(self, found: Validation) -> None:
        step = self._learner.state.step
        samples = zip(self._pairs, found.translations, strict=True)
        for number, (pair, translation) in enumerate(samples):
            if number == self._training.log.validation_samples:
                return
            sample = {"step": step, "source": pair.source, "reference": pair.target}
            self._metrics.add_sample(number, {**sample, "translation": translation})
            self._run.log(f"             {pair.source} → {translation}")
