"""The training loop: teacher forcing, one update after the other, until a limit is reached."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.bundle import Bundle, save_bundle
from pellucid.config import Recipe
from pellucid.errors import OutputError, TrainingError
from pellucid.hardware import choose_device, keep_freed_memory, leave_lasting_objects
from pellucid.text import check_files
from pellucid.text.check import check_data
from pellucid.train.console.messages import Interval, announce, describe_interval, expected_time
from pellucid.train.console.progress import TrainingProgress
from pellucid.train.feed import Feed, Update
from pellucid.train.learner import Learner
from pellucid.train.plain import Updated
from pellucid.train.report.page import write_report
from pellucid.train.run.checkpoint import (
    delete_later_checkpoints,
    load_newest_checkpoint,
    save_checkpoint,
)
from pellucid.train.run.folder import RunFolder
from pellucid.train.run.interruption import Interruption
from pellucid.train.run.provenance import provenance
from pellucid.train.run.recorder import Recorder
from pellucid.train.run.resume import check_start, check_validation, is_best_model_lost
from pellucid.train.run.tensorboard import require_tensorboard
from pellucid.train.start.from_model import load_start
from pellucid.train.start.prepare import PreparedData, prepare_data
from pellucid.train.update.memory import require_memory
from pellucid.train.validation import validate_model
from pellucid.translator import Translator

__all__ = ["Trainer", "TrainingSummary", "train"]

SKIPPED_BEFORE_GOING_BACK = 3
"""Updates in a row whose loss or gradient is no number, after which the run goes back."""

RATE_AFTER_GOING_BACK = 0.5

STEPS_BEFORE_ESTIMATE = 20
"""Updates after which the time that is left is told."""


@dataclass(frozen=True)
class TrainingSummary:
    """What a finished training gave.

    Attributes:
        bundle: the folder of the best model.
        steps: updates made.
        best_bleu: its validation BLEU.
        best_step: where that was.
        seconds: training time, over all resumptions.
    """

    bundle: Path
    steps: int
    best_bleu: float
    best_step: int
    seconds: float


def train(
    recipe: Recipe,
    out: Path,
    *,
    recipe_folder: Path,
    progress: bool = True,
    choices: Sequence[str] = (),
    chosen: Mapping[str, Any] | None = None,
) -> TrainingSummary:
    """Train a model, or go on where the same command stopped.

    Args:
        recipe: everything about the run.
        out: the run folder; made if it is not there.
        recipe_folder: where the recipe's relative file names start.
        progress: show a live bar on a terminal.
        choices: sentences about settings that were chosen for the user, to be shown.
        chosen: these settings, ``section.name``, with their values.

    Raises:
        InputError: the recipe, the text or the folder cannot be used; nothing is lost.
        TrainingError: the loss is no longer a number.
        KeyboardInterrupt: Ctrl-C; the step was finished and saved.
        SystemExit: SIGTERM or a closed terminal, likewise.
    """
    check_files(recipe.data, recipe_folder)
    require_memory(recipe.model, recipe.training, choose_device(recipe.training.device))
    if recipe.training.tensorboard:
        require_tensorboard()
    run = RunFolder(out, recipe, chosen)
    start = load_start(recipe.start, out)
    with Interruption() as interruption, run.alone():
        with interruption.at_once(), run.created():
            if not run.data.is_dir():
                for line in check_data(recipe.data, recipe_folder).brief():
                    run.log(line)
            tokenizer = None if start is None else start.tokenizer
            prepared = prepare_data(recipe, recipe_folder, run, tokenizer=tokenizer)
            trainer = Trainer(recipe, run, prepared, start=start)
        keep_freed_memory()
        for line in announce(
            recipe,
            prepared,
            trainer.learner,
            choices,
            num_batches=trainer.feed.batches_in_epoch(0),
            is_new_budget=trainer.is_new_budget,
        ):
            run.log(line)
        with closing(trainer.learner), TrainingProgress(is_wanted=progress) as bar:
            return trainer.run_to_the_end(interruption, bar)


class Trainer:
    """One run in progress: the model, its optimizer, and how far they are.

    Args:
        recipe: everything about the run.
        run: its folder.
        prepared: its data.
        start: the model to start from, instead of random weights.

    Attributes:
        is_new_budget: whether the tokens of a batch were settled now, and not by an earlier start.
    """

    def __init__(
        self, recipe: Recipe, run: RunFolder, prepared: PreparedData, *, start: Bundle | None = None
    ) -> None:
        self.recipe, self.training = recipe, recipe.training
        self.run, self.prepared = run, prepared
        self.learner = Learner(recipe, prepared, start)
        self._go_to_newest_checkpoint()
        state = self.learner.state
        check_validation(state, prepared.validation)
        self._has_lost_best = is_best_model_lost(state, run)
        state.precision = state.precision or self.learner.precision
        self.is_new_budget = not state.max_tokens_per_batch
        state.max_tokens_per_batch = state.max_tokens_per_batch or self.learner.fit_into_memory()
        state.processes = state.processes or self.learner.processes
        self.learner.note_kernels(run.log)
        self.feed = Feed(prepared, recipe, max_tokens_per_batch=state.max_tokens_per_batch)
        self._recorder = Recorder(run, self.training, state.step)
        self._interval = Interval()
        self._started = self._saved = time.monotonic()
        self._first_step = state.step

    @leave_lasting_objects()
    def run_to_the_end(self, interruption: Interruption, bar: TrainingProgress) -> TrainingSummary:
        """Train until a limit is reached, validating and saving on the way."""
        self._started = time.monotonic() - self.learner.state.seconds
        if self.learner.state.step == 0:
            self._save_bundle(self.run.untrained)
        if self._must_validate():
            self._validate_and_save(interruption)
        while not self._is_done():
            self.learner.start()
            self._interval = Interval()
            with closing(self.feed.updates(self.learner.state.step)) as updates:
                for update in updates:
                    goes_on = self._advance(update, bar)
                    if self._must_validate():
                        self._validate_and_save(interruption)
                    elif self._must_save():
                        self._save()
                    if interruption.signal is not None:
                        self._leave(interruption)
                    if self._is_done() or not goes_on:
                        break
        state = self.learner.state
        if not state.best_step or self._has_lost_best:
            raise TrainingError(
                "The loss of the validation text must be a number for a model to be kept, but was "
                "none in any validation. Train anew with a lower training.learning_rate."
            )
        self.run.log(
            f"Done: {state.step} steps in {state.seconds / 60:.1f} minutes, best "
            f"validation BLEU {state.best_bleu:.1f} at step {state.best_step}. "
            f"The model is in {self.run.bundle}."
        )
        self._report_page()
        return TrainingSummary(
            self.run.bundle, state.step, state.best_bleu, state.best_step, state.seconds
        )

    def _advance(self, update: Update, bar: TrainingProgress) -> bool:
        """Make one update; False where the run went back to a checkpoint instead."""
        learner = self.learner
        updated = learner.update(update.batches)
        state = learner.state
        state.seconds = time.monotonic() - self._started
        if updated.was_made:
            self._interval.add(updated)
        elif not self._skip(updated):
            return False
        if updated.was_split:
            self.run.log(f"Lowered the batches of step {state.step}: memory ran out.")
        bar.update(
            self._share_done(),
            step=state.step,
            loss=state.recent_loss,
            speed=self._interval.tokens_per_second,
            rate=learner.rates[0],
            bleu=state.best_bleu,
        )
        if state.step == self._first_step + STEPS_BEFORE_ESTIMATE:
            self.run.log(expected_time(state, self.training, self._interval.seconds_per_update))
        self._record_if_due(update.epoch)
        return True

    def _skip(self, updated: Updated) -> bool:
        """Count an update that was not made; after several in a row go back, once."""
        state = self.learner.state
        self.run.log(
            f"Skipped update {state.step}: its loss is {updated.loss:g} and its gradient's length "
            f"{updated.gradient_norm:g}. The weights are as they were."
        )
        if state.skipped_in_a_row < SKIPPED_BEFORE_GOING_BACK:
            return True
        if state.roll_backs:
            raise TrainingError(
                f"Loss and gradients must be numbers, but were none in {state.skipped_in_a_row} "
                f"updates in a row up to step {state.step}, again after going back once at a lower "
                f"rate. The last good checkpoint is whole ({self.run.checkpoints}); train anew "
                "with a lower training.learning_rate or a longer training.warmup_steps."
            )
        before = state
        self._go_to_newest_checkpoint(to_go_back_every=self.training.validate_every)
        state = self.learner.state
        state.roll_backs, state.rate_factor = 1, RATE_AFTER_GOING_BACK
        state.skipped_updates, state.skipped_in_a_row = before.skipped_updates, 0
        state.seconds = before.seconds
        if before.best_bleu > state.best_bleu:  # The model in RUN/bundle is later than the place.
            state.best_bleu, state.best_step = before.best_bleu, before.best_step
        # Step 0 has no checkpoint to take these from.
        state.precision, state.processes = before.precision, before.processes
        state.kernels, state.max_tokens_per_batch = before.kernels, before.max_tokens_per_batch
        state.validation = before.validation
        self.run.log(
            f"Went back from step {before.step} to step {state.step}, to go on at "
            f"{RATE_AFTER_GOING_BACK:g} times the learning rate."
        )
        self._recorder.begin_anew(state.step)
        if self._save():
            delete_later_checkpoints(self.run.checkpoints, state.step)
        return False

    def _go_to_newest_checkpoint(self, *, to_go_back_every: int = 0) -> None:
        """Take everything from the newest checkpoint that is whole, or begin at step 0.

        Args:
            to_go_back_every: take one that a run may go back to, as `save_checkpoint` keeps it.
        """
        checkpoint, skipped = load_newest_checkpoint(
            self.run.checkpoints, to_go_back_every=to_go_back_every
        )
        for message in skipped:
            self.run.log(message)
        if not to_go_back_every:
            fingerprint, every = self.prepared.store.fingerprint, self.training.validate_every
            check_start(checkpoint, fingerprint, self.run, every)
        self.learner.restore(checkpoint)
        self.run.forget_after(self.learner.state.step)

    def _record_if_due(self, epoch: int) -> None:
        interval, state = self._interval, self.learner.state
        if state.step % self.training.log_every or not state.unlogged_tokens:
            return
        loss, rate = state.recent_loss, self.learner.rates[0]
        self._recorder.record(
            "train",
            {
                "step": state.step,
                "epoch": epoch,
                "seconds": round(state.seconds, 3),
                "target_tokens": state.target_tokens,
                "loss": loss,
                "learning_rate": rate,
                "gradient_norm": interval.gradient_norm,
            },
        )
        self.run.log(describe_interval(interval, state, epoch, rate))
        self._interval = Interval()
        state.unlogged_tokens, state.unlogged_loss = 0, 0.0

    def _must_validate(self) -> bool:
        state = self.learner.state
        if state.step == state.validated_step:
            return self._has_lost_best and self._is_done()
        return state.step % self.training.validate_every == 0 or self._reached_limit()

    def _must_save(self) -> bool:
        minutes = self.training.save_minutes
        return 0 < 60 * minutes <= time.monotonic() - self._saved

    def _validate_and_save(self, interruption: Interruption) -> None:
        try:
            with interruption.at_once():
                found = self._validate()
        except (KeyboardInterrupt, SystemExit):
            where = "there" if self._save() else "from the last checkpoint"
            self.run.log(
                f"Stopped while validating step {self.learner.state.step}; the same command goes "
                f"on {where}."
            )
            raise
        self.learner.state.seconds = time.monotonic() - self._started
        self._keep_if_better(*found)
        self._save()

    def _validate(self) -> tuple[float, tuple[str, ...]]:
        """Measure the weights that would be kept now, and write the figures down.

        Returns:
            The BLEU, below all others where the loss is no number, and the translations.
        """
        learner, state = self.learner, self.learner.state
        learner.require_numbers()
        translator = Translator(learner.judged_model(), learner.tokenizer)
        found = validate_model(translator, self.prepared.validation)
        figures = {"loss": found.loss, "bleu": found.bleu, "chrf": found.chrf}
        if state.step != state.validated_step:
            self._recorder.record(
                "validation", {"step": state.step, "seconds": round(state.seconds, 3), **figures}
            )
        bleu = found.bleu if math.isfinite(found.loss) else -math.inf
        self.run.log(found.describe(state.step, is_best=self._is_better(bleu)))
        return bleu, found.translations

    def _keep_if_better(self, bleu: float, translations: Sequence[str]) -> None:
        learner, state = self.learner, self.learner.state
        samples = zip(self.prepared.validation, translations, strict=True)
        for number, (pair, translation) in enumerate(samples):
            if number == self.training.validation_samples:
                break
            sample = {"step": state.step, "source": pair.source, "reference": pair.target}
            self._recorder.sample(number, {**sample, "translation": translation})
            self.run.log(f"             {pair.source} → {translation}")
        is_better = self._is_better(bleu)
        if state.step != state.validated_step:
            num_without = state.validations_without_better
            state.validations_without_better = 0 if is_better else num_without + 1
        if is_better:
            self._keep(bleu)
        state.validated_step = state.step
        learner.averaging.validated(bleu)
        self._interval = Interval()

    def _is_better(self, bleu: float) -> bool:
        return bleu > (-1.0 if self._has_lost_best else self.learner.state.best_bleu)

    def _keep(self, bleu: float) -> None:
        """Save the best model so far; where the disk does not take it, say so and train on.

        The best BLEU stays then what it was, for a later validation to try again. At the end this
        one is made again by the same command.
        """
        state = self.learner.state
        before = state.best_bleu, state.best_step
        state.best_bleu, state.best_step = bleu, state.step
        try:
            self._save_bundle(self.run.bundle)
            self._has_lost_best = False
        except OutputError as error:
            state.best_bleu, state.best_step = before
            if self._is_done():
                self._save()
                raise
            self.run.log(f"The model of step {state.step} was not kept. {error}")

    def _save_bundle(self, folder: Path) -> None:
        """Save the model as it is validated, the average of its weights where there is one."""
        save_bundle(
            folder,
            config=self.learner.config,
            weights=self.learner.averaging.weights(),
            tokenizer=self.learner.tokenizer,
            recipe_toml=self.run.recipe_toml,
            provenance=self._provenance(),
        )

    def _provenance(self) -> dict[str, Any]:
        store, start = self.prepared.store, self.recipe.start
        return provenance(self.learner.state, store, self.training, start)

    def _save(self) -> bool:
        """Save a checkpoint; where the disk does not take it, say so and train on.

        Returns:
            Whether it was saved.
        """
        learner = self.learner
        learner.require_numbers()
        self._saved = time.monotonic()
        try:
            save_checkpoint(
                self.run.checkpoints,
                learner.state,
                model_weights=learner.model.state_dict(),
                tensors=learner.tensors(),
                config=learner.config,
                tokenizer=learner.tokenizer,
                recipe_toml=self.run.recipe_toml,
                provenance=self._provenance(),
                keep=self.training.keep_checkpoints,
                every=self.training.validate_every,
            )
        except OutputError as error:
            if self._is_done():
                raise
            self.run.log(f"The checkpoint of step {learner.state.step} was not saved. {error}")
            return False
        finally:
            self._interval.leave_out(time.monotonic() - self._saved)
        return True

    def _leave(self, interruption: Interruption) -> None:
        """Save, then end as the signal says."""
        where = "goes on" if self._save() else "goes on from the last checkpoint"
        self.run.log(f"Stopped after step {self.learner.state.step}; the same command {where}.")
        self._report_page()
        interruption.leave()

    def _report_page(self) -> None:
        try:
            write_report(self.run.path)
        except OutputError as error:
            self.run.log(f"The report was not written. {error}")

    def _reached_limit(self) -> bool:
        state, limit_seconds = self.learner.state, self.training.max_minutes * 60
        return state.step >= self.training.max_steps or 0 < limit_seconds <= state.seconds

    def _is_done(self) -> bool:
        patience = self.training.patience
        return self._reached_limit() or (
            0 < patience <= self.learner.state.validations_without_better
        )

    def _share_done(self) -> float:
        state = self.learner.state
        share = state.step / self.training.max_steps
        if self.training.max_minutes:
            share = max(share, state.seconds / (60 * self.training.max_minutes))
        return min(1.0, share)
