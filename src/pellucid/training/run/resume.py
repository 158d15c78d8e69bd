"""Resume a run, with checks of its text and its models, or go back to a checkpoint, once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pellucid.bundle import MANIFEST, load_bundle, read_json_object
from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError, PellucidError, TrainingError
from pellucid.files import hash_bytes, read_bytes
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.training.learner import Learner
from pellucid.training.plain import UpdateResult
from pellucid.training.run.checkpoint import LoadedCheckpoint, TrainingState, load_newest_checkpoint
from pellucid.training.run.folder import RunFolder
from pellucid.training.run.run_end import is_done

SKIPPED_BEFORE_ROLL_BACK = 3
"""Updates in a row that may be skipped before the run goes back to a checkpoint."""

RATE_AFTER_ROLL_BACK = 0.5
"""Factor on the learning rate after going back."""


def check_start(
    checkpoint: LoadedCheckpoint | None, fingerprint: str, run: RunFolder, validate_every: int
) -> None:
    """Refuse to continue with other tokens, or to replace a later model by starting over.

    The first validation keeps its model before the first checkpoint is saved. After a crash in
    between, that part is trained again. So is everything if no checkpoint could ever be saved,
    because the disk was full: the same models are made again.

    Args:
        checkpoint: the checkpoint to continue from; None if the run has none.
        fingerprint: of the present tokens.
        run: the run's folder.
        validate_every: steps between validations.

    Raises:
        ConfigurationError: the tokens differ, or the checkpoints are gone.
    """
    if checkpoint is None:
        if run.never_had_checkpoint:
            _announce_start_over(run)
        else:
            _require_no_later_model(run, validate_every)
        return
    run.note_checkpoint()  # in case the run was killed right after saving the first
    if checkpoint.fingerprint != fingerprint:
        raise ConfigurationError(
            f"The text must be what this run started with, but the tokens in {run.data} differ "
            f"(their fingerprint is not that in {checkpoint.folder}). Delete {run.data} and put "
            "the earlier text back, or train on with the new text in another folder (-o), with "
            f"--start {run.path}."
        )


def _announce_start_over(run: RunFolder) -> None:
    step = run.last_step()
    if step:
        run.log(
            f"No checkpoint could be saved before this run stopped after step {step}, so it starts "
            f"over. It makes the same models again, which replace that in {run.bundle}."
        )


def _require_no_later_model(run: RunFolder, validate_every: int) -> None:
    try:
        step = int(read_json_object(run.bundle / MANIFEST)["training"]["step"])
    except (PellucidError, OSError, KeyError, TypeError, ValueError):
        return
    if max(step, run.last_step()) > validate_every:
        raise ConfigurationError(
            f"{run.checkpoints} holds no checkpoint to continue from, and another model would "
            f"replace that of step {step} in {run.bundle}. Put the checkpoints back, or choose "
            f"another folder (-o), with --start {run.path} to continue training that model."
        )


def find_finished(run: RunFolder, training: TrainingConfig) -> TrainingState | None:
    """Return the last state of a run of which nothing is left to do, and say so; otherwise None.

    Args:
        run: the run's folder.
        training: the settings, whose limits may be other ones than before.
    """
    with suppress(PellucidError, OSError, ValueError):
        step = int(read_bytes(run.finished))
        load_bundle(run.bundle)
        checkpoint = load_newest_checkpoint(run.checkpoints)[0]
        state = TrainingState() if checkpoint is None else checkpoint.state
        # A later limit is planned when training continues.
        is_longer = (training.max_minutes or 0.0) > state.stop_minutes
        now = replace(state, stop_at=0.0) if is_longer else state
        if state.step == step and is_done(training.model_copy(update=state.course), now):
            run.say(
                f"This run is finished ({step:,} steps): nothing of it was changed. To train for "
                "longer, raise the limit that ended it (--minutes, training.patience), or choose "
                "another folder (-o)."
            )
            return state
    return None


def check_validation(state: TrainingState, pairs: Sequence[SentencePair]) -> None:
    """Refuse other validation text than the run started with: its figures could not be compared.

    Args:
        state: of the run; it takes the hash of the text, if it has none.
        pairs: the validation text.

    Raises:
        ConfigurationError: the text differs.
    """
    lines = "".join(f"{pair.source}\n{pair.target}\n" for pair in pairs)
    found = hash_bytes(lines.encode())
    if state.validation not in ("", found):
        raise ConfigurationError(
            "The validation text must be what this run started with, but it differs "
            "(data.validation). Put the earlier text back, or "
            "train on with the new text in another folder (-o), with --start and this run's folder."
        )
    state.validation = found


def is_best_model_lost(state: TrainingState, run: RunFolder) -> bool:
    """Tell whether the best model is gone or damaged, and log it: another takes its place."""
    if not state.best_step:
        return False
    try:
        load_bundle(run.bundle)
    except (PellucidError, OSError) as error:
        run.log(
            f"The best model, of step {state.best_step}, cannot be read, so the best from here on "
            f"takes its place. {error}"
        )
        return True
    return False


def must_roll_back(learner: Learner, run: RunFolder, updated: UpdateResult) -> bool:
    """Log an update that was skipped, and tell whether the run must go back.

    Args:
        learner: it has counted the update.
        run: the folder of the run.
        updated: the update, whose loss or gradient is not finite.

    Raises:
        TrainingError: the run has gone back once before.
    """
    state = learner.state
    run.log(
        f"Skipped update {updated.step or state.step}: its loss is {updated.loss:g} and its "
        f"gradient's length {updated.gradient_norm:g}. The weights are as they were."
    )
    if state.skipped_in_a_row < SKIPPED_BEFORE_ROLL_BACK:
        return False
    if state.roll_backs:
        raise TrainingError(
            f"Loss or gradients were not finite in {state.skipped_in_a_row} updates in a row up to "
            f"step {state.step}, again after going back once at a lower rate. The last good "
            f"checkpoint is whole ({run.checkpoints}); train again with a lower "
            "training.learning_rate or a longer training.warmup_steps."
        )
    return True


def roll_back(learner: Learner, run: RunFolder, training: TrainingConfig) -> None:
    """Take the newest checkpoint of a validation, or the start, at a lower learning rate.

    The best model so far stays, because the bundle in the run folder may be later than the
    checkpoint. So do the counts of time and of skipped updates.
    """
    before = learner.state
    learner.restore(newest_checkpoint(run, to_go_back_every=training.validate_every))
    run.drop_after(learner.state.step, learner.state.validated_step)
    state = learner.state
    state.roll_backs = 1
    state.rate_factor = RATE_AFTER_ROLL_BACK
    state.skipped_updates = before.skipped_updates
    state.skipped_in_a_row = 0
    state.seconds = before.seconds
    state.take_best(before)
    # Step 0 has no checkpoint to take these from.
    state.processes = before.processes
    state.validation = before.validation
    state.course = before.course
    run.log(
        f"Went back from step {before.step} to step {state.step}, to continue at "
        f"{RATE_AFTER_ROLL_BACK:g} times the learning rate."
    )


def newest_checkpoint(run: RunFolder, *, to_go_back_every: int = 0) -> LoadedCheckpoint | None:
    """Load the newest checkpoint that is whole, and log those that are not; None if none is.

    Args:
        run: the folder of the run.
        to_go_back_every: take one that a run may go back to, as `save_checkpoint` keeps it.
    """
    checkpoint, skipped = load_newest_checkpoint(run.checkpoints, to_go_back_every=to_go_back_every)
    for message in skipped:
        run.log(message)
    return checkpoint
