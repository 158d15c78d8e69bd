"""The training loop: teacher forcing, one update after the other, until a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pellucid.bundle import Bundle
from pellucid.check.data_check import check_data
from pellucid.config import Recipe
from pellucid.errors import LostRankError, TrainingError
from pellucid.files import write_text
from pellucid.machine.devices import choose_device
from pellucid.machine.hardware import (
    keep_freed_memory,
    leave_lasting_objects,
    set_threads,
)
from pellucid.text.reading.sentence_pairs import check_text_files
from pellucid.training.console.messages import (
    Interval,
    LogTimes,
    announce,
    describe_best,
    describe_interval,
    expected_time,
)
from pellucid.training.console.training_progress import TrainingProgress
from pellucid.training.feed import Feed, UpdateBatches
from pellucid.training.learner import Learner, make_bundle_config
from pellucid.training.plain import UpdateResult
from pellucid.training.run.checkpoint import TrainingState, delete_later_checkpoints
from pellucid.training.run.device_work import watch_device
from pellucid.training.run.folder import RunFolder, read_chosen
from pellucid.training.run.interruption import Interruption
from pellucid.training.run.limit import TimeLimit
from pellucid.training.run.metrics import MetricsWriter, require_tensorboard
from pellucid.training.run.resume import (
    check_start,
    check_validation,
    find_finished,
    must_roll_back,
    newest_checkpoint,
    roll_back,
)
from pellucid.training.run.run_end import (
    TrainingSummary,
    describe_failure,
    describe_next,
    has_learned_nothing,
    is_done,
    share_done,
)
from pellucid.training.run.saving import Saver
from pellucid.training.run.validator import Validator
from pellucid.training.start.course import plan_course
from pellucid.training.start.filling import FilledRecipe
from pellucid.training.start.from_model import extend_bundle, load_start
from pellucid.training.start.plan import make_plan
from pellucid.training.start.prepare import PreparedData, prepare_data
from pellucid.training.update.memory_estimate import require_memory
from pellucid.training.update.ranks import Ranks
from pellucid.training.update.threads import ThreadTrials
from pellucid.training.weights.schedule import learning_rate


def train(
    recipe: Recipe,
    out: Path,
    *,
    recipe_folder: Path,
    progress: bool = True,
    filled: FilledRecipe | None = None,
    ranks: Ranks | None = None,
    check: Callable[[], Sequence[str]] | None = None,
    began: float | None = None,
) -> TrainingSummary:
    """Train a model, or continue where the same command stopped.

    Args:
        recipe: everything about the run.
        out: the run folder; made if it is not there.
        recipe_folder: where the recipe's relative file names start.
        progress: show a live bar on a terminal.
        filled: the settings that were chosen for the user, and why.
        ranks: the processes that share every update; by default as many as the recipe says.
        check: finds the lines of the data check; by default it is made here, first.
        began: the ``time.monotonic()`` from which ``max_minutes`` counts; None: the first update.

    Raises:
        InputError: the recipe, the text or the folder cannot be used; nothing is lost.
        TrainingError: the loss is not finite any more, or far above that of guessing at the end.
        KeyboardInterrupt, SystemExit: Ctrl-C, SIGTERM or a closed terminal; the step is saved.
    """
    set_threads(None)
    check_text_files(recipe.data, recipe_folder)
    require_memory(recipe.model, recipe.training, choose_device(recipe.training.device))
    if recipe.training.log.tensorboard:
        require_tensorboard()
    filled = filled or FilledRecipe({}, [], {})
    run = RunFolder(out, recipe, filled.chosen, filled.reasons)
    start = load_start(recipe.start, out)
    with ranks or Ranks() as ranks, Interruption() as interruption, run.locked():
        ranks.interruption = interruption
        with interruption.abandonable(), run.created():
            is_new = not run.data.is_dir()
            if is_new and check is None:
                for line in check_data(recipe.data, recipe_folder).brief():
                    run.log(line)
            prepared = prepare_data(
                recipe,
                recipe_folder,
                run,
                tokenizer=start.tokenizer if start else None,
                learned=start.manifest if start else None,
                text=filled.text,
            )
            # A check in another process runs beside the preparation, so its lines come after it.
            if is_new and check is not None:
                for line in check():
                    run.log(line)
            state = find_finished(run, recipe.training)
            if state is not None:
                return TrainingSummary.of(run.bundle, state)
            if start is not None:
                start = extend_bundle(start, prepared.tokenizer)
            spent = 0.0 if began is None else time.monotonic() - began
            trainer = Trainer(recipe, run, prepared, ranks, start, spent)
        # From here on every step needs blocks of the same sizes again (decision 0010).
        keep_freed_memory()
        num_batches = trainer.feed.batches_in_epoch(0)
        for line in announce(
            trainer.recipe,
            prepared,
            trainer.learner,
            filled.choices,
            num_batches=num_batches,
            shapes=trainer.feed.describe_shapes() if trainer.learner.plan.has_few_shapes else "",
        ):
            run.log(line)
        with TrainingProgress(is_wanted=progress) as bar:
            while True:
                with closing(trainer.learner.updater), closing(trainer.threads):
                    summary = trainer.run_to_the_end(interruption, bar)
                if summary is not None:
                    return summary
                # Continued from the checkpoint, as by another start, so that both compute the same.
                del trainer
                trainer = Trainer(recipe, run, prepared, ranks, start, spent)


class Trainer:
    """One run in progress: the model, its optimizer, and how far they are.

    Args:
        recipe: everything about the run.
        run: its folder.
        prepared: its data.
        ranks: the processes that share every update.
        start: the model to start from, instead of random weights.
        spent: seconds of ``max_minutes`` that this start has taken already.
    """

    def __init__(
        self,
        recipe: Recipe,
        run: RunFolder,
        prepared: PreparedData,
        ranks: Ranks,
        start: Bundle | None = None,
        spent: float = 0.0,
    ) -> None:
        self.run = run
        self.prepared = prepared
        checkpoint = newest_checkpoint(run)
        check_start(checkpoint, prepared.store.fingerprint, run, recipe.training.validate_every)
        state = TrainingState() if checkpoint is None else checkpoint.state
        training = recipe.training.model_copy(update=state.course)
        recipe = recipe.model_copy(update={"training": training})
        self.recipe = recipe
        self.training = training
        config = make_bundle_config(recipe, prepared.tokenizer)
        plan = make_plan(
            config.model,
            training,
            state,
            longest=prepared.longest,
            has_output_bias=start is not None and start.model.output_bias is not None,
            ranks=ranks,
        )
        if state.kernels not in ("", plan.kernels.description):
            run.log(
                f"So far this run used {state.kernels}; from here on it uses "
                f"{plan.kernels.description}. The last digits of its numbers change."
            )
        run.write_plan({**plan.to_record(), "course": state.course})
        self.learner = Learner(training, config, prepared.tokenizer, plan, start, checkpoint, ranks)
        state = self.learner.state
        run.drop_after(state.step, state.validated_step)
        check_validation(state, prepared.validation)
        self.feed = Feed(
            prepared,
            recipe,
            max_tokens_per_batch=plan.max_tokens_per_batch,
            has_few_shapes=plan.has_few_shapes,
        )
        self.threads = ThreadTrials(plan.threads if plan.has_same_bits_on_any_threads else 1)
        self._saver = Saver(run, recipe, prepared.store, self.learner)
        self._metrics = MetricsWriter(run, training, state.step)
        self._validator = Validator(run, prepared, self.learner, self._saver, self._metrics)
        self._limit = TimeLimit(training, state, spent)
        self._first = replace(state)
        self._times = LogTimes(state)
        self._interval = Interval()
        self._work = watch_device(self.learner)
        self._started = time.monotonic()
        self._fault = ""

    @leave_lasting_objects()
    def run_to_the_end(
        self, interruption: Interruption, bar: TrainingProgress
    ) -> TrainingSummary | None:
        """Train until a limit is reached; validate and save as often as the recipe says.

        Returns:
            What came of it, or None if the course was planned again: a new trainer continues.
        """
        self._started = time.monotonic() - self.learner.state.seconds
        if self.learner.state.step == 0:
            self._saver.save_bundle(self.run.untrained)
        if self._validator.is_due:
            self._validate_and_save(interruption)
        while not is_done(self.training, self.learner.state):
            self.learner.updater.start()
            self._begin_interval()
            with closing(self.feed.updates(self.learner.state.step)) as updates:
                for update in updates:
                    was_made = self._advance(update, bar)
                    if was_made and self._plan_again():
                        return None
                    if self._validator.is_due:
                        self._validate_and_save(interruption)
                    elif self._saver.is_due:
                        self._save()
                    if interruption.signal is not None:
                        self._stop()
                        interruption.exit_if_signaled()
                    # After going back to a checkpoint, the feed begins again at its step.
                    if is_done(self.training, self.learner.state) or not was_made:
                        break
        return self._finish()

    def _advance(self, update: UpdateBatches, bar: TrainingProgress) -> bool:
        """Make one update; return False if the run went back to a checkpoint instead."""
        learner = self.learner
        state = learner.state
        began = time.monotonic()
        state.step += 1
        rate, muon_rate = learner.rates
        try:
            known = learner.updater.advance(
                state.step, update.batches, rate=rate, muon_rate=muon_rate
            )
        except LostRankError:
            state.step -= 1  # The next start makes this update.
            self._stop()
            raise
        self._work.count(update.batches)
        num_tokens = sum(batch.num_target_tokens for batch in update.batches)
        changed = self.threads.count(num_tokens, time.monotonic() - began)
        if changed is not None:
            self.run.log(changed)
        if self._must_know:
            known += learner.updater.read()
        state.seconds = time.monotonic() - self._started
        if self._count(known):
            self._roll_back()
            return False
        self._say_if_step_by_step()
        self._saver.keep_if_asked()
        bar.update(
            share_done(self.training, state),
            step=state.step,
            loss=state.recent_loss,
            speed=self._interval.tokens_per_second,
            rate=rate,
            bleu=state.best_bleu,
        )
        if self._times.knows_speed(state):
            self.run.log(expected_time(state, self.training, self._interval.seconds_per_update))
        self._record_if_due(update.epoch, rate)
        return True

    def _begin_interval(self) -> None:
        self._interval = Interval()
        self._work.begin()

    @property
    def _must_know(self) -> bool:
        """True if the results of all updates are needed now, and not some updates later."""
        state = self.learner.state
        return (
            state.step % self.training.log.log_every == 0
            or self._times.is_line_due
            or self._validator.is_due
            or is_done(self.training, state)
        )

    def _count(self, known: Sequence[UpdateResult]) -> bool:
        """Count the results of updates; return True if the run must go back to a checkpoint."""
        for updated in known:
            self.learner.count(updated)
            self._work.add(updated)
            if updated.was_made:
                self._interval.add(updated)
            elif must_roll_back(self.learner, self.run, updated):
                return True
            if updated.was_split:
                step = updated.step or self.learner.state.step
                self.run.log(f"Lowered the batches of step {step}: memory ran out.")
        return False

    def _say_if_step_by_step(self) -> None:
        """Log once why a GPU does not repeat its updates by itself."""
        recorded = self.learner.updater.recorded
        if recorded is None or recorded.fault == self._fault:
            return
        self._fault = recorded.fault
        self.run.log(
            f"Updates are computed step by step, as the device cannot record them: {self._fault}. "
            "They take longer; the numbers are the same."
        )

    def _record_if_due(self, epoch: int, rate: float) -> None:
        interval = self._interval
        state = self.learner.state
        if not state.unlogged_tokens:
            return
        loss = state.recent_loss
        is_due = state.step % self.training.log.log_every == 0
        if is_due or self._times.is_line_due:
            line = describe_interval(interval, state, self._times, epoch, rate)
            self.run.log(line + self._work.describe_line(interval.seconds))
        if not is_due:
            return
        if advice := self._work.end_line(interval.seconds):
            self.run.log(advice)
        self._metrics.add(
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
        self._begin_interval()
        state.unlogged_tokens = 0
        state.unlogged_loss = 0.0
        state.logged_loss = loss
        self._times.note_line(state)

    def _plan_again(self) -> bool:
        """Shorten the course to the time limit, once; return True if a checkpoint holds it."""
        state = self.learner.state
        if not self._limit.must_plan():
            return False
        num_pairs = len(self.prepared.validation)
        a_validation = self._limit.plan_validation(self._validator.time_a_pair(), num_pairs)
        state.course, sentence = plan_course(
            self.training,
            before=self._first,
            now=state,
            per_validation=a_validation,
            chosen=read_chosen(self.run.path) or {},
        )
        if state.validation_pairs:
            sentence += f" Validation reads {state.validation_pairs:,} of {num_pairs:,} pairs."
        if state.course and not self._save():
            state.course = {}
            sentence = ""
        if sentence:
            self.run.log(sentence.strip())
        return bool(state.course)

    def _roll_back(self) -> None:
        """Go back to a checkpoint, and save one that later starts take instead of later ones."""
        roll_back(self.learner, self.run, self.training)
        step = self.learner.state.step
        self._metrics.rewind(step)
        if self._save():
            delete_later_checkpoints(self.run.checkpoints, step)

    def _validate_and_save(self, interruption: Interruption) -> None:
        try:
            with interruption.abandonable():
                found = self._validator.validate()
        except (KeyboardInterrupt, SystemExit):
            where = "there" if self._save() else "from the last checkpoint"
            self.run.log(
                f"Stopped while validating step {self.learner.state.step}; the same command "
                f"continues {where}."
            )
            raise
        self.learner.state.seconds = time.monotonic() - self._started
        self._limit.note_validation(self._validator.seconds)
        self._validator.keep_if_better(found)
        self._begin_interval()
        self._save()

    def _save(self) -> bool:
        """Save a checkpoint, and leave the time it took out of the speed; return True if saved."""
        started = time.monotonic()
        self._count(self.learner.updater.read())
        try:
            return self._saver.save_checkpoint()
        finally:
            self._interval.leave_out(time.monotonic() - started)

    def _stop(self) -> None:
        """Save, and say where the same command continues."""
        where = "continues" if self._save() else "continues from the last checkpoint"
        self.run.log(f"Stopped after step {self.learner.state.step}; the same command {where}.")
        self._saver.write_report()

    def _finish(self) -> TrainingSummary:
        """Report what was learned.

        Raises:
            TrainingError: no model was kept, or nothing was learned.
        """
        self._saver.catch_up()
        learner = self.learner
        state = learner.state
        training = self.training
        if not state.best_step or self._saver.has_lost_best:
            raise TrainingError(
                "No model was kept: the validation loss was never finite. Train again with a lower "
                "training.learning_rate."
            )
        if has_learned_nothing(state, learner.tokenizer):
            self._saver.write_report()
            peak = learning_rate(training.warmup_steps, training, learner.config.model.d_model)
            raise TrainingError(describe_failure(state, training, learner.tokenizer, peak))
        self.run.log(
            f"Done: {state.step} steps in {state.seconds / 60:.1f} minutes, best "
            f"validation {describe_best(state, training.best_by)} at step {state.best_step}. "
            f"The model is in {self.run.bundle}."
        )
        if said := self._work.summarize():
            self.run.log(said)
        if read_chosen(self.run.path):  # The recipe does not plan everything itself.
            self.run.log(describe_next(training, state, len(self.prepared.store)))
        self._saver.write_report()
        self.run.write_waiting_lines()
        write_text(self.run.finished, f"{state.step}\n")
        return TrainingSummary.of(self.run.bundle, state)
