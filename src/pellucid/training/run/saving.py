"""Saving while a model trains: checkpoints and the best bundle, also when the disk is full."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import pellucid
from pellucid.bundle import read_json_object, save_bundle
from pellucid.config import Recipe
from pellucid.data import TokenStore
from pellucid.errors import OutputError, missing_extra
from pellucid.machine.hardware import describe_machine
from pellucid.text.learned import STATISTICS
from pellucid.text.reading.held_out import SET_ASIDE
from pellucid.training.learner import Learner
from pellucid.training.run.checkpoint import save_checkpoint
from pellucid.training.run.folder import RunFolder
from pellucid.training.run.resume import is_best_model_lost
from pellucid.training.run.run_end import is_done
from pellucid.training.validation import MEASURES, Validation


class Saver:
    """Saves checkpoints and the best model of one run.

    If the disk does not take a file, this is logged and training continues; at the end of training
    it is an error, because the same command can then try again. Models that it did not take are
    saved before the next checkpoint, and without them there is none: a start from an earlier
    checkpoint makes these models again.

    Args:
        run: its folder.
        recipe: everything about the run.
        store: the training text.
        learner: what is saved.

    Attributes:
        has_lost_best: True if the best model of an earlier start cannot be read.
    """

    def __init__(self, run: RunFolder, recipe: Recipe, store: TokenStore, learner: Learner) -> None:
        self._run = run
        self._recipe = recipe
        self._store = store
        self._learner = learner
        self._saved = time.monotonic()
        self._waiting: dict[Path, dict[str, Any]] = {}
        self.has_lost_best = is_best_model_lost(learner.state, run)

    @property
    def is_due(self) -> bool:
        """True if ``save_minutes`` have passed since the last checkpoint."""
        minutes = self._recipe.training.log.save_minutes
        return 0 < 60 * minutes <= time.monotonic() - self._saved

    def better_by(self, found: Validation) -> str | None:
        """Name the measure by which a model would be the best so far; None if it would not.

        The first model that is measured is the best.
        """
        state = self._learner.state
        best_by = self._recipe.training.best_by
        rank = found.rank(best_by)
        names = MEASURES[best_by]
        if not rank:
            return None
        if not state.best_step or self.has_lost_best:
            return names[0]
        best = state.best_rank
        if rank <= tuple(best):
            return None
        equal = [value == before for value, before in zip(rank, best, strict=False)]
        deciding = equal.index(False) if False in equal else len(equal)
        # BLEU is named if it is higher, also if it is smoothed and did not decide.
        is_higher = names[0] == "BLEU" and found.bleu > state.best_bleu
        return names[0] if is_higher else names[min(deciding, len(names) - 1)]

    def save_checkpoint(self) -> bool:
        """Save a checkpoint.

        Returns:
            True if it was saved, False if the disk did not take it.

        Raises:
            OutputError: the disk does not take it, and training is done.
            TrainingError: some weights are not finite.
        """
        learner = self._learner
        training = self._recipe.training
        learner.require_finite_weights()
        self._saved = time.monotonic()
        try:
            self.catch_up()
            save_checkpoint(
                self._run.checkpoints,
                learner.state,
                model_weights=learner.model.state_dict(),
                tensors=learner.tensors(),
                config=learner.config,
                tokenizer=learner.tokenizer,
                recipe_toml=self._run.recipe_toml,
                provenance=self._provenance(),
                keep=training.keep_checkpoints,
                every=training.validate_every,
            )
        except OutputError as error:
            if is_done(training, learner.state):
                raise
            self._run.log(f"The checkpoint of step {learner.state.step} was not saved. {error}")
            return False
        self._run.note_checkpoint()
        return True

    def keep_best(self, found: Validation) -> None:
        """Save the current model as the best so far.

        If the disk does not take it, it is saved before the next checkpoint.

        Raises:
            OutputError: the disk takes neither it nor a checkpoint, and training is done.
        """
        state = self._learner.state
        before = replace(state)
        state.best_bleu = found.bleu
        state.best_chrf = found.chrf
        state.best_loss = found.loss
        state.best_rank = list(found.rank(self._recipe.training.best_by))
        state.best_step = state.step
        bundle = self._bundle()
        try:
            save_bundle(self._run.bundle, **bundle)
            self._waiting.pop(self._run.bundle, None)
        except OutputError as error:
            best = replace(state)
            state.take_best(before)
            self.save_checkpoint()  # A start from it validates this step again.
            state.take_best(best)
            self._wait_for(self._run.bundle, bundle, error)
        self.has_lost_best = False

    def keep_if_asked(self) -> None:
        """Keep the current model for a history, if it is the turn of its step.

        Raises:
            OutputError: the disk did not take an earlier one, and still does not.
        """
        every = self._recipe.training.log.keep_every
        step = self._learner.state.step
        if not every or step % every:
            return
        if self._waiting.keys() - {self._run.bundle}:  # A full disk must not fill memory too.
            self.catch_up()
        folder = self._run.history / f"step-{step:08d}"
        bundle = self._bundle()
        try:
            save_bundle(folder, **bundle)
        except OutputError as error:
            self._wait_for(folder, bundle, error)

    def catch_up(self) -> None:
        """Save what the disk did not take before.

        Raises:
            OutputError: it still does not.
        """
        self._run.write_waiting_lines()
        for folder in list(self._waiting):
            save_bundle(folder, **self._waiting[folder])
            del self._waiting[folder]

    def save_bundle(self, folder: Path) -> None:
        """Save the model as it is validated: the average of its weights if one is kept."""
        save_bundle(folder, **self._bundle())

    def _bundle(self) -> dict[str, Any]:
        return {
            "config": self._learner.config,
            "weights": self._learner.averaging.weights(),
            "tokenizer": self._learner.tokenizer,
            "recipe_toml": self._run.recipe_toml,
            "provenance": self._provenance(),
        }

    def _wait_for(self, folder: Path, bundle: dict[str, Any], error: OutputError) -> None:
        """Remember a model that could not be saved; training goes on to change its weights."""
        copies = {name: weight.to("cpu", copy=True) for name, weight in bundle["weights"].items()}
        self._waiting[folder] = bundle | {"weights": copies}
        self._run.log(
            f"The model of step {self._learner.state.step} could not be saved, and is tried again "
            f"before the next checkpoint. {error}"
        )

    def write_report(self) -> None:
        """Write the report of the run, or log why it was not written."""
        try:
            from pellucid.training.report.report_page import write_report  # It needs Matplotlib.

            write_report(self._run.path)
        except (OutputError, ModuleNotFoundError) as error:
            self._run.log(f"The report was not written. {missing_extra(error) or error}")

    def _provenance(self) -> dict[str, object]:
        """Describe the training so far for a manifest."""
        state = self._learner.state
        store = self._store
        recipe = self._recipe
        start = {"started_from": recipe.start.model_hash} if recipe.start.model else {}
        # It is below 0 before the first validation.
        chrf = {"validation_chrf": state.best_chrf} if state.best_chrf >= 0 else {}
        set_aside = read_json_object(self._run.data / SET_ASIDE)
        return {
            "library": {"pellucid": pellucid.__version__, "torch": torch.__version__},
            "data": {
                "fingerprint": store.fingerprint,
                "pairs": len(store),
                "dropped": store.dropped,
                "text": read_json_object(self._run.data / STATISTICS),
                **({"set_aside": set_aside} if set_aside else {}),
            },
            "training": {
                "step": state.step,
                "target_tokens": state.target_tokens,
                "seed": recipe.training.seed,
                "precision": state.precision,
                "processes": state.processes,
                "skipped_updates": state.skipped_updates,
                **start,
            },
            "metrics": {
                "validation_bleu": state.best_bleu,
                **chrf,
                "best_step": state.best_step,
            },
            "durations": {"training_seconds": round(state.seconds, 1)},
            "machine": describe_machine(),
        }
