"""What is looked at when a run goes on: its checkpoints, its text, and its best model."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.bundle import MANIFEST, load_bundle, read_json
from pellucid.errors import ConfigurationError, PellucidError
from pellucid.files import hash_bytes
from pellucid.text import Pair
from pellucid.train.run.checkpoint import LoadedCheckpoint, TrainingState
from pellucid.train.run.folder import RunFolder

__all__ = ["check_start", "check_validation", "is_best_model_lost"]


def check_start(
    checkpoint: LoadedCheckpoint | None, fingerprint: str, run: RunFolder, validate_every: int
) -> None:
    """Refuse to go on with other tokens, or anew where checkpoints led to the model that is kept.

    The first validation keeps its model before there is a checkpoint: what a crash in between
    leaves is made again.

    Args:
        checkpoint: where training goes on; None where there is none.
        fingerprint: of the tokens at hand.
        run: its folder.
        validate_every: steps between validations.

    Raises:
        ConfigurationError: the tokens are others, or the checkpoints are gone.
    """
    if checkpoint is None:
        _require_no_later_model(run, validate_every)
    elif checkpoint.fingerprint not in ("", fingerprint):
        raise ConfigurationError(
            f"The text must be what this run began with, but the tokens in {run.data} are others "
            f"(their fingerprint is not that in {checkpoint.folder}). Delete {run.data} and put "
            "the earlier text back, or choose another --out for a new run."
        )


def _require_no_later_model(run: RunFolder, validate_every: int) -> None:
    try:
        step = int(read_json(run.bundle / MANIFEST)["training"]["step"])
    except (PellucidError, OSError, KeyError, TypeError, ValueError):
        return
    if max(step, run.last_step()) > validate_every:
        raise ConfigurationError(
            f"A run must have a checkpoint to go on from, but {run.checkpoints} holds none, and "
            f"another model would take the place of that of step {step} in {run.bundle}. Put the "
            f"checkpoints back, or choose another --out, with --from {run.path} to train on from "
            "that model."
        )


def check_validation(state: TrainingState, pairs: Sequence[Pair]) -> None:
    """Refuse to compare figures of other validation text than the run began with.

    Args:
        state: of the run; it learns what the text is, if it does not know.
        pairs: the validation text.

    Raises:
        ConfigurationError: it is another.
    """
    lines = "".join(f"{pair.source}\n{pair.target}\n" for pair in pairs)
    found = hash_bytes(lines.encode())
    if state.validation not in ("", found):
        raise ConfigurationError(
            "The validation text must be what this run began with, but is another "
            "(data.validation_source, data.validation_target). Put the earlier text back, or "
            "choose another --out for a new run."
        )
    state.validation = found


def is_best_model_lost(state: TrainingState, run: RunFolder) -> bool:
    """Whether the best model is gone or damaged, which is said: another takes its place."""
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
