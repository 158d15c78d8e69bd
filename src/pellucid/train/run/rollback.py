"""Updates that cannot be made: skip a few, then go back to a checkpoint, once."""

from __future__ import annotations

from pellucid.config import TrainingConfig
from pellucid.errors import TrainingError
from pellucid.train.learner import Learner
from pellucid.train.plain import UpdateResult
from pellucid.train.run.checkpoint import LoadedCheckpoint, load_newest_checkpoint
from pellucid.train.run.folder import RunFolder

SKIPPED_BEFORE_ROLL_BACK = 3
"""Updates in a row that may be skipped before the run goes back to a checkpoint."""

RATE_AFTER_ROLL_BACK = 0.5
"""Factor on the learning rate after going back."""


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
        f"Skipped update {state.step}: its loss is {updated.loss:g} and its gradient's length "
        f"{updated.gradient_norm:g}. The weights are as they were."
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
    state.roll_backs, state.rate_factor = 1, RATE_AFTER_ROLL_BACK
    state.skipped_updates, state.skipped_in_a_row = before.skipped_updates, 0
    state.seconds = before.seconds
    state.take_best(before)
    # Step 0 has no checkpoint to take these from.
    state.processes, state.validation = before.processes, before.validation
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
